"""What arrays are besides numbers: iterables, typed memory, DLPack producers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from xformlib import dtypes
from xformlib.array import ArrayImpl, KeyArray, Tracer
from xformlib.dtypes import KeyDType
from xformlib.errors import DtypeError, ShapeError
from xformlib.keys import with_weak_type
from xformlib.op import state
from xformlib.ops import elementwise as ew
from xformlib.ops import movement

__all__ = ["cast", "device_of", "host_memory", "reinterpret", "rows", "to_dlpack"]

# -- iteration ------------------------------------------------------------------------------------------------------


def rows(x: Any) -> Iterator[Any]:
    """``x[0], x[1], ...``."""
    if not x.shape:
        raise TypeError("iteration over a 0-d array")
    if state.frame is None and type(x) is ArrayImpl:
        weak = x.weak_type
        return (ArrayImpl(row, weak) for row in x._load())
    return (x[i] for i in range(x.shape[0]))


# -- dtypes ---------------------------------------------------------------------------------------------------------


def cast(x: Any, dtype: Any) -> Any:
    """``x.astype(dtype)``; None is the default floating dtype.

    Raises:
        DtypeError: no dtype of arrays, or PRNG keys.
    """
    target = dtypes.requested(dtype)
    if x.dtype == target:
        return with_weak_type(x, False)
    if x.is_key or isinstance(target, KeyDType):
        raise DtypeError(
            f"astype: PRNG keys are not numbers, {x.dtype} does not convert to {target}; "
            "use xformlib.random.key_data(key) for the raw words."
        )
    if x.dtype.kind == "c" and target.kind not in "cb":
        message = f"astype({target}) discards the imaginary part; use x.real to say that this is meant."
        warnings.warn(message, np.exceptions.ComplexWarning, stacklevel=3)
    return ew.convert(x, dtype=target)


def reinterpret(x: Any, dtype: Any) -> Any:
    """``x.view(dtype)``: the same bytes; the last axis changes its size with the width of the elements.

    Raises:
        DtypeError: PRNG keys, or dtypes narrower than a byte.
        ShapeError: the bytes of the last axis are not a multiple of the new width; or x is 0-d and widths differ.
    """
    if dtype is None:
        return x
    target = dtypes.requested(dtype)
    if x.is_key or isinstance(target, KeyDType) or min(map(dtypes.itemsize_bits, (x.dtype, target))) < 8:
        raise DtypeError(f"view: {x.dtype} elements can't be looked at as {target}; use astype to convert them.")
    if x.dtype == target:
        return x
    old, new = x.dtype.itemsize, target.itemsize
    if old != new and not x.shape:
        raise ShapeError(f"view: a 0-d array of dtype {x.dtype} has no axis for elements of another width ({target}).")
    if old != new and x.shape[-1] * old % new:
        raise ShapeError(
            f"view: the last axis of shape {x.shape} has {x.shape[-1] * old} bytes, not a multiple of the {new} of "
            f"{target}."
        )
    return _from_plain(_as_width(_to_plain(x), old, new, target), target)


def _to_plain(x: Any) -> Any:
    """Booleans as bytes, and complex numbers as pairs of numbers along the last axis."""
    if x.dtype == np.bool_:
        return ew.convert(x, dtype=np.dtype(np.uint8))
    if x.dtype.kind != "c":
        return x
    parts = [movement.expand_dims(part, [len(x.shape)]) for part in (ew.real(x), ew.imag(x))]
    return movement.concatenate(*parts, dimension=len(x.shape))


def _as_width(x: Any, old: int, new: int, target: Any) -> Any:
    """Elements of ``old`` bytes (of a trailing axis of parts, if these are complex) as plain elements of ``target``."""
    shape = x.shape if x.dtype.itemsize == old else x.shape[:-1]
    plain = np.dtype(np.uint8) if target == np.bool_ else dtypes.real_dtype(target)
    final = shape if old == new else (*shape[:-1], shape[-1] * old // new)
    if plain.itemsize < new:
        final = (*final, 2)
    width, goal = x.dtype.itemsize, plain.itemsize
    if goal > width:  # the parts of each new element along a last axis
        x = movement.reshape(x, shape=(*final, goal // width))
    out = x if x.dtype == plain else ew.bitcast_convert(x, dtype=plain)
    return out if out.shape == final else movement.reshape(out, shape=final)


def _from_plain(x: Any, target: Any) -> Any:
    if target == np.bool_:
        return ew.ne(x, 0)
    if target.kind != "c":
        return x
    axis = len(x.shape) - 1
    parts = [movement.squeeze(movement.slice_in_dim(x, i, i + 1, axis), [axis]) for i in range(2)]
    return ew.complex(*parts)


# -- memory ---------------------------------------------------------------------------------------------------------


def device_of(x: Any) -> Any:
    """The device that a concrete array lives on."""
    from xformlib.runtime.devices import default_device

    if isinstance(x, Tracer):
        raise AttributeError(f"a traced array ({x.aval}) lives on no device yet; look at the function's result.")
    return default_device()


def host_memory(x: Any) -> np.ndarray:
    """The elements of a concrete array in the host's memory, read-only and in place."""
    if isinstance(x, KeyArray):
        raise TypeError("PRNG keys have no memory of numbers; use xformlib.random.key_data(key) for the raw words.")
    return np.asarray(x)


def to_dlpack(
    x: Any, *, max_version: tuple[int, int] | None, dl_device: tuple[int, int] | None, copy: bool | None
) -> Any:
    """A DLPack capsule: of the memory itself for consumers that know of read-only memory, else of a copy.

    Raises:
        BufferError: DLPack has no such dtype; or no copy is allowed, and the consumer might write to the memory.
    """
    data = host_memory(x)
    if data.dtype.kind == "V":
        raise BufferError(f"NumPy exports no arrays of dtype {x.dtype} by DLPack; export x.view('uint16') or the like.")
    if max_version is not None and max_version >= (1, 0):
        return data.__dlpack__(max_version=max_version, dl_device=dl_device, copy=copy)
    if copy is False:
        raise BufferError("a consumer of DLPack older than 1.0 might write to the array; allow a copy.")
    return np.array(data).__dlpack__(dl_device=dl_device)
