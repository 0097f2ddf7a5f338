"""Keys of the counter-based generator: making, splitting, folding in, and the raw bits.

The generator is Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). Output
``i`` of a key is the block function of the counter ``(i >> 32, i & 0xffffffff)``, so the numbers do not depend on how an array
is split over devices. Integer results are bit-equal to JAX's (partitionable Threefry).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xformlib import dtypes
from xformlib.array import Array, ArrayImpl
from xformlib.convert import to_array
from xformlib.errors import ConcretizationTypeError, DtypeError, ShapeError
from xformlib.keys import KEY_WORDS, unwrap_key, wrap_key
from xformlib.ops.bitwise import bitwise_or, bitwise_xor, shift_left, shift_right_logical
from xformlib.ops.conversion import convert
from xformlib.ops.creation import full, iota
from xformlib.ops.movement import concatenate, reshape, slice_in_dim
from xformlib.ops.random import threefry2x32

__all__ = ["PRNGKey", "bits", "clone", "fold_in", "key", "key_data", "key_impl", "split", "wrap_key_data"]

_U32 = np.dtype(np.uint32)
_U64 = np.dtype(np.uint64)
FRY = dtypes.KeyDType("fry")
_IMPLEMENTATIONS = ("threefry2x32", "fry")


def _check_impl(impl: Any, function: str) -> None:
    if impl is not None and impl not in _IMPLEMENTATIONS and impl != FRY:
        raise DtypeError(f"random.{function}: impl must be 'threefry2x32' (or None); got {impl!r:.40}.")


def key(seed: Any, *, impl: Any = None) -> Array:
    """A PRNG key of dtype ``key<fry>`` from an integer seed.

    Args:
        seed: integer scalar; its low 64 bits count (32 unless x64 is enabled or it is a Python integer of 64 bits).
        impl: ``"threefry2x32"`` or None.

    Returns:
        A 0-d array of keys.

    Raises:
        DtypeError: the seed is no integer; an unknown ``impl``.
        ShapeError: the seed is no scalar.

    >>> import xformlib as xf
    >>> xf.random.key_data(xf.random.key(7)).tolist()
    [0, 7]
    """
    _check_impl(impl, "key")
    return wrap_key(_seed_words(seed, "key"), FRY)  # type: ignore[no-any-return]


def PRNGKey(seed: Any, *, impl: Any = None) -> Array:
    """A PRNG key in the older form: an array of two uint32 words. Prefer :func:`key`.

    >>> import xformlib as xf
    >>> xf.random.PRNGKey(7).tolist()
    [0, 7]
    """
    _check_impl(impl, "PRNGKey")
    return _seed_words(seed, "PRNGKey")  # type: ignore[no-any-return]


def _seed_words(seed: Any, function: str) -> Any:
    """The two words of a seed: its high and low 32 bits."""
    if isinstance(seed, bool) or not isinstance(seed, Array | int | np.integer | np.ndarray):
        raise DtypeError(f"random.{function}: seed must be an integer; got {type(seed).__name__} {seed!r:.40}.")
    if isinstance(seed, int | np.integer):
        value = int(seed)
        wide = dtypes.canonicalize_dtype(np.int64).itemsize == 8
        high = (value >> 32) & 0xFFFFFFFF if wide else 0
        return ArrayImpl(np.array([high, value & 0xFFFFFFFF], np.uint32))
    seed = to_array(seed, "seed")
    if seed.shape:
        raise ShapeError(
            f"random.{function}: seed must be a scalar; got shape {seed.shape}. Use vmap for several keys."
        )
    if not dtypes.issubdtype(seed.dtype, np.integer):
        raise DtypeError(f"random.{function}: seed must be an integer; got dtype {seed.dtype}.")
    return _words_of(seed)


def _words_of(x: Any) -> Any:
    """uint32 words (high, low) of an integer scalar."""
    low = convert(x, dtype=_U32)
    high = (
        convert(shift_right_logical(convert(x, dtype=_U64), 32), dtype=_U32)
        if x.dtype.itemsize == 8
        else full((), 0, _U32)
    )
    return concatenate(reshape(high, shape=(1,)), reshape(low, shape=(1,)), dimension=0)


def key_data(keys: Any) -> Array:
    """The uint32 words of keys, along a new trailing axis of size 2."""
    x = to_array(keys, "random.key_data: keys")
    return unwrap_key(x) if x.is_key else x  # type: ignore[no-any-return]


def wrap_key_data(key_bits_array: Any, *, impl: Any = None) -> Array:
    """Keys from their uint32 words (trailing axis of size 2).

    Raises:
        ShapeError, DtypeError: words of another shape or dtype.
    """
    _check_impl(impl, "wrap_key_data")
    x = to_array(key_bits_array, "random.wrap_key_data: key_bits_array")
    if x.dtype != _U32:
        raise DtypeError(f"random.wrap_key_data: words must have dtype uint32; got {x.dtype}.")
    if not x.shape or x.shape[-1] != KEY_WORDS:
        raise ShapeError(f"random.wrap_key_data: words need a trailing axis of size {KEY_WORDS}; got shape {x.shape}.")
    return wrap_key(x, FRY)  # type: ignore[no-any-return]


def key_impl(keys: Any) -> str:
    """The name of the generator of keys."""
    return "threefry2x32"


def clone(key: Any) -> Array:
    """The same key again."""
    return to_array(key, "random.clone: key")  # type: ignore[no-any-return]


def words(key: Any, function: str) -> tuple[Any, bool]:
    """The two words of one key, given in either form, and whether it was of the new form.

    Raises:
        DtypeError, ShapeError: not a key, or several.
    """
    if not isinstance(key, Array | np.ndarray):
        raise DtypeError(
            f"random.{function}: the first argument must be a key; got {type(key).__name__} {key!r:.40}. "
            "Make one with xformlib.random.key(seed)."
        )
    x = to_array(key)
    if x.is_key:
        if x.shape:
            raise ShapeError(
                f"random.{function}: one key is needed, and an array of keys of shape {x.shape} was given. "
                "Use vmap, or index it."
            )
        return unwrap_key(x), True
    if x.dtype != _U32 or x.shape != (KEY_WORDS,):
        raise DtypeError(
            f"random.{function}: the first argument must be a key; got an array of shape {x.shape} and dtype {x.dtype}. "
            "Make one with xformlib.random.key(seed)."
        )
    return x, False


def _block(pair: Any, high: Any, low: Any) -> tuple[Any, Any]:
    """Threefry of a key's words at counters ``(high, low)``."""
    first = reshape(slice_in_dim(pair, 0, 1, 0), shape=())
    second = reshape(slice_in_dim(pair, 1, 2, 0), shape=())
    return threefry2x32(first, second, high, low)  # type: ignore[no-any-return]


