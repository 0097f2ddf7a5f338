"""Scatter: a copy of an array with slices combined into it, one record per way of combining.

An update element that would land outside the operand is dropped. With repeated indices the last update wins for
:data:`scatter`; the others combine all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from xformlib import dtypes
from xformlib.dims import GatherDims, ScatterDims
from xformlib.op import Op, Sample, registry
from xformlib.ops import elementwise as ew
from xformlib.ops import segments
from xformlib.ops.creation import full, iota
from xformlib.ops.factors import factor_text
from xformlib.ops.indexing import gather, shifted
from xformlib.ops.movement import (
    broadcast_batch,
    broadcast_in_dim,
    concatenate,
    expand_dims,
    permute,
    reshape,
    slice_in_dim,
    squeeze,
)
from xformlib.ops.reduction import accumulator
from xformlib.ops.scatter_layout import Layout, combining, layout_of, put_last

__all__ = ["ScatterDims", "scatter", "scatter_add", "scatter_max", "scatter_min", "scatter_mul"]

Dims = tuple[int, ...]
_ATTRS = {"scatter_dimension_numbers": "scatter", "indices_are_sorted": "bool", "unique_indices": "bool"}


# -- staging --------------------------------------------------------------------------------------------------------


def _emitter(body: str | None, variant: str) -> Any:
    """Emits ``stablehlo.scatter`` whose region applies ``body`` to (current, update), or takes the update (None)."""

    def emit(frame: Any, operands: Any, **params: Any) -> Any:
        from xformlib import attributes
        from xformlib.lowering.ir import ir, tensor_type, unknown_location

        dtype, name = operands[0].dtype, f"stablehlo.scatter:{variant}"
        wide = accumulator(dtype) if variant in ("add", "mul") and not params["unique_indices"] else dtype
        if wide != dtype:
            operand, indices, updates = operands
            operand, updates = [ew.convert(x, dtype=wide) for x in (operand, updates)]
            return ew.convert(registry[name](operand, indices, updates, **params), dtype=dtype)._value.owner
        values = [t._value for t in operands]
        scalar = tensor_type((), dtype)
        operation = ir.Operation.create(
            "stablehlo.scatter",
            results=[values[0].type],
            operands=values,
            attributes={**attributes.encode(_ATTRS, params), "xform.variant": attributes.string_attr(variant)},
            regions=1,
        )
        block = operation.regions[0].blocks.append(scalar, scalar, arg_locs=[unknown_location] * 2)
        with ir.InsertionPoint(block):
            old, new = block.arguments
            value = new if body is None else ir.Operation.create(body, results=[scalar], operands=[old, new]).result
            ir.Operation.create("stablehlo.return", operands=[value])
        return operation

    return emit


# -- rules ----------------------------------------------------------------------------------------------------------


def _batch(op: Callable[[], Op]) -> Any:
    def rule(
        size: int,
        operands: Any,
        batched: Any,
        scatter_dimension_numbers: ScatterDims,
        indices_are_sorted: bool,
        unique_indices: bool,
    ) -> Any:
        dims = scatter_dimension_numbers
        operand, updates = [operands[i] if batched[i] else broadcast_batch(operands[i], size) for i in (0, 2)]
        dims = dims._replace(
            update_window_dims=shifted(dims.update_window_dims),
            inserted_window_dims=shifted(dims.inserted_window_dims),
            input_batching_dims=shifted(dims.input_batching_dims),
            scatter_dims_to_operand_dims=shifted(dims.scatter_dims_to_operand_dims),
        )
        if batched[1]:
            dims = dims._replace(
                input_batching_dims=(0, *dims.input_batching_dims),
                scatter_indices_batching_dims=(0, *shifted(dims.scatter_indices_batching_dims)),
                index_vector_dim=dims.index_vector_dim + 1,
            )
        else:  # the batch axis is one more window axis
            dims = dims._replace(update_window_dims=(0, *dims.update_window_dims))
        return op()(
            operand,
            operands[1],
            updates,
            scatter_dimension_numbers=dims,
            indices_are_sorted=indices_are_sorted and not batched[1],
            unique_indices=unique_indices,
        )

    return rule


def _factors(operand: Any, indices: Any, updates: Any, scatter_dimension_numbers: ScatterDims, **_: Any) -> str:
    dims = scatter_dimension_numbers
    left: list[Any] = [("operand", d) for d in range(len(operand.shape))]
    middle: list[Any] = [("indices", d) for d in range(len(indices.shape))]
    for i, j in zip(dims.input_batching_dims, dims.scatter_indices_batching_dims, strict=True):
        left[i] = middle[j]
    dropped = dims.inserted_window_dims + dims.input_batching_dims
    windows = [d for d in range(len(left)) if d not in dropped]
    right: list[Any] = [None] * len(updates.shape)
    for axis, d in zip(dims.update_window_dims, windows, strict=True):
        right[axis] = left[d] if updates.shape[axis] == operand.shape[d] else ("window", d)
    batches = iter([label for d, label in enumerate(middle) if d != dims.index_vector_dim])
    right = [next(batches) if label is None else label for label in right]
    return factor_text([left, middle, right], [left])


# -- points: what the derivative rules address ----------------------------------------------------------------------


@dataclass(frozen=True)
class _Points:
    """The points of a scatter as an index array (points..., lead axes) that gathers and scatters take.

    ``inside`` says which points lie within the operand.
    """

    layout: Layout
    index: Any
    inside: Any

    @property
    def rank(self) -> int:
        return len(self.layout.points)

    def arranged(self, updates: Any) -> Any:
        """Updates with axes (points, rest)."""
        return permute(updates, self.layout.permutation)

    def restored(self, values: Any) -> Any:
        """The inverse of :meth:`arranged`."""
        permutation = self.layout.permutation
        return permute(values, sorted(range(len(permutation)), key=permutation.__getitem__))

    def gather(self, x: Any) -> Any:
        """What ``x`` (of the operand's shape) holds at the points, arranged; anything at points outside."""
        layout = self.layout
        rest = dict(zip(layout.rest, layout.rest_sizes, strict=True))
        sizes = tuple([rest.get(d, 1) for d in range(len(layout.shape))])
        dims = GatherDims(
            tuple(range(self.rank, self.rank + len(rest))), tuple(sorted(layout.lead)), (), (), layout.lead, self.rank
        )
        return gather(x, self.index, dimension_numbers=dims, slice_sizes=sizes, indices_are_sorted=False)

    def where_inside(self, values: Any) -> Any:
        """Arranged values, zero at points outside."""
        keep = broadcast_in_dim(self.inside, shape=values.shape, broadcast_dimensions=tuple(range(self.rank)))
        return ew.select(keep, values, full(values.shape, 0, values.dtype))


def _points(operand: Any, indices: Any, updates: Any, dims: ScatterDims) -> _Points:
    """The points, written with ops."""
    layout = layout_of(operand.shape, indices.shape, updates.shape, dims)
    dtype = np.dtype(np.int32 if math.prod(operand.shape) < 2**30 else np.int64)
    columns = []
    inside = full(layout.points, True, np.bool_)
    for i, d in enumerate(layout.lead):
        column = _position(layout, i, indices, dims.index_vector_dim, dtype)
        inside = ew.bitwise_and(inside, ew.bitwise_and(ew.ge(column, 0), ew.lt(column, operand.shape[d])))
        columns.append(expand_dims(column, [len(layout.points)]))
    index = concatenate(*columns, dimension=len(layout.points)) if columns else full((*layout.points, 0), 0, dtype)
    return _Points(layout, index, inside)


def _position(layout: Layout, i: int, indices: Any, index_vector_dim: int, dtype: Any) -> Any:
    """Positions of all points along the i-th lead axis."""
    shape, window, component = layout.points, layout.window[i], layout.column[i]
    position = full(shape, 0, dtype)
    if component is not None:
        start = _start(indices, index_vector_dim, component, 1 if window is None else shape[window])
        near = ew.min(start, min(layout.shape[layout.lead[i]], dtypes.iinfo(start.dtype).max))
        start = ew.convert(near, dtype=dtype)
        position = broadcast_in_dim(start, shape=shape, broadcast_dimensions=tuple(range(len(start.shape))))
    for axis in (layout.batch_axis[i], window):
        if axis is not None:
            position = ew.add(position, iota(shape=shape, dtype=dtype, iota_dimension=axis))
    return position


def _start(indices: Any, index_vector_dim: int, component: int, width: int) -> Any:
    """One component of the index vectors; not so far below zero that adding the window could overflow."""
    if index_vector_dim < len(indices.shape):
        indices = slice_in_dim(indices, component, component + 1, index_vector_dim)
        indices = squeeze(indices, [index_vector_dim])
    return ew.max(indices, max(-width, dtypes.iinfo(indices.dtype).min))


# -- derivatives ----------------------------------------------------------------------------------------------------


def _zeros(x: Any, dtype: Any = None) -> Any:
    return full(x.shape, 0, dtype or x.dtype)


def _add_transpose(ct: Any, operand: Any, indices: Any, updates: Any, **params: Any) -> Any:
    points = _points(operand, indices, updates, params["scatter_dimension_numbers"])
    return points.restored(points.where_inside(points.gather(ct)))


def _winners(points: _Points) -> Any:
    """Which points hold the update that stays: every point writes its number, and looks whose it finds."""
    layout = points.layout
    count = math.prod(layout.points)
    numbers = reshape(iota(shape=(count,), dtype=np.dtype(np.int32), iota_dimension=0), shape=layout.points)
    board = full(tuple([layout.shape[d] for d in layout.lead]), -1, np.dtype(np.int32))
    axes, k = tuple(range(len(layout.lead))), points.rank
    written = scatter(
        board,
        points.index,
        numbers,
        scatter_dimension_numbers=ScatterDims((), axes, (), (), axes, k),
        indices_are_sorted=False,
        unique_indices=False,
    )
    found = gather(
        written,
        points.index,
        dimension_numbers=GatherDims((), axes, (), (), axes, k),
        slice_sizes=(1,) * len(axes),
        indices_are_sorted=False,
    )
    return ew.eq(found, numbers)


def _put_transpose(ct: Any, operand: Any, indices: Any, updates: Any, **params: Any) -> Any:
    points = _points(operand, indices, updates, params["scatter_dimension_numbers"])
    if not params["unique_indices"]:
        points = replace(points, inside=ew.bitwise_and(points.inside, _winners(points)))
    return points.restored(points.where_inside(points.gather(ct)))


def _mul_tangent(t: Any, ans: Any, operand: Any, indices: Any, updates: Any, **params: Any) -> Any:
    """d(x u1 u2 ...) in the direction of the updates."""
    points = _points(operand, indices, updates, params["scatter_dimension_numbers"])
    if params["unique_indices"]:
        term = ew.mul(t, points.restored(points.gather(operand)))
        return scatter_add(_zeros(operand), indices, term, **params)
    layout = points.layout
    count = math.prod(layout.points)
    rows = segments.linear_rows(points.index, [layout.shape[d] for d in layout.lead], points.inside)
    flat = (count, *layout.rest_sizes)
    values, tangents = [reshape(points.arranged(v), shape=flat) for v in (updates, t)]
    rows, order, last = segments.sorted_runs(reshape(rows, shape=(count,)))
    tangents = segments.product_tangents(rows, segments.take_rows(values, order), segments.take_rows(tangents, order))
    # The last of each run holds the tangent of the product of all.
    index = segments.take_rows(reshape(points.index, shape=(count, len(layout.lead))), order)
    runs = _Points(replace(layout, points=(count,)), index, last)
    rest = tuple(range(1, 1 + len(layout.rest)))
    return scatter_add(
        _zeros(operand),
        index,
        runs.where_inside(ew.mul(tangents, runs.gather(operand))),
        scatter_dimension_numbers=ScatterDims(rest, tuple(sorted(layout.lead)), (), (), layout.lead, 1),
        indices_are_sorted=False,
        unique_indices=False,
    )


def _extremum_tangent(tangents: Any, ans: Any, operand: Any, indices: Any, updates: Any, **params: Any) -> Any:
    """The mean of the tangents of all that attain the extremum: the operand's own element and updates."""
    points = _points(operand, indices, updates, params["scatter_dimension_numbers"])
    own = ew.bitwise_or(ew.eq(operand, ans), ew.ne(operand, operand))
    taken = points.arranged(updates)
    hit = ew.eq(points.gather(ans), taken)
    inside = broadcast_in_dim(points.inside, shape=hit.shape, broadcast_dimensions=tuple(range(points.rank)))
    hit = points.restored(ew.bitwise_and(hit, inside))

    def masked_sum(kept: Any, added: Any) -> Any:
        total = None if kept is None else ew.select(own, kept, _zeros(kept))
        if added is None:
            return total
        start = _zeros(operand) if total is None else total
        return scatter_add(start, indices, ew.select(hit, added, _zeros(added)), **params)

    count = masked_sum(full(operand.shape, 1, operand.dtype), full(updates.shape, 1, operand.dtype))
    return ew.div(masked_sum(tangents[0], tangents[2]), count)


# -- records --------------------------------------------------------------------------------------------------------

_I32 = np.int32
_ROWS = ScatterDims((1,), (0,), (), (), (0,), 1)


def _sample(
    shape: Dims,
    indices: Any,
    updates: Dims,
    dims: ScatterDims,
    dtype: Any = np.float32,
    note: str = "",
    unique: bool = False,
    diff: bool = True,
) -> Sample:
    # Positive numbers: sums in another order then agree to a few ulp.
    return Sample(
        lambda rng: [
            (3 * rng.random(shape) + 0.5).astype(dtype),
            np.asarray(indices),
            (3 * rng.random(updates) + 0.5).astype(dtype),
        ],
        {"scatter_dimension_numbers": dims, "indices_are_sorted": False, "unique_indices": unique},
        note=note,
        diff=diff,
    )


_SAMPLES = [
    _sample((5, 3), np.array([[0], [4], [4], [2]], _I32), (4, 3), _ROWS, note="rows, one repeated"),
    _sample((5, 3), np.array([[-1], [7], [2**31 - 1], [1]], _I32), (4, 3), _ROWS, note="out of range: dropped"),
    _sample((5, 3), np.array([[3], [200]], np.uint8), (2, 3), _ROWS, unique=True, note="unsigned indices"),
    _sample((6,), np.array([3, 1, 3, 3], _I32), (4,), ScatterDims((), (0,), (), (), (0,), 1), note="elements"),
    _sample((4,), np.array(2, _I32), (), ScatterDims((), (0,), (), (), (0,), 0), note="one element"),
    _sample(
        (4, 5),
        np.array([[1, 2], [2, 3], [3, -1]], _I32),
        (3, 2, 3),
        ScatterDims((1, 2), (), (), (), (0, 1), 1),
        note="overlapping blocks, partly outside",
    ),
    _sample(
        (4, 5, 2),
        np.array([[0, 3, 1], [4, 1, 2]], _I32),
        (3, 3, 2),
        ScatterDims((0, 2), (1,), (), (), (1, 0), 0),
        note="index vectors along the first axis",
    ),
    _sample(
        (2, 4, 3),
        np.array([[[1], [0], [3]], [[2], [2], [9]]], _I32),
        (2, 3, 2),
        ScatterDims((2,), (1,), (0,), (0,), (1,), 2),
        note="batching axes; windows narrower than the axis",
    ),
    _sample((3, 0), np.array([[1]], _I32), (1, 0), _ROWS, note="empty rows"),
    _sample((3, 2), np.zeros((0, 1), _I32), (0, 2), _ROWS, note="no updates"),
    _sample((5, 3), np.array([[1], [1]], np.int64), (2, 3), _ROWS, dtype=np.int16, note="int64 indices"),
    _sample(
        (2,), np.zeros((40, 1), _I32), (40,), ScatterDims((), (0,), (), (), (0,), 1), dtypes.bfloat16, "low precision"
    ),
]


def _record(
    variant: str, numpy: Any, body: str | None, op: Callable[[], Op], doc: str, derivative: str, **rules: Any
) -> Op:
    return Op(
        f"stablehlo.scatter:{variant}",
        numpy=numpy,
        attrs=_ATTRS,
        types=lambda operand, indices, updates, **_: (operand.shape, operand.dtype),
        batch=_batch(op),
        factors=_factors,
        emit=_emitter(body, variant),
        arity=3,
        samples=_SAMPLES,
        doc=f"{doc} {derivative}",
        **rules,
    )


scatter: Op = _record(
    "set",
    put_last,
    None,
    lambda: scatter,
    "Slices replaced; of repeated indices the last update stays.",
    "The gradient goes to the update that stays.",
    kind="movement",
    linear=(0, 2),
    transpose=(
        lambda ct, operand, indices, updates, **params: scatter(ct, indices, _zeros(updates), **params),
        None,
        _put_transpose,
    ),
)
scatter_add: Op = _record(
    "add",
    combining(np.add),
    "stablehlo.add",
    lambda: scatter_add,
    "Slices added to.",
    "Linear.",
    linear=(0, 2),
    transpose=(lambda ct, operand, indices, updates, **params: ct, None, _add_transpose),
)
scatter_mul: Op = _record(
    "mul",
    combining(np.multiply),
    "stablehlo.multiply",
    lambda: scatter_mul,
    "Slices multiplied.",
    "The product rule holds for repeated indices and zeros, too.",
    jvp=(
        lambda t, ans, operand, indices, updates, **params: scatter_mul(t, indices, updates, **params),
        None,
        _mul_tangent,
    ),
    transpose=(
        lambda ct, operand, indices, updates, **params: scatter_mul(ct, indices, updates, **params),
        None,
        None,
    ),
)
scatter_min: Op = _record(
    "min",
    combining(np.minimum),
    "stablehlo.minimum",
    lambda: scatter_min,
    "Slices lowered to the updates.",
    "Ties share the gradient.",
    jvp=_extremum_tangent,
)
scatter_max: Op = _record(
    "max",
    combining(np.maximum),
    "stablehlo.maximum",
    lambda: scatter_max,
    "Slices raised to the updates.",
    "Ties share the gradient.",
    jvp=_extremum_tangent,
)
