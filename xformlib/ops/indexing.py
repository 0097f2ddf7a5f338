"""gather, dynamic_slice and dynamic_update_slice. Start indices out of range are clamped so that the slice fits."""

from __future__ import annotations

import builtins
import functools
from typing import Any, NamedTuple

import numpy as np

from xformlib import dtypes
from xformlib.array import Aval
from xformlib.dims import GatherDims, ScatterDims
from xformlib.op import Op, Sample
from xformlib.ops import elementwise as ew
from xformlib.ops.creation import constant, full
from xformlib.ops.factors import factor_text
from xformlib.ops.movement import broadcast_batch, broadcast_in_dim, concatenate, reshape

__all__ = ["GatherDims", "clamp_starts", "dynamic_slice", "dynamic_update_slice", "gather", "take_along_axis"]


def shifted(dims: tuple[int, ...]) -> tuple[int, ...]:
    """Axes behind a new leading one."""
    return tuple([d + 1 for d in dims])


# -- gather: evaluation ---------------------------------------------------------------------------------------------


def index_columns(indices: np.ndarray, index_vector_dim: int) -> np.ndarray:
    """Indices as signed integers, with the index vectors along the last axis."""
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(np.iinfo(np.int64).max))
    indices = indices.astype(np.int64, copy=False)
    if index_vector_dim == indices.ndim:
        return indices[..., None]
    return indices if index_vector_dim == indices.ndim - 1 else np.moveaxis(indices, index_vector_dim, -1)


def batching_axes(indices_batching_dims: tuple[int, ...], index_vector_dim: int) -> list[int]:
    """Where batching axes of the indices stand once the index vector's axis is taken out."""
    return [d - (d > index_vector_dim) for d in indices_batching_dims]


def along(values: np.ndarray, axis: int, rank: int) -> np.ndarray:
    """A vector as an array of ``rank`` axes that varies along ``axis``."""
    return values.reshape([-1 if d == axis else 1 for d in range(rank)])


class _Plan(NamedTuple):
    """How a gather of given shapes is done; static.

    Axes taken whole stay slices; the others are indexed by arrays over the batch axes and their own window axes.
    """

    axes: tuple[int, ...]  # the operand's: indexed ones, then whole ones
    indexed: tuple[
        tuple[int | None, int, int | None, int | None], ...
    ]  # component, last start, batch axis, window axis
    windows: tuple[int, ...]  # widths of indexed windows
    whole: tuple[builtins.slice, ...] | None  # None: all of them
    order: tuple[int, ...]  # of the result, whose axes come out as (batch, indexed windows, whole windows)


@functools.lru_cache(maxsize=4096)
def _plan(shape: tuple[int, ...], batch_rank: int, dims: GatherDims, sizes: tuple[int, ...]) -> _Plan:
    dropped = dims.collapsed_slice_dims + dims.operand_batching_dims
    window = [d for d in range(len(shape)) if d not in dropped]
    partial = [d for d in window if d in dims.start_index_map and sizes[d] != shape[d]]
    whole = [d for d in window if d not in partial]
    batching = dict(
        zip(
            dims.operand_batching_dims,
            batching_axes(dims.start_indices_batching_dims, dims.index_vector_dim),
            strict=True,
        )
    )
    indexed = [
        (
            dims.start_index_map.index(d) if d in dims.start_index_map else None,
            shape[d] - (sizes[d] if d not in batching else 0),
            batching.get(d),
            batch_rank + partial.index(d) if d in partial else None,
        )
        for d in (*dropped, *partial)
    ]
    axis_of = {d: batch_rank + i for i, d in enumerate(partial + whole)}
    windows, batches = iter([axis_of[d] for d in window]), iter(range(batch_rank))
    return _Plan(
        (*dropped, *partial, *whole),
        tuple(indexed),
        tuple([sizes[d] for d in partial]),
        None if all(sizes[d] == shape[d] for d in whole) else tuple([builtins.slice(sizes[d]) for d in whole]),
        tuple([next(windows if d in dims.offset_dims else batches) for d in range(batch_rank + len(window))]),
    )


