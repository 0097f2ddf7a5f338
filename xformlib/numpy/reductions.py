"""Reductions over axes, and running totals."""

from __future__ import annotations

from typing import Any

import numpy as np

from xformlib import dtypes
from xformlib.array import Array, ArrayImpl
from xformlib.errors import DtypeError, ShapeError
from xformlib.keys import with_weak_type
from xformlib.numpy._util import array, axes_of, axis_of, cast, default_int, inexact, no_out
from xformlib.numpy.ufuncs import isnan, maximum, real, sqrt, where
from xformlib.op import Op, state
from xformlib.ops import cumulative
from xformlib.ops.movement import reshape
from xformlib.ops.reduction import (
    argmax as _argmax,
)
from xformlib.ops.reduction import (
    argmin as _argmin,
)
from xformlib.ops.reduction import (
    highest,
    lowest,
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_prod,
    reduce_sum,
)

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "average",
    "count_nonzero",
    "cumprod",
    "cumsum",
    "max",
    "mean",
    "min",
    "nanmax",
    "nanmean",
    "nanmin",
    "nansum",
    "prod",
    "ptp",
    "std",
    "sum",
    "var",
]


def _masked(x: Any, mask: Any, value: Any) -> Any:
    if mask is None:
        return x
    return where(mask, x, ArrayImpl(np.asarray(value, x.dtype)))


def _reduce(op: Op, x: Any, axis: Any, keepdims: bool, name: str) -> Any:
    dims = axes_of(axis, len(x.shape), name)
    out = op(x, dimensions=dims)
    if keepdims:
        out = reshape(out, shape=tuple([1 if i in dims else n for i, n in enumerate(x.shape)]))
    return with_weak_type(out, x.weak_type)


def _sum_dtype(x: Any, dtype: Any) -> Any:
    """Sums and products of booleans and small integers are as wide as the default integer."""
    if dtype is not None:
        return dtypes.requested(dtype)
    if x.dtype == np.bool_:
        return default_int()
    if x.dtype.kind in "iu":
        wide = dtypes.canonicalize_dtype(np.int64 if x.dtype.kind == "i" else np.uint64)
        return x.dtype if x.dtype.itemsize >= wide.itemsize else wide
    return x.dtype


def _total(
    op: Op, identity: int, name: str, a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, mask: Any
) -> Any:
    x = array(a, name)
    wanted = _sum_dtype(x, dtype)
    x = x if x.dtype == wanted else cast(x, wanted)
    out = _reduce(op, _masked(x, mask, identity), axis, keepdims, name)
    if initial is not None:
        out = (out + initial if op is reduce_sum else out * initial).astype(wanted)
    return out


def sum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Sum over axes (all if None).

    Args:
        a: array.
        axis: int, tuple of ints, or None.
        dtype: dtype to sum in; small integers and booleans are summed in the default integer.
        out: not supported.
        keepdims: keep reduced axes with size 1.
        initial: added to the sum.
        where: mask of the elements that count.

    Raises:
        AxisError: an axis out of range or repeated.

    >>> import xformlib.numpy as jnp
    >>> print(jnp.sum(jnp.ones((2, 3)), axis=0))
    [2. 2. 2.]
    """
    plain = axis is None and dtype is None and out is None and not keepdims and initial is None and where is None
    if plain and state.frame is None and type(a) is ArrayImpl and a.dtype == np.float32:
        return ArrayImpl(state.run(np.add.reduce, a._load(), None), a.weak_type)
    no_out("sum", out)
    return _total(reduce_sum, 0, "sum", a, axis, dtype, keepdims, initial, where)  # type: ignore[no-any-return]


def prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Product over axes; arguments as for :func:`sum`."""
    no_out("prod", out)
    return _total(reduce_prod, 1, "prod", a, axis, dtype, keepdims, initial, where)  # type: ignore[no-any-return]


def _extreme(op: Op, worst: Any, name: str, a: Any, axis: Any, keepdims: bool, initial: Any, mask: Any) -> Any:
    x = array(a, name)
    if x.dtype.kind == "c":
        raise DtypeError(f"{name}: complex numbers have no order here; take the real part or the absolute value.")
    dims = axes_of(axis, len(x.shape), name)
    if initial is None and (mask is not None or any_zero(x.shape, dims)):
        raise ShapeError(
            f"{name}: an array of shape {x.shape} has no elements along axis {axis}"
            if mask is None
            else f"{name}: with where= give initial=, the value of an empty selection."
        )
    out = _reduce(op, _masked(x, mask, worst(x.dtype)), axis, keepdims, name)
    if initial is not None:
        better = maximum if op is reduce_max else minimum_
        out = cast(better(out, initial), x.dtype)
    return out


