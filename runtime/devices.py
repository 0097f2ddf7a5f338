"""Devices: created once, at first use, and kept for the life of the process.

A buffer that outlives its HAL device crashes the process, so nothing here is ever released.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
import threading
from typing import Any

from xformlib.runtime.errors import DeviceError

__all__ = ["Device", "binding", "default_device", "devices", "hal_device", "vm_instance"]

# Platform -> IREE driver. The CPU has two: "local-sync" runs on the calling thread, "local-task" on a pool of threads.
_DRIVERS = {"cpu": "local-sync", "vulkan": "vulkan", "cuda": "cuda", "rocm": "hip"}
_ALIASES = {"gpu": "cuda", "hip": "rocm"}
_MISSING = {
    "vulkan": "install a Vulkan driver and loader (Debian: mesa-vulkan-drivers libvulkan1)",
    "cuda": "install the NVIDIA driver, which brings libcuda.so",
    "rocm": "install AMD's ROCm, which brings the HIP runtime library",
}

_lock = threading.RLock()
_drivers: dict[str, Any] = {}
_hal_devices: dict[tuple[str, int], Any] = {}
_abandoned: list[Any] = []


class Device:
    """A device that arrays can live on and programs run on. Equal if platform and id are."""

    __slots__ = ("device_kind", "id", "platform", "process_index")

    def __init__(self, platform: str, id: int, device_kind: str) -> None:
        self.platform = platform
        self.id = id
        self.device_kind = device_kind
        self.process_index = 0

    def hal(self, mode: str = "local-sync") -> Any:
        """The HAL device behind it; the CPU has one for each of the modes ``"local-sync"`` and ``"local-task"``."""
        return hal_device(mode) if self.platform == "cpu" else hal_device(_DRIVERS[self.platform], self.id)

    def __repr__(self) -> str:
        return f"{self.platform.capitalize()}Device(id={self.id})"

    def __hash__(self) -> int:
        return hash((self.platform, self.id))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and (self.platform, self.id) == (other.platform, other.id)


@functools.cache
def binding() -> Any:
    """IREE's runtime bindings; importing them starts no device."""
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
        libc = ctypes.CDLL(None)
        _, mallopt = libc.gnu_get_libc_version, libc.mallopt
    except (OSError, AttributeError):  # not glibc: the numbers of the options would mean something else
        return
    trim_threshold, top_pad, mmap_threshold = -1, -2, -3
    mallopt(mmap_threshold, 1 << 30)
    mallopt(trim_threshold, (1 << 31) - 1)
    mallopt(top_pad, 64 << 20)


@functools.cache
def vm_instance() -> Any:
    """The one VM instance."""
    return binding().VmInstance()


def hal_device(driver: str, index: int = 0) -> Any:
    """A HAL device of an IREE driver, created at the first request.

    Raises:
        DeviceError: the driver is missing or finds no such device.
    """
    found = _hal_devices.get((driver, index))
    if found is None:
        with _lock:
            found = _hal_devices.get((driver, index))
            if found is None:
                found = _hal_devices[driver, index] = _create(driver, index)
    return found


def _create(driver: str, index: int) -> Any:
    try:
        return _driver(driver).create_device(_driver(driver).query_available_devices()[index]["device_id"])
    except IndexError:
        raise DeviceError(f"there is no {driver} device {index}; see xformlib.devices({driver!r}).") from None
    except (RuntimeError, ValueError) as e:
        raise _unusable(driver, e) from None


def _driver(name: str) -> Any:
    """An IREE driver, of our own and not from IREE's cache: it owns the thread pool, which does not survive a fork."""
    with _lock:
        if name not in _drivers:
            _drivers[name] = binding().create_hal_driver(name)
        return _drivers[name]


def _unusable(driver: str, e: Exception) -> DeviceError:
    platform = next((p for p, d in _DRIVERS.items() if d == driver), driver)
    # IREE's own: "Error creating driver: file.c:641: NOT_FOUND; what is wrong; what may help"
    reason = ((str(e).strip() or type(e).__name__).splitlines()[0].split("; ") * 2)[1]
    advice = _MISSING.get(platform, "see xformlib.devices() for what is here")
    return DeviceError(f"no {platform} device can be used ({reason}); {advice}.")


@functools.cache
def _cpu() -> Device:
    return Device("cpu", 0, "cpu")


def default_device() -> Device:
    """Where programs run unless told otherwise: the CPU."""
    return _cpu()


def devices(platform: str | None = None) -> list[Device]:
    """Devices of a platform: ``"cpu"`` (default), ``"vulkan"``, ``"cuda"`` (or ``"gpu"``), ``"rocm"``.

    Drivers other than the CPU's are looked for only when asked for by name.

    Raises:
        DeviceError: an unknown platform, or one whose driver is missing (it says what to install).

    Example:
        >>> devices("cpu")
        [CpuDevice(id=0)]
    """
    if platform is None:
        return [_cpu()]
    name = _ALIASES.get(platform, platform)
    if name not in _DRIVERS:
        raise DeviceError(f"unknown platform {platform!r}; the platforms are {', '.join(_DRIVERS)}.")
    return [_cpu()] if name == "cpu" else _query(name)


@functools.cache
def _query(platform: str) -> list[Device]:
    try:
        found = _driver(_DRIVERS[platform]).query_available_devices()
    except (RuntimeError, ValueError) as e:
        raise _unusable(_DRIVERS[platform], e) from None
    if not found:
        raise DeviceError(f"the {platform} driver finds no device; {_MISSING[platform]}.")
    return [Device(platform, i, str(info.get("name", platform))) for i, info in enumerate(found)]


def _after_fork() -> None:
    """Thread pools stay behind in the parent: a forked child makes devices of its own. The inherited ones are kept, as
    buffers may refer to them."""
    global _lock
    _lock = threading.RLock()
    _abandoned.extend((*_hal_devices.values(), *_drivers.values()))
    _hal_devices.clear()
    _drivers.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
