"""Arithmetic: sums, products, quotients, remainders, signs, extremes."""

from __future__ import annotations

from typing import Any

import numpy as np

from xformlib.dtypes import real_dtype
from xformlib.op import Op
from xformlib.ops.comparison import eq, gt, lt, select
from xformlib.ops.gradient import strong_div, strong_mul
from xformlib.ops.numpy_rules import is_narrow_integer, keep1, keep2, widened
from xformlib.ops.samples import BF16, BOOL, C64, F16, F32, F64, I8, I32, U8, U32, smooth, special, values

__all__ = ["abs", "add", "div", "max", "min", "mul", "neg", "rem", "sign", "sub"]

FLOATS = [F32, F16, BF16, F64]
_SIGNED = [*FLOATS, I8, I32]
_NUMBERS = [*FLOATS, C64, I8, I32, U8, U32]
_ORDERED = [*FLOATS, I8, I32, U8, U32]


def is_complex(x: Any) -> bool:
    """Whether elements are complex."""
    return bool(x.dtype.kind == "c")


add: Op = Op(
    "stablehlo.add",
    numpy=np.add,
    kind="elementwise",
    linear="all",
    transpose=(lambda ct, x, y: ct, lambda ct, x, y: ct),
    samples=[*smooth(2, dtypes=[*_NUMBERS, BOOL]), *special(2, _ORDERED)],
    doc="Sum; of booleans the logical or.",
)

sub: Op = Op(
    "stablehlo.subtract",
    numpy=np.subtract,
    kind="elementwise",
    linear="all",
    transpose=(lambda ct, x, y: ct, lambda ct, x, y: neg(ct)),
    samples=[*smooth(2, dtypes=_NUMBERS), *special(2, _ORDERED)],
    doc="Difference.",
)

mul: Op = Op(
    "stablehlo.multiply",
    numpy=np.multiply,
    kind="elementwise",
    jvp=(lambda t, ans, x, y: mul(t, y), lambda t, ans, x, y: mul(x, t)),
    transpose=(lambda ct, x, y: mul(ct, y), lambda ct, x, y: mul(x, ct)),
    samples=[*smooth(2, dtypes=[*_NUMBERS, BOOL]), *special(2, _ORDERED)],
    doc="Product; of booleans the logical and.",
)

neg: Op = Op(
    "stablehlo.negate",
    numpy=keep1(np.negative),
    kind="elementwise",
    linear="all",
    transpose=(lambda ct, x: neg(ct),),
    samples=[*smooth(1, dtypes=_NUMBERS), *special(1, _ORDERED)],
    doc="Negation; of unsigned integers modulo their range.",
)

# -- division -------------------------------------------------------------------------------------------------------


def _div(x: Any, y: Any) -> Any:
    kind = x.dtype.kind
    if kind == "c":
        return _complex_quotient(x, y)
    if kind not in "iu":
        return np.divide(x, y)
    zero = y == 0
    quotient = np.floor_divide(x, y + zero)  # by 1 in place of 0
    if kind == "i":  # towards zero, as in C
        quotient = quotient + ((quotient < 0) & (quotient * y != x))
    return np.where(zero, np.array(-1).astype(x.dtype), quotient)


def _complex_quotient(x: Any, y: Any) -> Any:
    """NumPy's quotient; dividing by zero gives infinities where the parts of x are not zero, and by infinity zero."""
    out = np.divide(x, y)
    lost = np.isnan(out.real) & np.isnan(out.imag)
    if lost.any():
        by_zero = np.empty_like(out)
        by_zero.real, by_zero.imag = x.real / np.abs(y), x.imag / np.abs(y)
        infinite = np.isinf(y.real) | np.isinf(y.imag)
        finite = np.isfinite(x.real) & np.isfinite(x.imag)
        out = np.where(lost & (y == 0), by_zero, out)
        out = np.where(lost & infinite & finite, np.zeros((), x.dtype), out)
    return out


def _rem(x: Any, y: Any) -> Any:
    if x.dtype.kind not in "iu":
        return np.fmod(x, y)
    zero = y == 0
    # The remainder by -1 is 0 also for the smallest integer, where the division overflows.
    safe = np.where(zero | (y == -1), np.ones((), y.dtype), y) if x.dtype.kind == "i" else y + zero
    return np.where(zero, x, np.fmod(x, safe))


