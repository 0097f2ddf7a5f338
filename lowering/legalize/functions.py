"""Mathematical functions that IREE computes inaccurately or can't link, by polynomials in float64.

float32 goes through float64 and is rounded once. Reductions and polynomials are those of fdlibm (Sun Microsystems, 1993); expm1 and
log1p are Kahan's. Trigonometric functions reduce their argument in three parts: full accuracy for float32 up to about 1e9 and
float64 up to about 1e5, beyond that the absolute error grows with the argument.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xformlib.lowering.legalize.rewriter import Builder, Guard, dtype_of, shape_of

_F64, _I64, _BOOL = np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.bool_)

_PIO2 = (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21)
_SIN = (1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06, -1.98412698298579493134e-04, 8.33333333332248946124e-03, -1.66666666666666324348e-01)  # fmt: skip
_COS = (-1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07, 2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02)  # fmt: skip
_ATAN = (1.62858201153657823623e-02, -3.65315727442169155270e-02, 4.97687799461593236017e-02, -5.83357013379057348645e-02, 6.66107313738753120669e-02, -7.69187620504482999495e-02, 9.09088713343650656196e-02, -1.11111104054623557880e-01, 1.42857142725034663711e-01, -1.99999999998764832476e-01, 3.33333333333329318027e-01)  # fmt: skip


def _round(b: Builder, x: Any) -> Any:
    return b.unary("round_nearest_even", x)


_LARGEST_ANGLE = 2.0**30  # beyond, the three-part reduction has too few digits: NaN is better than a wrong number


def _reduced(b: Builder, x: Any) -> tuple[Any, Any]:
    """(remainder within pi/4, quadrant 0..3 as float)."""
    x = b.select(b.compare("GT", b.abs(x), _LARGEST_ANGLE), b.const(x, math.nan), x)
    n = _round(b, b.mul(x, 2 / math.pi))
    r = x
    for part in _PIO2:
        r = b.sub(r, b.mul(n, part))
    return r, b.sub(n, b.mul(b.unary("floor", b.mul(n, 0.25)), 4.0))


def _sin_cos(b: Builder, x: Any) -> tuple[Any, Any, Any]:
    r, q = _reduced(b, x)
    z = b.mul(r, r)
    sin = b.add(r, b.mul(b.mul(r, z), b.horner(z, _SIN)))
    cos = b.add(b.sub(1.0, b.mul(z, 0.5)), b.mul(b.mul(z, z), b.horner(z, _COS)))
    return sin, cos, q


def _sin(b: Builder, x: Any) -> Any:
    s, c, q = _sin_cos(b, x)
    odd = b.or_(b.compare("EQ", q, 1.0), b.compare("EQ", q, 3.0))
    value = b.select(odd, c, s)
    out = b.select(b.compare("GE", q, 2.0), b.neg(value), value)
    return b.select(b.compare("EQ", x, 0.0), x, out)


def _cos(b: Builder, x: Any) -> Any:
    s, c, q = _sin_cos(b, x)
    odd = b.or_(b.compare("EQ", q, 1.0), b.compare("EQ", q, 3.0))
    value = b.select(odd, s, c)
    return b.select(b.or_(b.compare("EQ", q, 1.0), b.compare("EQ", q, 2.0)), b.neg(value), value)


def _tan(b: Builder, x: Any) -> Any:
    s, c, q = _sin_cos(b, x)
    odd = b.or_(b.compare("EQ", q, 1.0), b.compare("EQ", q, 3.0))
    return b.select(b.compare("EQ", x, 0.0), x, b.select(odd, b.neg(b.div(c, s)), b.div(s, c)))


def _exp(b: Builder, x: Any) -> Any:
    return b.unary("exponential", x)


def _log(b: Builder, x: Any) -> Any:
    return b.unary("log", x)


def _expm1(b: Builder, x: Any) -> Any:
    u = _exp(b, x)
    v = b.sub(u, 1.0)
    out = b.div(b.mul(v, x), _log(b, u))
    out = b.select(b.compare("EQ", v, -1.0), b.const(x, -1.0), out)
    out = b.select(b.compare("EQ", u, math.inf), u, out)
    return b.select(b.compare("EQ", u, 1.0), x, out)


def _log1p(b: Builder, x: Any) -> Any:
    u = b.add(x, 1.0)
    out = b.mul(_log(b, u), b.div(x, b.sub(u, 1.0)))
    out = b.select(b.compare("EQ", x, math.inf), x, out)
    return b.select(b.compare("EQ", u, 1.0), x, out)


def _with_sign(b: Builder, size: Any, like: Any) -> Any:
    """``size`` with the sign of ``like``, which may be a zero."""
    bits = b.bitcast(like, _I64)
    return b.select(b.compare("LT", bits, 0), b.neg(size), size)


def _tanh(b: Builder, x: Any) -> Any:
    size = b.abs(x)
    t = _expm1(b, b.mul(b.min(size, 30.0), 2.0))
    out = b.select(b.compare("NE", x, x), x, b.div(t, b.add(t, 2.0)))
    return _with_sign(b, out, x)


def _sinh(b: Builder, x: Any) -> Any:
    size = b.abs(x)
    half = _exp(b, b.mul(size, 0.5))
    e = _expm1(b, b.min(size, 600.0))
    small = b.mul(b.add(e, b.div(e, b.add(e, 1.0))), 0.5)
    return _with_sign(b, b.select(b.compare("GT", size, 600.0), b.mul(b.mul(half, 0.5), half), small), x)


def _cosh(b: Builder, x: Any) -> Any:
    half = _exp(b, b.mul(b.abs(x), 0.5))
    e = _exp(b, b.abs(x))
    return b.select(
        b.compare("GT", b.abs(x), 600.0), b.mul(b.mul(half, 0.5), half), b.mul(b.add(e, b.div(1.0, e)), 0.5)
    )


def _asinh(b: Builder, x: Any) -> Any:
    size = b.abs(x)
    square = b.mul(size, size)
    near = _log1p(b, b.add(size, b.div(square, b.add(b.unary("sqrt", b.add(square, 1.0)), 1.0))))
    return _with_sign(b, b.select(b.compare("GT", size, 1e150), b.add(_log(b, size), math.log(2)), near), x)


def _acosh(b: Builder, x: Any) -> Any:
    t = b.sub(x, 1.0)
    near = _log1p(b, b.add(t, b.unary("sqrt", b.mul(t, b.add(t, 2.0)))))
    out = b.select(b.compare("GT", x, 1e150), b.add(_log(b, x), math.log(2)), near)
    return b.select(b.compare("LT", x, 1.0), b.const(x, math.nan), out)


def _atanh(b: Builder, x: Any) -> Any:
    size = b.abs(x)
    return _with_sign(b, b.mul(_log1p(b, b.div(b.mul(size, 2.0), b.sub(1.0, size))), 0.5), x)


def _atan_positive(b: Builder, x: Any) -> Any:
    """atan of numbers from 0 to 1."""
    high = b.compare("GT", x, 0.4142135623730951)
    r = b.select(high, b.div(b.sub(x, 1.0), b.add(x, 1.0)), x)
    z = b.mul(r, r)
    out = b.sub(r, b.mul(r, b.mul(z, b.horner(z, _ATAN))))
    return b.select(high, b.add(out, math.pi / 4), out)


def _atan2(b: Builder, y: Any, x: Any) -> Any:
    ay, ax = b.abs(y), b.abs(x)
    large, small = b.max(ax, ay), b.min(ax, ay)
    both_infinite = b.compare("EQ", small, math.inf)
    ratio = b.div(small, b.select(b.compare("EQ", large, 0.0), b.const(large, 1.0), large))
    ratio = b.select(
        both_infinite, b.const(ratio, 1.0), b.select(b.compare("EQ", small, 0.0), b.const(ratio, 0.0), ratio)
    )
    angle = _atan_positive(b, ratio)
    angle = b.select(b.compare("GT", ay, ax), b.sub(math.pi / 2, angle), angle)
    left = b.compare("LT", b.bitcast(x, _I64), 0)
    angle = b.select(left, b.sub(math.pi, angle), angle)
    nan = b.or_(b.compare("NE", x, x), b.compare("NE", y, y))
    return b.select(nan, b.add(x, y), _with_sign(b, angle, y))


def _atan(b: Builder, x: Any) -> Any:
    return _atan2(b, x, b.const(x, 1.0))


def _complement(b: Builder, x: Any) -> Any:
    return b.unary("sqrt", b.mul(b.sub(1.0, x), b.add(x, 1.0)))


def _asin(b: Builder, x: Any) -> Any:
    return _atan2(b, x, _complement(b, x))


def _acos(b: Builder, x: Any) -> Any:
    return _atan2(b, _complement(b, x), x)


def _cbrt(b: Builder, x: Any) -> Any:
    size = b.abs(x)
    y = _exp(b, b.mul(_log(b, size), 1 / 3))
    y = b.sub(y, b.div(b.sub(b.mul(b.mul(y, y), y), size), b.mul(b.mul(y, y), 3.0)))
    same = b.or_(b.compare("EQ", size, 0.0), b.compare("EQ", size, math.inf))
    return b.select(same, x, _with_sign(b, y, x))


def _power(b: Builder, x: Any, y: Any) -> Any:
    """C's pow: special cases around exp(y log|x|)."""
    size = b.abs(x)
    out = _exp(b, b.mul(y, _log(b, size)))
    whole = b.compare("EQ", b.unary("floor", y), y)
    half = b.mul(y, 0.5)
    odd = b.and_(whole, b.compare("NE", b.unary("floor", half), half))
    out = b.select(b.compare("EQ", size, 1.0), b.select(b.compare("NE", y, y), y, b.const(y, 1.0)), out)
    negative = b.compare("LT", b.bitcast(x, _I64), 0)
    out = b.select(b.and_(negative, odd), b.neg(out), out)
    finite_negative = b.and_(b.compare("LT", x, 0.0), b.compare("GT", x, -math.inf))
    out = b.select(b.and_(finite_negative, b.unary("not", whole)), b.const(out, math.nan), out)
    one = b.or_(b.compare("EQ", y, 0.0), b.compare("EQ", x, 1.0))
    return b.select(one, b.const(out, 1.0), out)


