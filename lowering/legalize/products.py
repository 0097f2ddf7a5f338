"""Products and sums: empty ones, and low precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xformlib.lowering.ir import ir, tensor_type, unknown_location
from xformlib.lowering.legalize.rewriter import Builder, Guard, dtype_of, shape_of


def _low(dtype: Any) -> bool:
    return bool(dtype.kind in "fV" and dtype.itemsize == 2)


def _dot(operation: Any, b: Builder) -> Sequence[Any] | None:
    x, y = operation.operands
    result = operation.results[0]
    if 0 in shape_of(x) or 0 in shape_of(y) or 0 in shape_of(result):
        return [b.const(result, 0)]
    wanted, given = dtype_of(result), dtype_of(x)
    numbers = operation.attributes["dot_dimension_numbers"]
    wide = np.dtype(np.float32) if _low(wanted) else np.dtype(np.int32) if given == np.bool_ else wanted
    if wide == wanted and given == dtype_of(y) == wanted:
        return None
    if given.kind != wide.kind or given == np.bool_ or not _low(given):
        x, y = b.convert(x, wide), b.convert(y, wide)
    out = b.op("stablehlo.dot_general", [(shape_of(result), wide)], [x, y], dot_dimension_numbers=numbers).result
    if wanted == np.bool_:
        return [b.compare("NE", out, 0)]
    return [b.convert(out, wanted)]


def _reduce(operation: Any, b: Builder) -> Sequence[Any] | None:
    """Sums and products of 16-bit floats accumulate in float32 and are rounded once."""
    if len(operation.operands) != 2:
        return None
    x, start = operation.operands
    dtype, result = dtype_of(x), operation.results[0]
    body = next(iter(operation.regions[0].blocks[0].operations)).name
    if not _low(dtype) or body not in ("stablehlo.add", "stablehlo.multiply"):
        return None
    wide = np.dtype(np.float32)
    scalar = tensor_type((), wide)
    new = b.op(
        "stablehlo.reduce",
        [(shape_of(result), wide)],
        [b.convert(x, wide), b.convert(start, wide)],
        regions=1,
        dimensions=operation.attributes["dimensions"],
    )
    block = new.regions[0].blocks.append(scalar, scalar, arg_locs=[unknown_location] * 2)
    with ir.InsertionPoint(block):
        total = ir.Operation.create(body, results=[scalar], operands=list(block.arguments)).result
        ir.Operation.create("stablehlo.return", operands=[total])
    return [b.convert(new.result, dtype)]


_ROUNDED = (
    *(
        "add",
        "subtract",
        "multiply",
        "divide",
        "convert",
        "negate",
        "sqrt",
        "rsqrt",
        "exponential",
        "log",
        "tanh",
        "logistic",
    ),
    *("log_plus_one", "exponential_minus_one", "power", "remainder"),
)


def _rounded(operation: Any, b: Builder) -> Sequence[Any] | None:
    """bfloat16 results are rounded explicitly: a conversion to it and back is folded away, and excess digits survive."""
    result = operation.results[0]
    if dtype_of(result).name != "bfloat16" or "xform.safe" in operation.attributes:
        return None
    if _in_body(operation):
        return None
    name, shape = operation.name, shape_of(result)
    attrs = {"xform.safe": ir.UnitAttr.get()}
    wide = b.convert(b.op(name, [(shape, dtype_of(result))], list(operation.operands), **attrs).result, np.float32)
    bits = ir.IntegerType.get_signless(32)
    exact = b.op(
        "stablehlo.reduce_precision",
        [(shape, np.dtype(np.float32))],
        [wide],
        exponent_bits=ir.IntegerAttr.get(bits, 8),
        mantissa_bits=ir.IntegerAttr.get(bits, 7),
    ).result
    return [b.op("stablehlo.convert", [(shape, dtype_of(result))], [exact], **attrs).result]


def _in_body(operation: Any) -> bool:
    """Whether an operation is part of a reduction's or scatter's region."""
    return bool(operation.operation.parent.name != "func.func")


ROUNDING = [
    Guard(
        "bfloat16 rounding",
        tuple([f"stablehlo.{n}" for n in _ROUNDED]),
        "excess precision of bfloat16 survives fusion",
        _rounded,
    ),
]

GUARDS = [
    Guard("reduce", ("stablehlo.reduce",), "16-bit floats accumulate in 16 bits", _reduce),
    Guard(
        "dot_general",
        ("stablehlo.dot_general",),
        "an empty contraction traps; 16-bit floats accumulate in 16 bits, booleans do not compile",
        _dot,
    ),
]