div: Op = Op(
    "stablehlo.divide",
    numpy=widened(_div),
    kind="elementwise",
    jvp=(
        lambda t, ans, x, y: strong_div(t, y),
        lambda t, ans, x, y: strong_mul(t, neg(div(ans, y))),
    ),
    transpose=(lambda ct, x, y: strong_div(ct, y), None),
    samples=[*smooth(2, 0.5, 3, _NUMBERS), *special(2, _ORDERED)],
    doc="Quotient; of integers rounded towards zero, -1 for division by zero, the smallest by -1 is itself.",
)

rem: Op = Op(
    "stablehlo.remainder",
    numpy=widened(_rem),
    kind="elementwise",
    jvp=(lambda t, ans, x, y: t, lambda t, ans, x, y: strong_mul(t, neg(div(sub(x, ans), y)))),
    samples=[*smooth(2, 0.6, 3, _ORDERED), *special(2, [F32, F64, I8, I32, U8, U32])],
    doc="Remainder with the sign of the dividend, as C's fmod; of integers the dividend itself for division by zero.",
)

# -- signs ----------------------------------------------------------------------------------------------------------


def _abs_tangent(t: Any, ans: Any, x: Any) -> Any:
    if not is_complex(x):
        return mul(t, sign(x))
    from xformlib.ops.complex import conj, real

    return real(mul(t, conj(sign(x))))


def _abs(x: Any) -> Any:
    out = np.abs(x)
    return out.astype(x.dtype) if x.dtype.kind == "V" else out


abs: Op = Op(
    "stablehlo.abs",
    numpy=_abs,
    kind="elementwise",
    types=lambda x: (x.shape, real_dtype(x.dtype)),
    jvp=(_abs_tangent,),
    samples=[
        *smooth(1, 0.2, 2, [*_SIGNED, C64]),
        *smooth(1, -2, -0.2),
        *special(1, _SIGNED),
        *values([3e38 + 1e38j, 1e-30 + 1e-30j, 0, complex(np.inf, np.nan)], [C64]),
    ],
    doc="Absolute value, real for complex operands; its derivative at 0 is 0.",
)


def _sign(x: Any) -> Any:
    if x.dtype.kind in "ciu" or is_narrow_integer(x.dtype):
        return np.sign(x)
    return np.copysign(np.sign(x), x)  # the sign of a zero is that zero


def _sign_tangent(t: Any, ans: Any, x: Any) -> Any:
    """The part of the tangent across the direction of x turns that direction."""
    if not is_complex(x):
        return None
    from xformlib.ops.complex import complex, conj, real

    size = abs(x)
    across = sub(t, mul(ans, complex(real(mul(conj(ans), t)), 0.0)))
    return strong_div(across, complex(size, 0.0))


sign: Op = Op(
    "stablehlo.sign",
    numpy=keep1(_sign),
    kind="elementwise",
    jvp=(_sign_tangent,),
    samples=[*smooth(1, 0.2, 2, [*_SIGNED, C64]), *special(1, _SIGNED)],
    doc="-1, 0 or 1, keeping the sign of zeros and NaN; of complex numbers z/|z|.",
)

# -- extremes ---------------------------------------------------------------------------------------------------------


def _half_at_ties(t: Any, x: Any, y: Any) -> Any:
    return select(eq(x, y), mul(t, 0.5), 0.0)


max: Op = Op(
    "stablehlo.maximum",
    numpy=keep2(np.maximum),
    kind="elementwise",
    jvp=(
        lambda t, ans, x, y: select(gt(x, y), t, _half_at_ties(t, x, y)),
        lambda t, ans, x, y: select(gt(y, x), t, _half_at_ties(t, x, y)),
    ),
    samples=[*smooth(2, dtypes=[*_ORDERED, BOOL]), *special(2, _ORDERED)],
    doc="The larger; NaN if either is NaN. Ties share the tangent equally.",
)

min: Op = Op(
    "stablehlo.minimum",
    numpy=keep2(np.minimum),
    kind="elementwise",
    jvp=(
        lambda t, ans, x, y: select(lt(x, y), t, _half_at_ties(t, x, y)),
        lambda t, ans, x, y: select(lt(y, x), t, _half_at_ties(t, x, y)),
    ),
    samples=[*smooth(2, dtypes=[*_ORDERED, BOOL]), *special(2, _ORDERED)],
    doc="The smaller; NaN if either is NaN. Ties share the tangent equally.",
)
