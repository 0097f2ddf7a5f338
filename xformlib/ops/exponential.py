"""Exponentials, logarithms and the logistic function."""

from __future__ import annotations

from typing import Any

import numpy as np

from xformlib.op import Op
from xformlib.ops.arithmetic import FLOATS, add, mul, neg
from xformlib.ops.gradient import strong_div, strong_mul
from xformlib.ops.numpy_rules import in_float32
from xformlib.ops.samples import C64, F32, F64, smooth, special

__all__ = ["exp", "expm1", "log", "log1p", "logistic"]

exp: Op = Op(
    "stablehlo.exponential",
    numpy=np.exp,
    kind="elementwise",
    jvp=(lambda t, ans, x: strong_mul(t, ans),),
    samples=[*smooth(1, -3, 3, [*FLOATS, C64]), *special(1, FLOATS)],
    doc="e to the power of x.",
)

expm1: Op = Op(
    "stablehlo.exponential_minus_one",
    numpy=np.expm1,
    kind="elementwise",
    jvp=(lambda t, ans, x: strong_mul(t, add(ans, 1.0)),),
    samples=[*smooth(1, -3, 3, [*FLOATS, C64]), *smooth(1, -1e-3, 1e-3, [F32, F64]), *special(1, FLOATS)],
    doc="exp(x) - 1 without cancellation near 0.",
)

log: Op = Op(
    "stablehlo.log",
    numpy=np.log,
    kind="elementwise",
    jvp=(lambda t, ans, x: strong_div(t, x),),
    samples=[*smooth(1, 0.2, 4, [*FLOATS, C64]), *special(1, FLOATS)],
    doc="Natural logarithm.",
)

log1p: Op = Op(
    "stablehlo.log_plus_one",
    numpy=np.log1p,
    kind="elementwise",
    jvp=(lambda t, ans, x: strong_div(t, add(x, 1.0)),),
    samples=[*smooth(1, -0.7, 3, [*FLOATS, C64]), *smooth(1, -1e-3, 1e-3, [F32, F64]), *special(1, FLOATS)],
    doc="log(1 + x) without cancellation near 0.",
)


def _logistic(x: Any) -> Any:
    if x.dtype.kind == "c":  # exp(-x) would overflow to infinities of no direction
        wide = x.astype(np.complex128)  # on the left the sum cancels
        return ((np.tanh(wide / 2) + 1) / 2).astype(x.dtype)
    return 1 / (1 + np.exp(-x))


logistic: Op = Op(
    "stablehlo.logistic",
    numpy=in_float32(_logistic),
    kind="elementwise",
    # s(x) s(-x) is right in both tails, s (1 - s) in one only.
    jvp=(lambda t, ans, x: mul(t, mul(ans, logistic(neg(x)))),),
    samples=[*smooth(1, -4, 4, [*FLOATS, C64]), *special(1, FLOATS)],
    doc="1 / (1 + exp(-x)).",
)