def _gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDims,
    slice_sizes: tuple[int, ...],
    indices_are_sorted: bool,
) -> Any:
    columns = index_columns(start_indices, dimension_numbers.index_vector_dim)
    batch = columns.shape[:-1]
    plan = _plan(operand.shape, len(batch), dimension_numbers, slice_sizes)
    rank = len(batch) + len(plan.windows)
    index: list[Any] = []
    for component, last, batch_axis, window_axis in plan.indexed:
        if batch_axis is not None:
            index.append(along(np.arange(last), batch_axis, rank))
            continue
        start: Any = 0
        if component is not None:
            start = columns[..., component]
            if len(plan.indexed) > 1 or window_axis is not None:  # else take clips them itself
                start = np.minimum(np.maximum(start, 0), last)
            if plan.windows:
                start = start.reshape(batch + (1,) * len(plan.windows))
        if window_axis is not None:
            start = start + along(np.arange(plan.windows[window_axis - len(batch)]), window_axis, rank)
        index.append(start)
    taken = _take(operand, plan.axes, index, batch + plan.windows)
    if plan.whole is not None:
        taken = taken[(Ellipsis, *plan.whole)]
    return taken.transpose(plan.order)


def _take(operand: Any, axes: tuple[int, ...], index: list[Any], shape: tuple[int, ...]) -> Any:
    """``operand.transpose(axes)[index]``, the indices spread to ``shape``; clips where there is one."""
    if not index:
        return np.broadcast_to(operand, shape + operand.shape)
    if len(index) == 1:
        # Along the axis where it stands: take copies an array that is not contiguous.
        axis, rank = axes[0], len(shape)
        taken = operand.take(np.broadcast_to(index[0], shape), axis=axis, mode="clip")
        return taken.transpose(*range(axis, axis + rank), *range(axis), *range(axis + rank, taken.ndim))
    return operand.transpose(axes)[tuple([np.broadcast_to(i, shape) for i in index])]


# -- gather: rules --------------------------------------------------------------------------------------------------


def clamp_starts(
    start_indices: Any, operand: Any, start_index_map: tuple[int, ...], slice_sizes: tuple[int, ...], axis: int
) -> Any:
    """Start indices moved so that every slice lies within ``operand``; index vectors run along ``axis``."""
    if not start_index_map:
        return start_indices
    dtype = start_indices.dtype
    most = dtypes.iinfo(dtype).max
    limits = np.asarray([min(operand.shape[d] - slice_sizes[d], most) for d in start_index_map], dtype)
    if axis == len(start_indices.shape):
        limit = full(start_indices.shape, limits[0], dtype)
    else:
        limit = broadcast_in_dim(constant(value=limits), shape=start_indices.shape, broadcast_dimensions=(axis,))
    return ew.min(ew.max(start_indices, full(start_indices.shape, 0, dtype)), limit)


def _gather_transpose(
    ct: Any,
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDims,
    slice_sizes: tuple[int, ...],
    indices_are_sorted: bool,
) -> Any:
    from xformlib.ops.scatter import scatter_add

    dims = dimension_numbers
    starts = clamp_starts(start_indices, operand, dims.start_index_map, slice_sizes, dims.index_vector_dim)
    return scatter_add(
        full(operand.shape, 0, ct.dtype),
        starts,
        ct,
        scatter_dimension_numbers=ScatterDims(*dims),
        indices_are_sorted=indices_are_sorted,
        unique_indices=False,
    )


