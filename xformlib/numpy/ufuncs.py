"""Elementwise functions."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from xformlib import dtypes
from xformlib.array import Array, ArrayImpl
from xformlib.errors import DtypeError
from xformlib.keys import with_weak_type
from xformlib.numpy._util import apply, array, as_dtype, binary, cast, inexact, promoted, refuse, unary
from xformlib.op import Op, state
from xformlib.ops import elementwise as ops
from xformlib.ops.powers import integer_pow

# -- arithmetic ---------------------------------------------------------------------------------------------------------

add = binary("add", ops.add, "Sum; of booleans the logical or.")
subtract = binary("subtract", ops.sub, "Difference.", no_bool=True)
multiply = binary("multiply", ops.mul, "Product; of booleans the logical and.")
true_divide = divide = binary("divide", ops.div, "Quotient as a floating number.", float_only=True)
arctan2 = atan2 = binary("arctan2", ops.atan2, "Angle of the point (y, x).", float_only=True, no_complex=True)
maximum = binary("maximum", ops.max, "The larger; NaN if either is NaN.", no_complex=True)
minimum = binary("minimum", ops.min, "The smaller; NaN if either is NaN.", no_complex=True)
nextafter = binary("nextafter", ops.nextafter, "The next number towards the second.", float_only=True, no_complex=True)


def _floor_quotient(x: Any, y: Any) -> Any:
    if x.dtype.kind == "u":
        return select_zero(y, ops.div(x, y))
    if x.dtype.kind == "i":
        q = ops.div(x, y)
        uneven = ops.bitwise_and(ops.ne(ops.sign(x), ops.sign(y)), ops.ne(ops.rem(x, y), 0))
        return select_zero(y, ops.select(uneven, ops.sub(q, 1), q))
    # Floor of the exact quotient: the remainder is exact, so what is divided here is close to a whole number.
    r = _float_mod(x, y)
    return ops.round_nearest_even(ops.div(ops.sub(x, r), y))


def select_zero(y: Any, x: Any) -> Any:
    """``x``, but zero where ``y`` is zero: what integer division and remainder by zero give."""
    return ops.select(ops.eq(y, 0), ops.mul(x, 0), x)


def _float_mod(x: Any, y: Any) -> Any:
    r = ops.rem(x, y)
    other_side = ops.bitwise_and(ops.ne(r, 0), ops.ne(ops.lt(r, 0), ops.lt(y, 0)))
    return ops.select(other_side, ops.add(r, y), r)


def _same_shape(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    from xformlib.numpy._util import broadcast_shape, broadcast_to_shape

    shape = broadcast_shape(name, x.shape, y.shape)
    return broadcast_to_shape(x, shape), broadcast_to_shape(y, shape)


def _arguments(name: str, x: Any, y: Any, kinds: str = "c") -> tuple[Any, Any, bool]:
    (x, y), weak = promoted(name, x, y)
    refuse(name, x, kinds, "convert them with .astype(...)")
    if x.dtype == np.bool_:
        x, y = cast(x, np.dtype(np.int32)), cast(y, np.dtype(np.int32))
    return *_same_shape(name, x, y), weak


def floor_divide(x1: Any, x2: Any, /) -> Array:
    """The floor of the quotient; integer division by zero gives 0.

    >>> import xformlib.numpy as jnp
    >>> print(jnp.floor_divide(-7, 2))
    -4
    """
    x, y, weak = _arguments("floor_divide", x1, x2)
    return with_weak_type(_floor_quotient(x, y), weak)  # type: ignore[no-any-return]


def remainder(x1: Any, x2: Any, /) -> Array:
    """The remainder with the sign of the divisor; by an integer zero it is 0.

    >>> import xformlib.numpy as jnp
    >>> print(jnp.remainder(-7, 2))
    1
    """
    x, y, weak = _arguments("remainder", x1, x2)
    if x.dtype.kind == "u":
        return with_weak_type(select_zero(y, ops.rem(x, y)), weak)  # type: ignore[no-any-return]
    r = _float_mod(x, y)
    return with_weak_type(select_zero(y, r) if x.dtype.kind == "i" else r, weak)  # type: ignore[no-any-return]


mod = remainder


def fmod(x1: Any, x2: Any, /) -> Array:
    """The remainder with the sign of the dividend."""
    x, y, weak = _arguments("fmod", x1, x2)
    r = ops.rem(x, y)
    return with_weak_type(select_zero(y, r) if x.dtype.kind in "iu" else r, weak)  # type: ignore[no-any-return]


def divmod(x1: Any, x2: Any, /) -> tuple[Array, Array]:
    """Floor of the quotient, and remainder."""
    return floor_divide(x1, x2), remainder(x1, x2)


def power(x1: Any, x2: Any, /) -> Array:
    """``x1`` to the power of ``x2``. A Python int as exponent is taken by repeated multiplication.

    >>> import xformlib.numpy as jnp
    >>> print(jnp.power(jnp.arange(3.0), 2))
    [0. 1. 4.]
    """
    if type(x2) is int and abs(x2) <= 16:
        x = array(x1, "power")
        if x.dtype.kind in "fcV" and not x.is_key and (x2 >= 0 or x.dtype.kind != "V"):
            return with_weak_type(integer_pow(x, x2), x.weak_type)  # type: ignore[no-any-return]
    (x, y), weak = promoted("power", x1, x2)
    if x.dtype == np.bool_:
        x, y = cast(x, np.dtype(np.int32)), cast(y, np.dtype(np.int32))
    return with_weak_type(apply(ops.pow, "power", x, y), weak)  # type: ignore[no-any-return]


pow = power


def float_power(x1: Any, x2: Any, /) -> Array:
    """The power as a floating number."""
    (x, y), weak = promoted("float_power", x1, x2)
    return with_weak_type(apply(ops.pow, "float_power", inexact(x), inexact(y)), weak)  # type: ignore[no-any-return]


# -- signs and rounding -------------------------------------------------------------------------------------------------

negative = unary("negative", ops.neg, "Negation.", no_bool=True)
exp = unary("exp", ops.exp, "e to the power of x.", float_only=True)
expm1 = unary("expm1", ops.expm1, "exp(x) - 1, accurate near 0.", float_only=True)
log = unary("log", ops.log, "Natural logarithm.", float_only=True)
log1p = unary("log1p", ops.log1p, "log(1 + x), accurate near 0.", float_only=True)
sin = unary("sin", ops.sin, "Sine of radians.", float_only=True)
cos = unary("cos", ops.cos, "Cosine of radians.", float_only=True)
tan = unary("tan", ops.tan, "Tangent of radians.", float_only=True)
arcsin = asin = unary("arcsin", ops.asin, "Inverse sine.", float_only=True)
arccos = acos = unary("arccos", ops.acos, "Inverse cosine.", float_only=True)
arctan = atan = unary("arctan", ops.atan, "Inverse tangent.", float_only=True)
sinh = unary("sinh", ops.sinh, "Hyperbolic sine.", float_only=True)
cosh = unary("cosh", ops.cosh, "Hyperbolic cosine.", float_only=True)
tanh = unary("tanh", ops.tanh, "Hyperbolic tangent.", float_only=True)
arcsinh = asinh = unary("arcsinh", ops.asinh, "Inverse hyperbolic sine.", float_only=True)
arccosh = acosh = unary("arccosh", ops.acosh, "Inverse hyperbolic cosine.", float_only=True)
arctanh = atanh = unary("arctanh", ops.atanh, "Inverse hyperbolic tangent.", float_only=True)
sqrt = unary("sqrt", ops.sqrt, "Square root.", float_only=True)
cbrt = unary("cbrt", ops.cbrt, "Cube root.", float_only=True, no_complex=True)


def _keeping_integers(name: str, op: Op, doc: str) -> Any:
    """Rounding functions leave integers alone."""
    rounded = unary(name, op, doc, no_complex=True)

    def f(x: Any, /) -> Any:
        x = array(x, name)
        return x if x.dtype.kind in "iub" else rounded(x)

    from xformlib.numpy._util import documented

    return documented(f, name, doc, "x: array or number.")


floor = _keeping_integers("floor", ops.floor, "The largest whole number not above.")
ceil = _keeping_integers("ceil", ops.ceil, "The smallest whole number not below.")
rint = _keeping_integers("rint", ops.round_nearest_even, "The nearest whole number, ties to even.")


def trunc(x: Any, /) -> Array:
    """The whole number next towards 0."""
    x = array(x, "trunc")
    if x.dtype.kind in "iub":
        return x  # type: ignore[no-any-return]
    return where(ops.lt(x, 0), ops.ceil(x), ops.floor(x))


fix = trunc


def round(a: Any, decimals: int = 0, out: Any = None) -> Array:
    """Round to a number of decimals, ties to even."""
    a = array(a, "round")
    if a.dtype.kind in "iub" and decimals >= 0:
        return a  # type: ignore[no-any-return]
    if decimals == 0:
        return rint(a) if a.dtype.kind != "c" else ops.complex(rint(real(a)), rint(imag(a)))  # type: ignore[no-any-return]
    scale = 10.0 ** builtins.abs(decimals)
    scaled = a * scale if decimals > 0 else a / scale
    back = round(scaled) / scale if decimals > 0 else round(scaled) * scale
    return back.astype(a.dtype)  # type: ignore[no-any-return]


around = round


def absolute(x: Any, /) -> Array:
    """Absolute value, real for complex numbers.

    >>> import xformlib.numpy as jnp
    >>> print(jnp.abs(-2.5))
    2.5
    """
    x = array(x, "absolute")
    return x if x.dtype.kind in "ub" else with_weak_type(ops.abs(x), x.weak_type)  # type: ignore[no-any-return]


abs = absolute


def fabs(x: Any, /) -> Array:
    """Absolute value as a floating number."""
    return absolute(inexact(array(x, "fabs")))


def sign(x: Any, /) -> Array:
    """-1, 0 or 1."""
    x = array(x, "sign")
    refuse("sign", x, "b", "convert them with .astype(...)")
    if x.dtype.kind == "u":
        return cast(ops.ne(x, 0), x.dtype)  # type: ignore[no-any-return]
    return with_weak_type(ops.sign(x), x.weak_type)  # type: ignore[no-any-return]


def positive(x: Any, /) -> Array:
    """The argument."""
    return array(x, "positive")  # type: ignore[no-any-return]


def square(x: Any, /) -> Array:
    """The square."""
    x = array(x, "square")
    return ops.mul(x, x)  # type: ignore[no-any-return]


def reciprocal(x: Any, /) -> Array:
    """1/x."""
    x = inexact(array(x, "reciprocal"))
    return with_weak_type(ops.div(_like(x, 1), x), x.weak_type)  # type: ignore[no-any-return]


def _like(x: Any, value: Any) -> Any:
    from xformlib.ops.creation import full

    return full(x.shape, value, x.dtype)


def _scaled(name: str, f: Any, factor: float, doc: str) -> Any:
    from xformlib.numpy._util import documented

    return documented(lambda x, /: f(inexact(array(x, name)) * factor), name, doc, "x: array or number.")


deg2rad = radians = _scaled("deg2rad", positive, math.pi / 180, "Degrees to radians.")
rad2deg = degrees = _scaled("rad2deg", positive, 180 / math.pi, "Radians to degrees.")


def exp2(x: Any, /) -> Array:
    """2 to the power of x."""
    x = inexact(array(x, "exp2"))
    return with_weak_type(ops.exp2(x), x.weak_type)  # type: ignore[no-any-return]


def log2(x: Any, /) -> Array:
    """Logarithm to base 2."""
    return log(x) / math.log(2)  # type: ignore[no-any-return]


def log10(x: Any, /) -> Array:
    """Logarithm to base 10."""
    return log(x) / math.log(10)  # type: ignore[no-any-return]


def logaddexp(x1: Any, x2: Any, /) -> Array:
    """log(exp(x1) + exp(x2)) without overflow."""
    (x, y), _ = promoted("logaddexp", x1, x2)
    x, y = _same_shape("logaddexp", inexact(x), inexact(y))
    top = ops.max(x, y)
    gap = where(ops.eq(x, y), _like(x, 0), ops.neg(ops.abs(ops.sub(x, y))))
    return where(ops.is_finite(top), top + ops.log1p(ops.exp(gap)), top + ops.log1p(ops.exp(gap)))


def hypot(x1: Any, x2: Any, /) -> Array:
    """Length of the vector (x1, x2), without overflow."""
    (x, y), _ = promoted("hypot", x1, x2)
    x, y = _same_shape("hypot", inexact(x), inexact(y))
    x, y = ops.abs(x), ops.abs(y)
    large, small = ops.max(x, y), ops.min(x, y)
    ratio = ops.div(small, ops.select(ops.eq(large, 0), _like(large, 1), large))
    return where(ops.eq(large, math.inf), large, ops.mul(large, ops.sqrt(ops.add(ops.mul(ratio, ratio), 1))))


def sinc(x: Any, /) -> Array:
    """sin(pi x) / (pi x), 1 at 0; by its series near 0, where the quotient's derivatives cancel."""
    x = inexact(array(x, "sinc"))
    z = x * math.pi
    near = ops.lt(ops.abs(z), 0.1)
    z2 = z * z
    series = 1 - z2 / 6 * (1 - z2 / 20 * (1 - z2 / 42 * (1 - z2 / 72)))
    safe = where(near, 1, z)
    return where(near, series, ops.sin(safe) / safe)


