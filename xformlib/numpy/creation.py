"""New arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xformlib import dtypes
from xformlib.array import Array, ArrayImpl
from xformlib.convert import to_array
from xformlib.errors import DtypeError, NotAnArrayError, ShapeError
from xformlib.keys import with_weak_type
from xformlib.numpy._util import array as _one
from xformlib.numpy._util import axis_of, broadcast_to_shape, cast, default_float, default_int, requested, shape_of
from xformlib.op import state
from xformlib.ops.creation import full as _full
from xformlib.ops.creation import iota

__all__ = [
    "arange",
    "array",
    "asarray",
    "copy",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "geomspace",
    "identity",
    "indices",
    "linspace",
    "logspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tri",
    "zeros",
    "zeros_like",
]


def array(object: Any, dtype: Any = None, copy: bool = True, order: str = "K", ndmin: int = 0) -> Array:
    """An array from numbers, nested lists, NumPy arrays or arrays.

    Args:
        object: the values. Lists may hold traced arrays.
        dtype: dtype of the result; that of the values if None (Python scalars alone are weakly typed).
        copy: accepted for compatibility: arrays are immutable.
        order: ignored.
        ndmin: least number of axes; axes of size 1 are put in front.

    Raises:
        DtypeError: objects, strings, dates.
        ShapeError: nested lists that are not rectangular.

    >>> import xformlib.numpy as jnp
    >>> jnp.array([1, 2.5])
    Array([1. , 2.5], dtype=float32)
    """
    if type(object) is int and dtype is not None and dtypes.issubdtype(dtypes.as_dtype(dtype), np.integer):
        return ArrayImpl(np.asarray(object, dtypes.requested(dtype)).reshape((1,) * ndmin))
    out = _from_object(object)
    if dtype is not None:
        out = cast(out, dtypes.requested(dtype))
    if len(out.shape) < ndmin:
        from xformlib.ops.movement import reshape

        out = reshape(out, shape=(1,) * (ndmin - len(out.shape)) + out.shape)
    return out  # type: ignore[no-any-return]


def asarray(a: Any, dtype: Any = None, order: Any = None, *, copy: bool | None = None) -> Array:
    """Like :func:`array`; an array of the dtype asked for is returned as it is.

    >>> import xformlib.numpy as jnp
    >>> jnp.asarray(3).dtype
    dtype('int32')
    """
    return array(a, dtype)


def _from_object(x: Any) -> Any:
    if isinstance(x, list | tuple):
        return _from_list(x)
    if isinstance(x, str | bytes) or x is None:
        raise DtypeError(f"array: {x!r:.60} holds no numbers.")
    return to_array(x, "array: object")


def _from_list(x: Sequence[Any]) -> Any:
    """Nested lists: by NumPy where all is concrete, by stacking where there are tracers."""
    leaves = list(_leaves(x))
    if any(isinstance(v, Array) for v in leaves):
        from xformlib.numpy.manipulation import stack

        return stack([_from_object(v) for v in x])
    if not leaves:
        return ArrayImpl(_rectangular(x).astype(default_float()))
    dtype, weak = dtypes.result_type(*[_describe(v) for v in leaves], return_weak_type_flag=True)
    values = _rectangular(x)
    if values.dtype.kind in "OUSMm":
        raise DtypeError(f"array: nested lists must hold numbers; got {x!r:.60}.")
    if weak and values.dtype.kind in "iu" and dtype.kind in "iu" and values.size:
        limits = np.iinfo(dtype)
        if values.max() > limits.max or values.min() < limits.min:
            raise OverflowError(f"array: an integer is too large for {dtype}; give a dtype or enable x64.")
    return ArrayImpl(np.asarray(values.astype(dtype)))


def _describe(v: Any) -> Any:
    return v if isinstance(v, bool | int | float | complex) and not isinstance(v, np.generic) else np.asarray(v).dtype


def _leaves(x: Any) -> Any:
    for v in x:
        if isinstance(v, list | tuple):
            yield from _leaves(v)
        else:
            yield v


def _rectangular(x: Any) -> np.ndarray:
    try:
        return np.array(x)
    except ValueError:
        raise ShapeError(f"array: nested lists must be rectangular; got {x!r:.60}.") from None


def copy(a: Any, order: Any = None) -> Array:
    """The same values (arrays are immutable, so nothing is copied)."""
    return _one(a, "copy")  # type: ignore[no-any-return]


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Array:
    """An array of one repeated value.

    >>> import xformlib.numpy as jnp
    >>> jnp.full(2, 7)
    Array([7, 7], dtype=int32, weak_type=True)
    """
    value = _one(fill_value, "full", 1)
    value = value if dtype is None else cast(value, dtypes.requested(dtype))
    return with_weak_type(broadcast_to_shape(value, shape_of(shape, "full")), value.weak_type)  # type: ignore[no-any-return]


def _constant(shape: Any, value: int, dtype: Any, name: str) -> Any:
    dtype = requested(dtype, float)
    shape = shape_of(shape, name)
    if state.frame is None:
        return ArrayImpl(np.full(shape, value, dtype))
    return _full(shape, value, dtype)


def zeros(shape: Any, dtype: Any = None) -> Array:
    """An array of zeros.

    >>> import xformlib.numpy as jnp
    >>> jnp.zeros((2, 3)).shape
    (2, 3)
    """
    return _constant(shape, 0, dtype, "zeros")  # type: ignore[no-any-return]


def ones(shape: Any, dtype: Any = None) -> Array:
    """An array of ones."""
    return _constant(shape, 1, dtype, "ones")  # type: ignore[no-any-return]


def empty(shape: Any, dtype: Any = None) -> Array:
    """An array of zeros: nothing is left uninitialised."""
    return _constant(shape, 0, dtype, "empty")  # type: ignore[no-any-return]


def full_like(a: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Array:
    """An array of one repeated value, with the shape and dtype of another."""
    like = _like(a)
    return full(like.shape if shape is None else shape, fill_value, like.dtype if dtype is None else dtype)


def zeros_like(a: Any, dtype: Any = None, shape: Any = None) -> Array:
    """Zeros with the shape and dtype of another array."""
    like = _like(a)
    out = full(like.shape if shape is None else shape, 0, like.dtype if dtype is None else dtype)
    return with_weak_type(out, getattr(like, "weak_type", False) and dtype is None)  # type: ignore[no-any-return]


def ones_like(a: Any, dtype: Any = None, shape: Any = None) -> Array:
    """Ones with the shape and dtype of another array."""
    like = _like(a)
    out = full(like.shape if shape is None else shape, 1, like.dtype if dtype is None else dtype)
    return with_weak_type(out, getattr(like, "weak_type", False) and dtype is None)  # type: ignore[no-any-return]


def empty_like(prototype: Any, dtype: Any = None, shape: Any = None) -> Array:
    """Zeros with the shape and dtype of another array."""
    return zeros_like(prototype, dtype, shape)


def _like(a: Any) -> Any:
    if hasattr(a, "shape") and hasattr(a, "dtype"):
        return a
    return _one(a, "an array like another")


def arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None) -> Array:
    """Evenly spaced numbers on ``[start, stop)``; ``arange(stop)`` starts at 0.

    The bounds must be concrete numbers: they decide the shape. The length is ``ceil((stop - start) / step)``.

    >>> import xformlib.numpy as jnp
    >>> jnp.arange(2.5)
    Array([0., 1., 2.], dtype=float32)
    """
    start, stop = (0, start) if stop is None else (start, stop)
    step = 1 if step is None else step
    bounds = [v.item() if isinstance(v, Array | np.generic | np.ndarray) else v for v in (start, stop, step)]
    if bounds[2] == 0:
        raise ShapeError("arange: step must not be 0.")
    kinds = [start, stop, step]
    natural = dtypes.result_type(*kinds)
    wanted = requested(dtype, natural)
    length = max(0, math.ceil((bounds[1] - bounds[0]) / bounds[2]))
    if state.frame is not None and bounds[0] == 0 and bounds[2] == 1 and length:
        return iota(shape=(length,), dtype=wanted, iota_dimension=0)  # type: ignore[no-any-return]
    values = bounds[0] + bounds[2] * np.arange(length, dtype=np.float64 if natural.kind == "f" else np.int64)
    return ArrayImpl(values.astype(wanted))


def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None, axis: int = 0
) -> Any:
    """``num`` evenly spaced numbers from ``start`` to ``stop``; the last is ``stop`` exactly.

    >>> import xformlib.numpy as jnp
    >>> jnp.linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    from xformlib import numpy as jnp

    num = int(num)
    if num < 0:
        raise ShapeError(f"linspace: num must not be negative; got {num}.")
    start, stop = _one(start, "linspace", 0), _one(stop, "linspace", 1)
    common = dtypes.to_inexact_dtype(dtypes.result_type(start, stop))
    low, high = jnp.broadcast_arrays(cast(start, common), cast(stop, common))
    parts = num - 1 if endpoint else num
    fraction = np.arange(num) / max(parts, 1)
    t = ArrayImpl(fraction.astype(common).reshape((num,) + (1,) * low.ndim))
    out = low * (1 - t) + high * t
    if endpoint and num > 1:
        out = jnp.concatenate([out[:-1], jnp.expand_dims(high, 0)])
    elif num == 1:
        out = jnp.expand_dims(low, 0)
    if axis:
        out = jnp.moveaxis(out, 0, axis_of(axis, out.ndim, "linspace"))
    wanted = requested(dtype, common)
    out = cast(jnp.floor(out) if wanted.kind in "iu" else out, wanted)
    return (out, (high - low) / max(parts, 1)) if retstep else out


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Array:
    """Numbers evenly spaced on a logarithmic scale, from ``base**start`` to ``base**stop``."""
    from xformlib import numpy as jnp

    out = jnp.power(base, linspace(start, stop, num, endpoint, axis=axis))
    return out if dtype is None else out.astype(dtype)  # type: ignore[no-any-return]