def _gather_batch(
    size: int,
    operands: Any,
    batched: Any,
    dimension_numbers: GatherDims,
    slice_sizes: tuple[int, ...],
    indices_are_sorted: bool,
) -> Any:
    operand, indices = operands
    dims = dimension_numbers
    if batched[0]:
        dims = dims._replace(
            collapsed_slice_dims=shifted(dims.collapsed_slice_dims),
            operand_batching_dims=shifted(dims.operand_batching_dims),
            start_index_map=shifted(dims.start_index_map),
        )
    if batched[1]:
        dims = dims._replace(
            start_indices_batching_dims=shifted(dims.start_indices_batching_dims),
            index_vector_dim=dims.index_vector_dim + 1,
        )
    dims = dims._replace(offset_dims=shifted(dims.offset_dims))
    if all(batched):
        dims = dims._replace(
            operand_batching_dims=(0, *dims.operand_batching_dims),
            start_indices_batching_dims=(0, *dims.start_indices_batching_dims),
        )
        slice_sizes = (min(1, size), *slice_sizes)
    elif batched[0]:  # every slice takes all examples
        dims = dims._replace(offset_dims=(0, *dims.offset_dims))
        slice_sizes = (size, *slice_sizes)
    sorted_ = indices_are_sorted and not batched[1]
    return gather(operand, indices, dimension_numbers=dims, slice_sizes=slice_sizes, indices_are_sorted=sorted_)


def _gather_factors(
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDims,
    slice_sizes: tuple[int, ...],
    indices_are_sorted: bool,
) -> str:
    dims = dimension_numbers
    left: list[Any] = [("operand", d) for d in range(len(operand.shape))]
    right: list[Any] = [("indices", d) for d in range(len(start_indices.shape))]
    for i, j in zip(dims.operand_batching_dims, dims.start_indices_batching_dims, strict=True):
        left[i] = right[j]
    dropped = dims.collapsed_slice_dims + dims.operand_batching_dims
    windows = iter(
        [left[d] if slice_sizes[d] == operand.shape[d] else ("window", d) for d in range(len(left)) if d not in dropped]
    )
    batches = iter([label for d, label in enumerate(right) if d != dims.index_vector_dim])
    rank = len(left) - len(dropped) + len(right) - (dims.index_vector_dim < len(right))
    return factor_text([left, right], [[next(windows if d in dims.offset_dims else batches) for d in range(rank)]])


def _gather_sample(
    shape: tuple[int, ...],
    indices: Any,
    dims: GatherDims,
    sizes: tuple[int, ...],
    dtype: Any = np.float32,
    note: str = "",
) -> Sample:
    return Sample(
        lambda rng: [(3 * rng.standard_normal(shape)).astype(dtype), np.asarray(indices)],
        {"dimension_numbers": dims, "slice_sizes": sizes, "indices_are_sorted": False},
        note=note,
    )


_I32 = np.int32
_ROWS = GatherDims((1,), (0,), (), (), (0,), 1)

gather: Op = Op(
    "stablehlo.gather",
    numpy=_gather,
    kind="movement",
    attrs={"dimension_numbers": "gather", "slice_sizes": "i64s", "indices_are_sorted": "bool"},
    linear=(0,),
    transpose=(_gather_transpose, None),
    batch=_gather_batch,
    factors=_gather_factors,
    samples=[
        _gather_sample((5, 3), np.array([[0], [4], [4], [2]], _I32), _ROWS, (1, 3), note="rows, one repeated"),
        _gather_sample((5, 3), np.array([[-7], [9], [2**31 - 1]], _I32), _ROWS, (1, 3), note="out of range: clamped"),
        _gather_sample((5, 3), np.array([[3], [200]], np.uint8), _ROWS, (1, 3), note="unsigned indices"),
        _gather_sample((4,), np.array(2, _I32), GatherDims((), (0,), (), (), (0,), 0), (1,), note="one element"),
        _gather_sample(
            (4, 5), np.array([[1, 2], [3, 9]], _I32), GatherDims((1, 2), (), (), (), (0, 1), 1), (2, 3), note="blocks"
        ),
        _gather_sample(
            (4, 5, 2),
            np.array([[0, 3, 1], [4, 1, 2]], _I32),
            GatherDims((0, 2), (1,), (), (), (1, 0), 0),
            (3, 1, 2),
            note="index vectors along the first axis, windows on both sides",
        ),
        _gather_sample(
            (2, 4, 3),
            np.array([[[1], [0], [3]], [[2], [2], [9]]], _I32),
            GatherDims((2,), (1,), (0,), (0,), (1,), 2),
            (1, 1, 2),
            note="batching axes; a static window",
        ),
        _gather_sample((3, 0), np.array([[1]], _I32), _ROWS, (1, 0), note="empty rows"),
        _gather_sample((3, 2), np.zeros((0, 1), _I32), _ROWS, (1, 2), note="no indices"),
        _gather_sample(
            (3, 2), np.zeros((2, 0), _I32), GatherDims((1, 2), (), (), (), (), 1), (3, 2), note="no index axes"
        ),
        _gather_sample((5, 3), np.array([[1], [1]], np.int64), _ROWS, (1, 3), dtype=np.int16),
    ],
    doc="Slices of equal size from given positions, with StableHLO's dimension numbers.",
)