def clip(arr: Any = None, /, min: Any = None, max: Any = None) -> Array:
    """Values limited to an interval; a bound of None does not limit.

    >>> import xformlib.numpy as jnp
    >>> print(jnp.clip(jnp.arange(5), 1, 3))
    [1 1 2 3 3]
    """
    out = array(arr, "clip")
    refuse("clip", out, "c", "complex numbers have no order")
    if min is not None:
        out = maximum(min, out)
    return minimum(max, out) if max is not None else out


def heaviside(x1: Any, x2: Any, /) -> Array:
    """0 below 0, ``x2`` at 0, 1 above."""
    (x, y), _ = promoted("heaviside", x1, x2)
    x, y = _same_shape("heaviside", inexact(x), inexact(y))
    return where(ops.lt(x, 0), _like(x, 0), where(ops.gt(x, 0), _like(x, 1), where(ops.eq(x, 0), y, x)))


def copysign(x1: Any, x2: Any, /) -> Array:
    """The size of ``x1`` with the sign of ``x2``."""
    (x, y), _ = promoted("copysign", x1, x2)
    x, y = _same_shape("copysign", inexact(x), inexact(y))
    return where(signbit(y), ops.neg(ops.abs(x)), ops.abs(x))


def fmax(x1: Any, x2: Any) -> Array:
    """The larger; where one is NaN, the other."""
    (x, y), _ = promoted("fmax", x1, x2)
    return where(isnan(x), y, where(isnan(y), x, maximum(x, y)))


