"""Buffers between NumPy and devices: zero-copy where that is safe, every dtype IREE has."""

from __future__ import annotations

import functools
import math
import os
from typing import Any

import ml_dtypes
import numpy as np

from xformlib.runtime.devices import Device, binding, hal_device
from xformlib.runtime.errors import ArgumentError, ExecutionError

__all__ = ["ALIGNMENT", "aligned_empty", "dtype_of", "element_types", "from_numpy", "to_numpy"]

# What IREE asks of memory it is to use in place, and what compiled code may assume.
ALIGNMENT = 64

# IREE's element type -> NumPy dtype. Results of integer type are "INT" (no sign); arguments may be "SINT" as well.
_ELEMENTS = {
    "BOOL_8": "bool",
    **{f"{kind}_{n}": f"int{n}" for kind in ("INT", "SINT") for n in (8, 16, 32, 64)},
    **{f"UINT_{n}": f"uint{n}" for n in (8, 16, 32, 64)},
    "FLOAT_16": "float16",
    "BFLOAT_16": "bfloat16",
    "FLOAT_32": "float32",
    "FLOAT_64": "float64",
    "COMPLEX_64": "complex64",
    "COMPLEX_128": "complex128",
    "FLOAT_8_E4M3_FN": "float8_e4m3fn",
    "FLOAT_8_E4M3_FNUZ": "float8_e4m3fnuz",
    "FLOAT_8_E5M2": "float8_e5m2",
    "FLOAT_8_E5M2_FNUZ": "float8_e5m2fnuz",
    "FLOAT_8_E8M0_FNU": "float8_e8m0fnu",
}


@functools.cache
def _dtypes() -> dict[int, np.dtype[Any]]:
    kinds = binding().HalElementType
    return {int(getattr(kinds, k)): np.dtype(getattr(ml_dtypes, d, d)) for k, d in _ELEMENTS.items()}


@functools.cache
def _codes() -> dict[np.dtype[Any], tuple[int, np.dtype[Any]]]:
    """dtype -> (IREE's element type, a dtype of the same width which Python's buffer protocol knows)."""
    known = "?bhilqBHILQefdFD"
    return {d: (code, d if d.char in known else np.dtype(f"u{d.itemsize}")) for code, d in _dtypes().items()}


def _flags(*flags: Any) -> int:
    return sum(map(int, flags))


@functools.cache
def _host_memory() -> tuple[int, int]:
    """Memory type and usage of buffers on the CPU."""
    memory, usage = binding().MemoryType, binding().BufferUsage
    return (
        _flags(memory.DEVICE_LOCAL, memory.HOST_VISIBLE, memory.HOST_COHERENT),
        _flags(usage.DEFAULT, usage.MAPPING),
    )


@functools.cache
def _host() -> tuple[Any, Any]:
    """The HAL device that owns the CPU's buffers (both of the CPU's devices can use them), and its allocator."""
    device = hal_device("local-sync")
    return device, device.allocator


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_host.cache_clear)


def element_types(dtype: str) -> frozenset[int]:
    """The element types that buffers of a dtype may have, by its name."""
    return frozenset(code for code, d in _dtypes().items() if d.name == dtype)


def dtype_of(view: Any) -> np.dtype[Any]:
    """The NumPy dtype of a buffer view's elements.

    Raises:
        ArgumentError: NumPy has no such dtype.
    """
    found = _dtypes().get(view.element_type)
    if found is None:
        raise ArgumentError(f"a buffer has elements of type {view.element_type:#x}, for which NumPy has no dtype.")
    return found


def _code(dtype: np.dtype[Any]) -> tuple[int, np.dtype[Any]]:
    found = _codes().get(dtype) or _codes().get(dtype.newbyteorder("="))
    if found is None:
        names = ", ".join(d.name for d in _codes())
        raise ArgumentError(f"arrays of dtype {dtype} can't be given to a device; convert it to one of {names}.")
    return found


