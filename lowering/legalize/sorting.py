"""Sorting by counting: an element's place is the number of elements before it.

IREE's own sort is not stable, and gives wrong orders along the last axis and for several operands at once. It is quadratic like
this, which is made of fused elementwise work and reductions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xformlib.lowering.ir import ir, tensor_type, type_info, unknown_location
from xformlib.lowering.legalize.rewriter import Builder, Guard, LegalizationError, dtype_of, shape_of

_I32 = np.dtype(np.int32)
_LARGEST = 1 << 29  # pairs that are compared; 2 GiB when they are materialised


def _less(block: Any, arguments: Sequence[Any], b: Builder) -> Any:
    """The comparator's operations on whole tensors in place of scalars."""
    shape = shape_of(arguments[0])
    values = dict(zip(block.arguments, arguments, strict=True))
    for operation in block.operations:
        if operation.name == "stablehlo.return":
            return values[operation.operands[0]]
        dtype = type_info(operation.results[0].type)[1]
        attrs = {name: operation.attributes[name] for name in operation.attributes} if len(operation.attributes) else {}
        attrs = {getattr(k, "name", k): operation.attributes[getattr(k, "name", k)] for k in attrs}
        if operation.name == "stablehlo.constant":
            scalar = b.op(operation.name, [((), dtype)], [], **attrs).result
            values[operation.results[0]] = b.broadcast(scalar, shape, ())
            continue
        operands = [values[v] for v in operation.operands]
        values[operation.results[0]] = b.op(operation.name, [(shape, dtype)], operands, **attrs).result
    raise AssertionError("a comparator returns")


def _sum(b: Builder, x: Any, dimension: int) -> Any:
    shape, dtype = type_info(x.type)
    zero = b.full((), 0, dtype)
    out = shape[:dimension] + shape[dimension + 1 :]
    reduction = b.op(
        "stablehlo.reduce", [(out, dtype)], [x, zero], regions=1, dimensions=ir.DenseI64ArrayAttr.get([dimension])
    )
    scalar = tensor_type((), dtype)
    block = reduction.regions[0].blocks.append(scalar, scalar, arg_locs=[unknown_location] * 2)
    with ir.InsertionPoint(block):
        total = ir.Operation.create("stablehlo.add", results=[scalar], operands=list(block.arguments)).result
        ir.Operation.create("stablehlo.return", operands=[total])
    return reduction.result


def _placed(b: Builder, x: Any, rank: Any, axis: int) -> Any:
    """``x`` with every element at its rank: one nonzero term per sum, added up as bits so that nothing is rounded."""
    dtype = dtype_of(x)
    if dtype.kind == "c":
        half = np.dtype(f"f{dtype.itemsize // 2}")
        parts = [b.op(f"stablehlo.{p}", [(shape_of(x), half)], [x]).result for p in ("real", "imag")]
        return b.op("stablehlo.complex", [(shape_of(x), dtype)], [_placed(b, p, rank, axis) for p in parts]).result
    if dtype == np.bool_:
        return b.compare("NE", _placed(b, b.convert(x, np.int32), rank, axis), 0)
    bits = b.as_signed(x)
    shape = shape_of(x)
    wide = (*shape[: axis + 1], *shape[axis:])  # [..., place, element, ...]
    kept = [d for d in range(len(wide)) if d != axis]
    here = b.compare("EQ", b.broadcast(rank, wide, kept), b.iota(wide, _I32, axis))
    spread = b.broadcast(bits, wide, kept)
    return b.bitcast(_sum(b, b.select(here, spread, b.const(spread, 0)), axis + 1), dtype)


def _sort(operation: Any, b: Builder) -> Sequence[Any] | None:
    operands = list(operation.operands)
    shape = shape_of(operands[0])
    axis = int(ir.IntegerAttr(operation.attributes["dimension"]).value) % max(len(shape), 1)
    if 0 in shape or not shape or shape[axis] == 1:
        return operands
    wide = (*shape[: axis + 1], *shape[axis:])  # [..., element, other, ...]
    if math.prod(wide) > _LARGEST:
        raise LegalizationError(
            f"sorting {shape[axis]} elements along an axis of shape {shape} inside a compiled function: compiled sorts take "
            "quadratic memory. Sort outside of jit, where NumPy does it."
        )
    mine = [d for d in range(len(wide)) if d != axis + 1]
    others = [d for d in range(len(wide)) if d != axis]
    pairs = [(b.broadcast(x, wide, others), b.broadcast(x, wide, mine)) for x in operands]
    block = operation.regions[0].blocks[0]
    before = _less(block, [v for other, own in pairs for v in (other, own)], b)
    after = _less(block, [v for other, own in pairs for v in (own, other)], b)
    earlier = b.compare("LT", b.iota(wide, _I32, axis + 1), b.iota(wide, _I32, axis))
    first = b.or_(before, b.and_(b.unary("not", after), earlier))
    rank = _sum(b, b.convert(first, _I32), axis + 1)
    return [_placed(b, x, rank, axis) for x in operands]


GUARDS = [Guard("sort", ("stablehlo.sort",), "IREE's sort is not stable and wrong along the last axis", _sort)]
