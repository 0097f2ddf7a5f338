"""Taking elements by position, finding positions, and sorting."""

from __future__ import annotations

from typing import Any

import numpy as np

from xformlib.array import Array, ArrayImpl, Tracer
from xformlib.errors import AxisError, NonConcreteBooleanIndexError, ShapeError
from xformlib.numpy._util import array, axis_of, broadcast_shape, broadcast_to_shape, cast, default_int, promoted
from xformlib.numpy.manipulation import flip, ravel
from xformlib.ops import sorting

__all__ = [
    "argsort",
    "argwhere",
    "bincount",
    "digitize",
    "flatnonzero",
    "nonzero",
    "searchsorted",
    "sort",
    "take",
    "take_along_axis",
]


def take(
    a: Any,
    indices: Any,
    axis: int | None = None,
    out: Any = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Array:
    """Elements at positions along an axis (of the flattened array if None).

    Args:
        a: array.
        indices: integers of any shape; negative ones count from the end.
        axis: the axis.
        mode: out of range gives a fill value (None or ``"fill"``: NaN for floats), ``"clip"`` the nearest, ``"wrap"`` goes around.
        fill_value: the value of ``"fill"``.

    >>> import xformlib.numpy as jnp
    >>> print(jnp.take(jnp.array([10, 20, 30]), jnp.array([2, 0])))
    [30 10]
    """
    x = array(a, "take")
    if axis is None:
        x, axis = ravel(x), 0
    at = axis_of(axis, len(x.shape), "take")
    position = array(indices, "take", 1)
    index = (*[slice(None)] * at, position)
    return x.at[index].get(  # type: ignore[attr-defined, no-any-return]
        mode=mode or "fill", fill_value=fill_value, unique_indices=unique_indices, indices_are_sorted=indices_are_sorted
    )


def take_along_axis(arr: Any, indices: Any, axis: int | None = -1, mode: Any = None, fill_value: Any = None) -> Array:
    """Elements at positions that vary over the other axes, which broadcast.

    >>> import xformlib.numpy as jnp
    >>> x = jnp.array([[1, 2], [3, 4]])
    >>> print(jnp.take_along_axis(x, jnp.array([[1], [0]]), axis=1))
    [[2]
     [3]]
    """
    x, i = array(arr, "take_along_axis"), array(indices, "take_along_axis", 1)
    if axis is None:
        if i.ndim != 1:
            raise ShapeError(f"take_along_axis: with axis=None indices must be 1-d; got shape {i.shape}.")
        return take(x, i, 0 if x.ndim == 1 else None)
    if x.ndim != i.ndim:
        raise ShapeError(
            f"take_along_axis: array of shape {x.shape} and indices of shape {i.shape} must have equally many axes."
        )
    at = axis_of(axis, x.ndim, "take_along_axis")
    rest = broadcast_shape(
        "take_along_axis", (*x.shape[:at], 1, *x.shape[at + 1 :]), (*i.shape[:at], 1, *i.shape[at + 1 :])
    )
    x = broadcast_to_shape(x, (*rest[:at], x.shape[at], *rest[at + 1 :]))
    i = broadcast_to_shape(i, (*rest[:at], i.shape[at], *rest[at + 1 :]))
    grid = [
        i if d == at else ArrayImpl(np.arange(n).reshape([-1 if e == d else 1 for e in range(x.ndim)]).astype(np.int32))
        for d, n in enumerate(x.shape)
    ]
    return x.at[tuple(grid)].get(mode=mode or "fill", fill_value=fill_value)  # type: ignore[no-any-return]


def nonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]:
    """Positions of the nonzero elements, one array per axis. Under ``jit`` give ``size``.

    Raises:
        NonConcreteBooleanIndexError: the values are traced and no ``size`` was given.
    """
    x = array(a, "nonzero")
    if size is None:
        if isinstance(x, Tracer):
            try:
                values = x._concrete("its nonzero elements", NonConcreteBooleanIndexError)  # type: ignore[arg-type]
            except NonConcreteBooleanIndexError as e:
                raise NonConcreteBooleanIndexError(
                    "nonzero of a traced array: how many elements are nonzero decides the shape of the result. "
                    "Give size=, or use where(condition, x, y)."
                ) from e
        else:
            values = np.asarray(x._load())
        return tuple([ArrayImpl(i.astype(default_int())) for i in np.nonzero(np.atleast_1d(values))])
    flat = cast(ravel(x), np.dtype(np.bool_))
    order = argsort(flat == False, stable=True)  # noqa: E712 - elementwise
    count = flat.sum()
    from xformlib.numpy.creation import arange
    from xformlib.numpy.ufuncs import where

    order = order[:size] if size <= flat.size else _extended(order, size)  # type: ignore[index]
    found = arange(size) < count
    out = []
    stride = x.size
    for i, n in enumerate(x.shape):
        stride = stride // n if n else 1
        fill = 0 if fill_value is None else fill_value[i] if isinstance(fill_value, tuple) else fill_value
        out.append(where(found, order // stride % max(n, 1), fill).astype(default_int()))
    return tuple(out)


def _extended(order: Any, size: int) -> Any:
    from xformlib.numpy.manipulation import pad

    return pad(order, (0, size - order.shape[0]))


def flatnonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> Array:
    """Positions of nonzero elements in the flattened array."""
    return nonzero(ravel(a), size=size, fill_value=fill_value)[0]


def argwhere(a: Any, *, size: int | None = None, fill_value: Any = None) -> Array:
    """Positions of nonzero elements, one row each."""
    from xformlib.numpy.manipulation import stack

    return stack(list(nonzero(a, size=size, fill_value=fill_value)), axis=-1)


def _line(a: Any, axis: int | None, name: str) -> tuple[Any, int]:
    x = array(a, name)
    if axis is None:
        return ravel(x), 0
    if not x.shape:
        raise AxisError(f"{name}: a 0-d array has no axis to sort.")
    return x, axis_of(axis, x.ndim, name)


def sort(
    a: Any, axis: int | None = -1, *, kind: Any = None, order: Any = None, stable: bool = True, descending: bool = False
) -> Array:
    """Elements in order along an axis; NaN last.

    >>> import xformlib.numpy as jnp
    >>> print(jnp.sort(jnp.array([3, 1, 2])))
    [1 2 3]
    """
    x, at = _line(a, axis, "sort")
    out = sorting.sort(x, dimension=at, is_stable=stable, num_keys=1)[0]
    return flip(out, at) if descending else out


def argsort(
    a: Any, axis: int | None = -1, *, kind: Any = None, order: Any = None, stable: bool = True, descending: bool = False
) -> Array:
    """Positions that would sort along an axis."""
    x, at = _line(a, axis, "argsort")
    return sorting.argsort(x, dimension=at, index_dtype=default_int(), descending=descending)  # type: ignore[no-any-return]


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None, *, method: str = "scan") -> Array:
    """Where to insert values into a sorted 1-d array so that it stays sorted: by counting what comes before.

    >>> import xformlib.numpy as jnp
    >>> print(jnp.searchsorted(jnp.array([1, 3, 5]), jnp.array([0, 3, 9])))
    [0 1 3]
    """
    if side not in ("left", "right"):
        raise ShapeError(f"searchsorted: side must be 'left' or 'right'; got {side!r}.")
    (x, y), _ = promoted("searchsorted", a, v)
    if x.ndim != 1:
        raise ShapeError(f"searchsorted: the sorted array must be 1-d; got shape {x.shape}.")
    x = x if sorter is None else take(x, sorter)
    from xformlib.numpy.reductions import sum

    before = x < y[..., None] if side == "left" else x <= y[..., None]
    # NaN is sorted last: everything else comes before it.
    before = before | ((y[..., None] != y[..., None]) & (x == x)) if x.dtype.kind == "f" else before
    return sum(before, axis=-1, dtype=default_int())


def digitize(x: Any, bins: Any, right: bool = False) -> Array:
    """The bin of each value, for increasing bins."""
    return searchsorted(bins, x, side="left" if right else "right")


def bincount(x: Any, weights: Any = None, minlength: int = 0, *, length: int | None = None) -> Array:
    """How often each non-negative integer occurs. Under ``jit`` give ``length``."""
    from xformlib.numpy.creation import zeros

    i = ravel(array(x, "bincount"))
    if length is None:
        length = max(minlength, int(i.max()) + 1 if i.size else 0)  # type: ignore[attr-defined]
    w = 1 if weights is None else ravel(array(weights, "bincount", 1))
    dtype = default_int() if weights is None else w.dtype  # type: ignore[union-attr]
    return zeros(length, dtype).at[i.clip(0)].add(w)  # type: ignore[attr-defined, no-any-return]
