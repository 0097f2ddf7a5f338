"""Changing shape and order: reshaping, moving axes, joining, splitting, repeating."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from xformlib.array import Array
from xformlib.errors import AxisError, ConcretizationTypeError, NotAnArrayError, ShapeError
from xformlib.keys import with_weak_type
from xformlib.numpy._util import (
    array,
    axes_of,
    axis_of,
    broadcast_shape,
    broadcast_to_shape,
    promoted,
    sequence,
    shape_of,
)
from xformlib.ops import movement as ops

__all__ = [
    "array_split",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "column_stack",
    "concat",
    "concatenate",
    "dstack",
    "expand_dims",
    "flip",
    "fliplr",
    "flipud",
    "hsplit",
    "hstack",
    "matrix_transpose",
    "moveaxis",
    "ndim",
    "pad",
    "permute_dims",
    "ravel",
    "repeat",
    "reshape",
    "roll",
    "shape",
    "size",
    "split",
    "squeeze",
    "stack",
    "swapaxes",
    "tile",
    "transpose",
    "tril",
    "triu",
    "unstack",
    "vsplit",
    "vstack",
]


def shape(a: Any) -> tuple[int, ...]:
    """The shape."""
    return array(a, "shape").shape  # type: ignore[no-any-return]


def ndim(a: Any) -> int:
    """The number of axes."""
    return len(array(a, "ndim").shape)


def size(a: Any, axis: int | None = None) -> int:
    """The number of elements, or the size of one axis."""
    x = array(a, "size")
    return x.size if axis is None else x.shape[axis_of(axis, len(x.shape), "size")]  # type: ignore[no-any-return]


def reshape(a: Any, shape: Any = None, order: str = "C", *, copy: bool | None = None) -> Array:
    """The same elements with another shape; one size may be -1.

    Args:
        a: array.
        shape: int or tuple of ints.
        order: ``"C"`` (row-major) or ``"F"`` (column-major).
        copy: accepted for compatibility.

    Raises:
        ShapeError: sizes that do not multiply to the number of elements.

    >>> import xformlib.numpy as jnp
    >>> jnp.reshape(jnp.arange(6), (2, -1)).shape
    (2, 3)
    """
    x = array(a, "reshape")
    wanted = _wanted_shape(x.shape, shape)
    if order == "F":
        back = reshape(transpose(x), wanted[::-1])
        return transpose(back)
    if order not in ("C", "K", "A"):
        raise NotAnArrayError(f"reshape: order must be 'C' or 'F'; got {order!r}.")
    return x if wanted == x.shape else ops.reshape(x, shape=wanted)  # type: ignore[no-any-return]


def _wanted_shape(old: tuple[int, ...], new: Any) -> tuple[int, ...]:
    sizes = (new,) if hasattr(new, "__index__") else tuple(new)
    try:
        out = [int(n.__index__()) for n in sizes]
    except ConcretizationTypeError:
        raise
    except (TypeError, AttributeError):
        raise ShapeError(f"reshape: the shape must be an int or a tuple of ints; got {new!r:.60}.") from None
    total = math.prod(old)
    if out.count(-1) == 1:
        rest = math.prod(n for n in out if n != -1)
        out[out.index(-1)] = total // rest if rest else 0
    if math.prod(out) != total or min(out, default=0) < 0:
        raise ShapeError(f"reshape: an array of shape {old} ({total} elements) can't be given shape {tuple(sizes)}.")
    return tuple(out)


def ravel(a: Any, order: str = "C") -> Array:
    """The elements in one axis."""
    return reshape(a, (-1,), order) if array(a, "ravel").size else reshape(a, (0,))


def transpose(a: Any, axes: Any = None) -> Array:
    """Axes permuted; reversed if None.

    >>> import xformlib.numpy as jnp
    >>> jnp.transpose(jnp.ones((2, 3))).shape
    (3, 2)
    """
    x = array(a, "transpose")
    n = len(x.shape)
    order = tuple(range(n))[::-1] if axes is None else axes_of(tuple(axes), n, "transpose")
    if len(order) != n:
        raise AxisError(f"transpose: axes {axes} must name each of the {n} axes once.")
    return x if order == tuple(range(n)) else ops.transpose(x, permutation=order)  # type: ignore[no-any-return]


permute_dims = transpose


def matrix_transpose(x: Any, /) -> Array:
    """The last two axes exchanged."""
    x = array(x, "matrix_transpose")
    if len(x.shape) < 2:
        raise ShapeError(f"matrix_transpose takes arrays of at least 2 axes; got shape {x.shape}.")
    return swapaxes(x, -1, -2)


def swapaxes(a: Any, axis1: int, axis2: int) -> Array:
    """Two axes exchanged."""
    x = array(a, "swapaxes")
    i, j = axis_of(axis1, len(x.shape), "swapaxes"), axis_of(axis2, len(x.shape), "swapaxes")
    order = list(range(len(x.shape)))
    order[i], order[j] = order[j], order[i]
    return transpose(x, order)


def moveaxis(a: Any, source: Any, destination: Any) -> Array:
    """Axes moved to new positions; the others keep their order."""
    x = array(a, "moveaxis")
    n = len(x.shape)
    sources, targets = axes_of(source, n, "moveaxis"), axes_of(destination, n, "moveaxis")
    if len(sources) != len(targets):
        raise AxisError(f"moveaxis: source {source} and destination {destination} must have equally many axes.")
    order = [i for i in range(n) if i not in sources]
    for target, s in sorted(zip(targets, sources, strict=True)):
        order.insert(target, s)
    return transpose(x, order)


def expand_dims(a: Any, axis: Any) -> Array:
    """New axes of size 1 at the given positions of the result."""
    x = array(a, "expand_dims")
    given = axis if isinstance(axis, tuple | list) else (axis,)
    at = axes_of(tuple(given), len(x.shape) + len(given), "expand_dims")
    rest = iter(x.shape)
    new = tuple([1 if i in at else next(rest) for i in range(len(x.shape) + len(at))])
    return ops.reshape(x, shape=new)  # type: ignore[no-any-return]


def squeeze(a: Any, axis: Any = None) -> Array:
    """Axes of size 1 removed (all of them if None)."""
    x = array(a, "squeeze")
    at = tuple([i for i, n in enumerate(x.shape) if n == 1]) if axis is None else axes_of(axis, len(x.shape), "squeeze")
    if any(x.shape[i] != 1 for i in at):
        raise ShapeError(f"squeeze: axis {axis} of shape {x.shape} does not have size 1.")
    return reshape(x, tuple([n for i, n in enumerate(x.shape) if i not in at]))


def broadcast_to(array_: Any, shape: Any) -> Array:
    """An array repeated to a larger shape."""
    x = array(array_, "broadcast_to")
    wanted = shape_of(shape, "broadcast_to")
    if broadcast_shape("broadcast_to", x.shape, wanted) != wanted:
        raise ShapeError(f"broadcast_to: shape {x.shape} does not broadcast to {wanted}.")
    return with_weak_type(broadcast_to_shape(x, wanted), x.weak_type) if not x.is_key else broadcast_to_shape(x, wanted)  # type: ignore[no-any-return]


def broadcast_arrays(*args: Any) -> list[Any]:
    """Arrays repeated to their common shape."""
    xs = [array(x, "broadcast_arrays", i) for i, x in enumerate(args)]
    wanted = broadcast_shape("broadcast_arrays", *[x.shape for x in xs])
    return [broadcast_to_shape(x, wanted) for x in xs]


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The common shape of shapes."""
    return broadcast_shape("broadcast_shapes", *[shape_of(s, "broadcast_shapes") for s in shapes])