def fmin(x1: Any, x2: Any) -> Array:
    """The smaller; where one is NaN, the other."""
    (x, y), _ = promoted("fmin", x1, x2)
    return where(isnan(x), y, where(isnan(y), x, minimum(x, y)))


# -- comparison and logic ----------------------------------------------------------------------------------------------


def _comparing(name: str, direction: str, doc: str) -> Any:
    """A comparison. Complex numbers are ordered by real, then imaginary part."""
    from xformlib.numpy._util import documented
    from xformlib.ops import comparison

    op = getattr(comparison, direction)
    ufunc = {
        "eq": np.equal,
        "ne": np.not_equal,
        "lt": np.less,
        "le": np.less_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
    }[direction]

    def f(x: Any, y: Any, /) -> Any:
        if state.frame is None and type(x) is ArrayImpl and type(y) is ArrayImpl and x.dtype is y.dtype:
            a, b = x._np, y._np
            if a is not None and b is not None and a.shape == b.shape:
                return ArrayImpl(state.run(ufunc, a, b))
        (x, y), _ = promoted(name, x, y)
        x, y = _same_shape(name, x, y)
        if x.dtype.kind == "c" and direction not in ("eq", "ne"):
            strict = getattr(comparison, direction[0] + "t")
            first = ops.real(x), ops.real(y)
            return ops.bitwise_or(strict(*first), ops.bitwise_and(ops.eq(*first), op(ops.imag(x), ops.imag(y))))
        return op(x, y)

    return documented(f, name, doc, "x, y: arrays or numbers that broadcast together.")


