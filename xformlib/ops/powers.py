"""Powers and roots."""

from __future__ import annotations

from typing import Any

import numpy as np

from xformlib.op import Op
from xformlib.ops.arithmetic import FLOATS, div, is_complex, mul, sub
from xformlib.ops.comparison import eq, ge, select
from xformlib.ops.creation import full
from xformlib.ops.gradient import strong_div, strong_mul
from xformlib.ops.numpy_rules import in_float32, widened
from xformlib.ops.samples import C64, F32, F64, I32, U8, smooth, special

__all__ = ["cbrt", "exp2", "integer_pow", "pow", "rsqrt", "sqrt", "square"]


# -- pow --------------------------------------------------------------------------------------------------------------


def _pow(x: Any, y: Any) -> Any:
    if x.dtype.kind == "c":
        return _complex_pow(x, y)
    return np.power(x, y) if x.dtype.kind not in "iu" else _integer_pow(x, y)


def _complex_pow(x: Any, y: Any) -> Any:
    zero = np.where(
        y == 0, np.ones((), x.dtype), np.where(y.real > 0, np.zeros((), x.dtype), np.array(np.nan, x.dtype))
    )
    return np.where(x == 0, zero, np.power(x, y))


def _integer_pow(x: Any, y: Any) -> Any:
    """By squaring, modulo the range of the type; negative exponents as 1 / x^-y in integers."""
    negative = y < 0
    exponent = np.where(negative, np.zeros((), y.dtype), y).astype(np.uint64)
    result, base = np.ones((), x.dtype), x
    while exponent.any():
        result = np.where(exponent & np.uint64(1), result * base, result)
        base = base * base
        exponent = exponent >> np.uint64(1)
    if not negative.any():
        return result + np.zeros_like(y)
    # Only 1 and -1 have inverses; 1/0 is -1 as in division.
    inverse = np.where(x == 0, np.array(-1).astype(x.dtype), (x == 1).astype(x.dtype))
    inverse = np.where(x == np.array(-1).astype(x.dtype), np.where(y & 1, x, np.ones((), x.dtype)), inverse)
    return np.where(negative, inverse, result)


def _pow_base(t: Any, ans: Any, x: Any, y: Any) -> Any:
    constant = eq(y, 0.0)  # x^0 is 1 everywhere, also at 0
    slope = strong_mul(y, pow(x, select(constant, 1.0, sub(y, 1.0))))
    return strong_mul(t, select(constant, 0.0, slope))


def _pow_exponent(t: Any, ans: Any, x: Any, y: Any) -> Any:
    constant = eq(x, 0.0)
    if not is_complex(x):
        from xformlib.ops.bitwise import bitwise_and

        constant = bitwise_and(constant, ge(y, 0.0))  # 0^y is 0 around every y > 0; at y = 0 take the slope from there
    from xformlib.ops.exponential import log

    return strong_mul(t, strong_mul(log(select(constant, 1.0, x)), ans))


pow: Op = Op(
    "stablehlo.power",
    numpy=widened(_pow),
    kind="elementwise",
    jvp=(_pow_base, _pow_exponent),
    samples=[
        *smooth(2, 0.5, 2, [*FLOATS, C64]),
        *smooth(2, 0, 4, [I32, U8]),
        *special(2, [F32, F64, I32, U8]),
    ],
    doc="Power, with C's special cases; x^0 is 1 and has derivative 0 everywhere.",
)


def square(x: Any) -> Any:
    """``x * x``."""
    return mul(x, x)


def integer_pow(x: Any, y: int) -> Any:
    """``x`` to the power of a Python int, by squaring; negative powers are reciprocals."""
    if y < 0:
        return div(1.0, integer_pow(x, -y))
    if y == 0:
        return full(x.shape, 1, x.dtype)
    half = integer_pow(x, y // 2) if y > 1 else None
    if half is None:
        return x
    return mul(square(half), x) if y % 2 else square(half)


def exp2(x: Any) -> Any:
    """2 to the power of x, exact for integers."""
    return pow(2.0, x)


# -- roots ------------------------------------------------------------------------------------------------------------

sqrt: Op = Op(
    "stablehlo.sqrt",
    numpy=np.sqrt,
    kind="elementwise",
    jvp=(lambda t, ans, x: strong_mul(t, div(0.5, ans)),),
    samples=[*smooth(1, 0.2, 4, [*FLOATS, C64]), *special(1, FLOATS)],
    doc="Square root, correctly rounded; infinite slope at 0.",
)

rsqrt: Op = Op(
    "stablehlo.rsqrt",
    numpy=in_float32(lambda x: 1 / np.sqrt(x)),
    kind="elementwise",
    jvp=(lambda t, ans, x: strong_mul(t, mul(div(ans, x), -0.5)),),
    samples=[*smooth(1, 0.2, 4, [*FLOATS, C64]), *special(1, FLOATS)],
    doc="Reciprocal square root.",
)

cbrt: Op = Op(
    "stablehlo.cbrt",
    numpy=np.cbrt,
    kind="elementwise",
    jvp=(lambda t, ans, x: strong_div(t, mul(strong_mul(ans, ans), 3.0)),),
    samples=[*smooth(1, 0.2, 4, FLOATS), *smooth(1, -4, -0.2), *special(1, FLOATS)],
    doc="Cube root.",
)
