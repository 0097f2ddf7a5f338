"""Distributions, from uniform bits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xformlib import dtypes
from xformlib import numpy as jnp
from xformlib.array import Array, ArrayImpl
from xformlib.convert import to_array
from xformlib.errors import AxisError, DtypeError, ShapeError
from xformlib.ops.arithmetic import rem
from xformlib.ops.bitwise import bitwise_or, shift_right_logical
from xformlib.ops.conversion import bitcast_convert, convert
from xformlib.ops.sorting import sort
from xformlib.ops.special import erf_inv
from xformlib.random.keys import checked_shape, random_bits, split, words

__all__ = ["bernoulli", "categorical", "choice", "exponential", "gumbel", "normal", "permutation", "randint", "uniform"]

_MANTISSA = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}


def _float_dtype(dtype: Any, function: str) -> Any:
    found = dtypes.python_scalar_dtype(float) if dtype is None else dtypes.requested(dtype)
    if not dtypes.issubdtype(found, np.floating) or found.name not in _MANTISSA:
        raise DtypeError(f"random.{function}: dtype must be float16, bfloat16, float32 or float64; got {dtype}.")
    return found


def _broadcast_shape(shape: Any, function: str, *args: Any) -> tuple[int, ...]:
    """The shape asked for, or that of the parameters; parameters must broadcast to it."""
    natural = np.broadcast_shapes(*[a.shape for a in args])
    if shape is None:
        return natural
    wanted = checked_shape(shape, function)
    try:
        fits = np.broadcast_shapes(wanted, natural) == wanted
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(f"random.{function}: parameters of shape {natural} do not broadcast to shape {wanted}.")
    return wanted


def _unit(pair: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Uniform on [0, 1): random mantissa bits under the exponent of one, minus one."""
    mantissa = _MANTISSA[dtype.name]
    one = np.ones((), dtype).view(np.dtype(f"uint{dtype.itemsize * 8}"))
    width = 8 if mantissa < 8 else dtype.itemsize * 8  # bfloat16 needs no more than eight bits
    drawn = random_bits(pair, width, shape)
    drawn = drawn if drawn.dtype == one.dtype else convert(drawn, dtype=one.dtype)
    pattern = bitwise_or(shift_right_logical(drawn, width - mantissa), ArrayImpl(np.asarray(one)))
    return jnp.subtract(bitcast_convert(pattern, dtype=dtype), ArrayImpl(np.ones((), dtype)))


def uniform(key: Any, shape: Any = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0) -> Array:
    """Uniform floats on ``[minval, maxval)``.

    Args:
        key: a key.
        shape: shape of the result; ``minval`` and ``maxval`` broadcast to it.
        dtype: float dtype; the default float if None.
        minval, maxval: bounds.

    >>> import xformlib as xf
    >>> print(xf.random.uniform(xf.random.key(0), (2,)))
    [0.947667  0.9785799]
    """
    pair, _ = words(key, "uniform")
    dtype = _float_dtype(dtype, "uniform")
    return _uniform(pair, checked_shape(shape, "uniform"), dtype, minval, maxval)  # type: ignore[no-any-return]


def _uniform(pair: Any, shape: tuple[int, ...], dtype: Any, minval: Any, maxval: Any) -> Any:
    low, high = [convert(to_array(v, "a bound"), dtype=dtype) for v in (minval, maxval)]
    _broadcast_shape(shape, "uniform", low, high)
    unit = _unit(pair, shape, dtype)
    if type(minval) is float and type(maxval) is float and (minval, maxval) == (0.0, 1.0):  # nothing to scale
        return unit
    return jnp.maximum(low, unit * (high - low) + low)


