"""Devices: the CPU always, others when asked for."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from xformlib.runtime.devices import Device, default_device, devices, hal_device
from xformlib.runtime.errors import DeviceError


def test_the_cpu_is_one_device():
    (cpu,) = devices("cpu")
    assert devices() == [cpu] == [default_device()]
    assert repr(cpu) == "CpuDevice(id=0)"
    assert (cpu.platform, cpu.id, cpu.process_index) == ("cpu", 0, 0)
    assert cpu.device_kind


def test_equality_and_hash():
    assert Device("cuda", 1, "a") == Device("cuda", 1, "a") != Device("cuda", 0, "a")
    assert len({Device("cpu", 0, "cpu"), default_device()}) == 1


def test_an_unknown_platform_names_the_known_ones():
    with pytest.raises(DeviceError, match=r"'tpu'.*cpu, vulkan, cuda, rocm"):
        devices("tpu")


@pytest.mark.parametrize(("platform", "advice"), [("vulkan", "libvulkan1"), ("cuda", "libcuda.so"), ("rocm", "HIP")])
def test_a_missing_driver_says_what_to_install(platform, advice):
    try:
        found = devices(platform)
    except DeviceError as e:
        assert advice in str(e)
        assert "runtime/src" not in str(e)
    else:
        assert all(d.platform == platform for d in found)


def test_hal_devices_are_made_once():
    found = []
    threads = [threading.Thread(target=lambda: found.append(hal_device("local-task"))) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(set(map(id, found))) == 1
    with pytest.raises(DeviceError, match="local-sync device 5"):
        hal_device("local-sync", 5)


def test_importing_starts_nothing():
    text = "import sys, xformlib.runtime.devices, xformlib.runtime.executable; print('iree.runtime' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
