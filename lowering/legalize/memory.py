"""Accesses by computed position: none may leave its buffer."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from xformlib.lowering.ir import ir
from xformlib.lowering.legalize.rewriter import Builder, Guard, LegalizationError, dtype_of, shape_of

_I32, _I64 = np.dtype(np.int32), np.dtype(np.int64)


def _numbers(attribute: Any) -> dict[str, list[int]]:
    """Fields of a dimension-numbers attribute."""
    text = str(attribute)
    found = {k: [int(i) for i in v.split(",") if i.strip()] for k, v in re.findall(r"(\w+) = \[([\d, ]*)\]", text)}
    vector = re.search(r"index_vector_dim = (\d+)", text)
    found["index_vector_dim"] = [int(vector[1]) if vector else 0]
    return found


def _signed(i: Any, b: Builder) -> Any:
    """Indices as int64; the largest unsigned ones stay large."""
    if dtype_of(i) == np.uint64:
        i = b.min(i, np.uint64(2**63 - 1))
    return b.convert(i, _I64)


def _gather(operation: Any, b: Builder) -> Sequence[Any] | None:
    """Clamp start indices so that every slice lies inside, as StableHLO specifies."""
    operand, indices = operation.operands
    if "xform.safe" in operation.attributes:
        return None
    if 0 in shape_of(operation.results[0]):
        return [b.const(operation.results[0], 0)]
    dims = _numbers(operation.attributes["dimension_numbers"])
    sizes = list(ir.DenseI64ArrayAttr(operation.attributes["slice_sizes"]))
    axis = dims["index_vector_dim"][0]
    largest = np.array([shape_of(operand)[d] - sizes[d] for d in dims.get("start_index_map", [])], np.int64)
    shape = shape_of(indices)
    i = _signed(indices, b)
    if axis == len(shape):
        limit = b.full(shape, largest[0] if len(largest) else 0, _I64)
    else:
        limit = b.broadcast(b.array(largest), shape, [axis])
    i = b.min(b.max(i, 0), limit)
    if max(shape_of(operand), default=0) < 2**31:
        i = b.convert(i, _I32)
    kept = ("dimension_numbers", "slice_sizes", "indices_are_sorted")
    attrs = {name: operation.attributes[name] for name in kept if name in operation.attributes}
    attrs["xform.safe"] = ir.UnitAttr.get()
    result = operation.results[0]
    return [b.op("stablehlo.gather", [(shape_of(result), dtype_of(result))], [operand, i], **attrs).result]


def _update_index(
    shape: tuple[int, ...], updates: tuple[int, ...], indices: Any, dims: dict[str, list[int]], b: Builder
) -> tuple[Any, Any]:
    """Row-major position in the operand of every update element, and whether it lies inside."""
    window = dims.get("update_window_dims", [])
    scatter_dims = [d for d in range(len(updates)) if d not in window]
    batch_in = dims.get("input_batching_dims", [])
    batch_at = dims.get("scatter_indices_batching_dims", [])
    hidden = set(dims.get("inserted_window_dims", [])) | set(batch_in)
    window_of = dict(zip([d for d in range(len(shape)) if d not in hidden], window, strict=True))
    axis = dims["index_vector_dim"][0]
    index_shape = shape_of(indices)
    batch_axes = [d for d in range(len(index_shape)) if d != axis]
    start_map = dims.get("scatter_dims_to_operand_dims", [])
    position, inside = b.full(updates, 0, _I64), b.full(updates, True, np.bool_)
    stride = 1
    for d in reversed(range(len(shape))):
        coordinate = b.iota(updates, _I64, window_of[d]) if d in window_of else b.full(updates, 0, _I64)
        if d in start_map:
            start = _component(indices, index_shape, axis, start_map.index(d), b)
            coordinate = b.add(coordinate, b.broadcast(start, updates, scatter_dims))
        elif d in batch_in:
            at = batch_axes.index(batch_at[batch_in.index(d)])
            coordinate = b.iota(updates, _I64, scatter_dims[at])
        good = b.and_(b.compare("GE", coordinate, 0), b.compare("LT", coordinate, shape[d]))
        inside = b.and_(inside, good)
        position = b.add(position, b.mul(coordinate, stride))
        stride *= shape[d]
    return position, inside


def _component(indices: Any, shape: tuple[int, ...], axis: int, k: int, b: Builder) -> Any:
    if axis == len(shape):
        return indices
    start, limit = [0] * len(shape), list(shape)
    start[axis], limit[axis] = k, k + 1
    return b.reshape(b.slice(indices, start, limit), shape[:axis] + shape[axis + 1 :])


def _scatter(operation: Any, b: Builder) -> Sequence[Any] | None:
    """Every update element by its flat position; those outside go to an element of their own, cut off afterwards."""
    if "xform.safe" in operation.attributes:
        return None
    if len(operation.operands) != 3:
        raise LegalizationError("scatter of several operands at once has no form the compiler takes")
    operand, indices, updates = operation.operands
    shape, dtype = shape_of(operand), dtype_of(operand)
    if 0 in shape_of(updates) or 0 in shape:
        return [operand]
    dims = _numbers(operation.attributes["scatter_dimension_numbers"])
    count, size = math.prod(shape_of(updates)), math.prod(shape)
    position, inside = _update_index(shape, shape_of(updates), _signed(indices, b), dims, b)
    position = b.select(inside, position, b.const(position, size))
    if size < 2**31 - 1:
        position = b.convert(position, _I32)
    flat = b.concatenate([b.reshape(operand, (size,)), b.full((1,), 0, dtype)], 0)
    numbers = "#stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>"
    new = b.op(
        "stablehlo.scatter",
        [((size + 1,), dtype)],
        [flat, b.reshape(position, (count, 1)), b.reshape(updates, (count,))],
        regions=1,
        scatter_dimension_numbers=ir.Attribute.parse(numbers),
        **{"xform.safe": ir.UnitAttr.get()},
    )
    operation.regions[0].blocks[0].append_to(new.regions[0])
    return [b.reshape(b.slice(new.result, [0], [size]), shape)]


def _clamped_starts(operation: Any, first: int, sizes: Sequence[int], b: Builder) -> list[Any]:
    shape = shape_of(operation.operands[0])
    starts = list(operation.operands)[first:]
    wide = [_signed(s, b) for s in starts]
    return [b.min(b.max(s, 0), n - k) for s, n, k in zip(wide, shape, sizes, strict=True)]


def _dynamic_slice(operation: Any, b: Builder) -> Sequence[Any] | None:
    if len(operation.operands) < 2 or dtype_of(operation.operands[1]) == _I64:
        return None
    sizes = list(ir.DenseI64ArrayAttr(operation.attributes["slice_sizes"]))
    starts = _clamped_starts(operation, 1, sizes, b)
    x = operation.operands[0]
    return [
        b.op(
            "stablehlo.dynamic_slice",
            [(tuple(sizes), dtype_of(x))],
            [x, *starts],
            slice_sizes=operation.attributes["slice_sizes"],
        ).result
    ]


def _dynamic_update_slice(operation: Any, b: Builder) -> Sequence[Any] | None:
    if len(operation.operands) < 3 or dtype_of(operation.operands[2]) == _I64:
        return None
    x, update = list(operation.operands)[:2]
    starts = _clamped_starts(operation, 2, shape_of(update), b)
    return [b.op("stablehlo.dynamic_update_slice", [(shape_of(x), dtype_of(x))], [x, update, *starts]).result]


GUARDS = [
    Guard("gather", ("stablehlo.gather",), "an index out of range reads foreign memory", _gather),
    Guard(
        "scatter", ("stablehlo.scatter",), "an index out of range writes foreign memory; many layouts crash", _scatter
    ),
    Guard("dynamic_slice", ("stablehlo.dynamic_slice",), "unsigned and narrow positions wrap", _dynamic_slice),
    Guard(
        "dynamic_update_slice",
        ("stablehlo.dynamic_update_slice",),
        "unsigned and narrow positions wrap",
        _dynamic_update_slice,
    ),
]