# -- joining ------------------------------------------------------------------------------------------------------------


def _common(xs: list[Any], name: str, dtype: Any = None) -> list[Any]:
    if not xs:
        raise ShapeError(f"{name} needs at least one array.")
    if xs[0].is_key:
        return xs
    if dtype is not None:
        return [x.astype(dtype) for x in xs]
    return promoted(name, *xs)[0]


def concatenate(arrays: Any, axis: int | None = 0, dtype: Any = None) -> Array:
    """Arrays joined along an axis; flattened first if ``axis`` is None.

    Raises:
        ShapeError: no arrays, 0-d arrays, or shapes that differ in another axis.

    >>> import xformlib.numpy as jnp
    >>> print(jnp.concatenate([jnp.zeros(2), jnp.ones(1)]))
    [0. 0. 1.]
    """
    xs = _common(sequence(arrays, "concatenate"), "concatenate", dtype)
    if axis is None:
        xs, axis = [ravel(x) for x in xs], 0
    n = len(xs[0].shape)
    if n == 0:
        raise ShapeError("concatenate: 0-d arrays can't be joined; use stack.")
    at = axis_of(axis, n, "concatenate")
    for x in xs:
        if len(x.shape) != n or any(x.shape[i] != xs[0].shape[i] for i in range(n) if i != at):
            raise ShapeError(
                f"concatenate: shapes {', '.join(str(x.shape) for x in xs)} must be equal but for axis {at}."
            )
    return xs[0] if len(xs) == 1 else ops.concatenate(*xs, dimension=at)  # type: ignore[no-any-return]