equal = _comparing("equal", "eq", "Whether equal; NaN equals nothing.")
not_equal = _comparing("not_equal", "ne", "Whether unequal.")
less = _comparing("less", "lt", "Whether less.")
less_equal = _comparing("less_equal", "le", "Whether less or equal.")
greater = _comparing("greater", "gt", "Whether greater.")
greater_equal = _comparing("greater_equal", "ge", "Whether greater or equal.")

bitwise_and = binary("bitwise_and", ops.bitwise_and, "Bitwise and; of booleans logical.", integers=True)
bitwise_or = binary("bitwise_or", ops.bitwise_or, "Bitwise or; of booleans logical.", integers=True)
bitwise_xor = binary("bitwise_xor", ops.bitwise_xor, "Bitwise exclusive or; of booleans logical.", integers=True)
left_shift = bitwise_left_shift = binary(
    "left_shift", ops.shift_left, "Shift to the left; by the width or more gives 0.", integers=True, no_bool=True
)


def right_shift(x1: Any, x2: Any, /) -> Array:
    """Shift to the right: signed integers keep their sign, unsigned ones bring in zeros."""
    (x, y), weak = promoted("right_shift", x1, x2)
    refuse("right_shift", x, "bfcV", "it takes integers only")
    op = ops.shift_right_logical if x.dtype.kind == "u" else ops.shift_right_arithmetic
    return with_weak_type(apply(op, "right_shift", x, y), weak)  # type: ignore[no-any-return]


