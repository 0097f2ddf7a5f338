"""Devices: created once, at first use, and kept for the life of the process.

A buffer that outlives its HAL device crashes the process, so nothing here is ever released.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
from typing import Any

from xformlib.runtime.errors import DeviceError

__all__ = ["Device", "default_device", "devices", "hal_device", "vm_instance"]

# Platform -> IREE driver. The CPU has two: "local-sync" runs on the calling thread, "local-task" on a pool.
_DRIVERS = {"cpu": "local-sync", "vulkan": "vulkan", "cuda": "cuda", "rocm": "hip"}
_ALIASES = {"gpu": "cuda", "hip": "rocm"}
_MISSING = {
    "vulkan": "install a Vulkan driver and loader (Debian: mesa-vulkan-drivers libvulkan1)",
    "cuda": "install the NVIDIA driver, which brings libcuda.so",
    "rocm": "install AMD's ROCm, which brings the HIP runtime library",
}

_lock = threading.RLock()


class Device:
    """A device that arrays can live on and programs run on."""

    __slots__ = ("device_kind", "id", "platform", "process_index")

    def __init__(self, platform: str, id: int, device_kind: str) -> None:
        self.platform = platform
        self.id = id
        self.device_kind = device_kind
        self.process_index = 0

    def __repr__(self) -> str:
        return f"{self.platform.capitalize()}Device(id={self.id})"

    def __hash__(self) -> int:
        return hash((self.platform, self.id))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and (self.platform, self.id) == (other.platform, other.id)


@functools.cache
def _binding() -> Any:
    """IREE's runtime bindings; importing them starts nothing."""
    from iree.runtime import _binding

    _keep_freed_memory()
    return _binding


def _keep_freed_memory() -> None:
    """Let glibc keep large freed blocks: without this every large result is paid for again in page faults.

    Measured: adding two arrays of 25 million floats 43 -> 19 ms. The process keeps its high-water mark of memory.
    """
    if sys.platform != "linux":
        return
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):  # not glibc
        return
    trim_threshold, top_pad, mmap_threshold = -1, -2, -3
    mallopt(mmap_threshold, 1 << 30)
    mallopt(trim_threshold, (1 << 31) - 1)
    mallopt(top_pad, 64 << 20)


@functools.cache
def vm_instance() -> Any:
    """The one VM instance."""
    with _lock:
        return _binding().VmInstance()


@functools.cache
def hal_device(driver: str, index: int = 0) -> Any:
    """A HAL device of an IREE driver.

    Raises:
        DeviceError: the driver is missing or finds no such device.
    """
    with _lock:
        try:
            found = _binding().get_cached_hal_driver(driver)
            return found.create_default_device() if index == 0 else found.create_device(index)
        except Exception as e:
            platform = next((p for p, d in _DRIVERS.items() if d == driver), driver)
            advice = _MISSING.get(platform, "see xformlib.devices() for what is here")
            raise DeviceError(f"no {platform} device can be used ({_first_line(e)}); {advice}.") from None


def _first_line(e: BaseException) -> str:
    return (str(e).strip() or type(e).__name__).splitlines()[0][:200]


@functools.cache
def _cpu() -> Device:
    return Device("cpu", 0, "cpu")


def default_device() -> Device:
    """Where programs run unless told otherwise: the CPU."""
    return _cpu()


def devices(platform: str | None = None) -> list[Device]:
    """Devices of a platform: ``"cpu"`` (default), ``"vulkan"``, ``"cuda"``, ``"rocm"``.

    Raises:
        DeviceError: an unknown platform, or one whose driver is missing (it says what to install).
    """
    if platform is None:
        return [_cpu()]
    name = _ALIASES.get(platform, platform)
    if name not in _DRIVERS:
        raise DeviceError(f"unknown platform {platform!r}; the platforms are {', '.join(_DRIVERS)}.")
    return [_cpu()] if name == "cpu" else _query(name)


@functools.cache
def _query(platform: str) -> list[Device]:
    driver = _DRIVERS[platform]
    try:
        infos = _binding().get_cached_hal_driver(driver).query_available_devices()
    except Exception as e:
        raise DeviceError(f"no {platform} device can be used ({_first_line(e)}); {_MISSING[platform]}.") from None
    return [Device(platform, i, str(info.get("name", platform))) for i, info in enumerate(infos)]
