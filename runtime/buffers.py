"""Buffers between NumPy and the device."""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np

from xformlib.runtime.devices import _binding, hal_device

__all__ = ["from_numpy", "to_numpy"]

# NumPy dtype name -> (IREE element type, dtype of the same width that NumPy's buffer protocol knows)
_PLAIN = {
    "bool": "BOOL_8",
    "int8": "SINT_8",
    "int16": "SINT_16",
    "int32": "SINT_32",
    "int64": "SINT_64",
    "uint8": "UINT_8",
    "uint16": "UINT_16",
    "uint32": "UINT_32",
    "uint64": "UINT_64",
    "float16": "FLOAT_16",
    "bfloat16": "BFLOAT_16",
    "float32": "FLOAT_32",
    "float64": "FLOAT_64",
    "complex64": "COMPLEX_64",
    "complex128": "COMPLEX_128",
    "float8_e4m3fn": "FLOAT_8_E4M3_FN",
    "float8_e4m3fnuz": "FLOAT_8_E4M3_FNUZ",
    "float8_e5m2": "FLOAT_8_E5M2",
    "float8_e5m2fnuz": "FLOAT_8_E5M2_FNUZ",
}
_DLPACK = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"})


@functools.cache
def element_type(dtype: np.dtype[Any]) -> int:
    """IREE's code of a dtype."""
    return int(getattr(_binding().HalElementType, _PLAIN[dtype.name]))


@functools.cache
def _placement() -> tuple[int, int]:
    b = _binding()
    return int(b.MemoryType.DEVICE_LOCAL), int(b.BufferUsage.DEFAULT | b.BufferUsage.MAPPING)


def from_numpy(array: np.ndarray) -> Any:
    """A HAL buffer view holding a copy of ``array`` (any dtype arrays can have, any layout).

    It lives on the CPU, whose two HAL devices share memory.
    """
    device = hal_device("local-sync")
    memory, usage = _placement()
    plain = array
    if array.dtype.kind == "V" or array.dtype == ml_dtypes.bfloat16:
        plain = array.view(np.dtype(f"u{array.dtype.itemsize}"))
    if not plain.flags.c_contiguous:
        plain = np.ascontiguousarray(plain)
    return device.allocator.allocate_buffer_copy(memory, usage, device, plain, element_type(array.dtype))


class _View:
    """Gives NumPy the DLPack capsule of a HAL buffer view."""

    __slots__ = ("view",)

    def __init__(self, view: Any) -> None:
        self.view = view

    def __dlpack__(self, **_: Any) -> Any:
        return hal_device("local-sync").create_dlpack_capsule(self.view, 1, 0)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def to_numpy(view: Any, dtype: np.dtype[Any] | None = None) -> np.ndarray:
    """The values of a host-visible buffer view, without copying; read-only.

    ``dtype`` is the array's (a view of booleans or bfloat16 may not say); the view's own if None.
    """
    dtype = dtype or _dtype_of(view)
    if dtype.name in _DLPACK and 0 not in view.shape:
        return np.from_dlpack(_View(view))  # type: ignore[arg-type]
    out = view.map().asarray(view.shape, np.dtype(f"u{dtype.itemsize}") if dtype.kind == "V" else dtype)
    out = np.asarray(out).view(dtype)
    out.flags.writeable = False
    return out


@functools.cache
def _dtypes() -> dict[int, np.dtype[Any]]:
    return {element_type(d): d for d in map(_numpy_dtype, _PLAIN)}


def _numpy_dtype(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, name))


def _dtype_of(view: Any) -> np.dtype[Any]:
    return _dtypes()[int(view.element_type)]