def any_zero(shape: tuple[int, ...], dims: tuple[int, ...]) -> bool:
    """Whether a reduced axis is empty and the result is not."""
    return 0 in [shape[d] for d in dims] and 0 not in [n for i, n in enumerate(shape) if i not in dims]


def minimum_(x: Any, y: Any) -> Any:
    """``minimum``, which this module's ``min`` would hide."""
    from xformlib.numpy.ufuncs import minimum

    return minimum(x, y)


def max(
    a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Array:
    """The largest element over axes; NaN if there is one.

    Raises:
        ShapeError: nothing to choose from, and no ``initial``.

    >>> import xformlib.numpy as jnp
    >>> print(jnp.max(jnp.arange(3)))
    2
    """
    no_out("max", out)
    return _extreme(reduce_max, lowest, "max", a, axis, keepdims, initial, where)  # type: ignore[no-any-return]


def min(
    a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Array:
    """The smallest element over axes; NaN if there is one."""
    no_out("min", out)
    return _extreme(reduce_min, highest, "min", a, axis, keepdims, initial, where)  # type: ignore[no-any-return]


amax, amin = max, min


def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Array:
    """Largest minus smallest element."""
    return max(a, axis, out, keepdims) - min(a, axis, out, keepdims)  # type: ignore[operator, no-any-return]


def all(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = None) -> Array:
    """Whether all elements are true."""
    no_out("all", out)
    x = cast(array(a, "all"), np.dtype(np.bool_))
    return _reduce(reduce_and, _masked(x, where, True), axis, keepdims, "all")  # type: ignore[no-any-return]


def any(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = None) -> Array:
    """Whether any element is true."""
    no_out("any", out)
    x = cast(array(a, "any"), np.dtype(np.bool_))
    return _reduce(reduce_or, _masked(x, where, False), axis, keepdims, "any")  # type: ignore[no-any-return]


def _count(x: Any, axis: Any, mask: Any, keepdims: bool) -> Any:
    dims = axes_of(axis, len(x.shape), "mean")
    if mask is None:
        return int(np.prod([x.shape[d] for d in dims], dtype=np.int64))
    from xformlib.numpy.manipulation import broadcast_to

    return sum(broadcast_to(mask, x.shape), axis, keepdims=keepdims)


def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = None
) -> Array:
    """Arithmetic mean over axes; 16-bit floats are averaged in float32.

    >>> import xformlib.numpy as jnp
    >>> print(jnp.mean(jnp.arange(4)))
    1.5
    """
    no_out("mean", out)
    x = inexact(array(a, "mean"))
    x = x if dtype is None else cast(x, dtypes.requested(dtype))
    wide = cast(x, np.dtype(np.float32)) if x.dtype.itemsize < 4 else x
    total = sum(wide, axis, keepdims=keepdims, where=where)
    out_ = total / _count(x, axis, where, keepdims)  # type: ignore[operator]
    return with_weak_type(cast(out_, x.dtype), x.weak_type)  # type: ignore[no-any-return]


def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, keepdims: bool = False) -> Any:
    """Weighted mean; ``returned`` adds the sum of the weights."""
    x = inexact(array(a, "average"))
    if weights is None:
        out = mean(x, axis, keepdims=keepdims)
        total: Any = where(True, _count(x, axis, None, keepdims), 0) + 0 * out  # type: ignore[operator]
    else:
        from xformlib.numpy.manipulation import broadcast_to

        w = array(weights, "average", 2)
        if w.shape != x.shape and w.ndim == 1 and axis is not None:
            shape = [1] * x.ndim
            shape[axis_of(axis, x.ndim, "average")] = w.shape[0]
            w = reshape(w, shape=tuple(shape))
        w = broadcast_to(w, x.shape)
        total = sum(w, axis, keepdims=keepdims)
        out = sum(x * w, axis, keepdims=keepdims) / total  # type: ignore[operator]
    return (out, total) if returned else out


