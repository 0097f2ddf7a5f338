"""What may stand for an array: Python scalars, NumPy arrays, and objects that convert themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from xformlib import dtypes
from xformlib.array import Array, ArrayImpl
from xformlib.errors import DtypeError, NotAnArrayError

__all__ = ["is_arraylike", "to_array"]


def to_array(x: Any, name: str = "argument", *, alias: bool = False) -> Any:
    """``x`` as an Array (or the tracer it is).

    NumPy arrays are copied, for they may be modified later; ``alias=True`` is for callers that look at them at once only.
    Python scalars become weakly typed. 64-bit values narrow to 32 bits unless x64 is enabled.

    Raises:
        NotAnArrayError: for lists, strings, None and other objects, naming ``name``.
        DtypeError: for NumPy arrays of objects, strings or dates.
    """
    if isinstance(x, Array):
        return x
    kind = type(x)
    if kind is float or kind is int or kind is complex or kind is bool:
        return _scalar(x)
    if isinstance(x, np.ndarray | np.generic):
        return ArrayImpl(_canonical(np.asarray(x), name, alias))
    if isinstance(x, bool | int | float | complex):
        return _scalar(x)
    for protocol in ("__xformlib_array__", "__jax_array__"):
        convert = getattr(x, protocol, None)
        if convert is not None:
            return to_array(convert(), name)
    if hasattr(x, "__array__") and not isinstance(x, type):
        return ArrayImpl(_canonical(np.asarray(x), name, alias))
    raise NotAnArrayError(
        f"{name} is {kind.__name__} {x!r:.60}, but an array or a number is needed. "
        + ("Convert it with xformlib.numpy.array(...)." if isinstance(x, list | tuple) else "")
    )


def is_arraylike(x: Any) -> bool:
    """Whether :func:`to_array` takes ``x``."""
    if isinstance(x, Array | np.ndarray | np.generic | bool | int | float | complex):
        return not isinstance(x, np.ndarray | np.generic) or x.dtype.kind not in "OUSMm"
    return hasattr(x, "__jax_array__") or hasattr(x, "__xformlib_array__")


def _scalar(x: Any) -> ArrayImpl:
    dtype = dtypes.python_scalar_dtype(type(x))
    try:
        return ArrayImpl(np.asarray(x, dtype), not isinstance(x, bool))
    except OverflowError:
        raise OverflowError(
            f"Python int {x} is too large for {dtype}; enable 64-bit types with "
            "xformlib.config.update('jax_enable_x64', True) or give an explicit dtype."
        ) from None


def _canonical(x: np.ndarray, name: str, alias: bool) -> np.ndarray:
    if x.dtype.kind in "OUSMmT" or (x.dtype.kind == "V" and x.dtype.names):
        raise DtypeError(f"{name} is a NumPy array of dtype {x.dtype}, which has no place in numeric programs.")
    dtype = dtypes.canonicalize_dtype(x.dtype)
    if dtype != x.dtype:
        return x.astype(dtype)
    if not x.dtype.isnative:
        return x.astype(x.dtype.newbyteorder("="))
    return x if alias else np.array(x)
