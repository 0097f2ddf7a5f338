"""Complex functions from real ones in float64: IREE's own overflow early and lose up to 15 ulp in complex64.

complex128 keeps IREE's forms but for the absolute value, which is scaled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xformlib.lowering.legalize.functions import _atan2, _cos, _sin
from xformlib.lowering.legalize.rewriter import Builder, Guard, dtype_of, shape_of

_F64 = np.dtype(np.float64)
Pair = tuple[Any, Any]  # real and imaginary part


def _parts(b: Builder, z: Any) -> Pair:
    half = np.dtype(f"f{dtype_of(z).itemsize // 2}")
    re, im = (b.op(f"stablehlo.{p}", [(shape_of(z), half)], [z]).result for p in ("real", "imag"))
    return b.convert(re, _F64), b.convert(im, _F64)


def _exp(b: Builder, z: Pair) -> Pair:
    size = b.unary("exponential", z[0])
    real_line = b.compare("EQ", z[1], 0.0)
    im = b.select(real_line, z[1], b.mul(size, _sin(b, z[1])))
    return b.select(real_line, size, b.mul(size, _cos(b, z[1]))), im


def _abs(b: Builder, z: Pair) -> Any:
    x, y = b.abs(z[0]), b.abs(z[1])
    large, small = b.max(x, y), b.min(x, y)
    safe = b.select(b.compare("EQ", large, 0.0), b.const(large, 1.0), large)
    ratio = b.div(small, safe)
    size = b.mul(large, b.unary("sqrt", b.add(b.mul(ratio, ratio), 1.0)))
    infinite = b.or_(b.compare("EQ", x, math.inf), b.compare("EQ", y, math.inf))
    return b.select(infinite, b.const(size, math.inf), size)


def _log(b: Builder, z: Pair) -> Pair:
    x, y = z
    # log|z| as half the log1p of x^2 + y^2 - 1 where that is small: no cancellation near the unit circle.
    large, small = b.max(b.abs(x), b.abs(y)), b.min(b.abs(x), b.abs(y))
    near = b.add(b.mul(b.sub(large, 1.0), b.add(large, 1.0)), b.mul(small, small))
    log1p = b.op("stablehlo.log_plus_one", [(shape_of(x), _F64)], [near]).result
    close = b.compare("LT", b.abs(near), 0.5)
    return b.select(close, b.mul(log1p, 0.5), b.unary("log", _abs(b, z))), _atan2(b, y, x)


def _mul(b: Builder, v: Pair, w: Pair) -> Pair:
    return b.sub(b.mul(v[0], w[0]), b.mul(v[1], w[1])), b.add(b.mul(v[0], w[1]), b.mul(v[1], w[0]))


def _inverse(b: Builder, z: Pair) -> Pair:
    size = b.add(b.mul(z[0], z[0]), b.mul(z[1], z[1]))
    return b.div(z[0], size), b.div(b.neg(z[1]), size)


def _sqrt(b: Builder, z: Pair) -> Pair:
    size = _abs(b, z)
    root = b.unary("sqrt", b.mul(b.add(size, b.abs(z[0])), 0.5))
    other = b.div(b.abs(z[1]), b.mul(b.select(b.compare("EQ", root, 0.0), b.const(root, 1.0), root), 2.0))
    right = b.compare("GE", z[0], 0.0)
    down = b.compare("LT", b.bitcast(z[1], np.int64), 0)
    im = b.select(right, other, root)
    return b.select(right, root, other), b.select(down, b.neg(im), im)


def _power(b: Builder, z: Pair, w: Pair) -> Pair:
    re, im = _exp(b, _mul(b, w, _log(b, z)))
    zero = b.and_(b.compare("EQ", w[0], 0.0), b.compare("EQ", w[1], 0.0))
    return b.select(zero, b.const(re, 1.0), re), b.select(zero, b.const(im, 0.0), im)


def _logistic(b: Builder, z: Pair) -> Pair:
    e = _exp(b, (b.neg(z[0]), b.neg(z[1])))
    return _inverse(b, (b.add(e[0], 1.0), e[1]))


def _hyperbolic(b: Builder, x: Any) -> Pair:
    """(cosh, sinh) of real numbers."""
    return tuple(b.op(f"chlo.{f}", [(shape_of(x), _F64)], [x]).result for f in ("cosh", "sinh"))  # type: ignore[return-value]


def _sine(b: Builder, z: Pair) -> Pair:
    cosh, sinh = _hyperbolic(b, z[1])
    return b.mul(_sin(b, z[0]), cosh), b.mul(_cos(b, z[0]), sinh)


def _cosine(b: Builder, z: Pair) -> Pair:
    cosh, sinh = _hyperbolic(b, z[1])
    return b.mul(_cos(b, z[0]), cosh), b.neg(b.mul(_sin(b, z[0]), sinh))


def _acosh(b: Builder, z: Pair) -> Pair:
    up, down = _sqrt(b, (b.add(z[0], 1.0), z[1])), _sqrt(b, (b.sub(z[0], 1.0), z[1]))
    product = _mul(b, up, down)
    return _log(b, (b.add(z[0], product[0]), b.add(z[1], product[1])))


def _guard(op: str, f: Callable[..., Pair]) -> Guard:
    def rewrite(operation: Any, b: Builder) -> Sequence[Any] | None:
        zs = list(operation.operands)
        if dtype_of(zs[0]) != np.complex64 or 0 in shape_of(zs[0]):
            return None
        parts = [b.convert(v, np.float32) for v in f(b, *[_parts(b, z) for z in zs])]
        return [b.op("stablehlo.complex", [(shape_of(zs[0]), np.dtype(np.complex64))], parts).result]

    return Guard(f"complex {op}", (op,), "up to 15 ulp in complex64, overflows early", rewrite)


def _absolute(operation: Any, b: Builder) -> Sequence[Any] | None:
    z = operation.operands[0]
    if dtype_of(z).kind != "c":
        return None
    return [b.convert(_abs(b, _parts(b, z)), dtype_of(operation.results[0]))]


GUARDS = [
    Guard("complex abs", ("stablehlo.abs",), "overflows where the result does not", _absolute),
    _guard("stablehlo.exponential", _exp),
    _guard("stablehlo.log", _log),
    _guard("stablehlo.power", _power),
    _guard("stablehlo.logistic", _logistic),
    _guard("stablehlo.rsqrt", lambda b, z: _inverse(b, _sqrt(b, z))),
    _guard("stablehlo.sine", _sine),
    _guard("stablehlo.cosine", _cosine),
    _guard("chlo.acosh", _acosh),
]