bitwise_right_shift = right_shift


def bitwise_not(x: Any, /) -> Array:
    """Bitwise complement; of booleans logical."""
    x = array(x, "bitwise_not")
    refuse("bitwise_not", x, "fc", "it takes integers and booleans only")
    return ops.bitwise_not(x)  # type: ignore[no-any-return]


invert = bitwise_invert = bitwise_not


def _truth(x: Any, name: str, i: int = 0) -> Any:
    return cast(array(x, name, i), np.dtype(np.bool_))


def logical_and(x1: Any, x2: Any, /) -> Array:
    """Whether both are true (nonzero)."""
    return apply(ops.bitwise_and, "logical_and", _truth(x1, "logical_and"), _truth(x2, "logical_and", 1))  # type: ignore[no-any-return]


def logical_or(x1: Any, x2: Any, /) -> Array:
    """Whether either is true (nonzero)."""
    return apply(ops.bitwise_or, "logical_or", _truth(x1, "logical_or"), _truth(x2, "logical_or", 1))  # type: ignore[no-any-return]


def logical_xor(x1: Any, x2: Any, /) -> Array:
    """Whether exactly one is true (nonzero)."""
    return apply(ops.bitwise_xor, "logical_xor", _truth(x1, "logical_xor"), _truth(x2, "logical_xor", 1))  # type: ignore[no-any-return]


def logical_not(x: Any, /) -> Array:
    """Whether false (zero)."""
    return ops.bitwise_not(_truth(x, "logical_not"))  # type: ignore[no-any-return]


def isnan(x: Any, /) -> Array:
    """Whether NaN."""
    x = array(x, "isnan")
    return ops.ne(x, x)  # type: ignore[no-any-return]


def isfinite(x: Any, /) -> Array:
    """Whether neither infinite nor NaN."""
    x = array(x, "isfinite")
    if x.dtype.kind in "iub":
        return cast(_like(x, 1), np.dtype(np.bool_))  # type: ignore[no-any-return]
    if x.dtype.kind == "c":
        return ops.bitwise_and(ops.is_finite(ops.real(x)), ops.is_finite(ops.imag(x)))  # type: ignore[no-any-return]
    return ops.is_finite(x)  # type: ignore[no-any-return]


def isinf(x: Any, /) -> Array:
    """Whether infinite."""
    x = array(x, "isinf")
    if x.dtype.kind == "c":
        return logical_or(isinf(ops.real(x)), isinf(ops.imag(x)))
    if x.dtype.kind in "iub":
        return cast(_like(x, 0), np.dtype(np.bool_))  # type: ignore[no-any-return]
    return ops.eq(ops.abs(x), math.inf)  # type: ignore[no-any-return]


def isposinf(x: Any, /) -> Array:
    """Whether positive infinity."""
    return ops.eq(inexact(array(x, "isposinf")), math.inf)  # type: ignore[no-any-return]


def isneginf(x: Any, /) -> Array:
    """Whether negative infinity."""
    return ops.eq(inexact(array(x, "isneginf")), -math.inf)  # type: ignore[no-any-return]


def signbit(x: Any, /) -> Array:
    """Whether the sign bit is set, also of -0.0 and NaN."""
    x = inexact(array(x, "signbit"))
    bits = ops.bitcast_convert(x, dtype=np.dtype(f"int{x.dtype.itemsize * 8}"))
    return ops.lt(bits, 0)  # type: ignore[no-any-return]


# -- complex ------------------------------------------------------------------------------------------------------------


def real(val: Any, /) -> Array:
    """The real part."""
    x = array(val, "real")
    return ops.real(x) if x.dtype.kind == "c" else x  # type: ignore[no-any-return]