def aligned_empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An uninitialised array whose memory a device can use in place.

    Example:
        >>> aligned_empty((2, 3), "float32").shape
        (2, 3)
    """
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    raw = np.empty(size + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    aligned: np.ndarray = raw[start : start + size].view(dtype).reshape(shape)
    return aligned


def from_numpy(array: np.ndarray, device: Device | None = None, *, alias: bool = False) -> Any:
    """A HAL buffer view with the values of an array of any layout.

    Args:
        array: its dtype is one IREE has.
        device: where the buffer lives; the CPU if None.
        alias: the view may use the array's memory in place, which it does on the CPU if that is contiguous and aligned
            (see :func:`aligned_empty`). The array is kept alive; nobody may write to it while the view or any result
            computed from it is in use.

    Raises:
        ArgumentError: a dtype that IREE lacks.

    Example:
        >>> from_numpy(np.ones((2, 3), np.float32)).shape
        [2, 3]
    """
    code, plain = _codes().get(array.dtype) or _code(array.dtype)
    if device is not None and device.platform != "cpu":
        return _to_device(array, device, code, plain)
    if alias and _usable(array):
        return _in_place(array, code)
    hal, allocator = _host()
    memory, usage = _host_memory()
    return allocator.allocate_buffer_copy(memory, usage, hal, _exportable(array, plain), code)


def _exportable(array: np.ndarray, plain: np.dtype[Any]) -> np.ndarray:
    """The array contiguous, in native byte order, and of a dtype that the buffer protocol knows."""
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if not array.flags.c_contiguous:
        array = np.array(array, order="C")  # unlike ascontiguousarray, keeps rank 0
    return array if array.dtype is plain else array.view(plain)


def _usable(array: np.ndarray) -> bool:
    aligned = array.ctypes.data % ALIGNMENT == 0
    return aligned and array.flags.c_contiguous and array.size > 0 and array.dtype.isnative


class _Bytes:
    """The memory of an array, declared writable: DLPack refuses read-only arrays, though no argument is written to."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        address, size = array.ctypes.data, array.nbytes
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (size,), "data": (address, False)}


def _in_place(array: np.ndarray, code: int) -> Any:
    # Not import_host_allocation: what that imports lives only as long as the Python object of the buffer.
    capsule = np.asarray(_Bytes(array)).__dlpack__()
    memory = _host()[0].from_dlpack_capsule(capsule).get_buffer()
    return binding().HalBufferView(memory, array.shape, code)


def _to_device(array: np.ndarray, device: Device, code: int, plain: np.dtype[Any]) -> Any:
    b, hal = binding(), device.hal()
    return hal.allocator.allocate_buffer_copy(
        int(b.MemoryType.DEVICE_LOCAL), int(b.BufferUsage.DEFAULT), hal, _exportable(array, plain), code
    )


def to_numpy(view: Any, dtype: np.dtype[Any] | None = None, device: Device | None = None) -> np.ndarray:
    """The values of a buffer view as a read-only array; on the CPU without copying.

    Args:
        view: a HAL buffer view.
        dtype: of the array, if it is not the view's own.
        device: where the view lives; needed unless that is the CPU.

    Raises:
        ExecutionError: the values could not be copied from the device.

    Example:
        >>> to_numpy(from_numpy(np.arange(3)))
        array([0, 1, 2])
    """
    if device is not None and device.platform != "cpu":
        view = _to_host(view, device)
    out = np.ndarray(view.shape, dtype or _dtypes().get(view.element_type) or dtype_of(view), view.map())
    out.flags.writeable = False
    return out


def _to_host(view: Any, device: Device) -> Any:
    """A view of a host-visible copy, made by the device."""
    b, hal, source = binding(), device.hal(), view.get_buffer()
    memory = _flags(b.MemoryType.HOST_LOCAL, b.MemoryType.DEVICE_VISIBLE)
    usage = _flags(b.BufferUsage.TRANSFER, b.BufferUsage.MAPPING)
    staging = hal.allocator.allocate_buffer(memory, usage, source.byte_length())
    semaphore = hal.create_semaphore(0)
    try:
        hal.queue_copy(source, staging, b.HalFence.create_at(semaphore, 0), b.HalFence.create_at(semaphore, 1))
        b.HalFence.create_at(semaphore, 1).wait()
    except RuntimeError as e:
        raise ExecutionError(f"an array could not be copied from {device}: {e}") from None
    return b.HalBufferView(staging, view.shape, view.element_type)
