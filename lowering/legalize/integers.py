"""Booleans, integers and casts: overflow, division, saturation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xformlib.lowering.legalize.rewriter import Builder, Guard, dtype_of, shape_of


def _add_of_booleans(operation: Any, b: Builder) -> Sequence[Any] | None:
    x, y = operation.operands
    return [b.or_(x, y)] if dtype_of(x) == np.bool_ else None


def _divide(operation: Any, b: Builder) -> Sequence[Any] | None:
    x, y = operation.operands
    dtype = dtype_of(x)
    if dtype.kind not in "iu":
        return None
    zero = b.compare("EQ", y, 0)
    safe = b.select(zero, b.const(y, 1), y)
    if dtype.kind == "u":
        return [b.select(zero, b.const(x, np.iinfo(dtype).max), b.div(x, safe))]
    minus = b.compare("EQ", safe, -1)
    safe = b.select(minus, b.const(y, 1), safe)
    quotient = b.select(minus, b.neg(x), b.div(x, safe))
    return [b.select(zero, b.const(x, -1), quotient)]


def _remainder(operation: Any, b: Builder) -> Sequence[Any] | None:
    x, y = operation.operands
    dtype = dtype_of(x)
    if dtype.kind not in "iu":
        return None
    zero = b.compare("EQ", y, 0)
    safe = b.select(zero, b.const(y, 1), y)
    if dtype.kind == "i":
        safe = b.select(b.compare("EQ", safe, -1), b.const(y, 1), safe)
    return [b.select(zero, x, b.binary("remainder", x, safe))]


def _convert(operation: Any, b: Builder) -> Sequence[Any] | None:
    x = operation.operands[0]
    source, target = dtype_of(x), dtype_of(operation.results[0])
    if source == target:
        return [x]
    if source.kind == "c" and target.kind != "c":
        x = b.op("stablehlo.real", [(shape_of(x), np.dtype(f"f{source.itemsize // 2}"))], [x]).result
        source = dtype_of(x)
        if source == target:
            return [x]
        if target != np.bool_ and target.kind not in "iu":
            return [b.convert(x, target)]
    if target == np.bool_:
        return [b.compare("NE", x, 0)]
    if source.kind not in "fV" or target.kind not in "iu":
        return None
    return [_saturating(x, source, target, b)]


def _saturating(x: Any, source: Any, target: Any, b: Builder) -> Any:
    """Floating to integer: clamp to what both types can hold, then set the ends; NaN is 0."""
    if source.itemsize < 4:
        x, source = b.convert(x, np.float32), np.dtype(np.float32)
    limits = np.iinfo(target)
    # 2^k is exact in every float type; the largest integer often is not.
    top, bottom = (
        float(limits.max) + 1.0 if limits.max < 1 << 52 else float(2 ** int(limits.max).bit_length()),
        float(limits.min),
    )
    too_large, too_small = b.compare("GE", x, top), b.compare("LE", x, bottom)
    inside = b.and_(b.compare("LT", x, top), b.compare("GT", x, bottom))
    safe = b.select(inside, x, b.const(x, 0))
    if target.itemsize < 4:
        number = b.convert(_plain(safe, np.dtype(np.int32), b), target)
    elif target.kind == "u" and target.itemsize == 4:
        number = b.convert(_plain(safe, np.dtype(np.int64), b), target)
    elif target.kind == "u":
        # Above 2^63 the signed conversion would overflow: shift down and set the top bit.
        high = b.compare("GE", safe, 2.0**63)
        low = _plain(b.select(high, b.sub(safe, 2.0**63), safe), np.dtype(np.int64), b)
        bits = b.bitcast(low, target)
        number = b.select(high, b.add(bits, np.uint64(1 << 63)), bits)
    else:
        number = _plain(safe, target, b)
    number = b.select(too_large, b.const(number, limits.max), number)
    return b.select(too_small, b.const(number, limits.min), number)


def _plain(x: Any, target: Any, b: Builder) -> Any:
    return b.op("stablehlo.convert", [(shape_of(x), target)], [x]).result


def _power(operation: Any, b: Builder) -> Sequence[Any] | None:
    """By squaring; a negative exponent gives 0, but for the bases 1, -1 and 0 (as the division by zero)."""
    x, y = operation.operands
    dtype = dtype_of(x)
    if dtype.kind not in "iu":
        return None
    signed = dtype.kind == "i"
    result, base, exponent = b.const(x, 1), x, y
    for _ in range(dtype.itemsize * 8 - signed):
        odd = b.compare("NE", b.and_(exponent, 1), 0)
        result = b.select(odd, b.mul(result, base), result)
        base = b.mul(base, base)
        exponent = b.binary("shift_right_logical", exponent, 1)
    if not signed:
        return [result]
    odd = b.compare("NE", b.and_(y, 1), 0)
    inverse = b.select(b.compare("EQ", x, 1), x, b.select(b.compare("EQ", x, 0), b.const(x, -1), b.const(x, 0)))
    inverse = b.select(b.compare("EQ", x, -1), b.select(odd, x, b.const(x, 1)), inverse)
    return [b.select(b.compare("LT", y, 0), inverse, result)]


def _reverse(operation: Any, b: Builder) -> Sequence[Any] | None:
    x = operation.operands[0]
    if not shape_of(x):
        return [x]
    if not len(operation.attributes["dimensions"]):
        return [x]
    if dtype_of(x).kind != "u":
        return None
    signed = b.as_signed(x)
    out = b.op(
        "stablehlo.reverse", [(shape_of(x), dtype_of(signed))], [signed], dimensions=operation.attributes["dimensions"]
    ).result
    return [b.bitcast(out, dtype_of(x))]


def _shift(operation: Any, b: Builder) -> Sequence[Any]:
    x, y = operation.operands
    width = dtype_of(x).itemsize * 8
    unsigned = b.bitcast(y, f"u{dtype_of(y).itemsize}")
    outside = b.compare("GE", unsigned, width)
    name = operation.name.partition(".")[2]
    if name == "shift_right_arithmetic":
        return [b.binary(name, x, b.select(outside, b.const(y, width - 1), y))]
    return [b.select(outside, b.const(x, 0), b.binary(name, x, b.select(outside, b.const(y, 0), y)))]


GUARDS = [
    Guard("add of booleans", ("stablehlo.add",), "IREE adds i1 as xor", _add_of_booleans),
    Guard("integer division", ("stablehlo.divide",), "the smallest integer by -1 traps, zero is undefined", _divide),
    Guard(
        "integer remainder", ("stablehlo.remainder",), "the smallest integer by -1 traps, zero is undefined", _remainder
    ),
    Guard("integer power", ("stablehlo.power",), "negative exponents and overflow differ", _power),
    Guard("convert", ("stablehlo.convert",), "floating to integer does not saturate", _convert),
    Guard("reverse", ("stablehlo.reverse",), "unsigned integers and no axes do not compile", _reverse),
    Guard(
        "shifts",
        ("stablehlo.shift_left", "stablehlo.shift_right_logical", "stablehlo.shift_right_arithmetic"),
        "a shift by the width or more is undefined",
        _shift,
    ),
]
