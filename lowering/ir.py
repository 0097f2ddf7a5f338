"""The one MLIR context of the process, and NumPy dtypes and shapes as MLIR types.

Everything that builds or reads MLIR goes through this module, so that ``iree.compiler`` is imported only
when the first program is staged.
"""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np

try:
    from iree.compiler import ir
    from iree.compiler._mlir_libs._mlir import globals as _globals
except ImportError as e:  # pragma: no cover - exercised by the runtime-only environment test
    raise ImportError(
        "staging and compiling need the MLIR compiler: pip install 'xformlib[compiler]' "
        "(loading and running .vmfb artifacts needs only the base package)"
    ) from e

__all__ = ["context", "element_type", "ir", "tensor_type", "type_info", "unknown_location"]

_globals.append_dialect_search_prefix("xformlib.lowering.dialects")

context = ir.Context()
context.allow_unregistered_dialects = True
# Building happens under the GIL only; MLIR's own thread pool would idle.
context.enable_multithreading(False)

unknown_location = ir.Location.unknown(context)

_ELEMENTS: dict[np.dtype[Any], str] = {
    np.dtype(np.bool_): "i1",
    **{np.dtype(f"int{n}"): f"i{n}" for n in (8, 16, 32, 64)},
    **{np.dtype(f"uint{n}"): f"ui{n}" for n in (8, 16, 32, 64)},
    np.dtype(np.float16): "f16",
    np.dtype(ml_dtypes.bfloat16): "bf16",
    np.dtype(np.float32): "f32",
    np.dtype(np.float64): "f64",
    np.dtype(np.complex64): "complex<f32>",
    np.dtype(np.complex128): "complex<f64>",
    np.dtype(ml_dtypes.int2): "i2",
    np.dtype(ml_dtypes.uint2): "ui2",
    np.dtype(ml_dtypes.int4): "i4",
    np.dtype(ml_dtypes.uint4): "ui4",
    np.dtype(ml_dtypes.float4_e2m1fn): "f4E2M1FN",
    np.dtype(ml_dtypes.float8_e3m4): "f8E3M4",
    np.dtype(ml_dtypes.float8_e4m3): "f8E4M3",
    np.dtype(ml_dtypes.float8_e8m0fnu): "f8E8M0FNU",
    np.dtype(ml_dtypes.float8_e4m3fn): "f8E4M3FN",
    np.dtype(ml_dtypes.float8_e5m2): "f8E5M2",
    np.dtype(ml_dtypes.float8_e4m3b11fnuz): "f8E4M3B11FNUZ",
    np.dtype(ml_dtypes.float8_e4m3fnuz): "f8E4M3FNUZ",
    np.dtype(ml_dtypes.float8_e5m2fnuz): "f8E5M2FNUZ",
}
_ELEMENT_TYPES: dict[np.dtype[Any], ir.Type] = {d: ir.Type.parse(t, context) for d, t in _ELEMENTS.items()}
_DTYPES: dict[ir.Type, np.dtype[Any]] = {t: d for d, t in _ELEMENT_TYPES.items()}


def element_type(dtype: np.dtype[Any]) -> ir.Type:
    """The MLIR element type of a NumPy (or ml_dtypes) dtype."""
    return _ELEMENT_TYPES[dtype]


@functools.cache
def tensor_type(shape: tuple[int, ...], dtype: np.dtype[Any]) -> ir.Type:
    """``tensor<shape x dtype>``."""
    return ir.RankedTensorType.get(shape, _ELEMENT_TYPES[dtype], loc=unknown_location)


@functools.cache
def type_info(type: ir.Type) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """(shape, dtype) of a ranked tensor type; the inverse of :func:`tensor_type`."""
    ranked = ir.RankedTensorType(type)
    return tuple(ranked.shape), _DTYPES[ranked.element_type]