def _remainder(b: Builder, x: Any, y: Any, steps: int = 1) -> Any:
    """C's fmod. A step is exact while its quotient is below 2^53; each more covers 50 further bits of the quotient.

    NaN where the steps do not suffice.
    """
    r = x
    for k in reversed(range(steps)):
        r = _remainder_step(b, r, b.mul(y, 2.0 ** (50 * k)), x)
    infinite = b.and_(b.compare("EQ", b.abs(y), math.inf), b.compare("LT", b.abs(x), math.inf))
    r = b.select(b.compare("EQ", r, 0.0), _with_sign(b, b.abs(r), x), r)
    return b.select(infinite, x, r)


def _remainder_step(b: Builder, r: Any, s: Any, x: Any) -> Any:
    """``r`` modulo ``s``: the product is subtracted in two exact halves (Dekker, 1971)."""
    q = b.div(r, s)
    q = b.select(b.compare("LT", q, 0.0), b.unary("ceil", q), b.unary("floor", q))
    q = b.select(b.compare("GE", b.abs(q), 2.0**53), b.const(q, math.nan), q)
    product = b.mul(q, s)
    rest = b.sub(b.sub(r, product), _product_error(b, q, s, product))
    # The rounded quotient may be one too large.
    rest = b.select(b.compare("LT", b.mul(rest, x), 0.0), b.add(rest, _with_sign(b, b.abs(s), x)), rest)
    return b.select(b.compare("LT", b.abs(r), b.abs(s)), r, rest)


