"""Exponentials, logarithms and the logistic function."""

from __future__ import annotations

from typing import Any

import numpy as np

from xformlib.op import Op
from xformlib.ops.arithmetic import add, in_float32, mul, neg
from xformlib.ops.gradient import strong_div
from xformlib.ops.samples import BF16, C64, F16, F32, F64, smooth, special

__all__ = ["exp", "expm1", "log", "log1p", "logistic"]

_FLOATS = [F32, F16, BF16, F64]

exp = Op(
    "stablehlo.exponential",
    numpy=np.exp,
    kind="elementwise",
    jvp=(lambda t, ans, x: mul(t, ans),),
    samples=[*smooth(1, -3, 3, [*_FLOATS, C64]), *special(1, _FLOATS)],
    doc="e to the power of x.",
)

expm1 = Op(
    "stablehlo.exponential_minus_one",
    numpy=in_float32(np.expm1),
    kind="elementwise",
    jvp=(lambda t, ans, x: mul(t, add(ans, 1.0)),),
    samples=[*smooth(1, -3, 3, [*_FLOATS, C64]), *smooth(1, -1e-3, 1e-3, [F32, F64]), *special(1, _FLOATS)],
    doc="exp(x) - 1 without cancellation near 0.",
)

log = Op(
    "stablehlo.log",
    numpy=np.log,
    kind="elementwise",
    jvp=(lambda t, ans, x: strong_div(t, x),),
    samples=[*smooth(1, 0.2, 4, [*_FLOATS, C64]), *special(1, _FLOATS)],
    doc="Natural logarithm.",
)

log1p = Op(
    "stablehlo.log_plus_one",
    numpy=in_float32(np.log1p),
    kind="elementwise",
    jvp=(lambda t, ans, x: strong_div(t, add(x, 1.0)),),
    samples=[*smooth(1, -0.7, 3, [*_FLOATS, C64]), *smooth(1, -1e-3, 1e-3, [F32, F64]), *special(1, _FLOATS)],
    doc="log(1 + x) without cancellation near 0.",
)


def _logistic(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


logistic = Op(
    "stablehlo.logistic",
    numpy=in_float32(_logistic),
    kind="elementwise",
    # s(x) s(-x) is right in both tails, s (1 - s) in one only.
    jvp=(lambda t, ans, x: mul(t, mul(ans, logistic(neg(x)))),),
    samples=[*smooth(1, -4, 4, [*_FLOATS, C64]), *special(1, _FLOATS)],
    doc="1 / (1 + exp(-x)).",
)