def _counters(n: int) -> tuple[Any, Any]:
    if n <= 1 << 32:
        return full((n,), 0, _U32), iota(shape=(n,), dtype=_U32, iota_dimension=0)
    wide = iota(shape=(n,), dtype=_U64, iota_dimension=0)
    return convert(shift_right_logical(wide, 32), dtype=_U32), convert(wide, dtype=_U32)


def checked_shape(shape: Any, function: str) -> tuple[int, ...]:
    """A shape as a tuple of ints.

    Raises:
        ShapeError: negative or non-integer sizes.
    """
    sizes = (shape,) if hasattr(shape, "__index__") else shape
    try:
        out = tuple([int(n.__index__()) for n in sizes])
    except ConcretizationTypeError:
        raise
    except (TypeError, AttributeError):
        raise ShapeError(f"random.{function}: shape must be a tuple of ints; got {shape!r:.60}.") from None
    if any(n < 0 for n in out):
        raise ShapeError(f"random.{function}: shape must not have negative sizes; got {out}.")
    return out


def split(key: Any, num: int | tuple[int, ...] = 2) -> Array:
    """Independent new keys from one key, which should not be used again.

    Args:
        key: a key.
        num: how many, or the shape of the array of keys.

    Returns:
        Keys of shape ``(num,)`` or ``num``.

    >>> import xformlib as xf
    >>> a, b = xf.random.split(xf.random.key(0))
    """
    pair, typed = words(key, "split")
    shape = checked_shape(num, "split")
    first, second = _block(pair, *_counters(math.prod(shape)))
    columns = [reshape(w, shape=(*shape, 1)) for w in (first, second)]
    out = concatenate(*columns, dimension=len(shape))
    return wrap_key(out, FRY) if typed else out  # type: ignore[no-any-return]


def fold_in(key: Any, data: Any) -> Array:
    """A new key from a key and an integer: a cheap way to have a key per step or per device.

    Args:
        key: a key.
        data: integer scalar.

    >>> import xformlib as xf
    >>> k = xf.random.fold_in(xf.random.key(0), 3)
    """
    pair, typed = words(key, "fold_in")
    if isinstance(data, int | np.integer) and not isinstance(data, bool):
        seed = ArrayImpl(np.array([0, int(data) & 0xFFFFFFFF], np.uint32))
    else:
        x = to_array(data, "random.fold_in: data")
        if x.shape or not dtypes.issubdtype(x.dtype, np.integer):
            raise DtypeError(f"random.fold_in: data must be an integer scalar; got shape {x.shape}, dtype {x.dtype}.")
        seed = concatenate(full((1,), 0, _U32), reshape(convert(x, dtype=_U32), shape=(1,)), dimension=0)
    high = slice_in_dim(seed, 0, 1, 0)
    low = slice_in_dim(seed, 1, 2, 0)
    out = concatenate(*_block(pair, high, low), dimension=0)
    return wrap_key(out, FRY) if typed else out  # type: ignore[no-any-return]


def bits(key: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Uniformly distributed unsigned integers over the whole range of their dtype.

    Args:
        key: a key.
        shape: shape of the result.
        dtype: ``uint8``, ``uint16``, ``uint32`` (default) or ``uint64``.

    Raises:
        DtypeError: no unsigned dtype, or not a key.

    >>> import xformlib as xf
    >>> xf.random.bits(xf.random.key(0), (2,)).tolist()
    [4070199207, 4202968722]
    """
    pair, _ = words(key, "bits")
    wanted = dtypes.canonicalize_dtype(np.uint32 if dtype is None else dtypes.requested(dtype))
    if wanted.kind != "u" or wanted.itemsize not in (1, 2, 4, 8):
        raise DtypeError(f"random.bits: dtype must be uint8, uint16, uint32 or uint64; got {dtype}.")
    return random_bits(pair, wanted.itemsize * 8, checked_shape(shape, "bits"))  # type: ignore[no-any-return]


def random_bits(pair: Any, width: int, shape: tuple[int, ...]) -> Any:
    """Unsigned integers of a width from a key's words."""
    first, second = _block(pair, *_counters(math.prod(shape)))
    if width == 64:
        wide = bitwise_or(shift_left(convert(first, dtype=_U64), 32), convert(second, dtype=_U64))
        return reshape(wide, shape=shape)
    return reshape(convert(bitwise_xor(first, second), dtype=np.dtype(f"uint{width}")), shape=shape)