concat = concatenate


def stack(arrays: Any, axis: int = 0, out: Any = None, dtype: Any = None) -> Array:
    """Arrays of one shape joined along a new axis."""
    xs = _common(sequence(arrays, "stack"), "stack", dtype)
    if any(x.shape != xs[0].shape for x in xs):
        raise ShapeError(f"stack: shapes {', '.join(str(x.shape) for x in xs)} must be equal.")
    at = axis_of(axis, len(xs[0].shape) + 1, "stack")
    return concatenate([expand_dims(x, at) for x in xs], at)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The slices along an axis."""
    x = moveaxis(x, axis, 0)
    return tuple([x[i] for i in range(x.shape[0])])


def vstack(tup: Any, dtype: Any = None) -> Array:
    """Rows joined."""
    return concatenate([atleast_2d(x) for x in sequence(tup, "vstack")], 0, dtype)


def hstack(tup: Any, dtype: Any = None) -> Array:
    """Columns joined."""
    xs = [atleast_1d(x) for x in sequence(tup, "hstack")]
    return concatenate(xs, 0 if xs[0].ndim == 1 else 1, dtype)  # type: ignore[union-attr]


def dstack(tup: Any, dtype: Any = None) -> Array:
    """Arrays joined along the third axis."""
    return concatenate([atleast_3d(x) for x in sequence(tup, "dstack")], 2, dtype)


def column_stack(tup: Any) -> Array:
    """1-d arrays as columns of a matrix."""
    xs = sequence(tup, "column_stack")
    return concatenate([reshape(x, (-1, 1)) if x.ndim < 2 else x for x in xs], 1)


def atleast_1d(*arys: Any) -> Any:
    """Arrays with at least one axis."""
    out = [reshape(x, (1,)) if not x.shape else x for x in [array(a, "atleast_1d", i) for i, a in enumerate(arys)]]
    return out[0] if len(out) == 1 else out


def atleast_2d(*arys: Any) -> Any:
    """Arrays with at least two axes; new ones in front."""
    xs = [array(a, "atleast_2d", i) for i, a in enumerate(arys)]
    out = [reshape(x, (1,) * (2 - x.ndim) + x.shape) if x.ndim < 2 else x for x in xs]
    return out[0] if len(out) == 1 else out


def atleast_3d(*arys: Any) -> Any:
    """Arrays with at least three axes."""
    out = []
    for i, a in enumerate(arys):
        x = array(a, "atleast_3d", i)
        out.append(
            x
            if x.ndim > 2
            else reshape(x, (1, *x.shape, 1))
            if x.ndim < 2 and x.ndim
            else reshape(x, (*x.shape, *(1,) * (3 - x.ndim)))
        )
    return out[0] if len(out) == 1 else out


# -- splitting ----------------------------------------------------------------------------------------------------------


def _split(ary: Any, cuts: Any, axis: int, name: str, *, even: bool) -> list[Any]:
    x = array(ary, name)
    at = axis_of(axis, len(x.shape), name)
    n = x.shape[at]
    if hasattr(cuts, "__index__"):
        parts = int(cuts)
        if parts < 1 or (even and n % parts):
            raise ShapeError(f"{name}: an axis of size {n} can't be split into {parts} equal parts.")
        sizes = [n // parts + (i < n % parts) for i in range(parts)]
        edges = [0, *np.cumsum(sizes).tolist()]
    else:
        edges = [0, *[min(max(int(c) if c >= 0 else n + int(c), 0), n) for c in cuts], n]
    return [ops.slice_in_dim(x, a, max(a, b), at) for a, b in itertools.pairwise(edges)]


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Parts along an axis: equally many, or cut at the given positions."""
    return _split(ary, indices_or_sections, axis, "split", even=True)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Like :func:`split`; parts may differ by one."""
    return _split(ary, indices_or_sections, axis, "array_split", even=False)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Parts along the second axis (the first of 1-d arrays)."""
    return split(ary, indices_or_sections, 0 if array(ary, "hsplit").ndim == 1 else 1)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Parts along the first axis."""
    return split(ary, indices_or_sections, 0)


# -- order and repetition -----------------------------------------------------------------------------------------------


def flip(m: Any, axis: Any = None) -> Array:
    """Elements in reverse order along axes (all if None)."""
    x = array(m, "flip")
    dims = axes_of(axis, len(x.shape), "flip")
    return ops.rev(x, dimensions=dims) if dims else x  # type: ignore[no-any-return]


def flipud(m: Any) -> Array:
    """Reversed along the first axis."""
    return flip(m, 0)


def fliplr(m: Any) -> Array:
    """Reversed along the second axis."""
    return flip(m, 1)


def roll(a: Any, shift: Any, axis: Any = None) -> Array:
    """Elements moved along axes, those that leave at the end coming back at the start."""
    x = array(a, "roll")
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), x.shape)
    dims = axes_of(axis, len(x.shape), "roll")
    shifts = (shift,) * len(dims) if hasattr(shift, "__index__") else tuple(shift)
    for d, s in zip(dims, shifts, strict=True):
        n = x.shape[d]
        k = int(s) % n if n else 0
        if k:
            x = ops.concatenate(ops.slice_in_dim(x, n - k, n, d), ops.slice_in_dim(x, 0, n - k, d), dimension=d)
    return x  # type: ignore[no-any-return]


def tile(A: Any, reps: Any) -> Array:
    """The array repeated as a whole along each axis."""
    x = array(A, "tile")
    times = shape_of(reps, "tile")
    n = max(len(times), x.ndim)
    times, old = (1,) * (n - len(times)) + times, (1,) * (n - x.ndim) + x.shape
    spread = tuple([v for pair in zip(times, old, strict=True) for v in pair])
    inner = reshape(x, tuple([v for s in old for v in (1, s)]))
    return reshape(broadcast_to(inner, spread), tuple([t * s for t, s in zip(times, old, strict=True)]))


def repeat(a: Any, repeats: Any, axis: int | None = None, *, total_repeat_length: int | None = None) -> Array:
    """Each element repeated.

    Args:
        a: array.
        repeats: how often; one int, or one per element (concrete).
        axis: the axis; flattened if None.
        total_repeat_length: length of the result, checked against ``repeats``.
    """
    from xformlib.numpy.searching import take

    x = array(a, "repeat")
    if axis is None:
        x, axis = ravel(x), 0
    at = axis_of(axis, max(x.ndim, 1), "repeat")
    counts = np.broadcast_to(np.asarray(repeats), (x.shape[at],))
    position = np.repeat(np.arange(x.shape[at]), counts)
    if total_repeat_length is not None and len(position) != total_repeat_length:
        position = np.resize(
            np.pad(position, (0, max(0, total_repeat_length - len(position))), mode="edge"), total_repeat_length
        )
    return take(x, position, axis=at)


def tril(m: Any, k: int = 0) -> Array:
    """The lower triangle, zeros above the ``k``-th diagonal."""
    from xformlib.numpy.creation import tri, zeros_like
    from xformlib.numpy.ufuncs import where

    x = _matrix(m, "tril")
    return where(tri(x.shape[-2], x.shape[-1], k, bool), x, zeros_like(x))  # type: ignore[no-any-return]


def triu(m: Any, k: int = 0) -> Array:
    """The upper triangle, zeros below the ``k``-th diagonal."""
    from xformlib.numpy.creation import tri, zeros_like
    from xformlib.numpy.ufuncs import where

    x = _matrix(m, "triu")
    return where(tri(x.shape[-2], x.shape[-1], k - 1, bool), zeros_like(x), x)  # type: ignore[no-any-return]


def _matrix(m: Any, name: str) -> Any:
    x = array(m, name)
    if x.ndim < 2:
        raise ShapeError(f"{name} takes arrays of at least 2 axes; got shape {x.shape}.")
    return x


def pad(array_: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Array:
    """Elements added at both ends of each axis.

    Args:
        array_: array.
        pad_width: ``(before, after)`` per axis, one pair for all, or one int.
        mode: ``"constant"``, ``"edge"``, ``"reflect"``, ``"symmetric"`` or ``"wrap"``.
        constant_values: the value for ``"constant"``.
    """
    from xformlib.numpy.searching import take

    x = array(array_, "pad")
    widths = np.broadcast_to(np.asarray(pad_width, np.int64), (x.ndim, 2)).tolist()
    if mode == "constant":
        value = array(constant_values, "pad", 3).astype(x.dtype)
        low, high = tuple([w[0] for w in widths]), tuple([w[1] for w in widths])
        return ops.pad(x, value, edge_padding_low=low, edge_padding_high=high, interior_padding=(0,) * x.ndim)  # type: ignore[no-any-return]
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        raise NotAnArrayError(f"pad: mode must be constant, edge, reflect, symmetric or wrap; got {mode!r}.")
    for d, (before, after) in enumerate(widths):
        if before or after:
            x = take(x, np.pad(np.arange(x.shape[d]), (before, after), mode=mode), axis=d)  # type: ignore[call-overload]
    return x  # type: ignore[no-any-return]