def imag(val: Any, /) -> Array:
    """The imaginary part, 0 for real arrays."""
    x = array(val, "imag")
    return ops.imag(x) if x.dtype.kind == "c" else _like(x, 0)  # type: ignore[no-any-return]


def conjugate(x: Any, /) -> Array:
    """The complex conjugate."""
    x = array(x, "conjugate")
    return ops.conj(x) if x.dtype.kind == "c" else x  # type: ignore[no-any-return]


conj = conjugate


def angle(z: Any, deg: bool = False) -> Array:
    """The angle of complex numbers, in radians or degrees."""
    x = inexact(array(z, "angle"))
    out = arctan2(imag(x), real(x))
    return rad2deg(out) if deg else out  # type: ignore[no-any-return]


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype is complex."""
    return bool(array(x, "iscomplexobj").dtype.kind == "c")


# -- choosing -----------------------------------------------------------------------------------------------------------


def where(condition: Any, x: Any = None, y: Any = None, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """Elements of ``x`` where ``condition`` is true, else of ``y``; with one argument, the positions of true elements.

    >>> import xformlib.numpy as jnp
    >>> print(jnp.where(jnp.arange(4) > 1, 1.0, 0.0))
    [0. 0. 1. 1.]
    """
    if x is None and y is None:
        from xformlib.numpy.searching import nonzero

        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise DtypeError("where: give both x and y, or neither.")
    pred = _truth(condition, "where")
    a, b = array(x, "where", 1), array(y, "where", 2)
    if a.is_key or b.is_key:
        weak = False
    else:
        (a, b), weak = promoted("where", a, b)
    from xformlib.numpy._util import broadcast_shape, broadcast_to_shape

    if state.frame is not None or a.is_key:
        shape = broadcast_shape("where", pred.shape, a.shape, b.shape)
        pred, a, b = [broadcast_to_shape(v, shape) for v in (pred, a, b)]
    else:
        broadcast_shape("where", pred.shape, a.shape, b.shape)
    return with_weak_type(ops.select(pred, a, b), weak) if not a.is_key else ops.select(pred, a, b)


def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Array:
    """NaN and infinities replaced by numbers (the largest and smallest, by default)."""
    x = array(x, "nan_to_num")
    if x.dtype.kind in "iub":
        return x  # type: ignore[no-any-return]
    limits = dtypes.finfo(x.dtype)
    x = where(isnan(x), as_dtype(array(nan, "nan_to_num"), x.dtype), x)
    x = where(isposinf(x), float(limits.max) if posinf is None else posinf, x)
    return where(isneginf(x), float(limits.min) if neginf is None else neginf, x)  # type: ignore[no-any-return]


def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Array:
    """Whether ``|a - b| <= atol + rtol |b|``, elementwise."""
    (x, y), _ = promoted("isclose", a, b)
    x, y = inexact(x), inexact(y)
    near = logical_and(less_equal(absolute(x - y), atol + rtol * absolute(y)), logical_and(isfinite(x), isfinite(y)))
    out = logical_or(near, equal(x, y))
    return logical_or(out, logical_and(isnan(x), isnan(y))) if equal_nan else out


def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Array:
    """Whether all elements are close, as a 0-d array."""
    from xformlib.numpy.reductions import all

    return all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Array:
    """Whether two arrays have one shape and equal elements, as a 0-d array."""
    from xformlib.numpy.reductions import all

    x, y = array(a1, "array_equal"), array(a2, "array_equal", 1)
    if x.shape != y.shape:
        return ArrayImpl(np.asarray(False))
    same = equal(x, y)
    return all(logical_or(same, logical_and(isnan(x), isnan(y))) if equal_nan else same)


__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "allclose",
    "angle",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "around",
    "array_equal",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "cbrt",
    "ceil",
    "clip",
    "conj",
    "conjugate",
    "copysign",
    "cos",
    "cosh",
    "deg2rad",
    "degrees",
    "divide",
    "divmod",
    "equal",
    "exp",
    "exp2",
    "expm1",
    "fabs",
    "fix",
    "float_power",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "greater",
    "greater_equal",
    "heaviside",
    "hypot",
    "imag",
    "invert",
    "isclose",
    "iscomplexobj",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "left_shift",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "nan_to_num",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "power",
    "rad2deg",
    "radians",
    "real",
    "reciprocal",
    "remainder",
    "right_shift",
    "rint",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinc",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "true_divide",
    "trunc",
    "where",
]
