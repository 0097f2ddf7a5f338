"""Arithmetic: sums, products, quotients, powers, roots, signs, extremes."""

from __future__ import annotations

from typing import Any

import numpy as np

from xformlib.op import Op
from xformlib.ops.comparison import eq, ge, gt, lt, select
from xformlib.ops.creation import full
from xformlib.ops.gradient import strong_div, strong_mul
from xformlib.ops.samples import BF16, BOOL, C64, F16, F32, F64, I8, I32, U8, U32, smooth, special

__all__ = ["abs", "add", "cbrt", "div", "max", "min", "mul", "neg", "pow", "rem", "rsqrt", "sign", "sqrt", "sub"]

_FLOATS = [F32, F16, BF16, F64]
_NUMBERS = [*_FLOATS, C64, I8, I32, U8, U32]
_SPECIAL = [F32, F16, BF16, F64, I8, I32, U8, U32]


def _zeros(x: Any) -> Any:
    return full(x.shape, 0, x.dtype)


def is_complex(x: Any) -> bool:
    """Whether elements are complex."""
    return bool(x.dtype.kind == "c")


def in_float32(f: Any) -> Any:
    """A NumPy function that computes 16-bit floats in float32 and rounds once."""

    def rule(*xs: Any) -> Any:
        dtype = xs[0].dtype
        if dtype.itemsize > 2 or dtype.kind not in "fV":
            return f(*xs)
        return np.asarray(f(*[x.astype(np.float32) for x in xs])).astype(dtype)

    return rule


add = Op(
    "stablehlo.add",
    numpy=np.add,
    kind="elementwise",
    linear="all",
    transpose=(lambda ct, x, y: ct, lambda ct, x, y: ct),
    samples=[*smooth(2, dtypes=[*_NUMBERS, BOOL]), *special(2, _SPECIAL)],
    doc="Sum; of booleans the logical or.",
)

sub = Op(
    "stablehlo.subtract",
    numpy=np.subtract,
    kind="elementwise",
    linear="all",
    transpose=(lambda ct, x, y: ct, lambda ct, x, y: neg(ct)),
    samples=[*smooth(2, dtypes=_NUMBERS), *special(2, _SPECIAL)],
    doc="Difference.",
)

mul = Op(
    "stablehlo.multiply",
    numpy=np.multiply,
    kind="elementwise",
    jvp=(lambda t, ans, x, y: mul(t, y), lambda t, ans, x, y: mul(x, t)),
    transpose=(lambda ct, x, y: mul(ct, y), lambda ct, x, y: mul(x, ct)),
    samples=[*smooth(2, dtypes=[*_NUMBERS, BOOL]), *special(2, _SPECIAL)],
    doc="Product; of booleans the logical and.",
)

# -- division -------------------------------------------------------------------------------------------------------


def _div(x: Any, y: Any) -> Any:
    if x.dtype.kind not in "iu":
        return np.divide(x, y)
    zero = y == 0
    safe = np.where(zero, np.ones((), y.dtype), y)
    quotient = np.floor_divide(x, safe)
    if x.dtype.kind == "i":  # towards zero, as in C
        rest = x - quotient * safe
        quotient = quotient + ((rest != 0) & ((x < 0) != (safe < 0))).astype(x.dtype)
    return np.where(zero, np.array(-1).astype(x.dtype), quotient)


def _rem(x: Any, y: Any) -> Any:
    if x.dtype.kind not in "iu":
        return np.fmod(x, y)
    zero = y == 0
    safe = np.where(zero, np.ones((), y.dtype), y)
    if x.dtype.kind == "i":  # the remainder by -1 is 0 also for the smallest integer, where the division overflows
        safe = np.where(safe == -1, np.ones((), y.dtype), safe)
    return np.where(zero, x, np.fmod(x, safe))


div = Op(
    "stablehlo.divide",
    numpy=_div,
    kind="elementwise",
    jvp=(
        lambda t, ans, x, y: strong_div(t, y),
        lambda t, ans, x, y: strong_mul(t, neg(div(ans, y))),
    ),
    transpose=(lambda ct, x, y: strong_div(ct, y), None),
    samples=[*smooth(2, 0.5, 3, _NUMBERS), *special(2, _SPECIAL)],
    doc="Quotient; of integers rounded towards zero, -1 for division by zero, the smallest by -1 is itself.",
)

