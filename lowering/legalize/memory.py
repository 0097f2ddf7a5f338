"""Accesses by computed position: none may leave its buffer."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from xformlib.lowering.ir import ir
from xformlib.lowering.legalize.rewriter import Builder, Guard, dtype_of, shape_of

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
    """Clamp start indices so that every slice lies inside, as StableHLO specifies; batching axes become indices."""
    operand, indices = operation.operands
    if "xform.safe" in operation.attributes:
        return None
    result = operation.results[0]
    if 0 in shape_of(result):
        return [b.const(result, 0)]
    dims = _numbers(operation.attributes["dimension_numbers"])
    sizes = list(ir.DenseI64ArrayAttr(operation.attributes["slice_sizes"]))
    starts, mapped = _starts(shape_of(operand), sizes, indices, dims, b)
    offset, hidden = dims.get("offset_dims", []), dims.get("operand_batching_dims", [])
    collapsed = sorted([*dims.get("collapsed_slice_dims", []), *hidden])
    if not starts:
        kept = tuple([n for d, n in enumerate(sizes) if d not in collapsed])
        window = b.reshape(b.slice(operand, [0] * len(sizes), sizes), kept)
        return [b.broadcast(window, shape_of(result), offset)]
    batch = shape_of(starts[0])
    i = b.concatenate([b.reshape(s, (*batch, 1)) for s in starts], len(batch))
    if max(shape_of(operand)) < 2**31:
        i = b.convert(i, _I32)
    numbers = (
        f"#stablehlo.gather<offset_dims = {offset}, collapsed_slice_dims = {collapsed}, start_index_map = {mapped}, "
        f"index_vector_dim = {len(batch)}>"
    )
    out = b.op(
        "stablehlo.gather",
        [(shape_of(result), dtype_of(result))],
        [operand, i],
        dimension_numbers=ir.Attribute.parse(numbers),
        slice_sizes=operation.attributes["slice_sizes"],
        **{"xform.safe": ir.UnitAttr.get()},
    )
    return [out.result]


def _starts(
    shape: tuple[int, ...], sizes: list[int], indices: Any, dims: dict[str, list[int]], b: Builder
) -> tuple[list[Any], list[int]]:
    """Where slices begin along each axis that is indexed, clamped, and those axes."""
    axis = dims["index_vector_dim"][0]
    index_shape = shape_of(indices)
    batch_axes = [d for d in range(len(index_shape)) if d != axis]
    batch = tuple([index_shape[d] for d in batch_axes])
    starts, mapped = [], []
    indices = _signed(indices, b) if dims.get("start_index_map") else indices
    for k, d in enumerate(dims.get("start_index_map", [])):
        start = _component(indices, index_shape, axis, k, b)
        starts.append(b.min(b.max(start, 0), shape[d] - sizes[d]))
        mapped.append(d)
    pairs = zip(dims.get("operand_batching_dims", []), dims.get("start_indices_batching_dims", []), strict=True)
    for d, at in pairs:
        starts.append(b.iota(batch, _I64, batch_axes.index(at)))
        mapped.append(d)
    return starts, mapped


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
        raise b.refuse("its operands are combined together")
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