def _product_error(b: Builder, x: Any, y: Any, product: Any) -> Any:
    def halves(v: Any) -> tuple[Any, Any]:
        c = b.mul(v, 134217729.0)
        high = b.sub(c, b.sub(c, v))
        return high, b.sub(v, high)

    (xh, xl), (yh, yl) = halves(x), halves(y)
    error = b.sub(b.mul(xh, yh), product)
    return b.add(b.add(b.add(error, b.mul(xh, yl)), b.mul(xl, yh)), b.mul(xl, yl))


def _logistic(b: Builder, x: Any) -> Any:
    return b.div(1.0, b.add(_exp(b, b.neg(x)), 1.0))


def _in_float64(f: Callable[..., Any], *, narrow: bool = True) -> Any:
    """A guard that computes real operands in float64; float32 and below only if ``narrow``."""

    def rewrite(operation: Any, b: Builder) -> Sequence[Any] | None:
        xs = list(operation.operands)
        dtype = dtype_of(xs[0])
        if dtype.kind not in "fV" or (dtype != _F64 and not narrow) or 0 in shape_of(xs[0]):
            return None
        return [b.convert(f(b, *[b.convert(x, _F64) for x in xs]), dtype)]

    return rewrite


def _remainder_of(operation: Any, b: Builder) -> Sequence[Any] | None:
    steps = 1 if dtype_of(operation.operands[0]) == _F64 else 6  # float32 quotients have up to 277 bits
    return _in_float64(lambda b, x, y: _remainder(b, x, y, steps))(operation, b)