rem = Op(
    "stablehlo.remainder",
    numpy=in_float32(_rem),
    kind="elementwise",
    jvp=(lambda t, ans, x, y: t, lambda t, ans, x, y: mul(t, neg(div(sub(x, ans), y)))),
    samples=[*smooth(2, 0.6, 3, [F32, F64, F16, BF16, I8, I32, U8, U32]), *special(2, [F32, F64, I8, I32, U8, U32])],
    doc="Remainder with the sign of the dividend, as C's fmod; of integers the dividend itself for division by zero.",
)

# -- signs ----------------------------------------------------------------------------------------------------------

neg = Op(
    "stablehlo.negate",
    numpy=np.negative,
    kind="elementwise",
    linear="all",
    transpose=(lambda ct, x: neg(ct),),
    samples=[*smooth(1, dtypes=_NUMBERS), *special(1, _SPECIAL)],
    doc="Negation; of unsigned integers modulo their range.",
)


def _abs_tangent(t: Any, ans: Any, x: Any) -> Any:
    if not is_complex(x):
        return mul(t, sign(x))
    from xformlib.ops.complex import conj, real

    return real(mul(t, conj(sign(x))))


def _abs_types(x: Any) -> Any:
    from xformlib.dtypes import real_dtype

    return x.shape, real_dtype(x.dtype)


abs = Op(
    "stablehlo.abs",
    numpy=np.abs,
    kind="elementwise",
    types=_abs_types,
    jvp=(_abs_tangent,),
    samples=[*smooth(1, 0.2, 2, [F32, F16, BF16, F64, C64, I8, I32]), *special(1, [F32, F16, BF16, F64, I8, I32])],
    doc="Absolute value, real for complex operands; its derivative at 0 is 0.",
)


def _sign(x: Any) -> Any:
    if x.dtype.kind == "c":
        size = np.abs(x)
        return np.where(size == 0, np.zeros((), x.dtype), x / np.where(size == 0, np.ones((), size.dtype), size))
    return np.where(x == 0, x, np.sign(x))  # the sign of a zero is that zero


def _sign_tangent(t: Any, ans: Any, x: Any) -> Any:
    if not is_complex(x):
        return None
    from xformlib.ops.complex import complex, conj, real

    size = abs(x)
    radial = real(mul(conj(ans), t))
    across = sub(t, mul(ans, complex(radial, _zeros(radial))))
    return strong_div(across, complex(size, _zeros(size)))


sign = Op(
    "stablehlo.sign",
    numpy=_sign,
    kind="elementwise",
    jvp=(_sign_tangent,),
    samples=[*smooth(1, 0.2, 2, [F32, F16, BF16, F64, C64, I8, I32]), *special(1, [F32, F16, BF16, F64, I8, I32])],
    doc="-1, 0 or 1, keeping the sign of zeros and NaN; of complex numbers z/|z|.",
)

# -- extremes ---------------------------------------------------------------------------------------------------------


def _half(t: Any) -> Any:
    return mul(t, 0.5)


max = Op(
    "stablehlo.maximum",
    numpy=np.maximum,
    kind="elementwise",
    jvp=(
        lambda t, ans, x, y: select(gt(x, y), t, select(eq(x, y), _half(t), _zeros(t))),
        lambda t, ans, x, y: select(gt(y, x), t, select(eq(x, y), _half(t), _zeros(t))),
    ),
    samples=[*smooth(2, dtypes=[*_FLOATS, I8, I32, U8, U32, BOOL]), *special(2, _SPECIAL)],
    doc="The larger; NaN if either is NaN. Ties share the tangent equally.",
)