def take_along_axis(x: Any, indices: Any, axis: int) -> Any:
    """``x`` at ``indices`` along one axis; all other axes have equal sizes and go together."""
    others = tuple([d for d in range(len(x.shape)) if d != axis])
    dims = GatherDims((), (axis,), others, others, (axis,), len(x.shape))
    sizes = tuple([min(1, n) for n in x.shape])
    return gather(x, indices, dimension_numbers=dims, slice_sizes=sizes, indices_are_sorted=False)


# -- dynamic_slice --------------------------------------------------------------------------------------------------


def _window(shape: tuple[int, ...], starts: Any, sizes: tuple[int, ...]) -> tuple[builtins.slice, ...]:
    index = []
    for n, start, size in zip(shape, starts, sizes, strict=True):
        first = max(0, min(int(start), n - size))
        index.append(builtins.slice(first, first + size))
    return tuple(index)


def _stacked_starts(size: int, starts: Any, batched: Any) -> Any:
    """Start indices of every example: shape (size, number of axes)."""
    columns = [
        reshape(s, shape=(size, 1)) if b else broadcast_in_dim(s, shape=(size, 1), broadcast_dimensions=())
        for s, b in zip(starts, batched, strict=True)
    ]
    return concatenate(*columns, dimension=1)


def _dynamic_slice_transpose(ct: Any, x: Any, *starts: Any, slice_sizes: tuple[int, ...]) -> list[Any]:
    return [dynamic_update_slice(full(x.shape, 0, ct.dtype), ct, *starts), *[None] * len(starts)]


def _dynamic_slice_batch(size: int, operands: Any, batched: Any, slice_sizes: tuple[int, ...]) -> Any:
    x, *starts = operands
    if not any(batched[1:]):
        if not starts:
            return x
        return dynamic_slice(x, full((), 0, starts[0].dtype), *starts, slice_sizes=(size, *slice_sizes))
    rank = len(starts)
    offset = tuple(range(1, rank + 1))
    if batched[0]:
        dims = GatherDims(offset, (), (0,), (0,), offset, 1)
        slice_sizes = (min(1, size), *slice_sizes)
    else:
        dims = GatherDims(offset, (), (), (), tuple(range(rank)), 1)
    indices = _stacked_starts(size, starts, batched[1:])
    return gather(x, indices, dimension_numbers=dims, slice_sizes=slice_sizes, indices_are_sorted=False)


def _start_factors(x: Any, small: Any, starts: Any) -> tuple[list[Any], list[Any]]:
    large = list(range(len(x.shape)))
    return large, [d if n == x.shape[d] else ("window", d) for d, n in enumerate(small)]


def _dynamic_slice_factors(x: Any, *starts: Any, slice_sizes: tuple[int, ...]) -> str:
    large, window = _start_factors(x, slice_sizes, starts)
    return factor_text([large, *[[]] * len(starts)], [window])