def _wide(name: str) -> Any:
    """The same function in float64, which IREE decomposes well."""
    return lambda b, x: b.op(name, [(shape_of(x), _F64)], [x]).result


def _only_narrow(name: str) -> Any:
    rewrite = _in_float64(_wide(name))
    return lambda operation, b: None if dtype_of(operation.operands[0]) == _F64 else rewrite(operation, b)


def _guard(op: str, f: Callable[..., Any], why: str, *, narrow: bool = True) -> Guard:
    return Guard(op, (op,), why, _in_float64(f, narrow=narrow))


_LINK = "float64 needs a library that is not linked"

GUARDS = [
    _guard("stablehlo.sine", _sin, "float32 is wrong below 0 and beyond 1e4; " + _LINK),
    _guard("stablehlo.cosine", _cos, "float32 is wrong below 0 and beyond 1e4; " + _LINK),
    _guard("stablehlo.tan", _tan, "float32 is wrong below 0 and beyond 1e4; " + _LINK),
    _guard("stablehlo.tanh", _tanh, _LINK, narrow=False),
    _guard("stablehlo.exponential_minus_one", _expm1, "cancels near 0 in float64", narrow=False),
    _guard("stablehlo.log_plus_one", _log1p, "cancels near 0 in float64", narrow=False),
    _guard("stablehlo.logistic", _logistic, _LINK, narrow=False),
    _guard("stablehlo.atan2", _atan2, "40 ulp in float32, special cases wrong; " + _LINK),
    _guard("stablehlo.power", _power, "negative bases give NaN, up to 48 ulp"),
    Guard("stablehlo.remainder", ("stablehlo.remainder",), _LINK, _remainder_of),
    _guard("stablehlo.cbrt", _cbrt, "infinity gives NaN; float64 does not compile"),
    Guard("chlo.erfc", ("chlo.erfc",), "5 ulp and more in float32", _only_narrow("chlo.erfc")),
    Guard("chlo.erf_inv", ("chlo.erf_inv",), "36 ulp in float32 in the tails", _only_narrow("chlo.erf_inv")),
    _guard("chlo.tan", _tan, "decomposed through the inaccurate sine and cosine"),
    _guard("chlo.asin", _asin, "up to 40 ulp in float32"),
    _guard("chlo.acos", _acos, "up to 40 ulp in float32"),
    _guard("chlo.atan", _atan, "up to 40 ulp in float32"),
    _guard("chlo.sinh", _sinh, "cancels near 0"),
    _guard("chlo.cosh", _cosh, "overflows early"),
    _guard("chlo.asinh", _asinh, "cancels near 0"),
    _guard("chlo.acosh", _acosh, "cancels near 1"),
    _guard("chlo.atanh", _atanh, "cancels near 0"),
]