def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Array:
    """Numbers evenly spaced on a logarithmic scale, from ``start`` to ``stop``."""
    from xformlib import numpy as jnp

    start, stop = _one(start, "geomspace", 0), _one(stop, "geomspace", 1)
    sign = jnp.sign(start)
    out = sign * jnp.exp(linspace(jnp.log(start / sign), jnp.log(stop / sign), num, endpoint, axis=axis))
    return out if dtype is None else out.astype(dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Array:
    """Ones at and below the ``k``-th diagonal, zeros above.

    >>> import xformlib.numpy as jnp
    >>> jnp.tri(2)
    Array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    from xformlib.ops.comparison import ge

    shape = shape_of((N, N if M is None else M), "tri")
    rows = iota(shape=shape, dtype=np.dtype(np.int32), iota_dimension=0)
    columns = iota(shape=shape, dtype=np.dtype(np.int32), iota_dimension=1)
    return cast(ge(rows + int(k), columns), requested(dtype, float))  # type: ignore[no-any-return]


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Array:
    """Ones on the ``k``-th diagonal, zeros elsewhere."""
    from xformlib.ops.comparison import eq

    shape = shape_of((N, N if M is None else M), "eye")
    rows = iota(shape=shape, dtype=np.dtype(np.int32), iota_dimension=0)
    columns = iota(shape=shape, dtype=np.dtype(np.int32), iota_dimension=1)
    return cast(eq(rows + int(k), columns), requested(dtype, float))  # type: ignore[no-any-return]


def identity(n: int, dtype: Any = None) -> Array:
    """The identity matrix."""
    return eye(n, dtype=dtype)


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[Any]:
    """Coordinate arrays from coordinate vectors.

    >>> import xformlib.numpy as jnp
    >>> jnp.meshgrid(jnp.arange(2), jnp.arange(3))[0].shape
    (3, 2)
    """
    from xformlib import numpy as jnp

    if indexing not in ("xy", "ij"):
        raise NotAnArrayError(f"meshgrid: indexing must be 'xy' or 'ij'; got {indexing!r}.")
    vectors = [_one(x, "meshgrid", i) for i, x in enumerate(xi)]
    if any(v.ndim != 1 for v in vectors):
        raise ShapeError("meshgrid takes 1-d arrays.")
    n = len(vectors)
    out = [jnp.reshape(v, [-1 if j == i else 1 for j in range(n)]) for i, v in enumerate(vectors)]
    if indexing == "xy" and n > 1:
        out = [jnp.swapaxes(v, 0, 1) for v in out]
    return out if sparse else jnp.broadcast_arrays(*out)  # type: ignore[no-any-return]


def indices(dimensions: Sequence[int], dtype: Any = None, sparse: bool = False) -> Any:
    """The indices of a grid, one array per axis."""
    from xformlib import numpy as jnp

    shape = shape_of(dimensions, "indices")
    wanted = requested(dtype, default_int())
    grid = [iota(shape=shape, dtype=wanted, iota_dimension=i) for i in range(len(shape))]
    if sparse:
        lines = [jnp.arange(n, dtype=wanted) for n in shape]
        return tuple(jnp.meshgrid(*lines, sparse=True, indexing="ij"))
    return jnp.stack(grid) if grid else zeros((0,), wanted)