def _starts_sample(
    shapes: list[tuple[int, ...]], starts: Any, params: Any, dtype: Any = np.float32, note: str = ""
) -> Sample:
    return Sample(
        lambda rng: [(3 * rng.standard_normal(s)).astype(dtype) for s in shapes] + [np.asarray(i) for i in starts],
        params,
        note=note,
    )


_STARTS = [
    ((5, 4), (2, 3), [_I32(1), _I32(0)], np.float32, ""),
    ((5, 4), (2, 3), [_I32(-3), _I32(9)], np.float32, "clamped"),
    ((5, 4), (5, 4), [_I32(1), _I32(1)], np.float32, "the whole array"),
    ((), (), [], np.float32, "0-d"),
    ((3, 2), (0, 2), [np.uint8(200), np.uint8(0)], np.float32, "nothing, unsigned start"),
    ((4,), (1,), [np.int64(-1)], np.int8, ""),
]

dynamic_slice: Op = Op(
    "stablehlo.dynamic_slice",
    numpy=lambda x, *starts, slice_sizes: x[_window(x.shape, starts, slice_sizes)],
    kind="movement",
    attrs={"slice_sizes": "i64s"},
    types=lambda x, *starts, slice_sizes: (slice_sizes, x.dtype),
    linear=(0,),
    transpose=_dynamic_slice_transpose,
    batch=_dynamic_slice_batch,
    factors=_dynamic_slice_factors,
    samples=[_starts_sample([n], i, {"slice_sizes": w}, t, note) for n, w, i, t, note in _STARTS],
    doc="A slice of static size from a position given by one scalar per axis, clamped so that it fits.",
)

# -- dynamic_update_slice -------------------------------------------------------------------------------------------


def _update(x: Any, update: Any, *starts: Any) -> np.ndarray:
    out = np.array(x)
    out[_window(x.shape, starts, update.shape)] = update
    return out


def _update_transpose(ct: Any, x: Any, update: Any, *starts: Any) -> list[Any]:
    out: list[Any] = [None] * (2 + len(starts))
    if isinstance(x, Aval):
        out[0] = dynamic_update_slice(ct, full(update.shape, 0, ct.dtype), *starts)
    if isinstance(update, Aval):
        out[1] = dynamic_slice(ct, *starts, slice_sizes=update.shape)
    return out


def _update_batch(size: int, operands: Any, batched: Any) -> Any:
    from xformlib.ops.scatter import scatter

    x, update, *starts = operands
    x = x if batched[0] else broadcast_batch(x, size)
    update = update if batched[1] else broadcast_batch(update, size)
    if not starts:
        return update
    if not any(batched[2:]):
        return dynamic_update_slice(x, update, full((), 0, starts[0].dtype), *starts)
    axes = tuple(range(1, len(starts) + 1))
    indices = clamp_starts(_stacked_starts(size, starts, batched[2:]), x, axes, (0, *update.shape[1:]), 1)
    dims = ScatterDims(axes, (), (0,), (0,), axes, 1)
    return scatter(x, indices, update, scatter_dimension_numbers=dims, indices_are_sorted=False, unique_indices=True)


def _update_factors(x: Any, update: Any, *starts: Any) -> str:
    large, window = _start_factors(x, update.shape, starts)
    return factor_text([large, window, *[[]] * len(starts)], [large])


dynamic_update_slice: Op = Op(
    "stablehlo.dynamic_update_slice",
    numpy=_update,
    kind="movement",
    types=lambda x, update, *starts: (x.shape, x.dtype),
    linear=(0, 1),
    transpose=_update_transpose,
    batch=_update_batch,
    factors=_update_factors,
    samples=[_starts_sample([n, w], i, {}, t, note) for n, w, i, t, note in _STARTS],
    doc="The array with a slice replaced, at a position given by one scalar per axis, clamped so that it fits.",
)
