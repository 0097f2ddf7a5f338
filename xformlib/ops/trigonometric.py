"""Trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

from typing import Any

import numpy as np

from xformlib.op import Op
from xformlib.ops.arithmetic import FLOATS, abs, add, div, mul, neg, sub
from xformlib.ops.comparison import lt, select
from xformlib.ops.exponential import logistic
from xformlib.ops.gradient import strong_div, strong_mul
from xformlib.ops.powers import rsqrt, square
from xformlib.ops.samples import C64, F32, F64, smooth, special

__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cos",
    "cosh",
    "sin",
    "sinh",
    "tan",
    "tanh",
]


def _samples(low: float, high: float) -> Any:
    return [*smooth(1, low, high, [*FLOATS, C64]), *special(1, FLOATS)]


def _one_minus_square(x: Any) -> Any:
    """1 - x^2 without cancellation near 1."""
    return mul(sub(1.0, x), add(x, 1.0))


def _one_plus_square(x: Any) -> Any:
    return add(square(x), 1.0)


sin: Op = Op(
    "stablehlo.sine",
    numpy=np.sin,
    kind="elementwise",
    jvp=(lambda t, ans, x: mul(t, cos(x)),),
    samples=[*_samples(-3, 3), *smooth(1, 1e4, 1e6, [F32, F64], diff=False, note="large arguments")],
    doc="Sine, of radians.",
)

cos: Op = Op(
    "stablehlo.cosine",
    numpy=np.cos,
    kind="elementwise",
    jvp=(lambda t, ans, x: neg(mul(t, sin(x))),),
    samples=[*_samples(-3, 3), *smooth(1, 1e4, 1e6, [F32, F64], diff=False, note="large arguments")],
    doc="Cosine, of radians.",
)

tan: Op = Op(
    "stablehlo.tan",
    numpy=np.tan,
    kind="elementwise",
    jvp=(lambda t, ans, x: mul(t, _one_plus_square(ans)),),
    samples=_samples(-1.2, 1.2),
    doc="Tangent, of radians.",
)


def _tanh_slope(ans: Any, x: Any) -> Any:
    """1 - tanh(x)^2; where tanh is close to saturation as 4 s(2x) s(-2x), which does not cancel."""
    if x.dtype.kind == "c":
        return _one_minus_square(ans)
    tail = mul(mul(logistic(mul(x, 2.0)), logistic(mul(x, -2.0))), 4.0)
    return select(lt(abs(x), 1.5), _one_minus_square(ans), tail)


tanh: Op = Op(
    "stablehlo.tanh",
    numpy=np.tanh,
    kind="elementwise",
    jvp=(lambda t, ans, x: mul(t, _tanh_slope(ans, x)),),
    samples=_samples(-3, 3),
    doc="Hyperbolic tangent.",
)


def _atan2(y: Any, x: Any) -> Any:
    if y.dtype.kind == "c":
        i = np.asarray(1j, y.dtype)
        return -i * np.log((x + i * y) / np.sqrt(x * x + y * y))
    return np.arctan2(y, x)


def _norm2(y: Any, x: Any) -> Any:
    return add(square(x), square(y))


atan2: Op = Op(
    "stablehlo.atan2",
    numpy=_atan2,
    kind="elementwise",
    jvp=(
        lambda t, ans, y, x: strong_mul(t, div(x, _norm2(y, x))),
        lambda t, ans, y, x: strong_mul(t, neg(div(y, _norm2(y, x)))),
    ),
    samples=[*smooth(2, 0.3, 2, FLOATS), *special(2, [F32, F64])],
    doc="Angle of the point (x, y), given as y, x.",
)

asin: Op = Op(
    "chlo.asin",
    numpy=np.arcsin,
    kind="elementwise",
    jvp=(lambda t, ans, x: strong_mul(t, rsqrt(_one_minus_square(x))),),
    samples=_samples(-0.9, 0.9),
    doc="Inverse sine.",
)

acos: Op = Op(
    "chlo.acos",
    numpy=np.arccos,
    kind="elementwise",
    jvp=(lambda t, ans, x: strong_mul(t, neg(rsqrt(_one_minus_square(x)))),),
    samples=_samples(-0.9, 0.9),
    doc="Inverse cosine.",
)

atan: Op = Op(
    "chlo.atan",
    numpy=np.arctan,
    kind="elementwise",
    jvp=(lambda t, ans, x: strong_div(t, _one_plus_square(x)),),
    samples=_samples(-3, 3),
    doc="Inverse tangent.",
)

sinh: Op = Op(
    "chlo.sinh",
    numpy=np.sinh,
    kind="elementwise",
    jvp=(lambda t, ans, x: strong_mul(t, cosh(x)),),
    samples=_samples(-3, 3),
    doc="Hyperbolic sine.",
)

cosh: Op = Op(
    "chlo.cosh",
    numpy=np.cosh,
    kind="elementwise",
    jvp=(lambda t, ans, x: strong_mul(t, sinh(x)),),
    samples=_samples(-3, 3),
    doc="Hyperbolic cosine.",
)

asinh: Op = Op(
    "chlo.asinh",
    numpy=np.arcsinh,
    kind="elementwise",
    jvp=(lambda t, ans, x: mul(t, rsqrt(_one_plus_square(x))),),
    samples=_samples(-3, 3),
    doc="Inverse hyperbolic sine.",
)

acosh: Op = Op(
    "chlo.acosh",
    numpy=np.arccosh,
    kind="elementwise",
    # Two roots, not one of the product: the branch of the complex function is then right on the whole plane.
    jvp=(lambda t, ans, x: strong_mul(t, strong_mul(rsqrt(sub(x, 1.0)), rsqrt(add(x, 1.0)))),),
    samples=[*smooth(1, 1.2, 4, [*FLOATS, C64]), *special(1, FLOATS)],
    doc="Inverse hyperbolic cosine.",
)

atanh: Op = Op(
    "chlo.atanh",
    numpy=np.arctanh,
    kind="elementwise",
    jvp=(lambda t, ans, x: strong_div(t, _one_minus_square(x)),),
    samples=_samples(-0.9, 0.9),
    doc="Inverse hyperbolic tangent.",
)