def normal(key: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Standard normal numbers, by the inverse of the error function; complex dtypes have independent parts of variance 1/2.

    Args:
        key: a key.
        shape: shape of the result.
        dtype: float or complex dtype; the default float if None.

    >>> import xformlib as xf
    >>> xf.random.normal(xf.random.key(0), (100, 3)).shape
    (100, 3)
    """
    pair, _ = words(key, "normal")
    shape = checked_shape(shape, "normal")
    if dtype is not None and dtypes.issubdtype(dtypes.as_dtype(dtype), np.complexfloating):
        real = dtypes.real_dtype(dtypes.requested(dtype))
        parts = [_normal(words(k, "normal")[0], shape, real) for k in split(pair)]
        scale = ArrayImpl(np.asarray(math.sqrt(0.5), real))
        from xformlib.ops.complex import complex

        return complex(parts[0] * scale, parts[1] * scale)  # type: ignore[no-any-return]
    return _normal(pair, shape, _float_dtype(dtype, "normal"))  # type: ignore[no-any-return]


def _normal(pair: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    low = np.nextafter(np.asarray(-1, dtype), np.asarray(0, dtype), dtype=dtype)
    u = _uniform(pair, shape, dtype, ArrayImpl(np.asarray(low, dtype)), 1.0)
    return ArrayImpl(np.asarray(math.sqrt(2), dtype)) * erf_inv(u)


def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = None) -> Array:
    """Uniform integers on ``[minval, maxval)``.

    Args:
        key: a key.
        shape: shape of the result; the bounds broadcast to it.
        minval, maxval: integer bounds. Where ``maxval <= minval`` the result is ``minval``.
        dtype: integer dtype; the default int if None.

    The draw of twice the width reduced modulo the span leaves a bias of at most ``span / 2**64`` (32-bit types).

    >>> import xformlib as xf
    >>> xf.random.randint(xf.random.key(0), (3,), 0, 10).dtype
    dtype('int32')
    """
    pair, _ = words(key, "randint")
    shape = checked_shape(shape, "randint")
    dtype = dtypes.python_scalar_dtype(int) if dtype is None else dtypes.requested(dtype)
    if not dtypes.issubdtype(dtype, np.integer):
        raise DtypeError(f"random.randint: dtype must be an integer dtype; got {dtype}.")
    width = max(dtype.itemsize * 8, 32)
    unsigned = np.dtype(f"uint{width}")
    low, high, full_range = [_bound(v, n, dtype, width) for v, n in ((minval, "minval"), (maxval, "maxval"))] + [
        _beyond(maxval, dtype)
    ]
    _broadcast_shape(shape, "randint", low, high)
    first, second = [random_bits(words(k, "randint")[0], width, shape) for k in split(pair)]
    span = jnp.where(
        jnp.less_equal(high, low), ArrayImpl(np.ones((), unsigned)), bitcast_convert(high - low, dtype=unsigned)
    )
    if full_range is not None:
        # An exclusive bound one past the dtype's range was clamped by one: the span is one more.
        span = jnp.where(
            jnp.logical_and(full_range, jnp.greater(high, low)), span + ArrayImpl(np.ones((), unsigned)), span
        )
    span = jnp.broadcast_to(span, shape)
    multiplier = rem(jnp.broadcast_to(ArrayImpl(np.asarray(1 << (width // 2), unsigned)), shape), span)
    multiplier = rem(multiplier * multiplier, span)
    offset = rem(rem(first, span) * multiplier + rem(second, span), span)
    return convert(low + bitcast_convert(offset, dtype=low.dtype), dtype=dtype)  # type: ignore[no-any-return]


def _bound(value: Any, name: str, dtype: Any, width: int) -> Any:
    """A bound, clamped to the range of the dtype, as a signed (or for wide unsigned types unsigned) integer."""
    limits = dtypes.iinfo(dtype)
    wide = np.dtype(f"{'uint' if dtype.kind == 'u' else 'int'}{width}")
    if isinstance(value, int | np.integer):
        return ArrayImpl(np.asarray(min(max(int(value), int(limits.min)), int(limits.max)), wide))
    x = to_array(value, f"random.randint: {name}")
    if not dtypes.issubdtype(x.dtype, np.integer):
        raise DtypeError(f"random.randint: {name} must be an integer; got dtype {x.dtype}.")
    return convert(jnp.clip(x, *_within(x.dtype, limits)), dtype=wide)


def _within(dtype: Any, limits: Any) -> tuple[int, int]:
    own = dtypes.iinfo(dtype)
    return max(int(own.min), int(limits.min)), min(int(own.max), int(limits.max))


def _beyond(maxval: Any, dtype: Any) -> Any:
    """Whether the upper bound is past the dtype's largest value; None where it can't be."""
    largest = int(dtypes.iinfo(dtype).max)
    if isinstance(maxval, int | np.integer):
        return ArrayImpl(np.asarray(True)) if int(maxval) > largest else None
    x = to_array(maxval)
    return jnp.greater(x, largest) if int(dtypes.iinfo(x.dtype).max) > largest else None


def bernoulli(key: Any, p: Any = 0.5, shape: Any = None) -> Array:
    """Booleans that are True with probability ``p``.

    Args:
        key: a key.
        p: probability; broadcasts to ``shape``.
        shape: shape of the result; that of ``p`` if None.

    >>> import xformlib as xf
    >>> xf.random.bernoulli(xf.random.key(0), 0.3, (10,)).dtype
    dtype('bool')
    """
    pair, _ = words(key, "bernoulli")
    p = to_array(p, "random.bernoulli: p")
    if not dtypes.issubdtype(p.dtype, np.floating):
        p = convert(p, dtype=dtypes.python_scalar_dtype(float))
    return jnp.less(_unit(pair, _broadcast_shape(shape, "bernoulli", p), p.dtype), p)  # type: ignore[no-any-return]


def exponential(key: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Exponentially distributed floats of mean one."""
    pair, _ = words(key, "exponential")
    unit = _unit(pair, checked_shape(shape, "exponential"), _float_dtype(dtype, "exponential"))
    return -jnp.log1p(-unit)  # type: ignore[no-any-return]


def gumbel(key: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Gumbel-distributed floats.

    >>> import xformlib as xf
    >>> xf.random.gumbel(xf.random.key(0), (5,)).shape
    (5,)
    """
    pair, _ = words(key, "gumbel")
    return _gumbel(pair, checked_shape(shape, "gumbel"), _float_dtype(dtype, "gumbel"))  # type: ignore[no-any-return]


def _gumbel(pair: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    tiny = ArrayImpl(np.asarray(dtypes.finfo(dtype).tiny, dtype))
    return -jnp.log(-jnp.log(_uniform(pair, shape, dtype, tiny, 1.0)))


def categorical(key: Any, logits: Any, axis: int = -1, shape: Any = None, replace: bool = True) -> Array:
    """Categories drawn with the given unnormalised log probabilities (Gumbel-max trick).

    Args:
        key: a key.
        logits: float array; categories along ``axis``.
        axis: axis of the categories.
        shape: shape of the result; its last axes are the batch axes of ``logits`` (without ``axis``). Those only if None.
        replace: with replacement. Without, the draws along the leading axes of ``shape`` differ.

    Returns:
        int32 (int64 under x64) category numbers.

    >>> import xformlib as xf, xformlib.numpy as jnp
    >>> xf.random.categorical(xf.random.key(0), jnp.zeros((3, 5))).shape
    (3,)
    """
    pair, _ = words(key, "categorical")
    logits = to_array(logits, "random.categorical: logits")
    if not dtypes.issubdtype(logits.dtype, np.floating):
        logits = convert(logits, dtype=dtypes.python_scalar_dtype(float))
    n = len(logits.shape)
    if not -n <= axis < n:
        raise AxisError(f"random.categorical: axis {axis} is out of range for logits of shape {logits.shape}.")
    axis %= n
    batch = logits.shape[:axis] + logits.shape[axis + 1 :]
    wanted = batch if shape is None else checked_shape(shape, "categorical")
    lead = wanted[: len(wanted) - len(batch)]
    if wanted[len(lead) :] != batch:
        raise ShapeError(f"random.categorical: shape {wanted} must end with the batch shape {batch} of the logits.")
    if not replace:
        return _without_replacement(pair, logits, axis, lead)  # type: ignore[no-any-return]
    noise = _gumbel(pair, (*lead, *logits.shape), logits.dtype)
    return jnp.argmax(noise + logits, axis=len(lead) + axis)  # type: ignore[no-any-return]


def _without_replacement(pair: Any, logits: Any, axis: int, lead: tuple[int, ...]) -> Any:
    k, n = math.prod(lead), logits.shape[axis]
    if k > n:
        raise ShapeError(f"random.categorical: {k} draws without replacement from {n} categories.")
    perturbed = jnp.moveaxis(_gumbel(pair, logits.shape, logits.dtype) + logits, axis, -1)
    best = jnp.flip(jnp.argsort(perturbed, axis=-1), -1)[..., :k]
    return jnp.reshape(jnp.moveaxis(best, -1, 0), (*lead, *best.shape[:-1]))


def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Array:
    """A random permutation of ``range(x)``, or of an array along an axis.

    Args:
        key: a key.
        x: an int, or an array.
        axis: the axis to shuffle.
        independent: shuffle every line along ``axis`` on its own instead of whole slices.

    >>> import xformlib as xf
    >>> sorted(xf.random.permutation(xf.random.key(0), 5).tolist())
    [0, 1, 2, 3, 4]
    """
    pair, _ = words(key, "permutation")
    if isinstance(x, int | np.integer):
        return _shuffle(pair, jnp.arange(x), 0)  # type: ignore[no-any-return]
    array = to_array(x, "random.permutation: x")
    n = len(array.shape)
    if not n:
        return permutation(key, int(array))
    if not -n <= axis < n:
        raise AxisError(f"random.permutation: axis {axis} is out of range for an array of shape {array.shape}.")
    axis %= n
    if independent or n == 1:
        return _shuffle(pair, array, axis)  # type: ignore[no-any-return]
    order = _shuffle(pair, jnp.arange(array.shape[axis]), 0)
    return jnp.take(array, order, axis=axis, unique_indices=True)  # type: ignore[no-any-return]


def _shuffle(pair: Any, x: Any, axis: int) -> Any:
    """Rounds of a stable sort by random 32-bit keys; enough of them that ties between keys leave no trace."""
    rounds = math.ceil(3 * math.log(max(1, math.prod(x.shape))) / math.log(2**32 - 1))
    for _ in range(rounds):
        pair, sub = split(pair)
        keys = random_bits(sub, 32, x.shape)
        x = sort(keys, x, dimension=axis, is_stable=True, num_keys=1)[1]
    return x


def choice(key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0) -> Array:
    """Random elements of an array (or of ``range(a)``).

    Args:
        key: a key.
        a: an int or an array.
        shape: shape of the draw, in place of ``axis``.
        replace: with replacement.
        p: probabilities of the elements along ``axis``; uniform if None.
        axis: the axis to draw from.

    Raises:
        ShapeError: more draws without replacement than elements; ``p`` of another shape.

    >>> import xformlib as xf
    >>> xf.random.choice(xf.random.key(0), 10, (3,)).shape
    (3,)
    """
    words(key, "choice")
    shape = checked_shape(shape, "choice")
    array = None if isinstance(a, int | np.integer) else to_array(a, "random.choice: a")
    size = int(a) if array is None else array.shape[axis]
    draws = math.prod(shape)
    if size <= 0 and draws:
        raise ShapeError("random.choice: a must have at least one element.")
    if not replace and draws > size:
        raise ShapeError(f"random.choice: {draws} draws without replacement from {size} elements.")
    index = _choice_index(key, size, shape, replace, p, draws)
    return index if array is None else jnp.take(array, index, axis=axis)  # type: ignore[no-any-return]


def _choice_index(key: Any, size: int, shape: tuple[int, ...], replace: bool, p: Any, draws: int) -> Any:
    if p is None:
        if replace:
            return randint(key, shape, 0, size)
        return jnp.reshape(permutation(key, size)[:draws], shape)
    p = to_array(p, "random.choice: p")
    if p.shape != (size,):
        raise ShapeError(f"random.choice: p must have shape ({size},); got {p.shape}.")
    if replace:
        cumulative = jnp.cumsum(p)
        drawn = cumulative[-1] * (1 - uniform(key, shape, dtype=cumulative.dtype))
        return jnp.searchsorted(cumulative, drawn)
    scores = -gumbel(key, (size,), p.dtype) - jnp.log(p)
    return jnp.reshape(jnp.argsort(scores)[:draws], shape)