def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    mean: Any = None,
    correction: Any = None,
) -> Array:
    """Variance over axes: the mean squared distance from the mean, over ``n - ddof``."""
    no_out("var", out)
    x = inexact(array(a, "var"))
    ddof = ddof if correction is None else correction
    wide = cast(x, np.dtype(np.float32)) if x.dtype.itemsize < 4 else x
    center = _mean(wide, axis, keepdims=True, where=where) if mean is None else mean
    distance = wide - center
    squares = real(distance * _conj(distance)) if x.dtype.kind == "c" else distance * distance
    count = _count(x, axis, where, keepdims)
    result = sum(squares, axis, keepdims=keepdims, where=where) / (count - ddof)  # type: ignore[operator]
    wanted = dtypes.real_dtype(x.dtype) if dtype is None else dtypes.requested(dtype)
    return with_weak_type(cast(result, wanted), x.weak_type)  # type: ignore[no-any-return]


_mean = mean


def _conj(x: Any) -> Any:
    from xformlib.numpy.ufuncs import conjugate

    return conjugate(x)


def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    mean: Any = None,
    correction: Any = None,
) -> Array:
    """Standard deviation over axes."""
    return sqrt(var(a, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction))  # type: ignore[no-any-return]


def _position(op: Any, name: str, a: Any, axis: Any, keepdims: bool) -> Any:
    x = array(a, name)
    if axis is None:
        shape, x, axis = (1,) * len(x.shape), reshape(x, shape=(x.size,)), 0
    else:
        axis = axis_of(axis, len(x.shape), name)
        shape = tuple([1 if i == axis else n for i, n in enumerate(x.shape)])
    if x.shape[axis] == 0:
        raise ShapeError(f"{name}: an array of shape {x.shape} has no elements along axis {axis}.")
    out = op(x, axis=axis, index_dtype=default_int())
    return reshape(out, shape=shape) if keepdims else out


def argmax(a: Any, axis: int | None = None, out: Any = None, keepdims: bool = False) -> Array:
    """Position of the first largest element (the first NaN if there is one); flattened if ``axis`` is None."""
    no_out("argmax", out)
    return _position(_argmax, "argmax", a, axis, keepdims)  # type: ignore[no-any-return]


def argmin(a: Any, axis: int | None = None, out: Any = None, keepdims: bool = False) -> Array:
    """Position of the first smallest element (the first NaN if there is one); flattened if ``axis`` is None."""
    no_out("argmin", out)
    return _position(_argmin, "argmin", a, axis, keepdims)  # type: ignore[no-any-return]


def count_nonzero(a: Any, axis: Any = None, keepdims: bool = False) -> Array:
    """Number of nonzero elements."""
    return sum(cast(array(a, "count_nonzero"), np.dtype(np.bool_)), axis, keepdims=keepdims)


def _running(op: Any, name: str, a: Any, axis: Any, dtype: Any) -> Any:
    x = array(a, name)
    if axis is None:
        x, axis = reshape(x, shape=(x.size,)), 0
    axis = axis_of(axis, len(x.shape), name)
    wanted = (
        default_int()
        if x.dtype == np.bool_ and dtype is None
        else x.dtype
        if dtype is None
        else dtypes.requested(dtype)
    )
    return op(cast(x, wanted), axis=axis, reverse=False)


def cumsum(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Array:
    """Running sum along an axis; of the flattened array if None."""
    no_out("cumsum", out)
    return _running(cumulative.cumsum, "cumsum", a, axis, dtype)  # type: ignore[no-any-return]


def cumprod(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Array:
    """Running product along an axis; of the flattened array if None."""
    no_out("cumprod", out)
    return _running(cumulative.cumprod, "cumprod", a, axis, dtype)  # type: ignore[no-any-return]


def nansum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Array:
    """Sum over axes, NaN counting as 0."""
    x = array(a, "nansum")
    return sum(where(isnan(x), 0, x), axis, dtype, out, keepdims)


def nanmean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Array:
    """Mean of the elements that are not NaN."""
    x = array(a, "nanmean")
    return mean(x, axis, dtype, out, keepdims, where=isnan(x) == False)  # noqa: E712 - elementwise


def nanmax(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Array:
    """Largest element that is not NaN; NaN if there is none."""
    x = inexact(array(a, "nanmax"))
    best = max(where(isnan(x), -np.inf, x), axis, out, keepdims)
    return where(all(isnan(x), axis, keepdims=keepdims), np.nan, best)  # type: ignore[no-any-return]


def nanmin(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Array:
    """Smallest element that is not NaN; NaN if there is none."""
    x = inexact(array(a, "nanmin"))
    best = min(where(isnan(x), np.inf, x), axis, out, keepdims)
    return where(all(isnan(x), axis, keepdims=keepdims), np.nan, best)  # type: ignore[no-any-return]