min = Op(
    "stablehlo.minimum",
    numpy=np.minimum,
    kind="elementwise",
    jvp=(
        lambda t, ans, x, y: select(lt(x, y), t, select(eq(x, y), _half(t), _zeros(t))),
        lambda t, ans, x, y: select(lt(y, x), t, select(eq(x, y), _half(t), _zeros(t))),
    ),
    samples=[*smooth(2, dtypes=[*_FLOATS, I8, I32, U8, U32, BOOL]), *special(2, _SPECIAL)],
    doc="The smaller; NaN if either is NaN. Ties share the tangent equally.",
)

# -- powers and roots -----------------------------------------------------------------------------------------------


def _pow(x: Any, y: Any) -> Any:
    if x.dtype.kind not in "iu":
        return np.power(x, y)
    negative = y < 0
    exponent = np.where(negative, np.zeros((), y.dtype), y).astype(np.uint64)
    result = np.ones(np.broadcast_shapes(x.shape, y.shape), x.dtype)
    base = np.broadcast_to(x, result.shape)
    while exponent.any():
        result = np.where(exponent & 1, result * base, result).astype(x.dtype)
        base = base * base
        exponent = exponent >> np.uint64(1)
    # 1/x^n is an integer for x = 1 and x = -1 only; 0 ** -n follows the division by zero.
    parity = np.where(y & 1, x, np.ones((), x.dtype))
    inverse = np.where(x == 1, x, np.where(x == 0, np.array(-1).astype(x.dtype), np.zeros((), x.dtype)))
    if x.dtype.kind == "i":
        inverse = np.where(x == -1, parity, inverse)
    return np.where(negative, inverse, result).astype(x.dtype)


def _pow_base(t: Any, ans: Any, x: Any, y: Any) -> Any:
    flat = eq(y, 0)  # x^0 is constant, also at 0
    slope = mul(y, pow(x, select(flat, full(y.shape, 1, y.dtype), sub(y, 1))))
    return strong_mul(t, select(flat, _zeros(y), slope))


def _pow_exponent(t: Any, ans: Any, x: Any, y: Any) -> Any:
    from xformlib.ops.exponential import log

    if is_complex(x):
        return strong_mul(t, mul(log(select(eq(x, 0), full(x.shape, 1, x.dtype), x)), ans))
    from xformlib.ops.bitwise import bitwise_and

    constant = bitwise_and(eq(x, 0), ge(y, 0))  # 0^y is 0 on both sides
    return strong_mul(t, mul(log(select(constant, full(x.shape, 1, x.dtype), x)), ans))


pow = Op(
    "stablehlo.power",
    numpy=in_float32(_pow),
    kind="elementwise",
    jvp=(_pow_base, _pow_exponent),
    samples=[
        *smooth(2, 0.5, 2, [F32, F64, F16, BF16, C64]),
        *smooth(2, 0, 4, [I32, U8]),
        *special(2, [F32, F64, I32], ulp=4),
    ],
    doc="Power, with C's special cases; x^0 is 1 and has derivative 0 everywhere.",
)

sqrt = Op(
    "stablehlo.sqrt",
    numpy=np.sqrt,
    kind="elementwise",
    jvp=(lambda t, ans, x: strong_mul(t, div(full(x.shape, 0.5, x.dtype), ans)),),
    samples=[*smooth(1, 0.2, 4, [*_FLOATS, C64]), *special(1, _FLOATS)],
    doc="Square root, correctly rounded; infinite slope at 0.",
)

rsqrt = Op(
    "stablehlo.rsqrt",
    numpy=in_float32(lambda x: np.reciprocal(np.sqrt(x))),
    kind="elementwise",
    jvp=(lambda t, ans, x: strong_mul(t, mul(div(ans, x), -0.5)),),
    samples=[*smooth(1, 0.2, 4, [*_FLOATS, C64]), *special(1, _FLOATS)],
    doc="Reciprocal square root.",
)

cbrt = Op(
    "stablehlo.cbrt",
    numpy=in_float32(np.cbrt),
    kind="elementwise",
    jvp=(lambda t, ans, x: strong_div(t, mul(mul(ans, ans), 3.0)),),
    samples=[*smooth(1, 0.2, 4, _FLOATS), *special(1, _FLOATS)],
    doc="Cube root.",
)
