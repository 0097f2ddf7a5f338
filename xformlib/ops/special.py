"""The error function, its complement and its inverse."""

from __future__ import annotations

import math
from typing import Any

from xformlib.op import Op
from xformlib.ops import error_function
from xformlib.ops.arithmetic import mul, neg
from xformlib.ops.exponential import exp
from xformlib.ops.gradient import strong_mul
from xformlib.ops.samples import BF16, F16, F32, F64, smooth, special, values

__all__ = ["erf", "erf_inv", "erfc"]

_FLOATS = [F32, F16, BF16, F64]


def _bell(x: Any) -> Any:
    """2/sqrt(pi) exp(-x^2), the derivative of erf."""
    return mul(exp(neg(mul(x, x))), 2 / math.sqrt(math.pi))


erf: Op = Op(
    "chlo.erf",
    numpy=error_function.erf,
    kind="elementwise",
    jvp=(lambda t, ans, x: mul(t, _bell(x)),),
    samples=[*smooth(1, -3, 3, _FLOATS), *special(1, _FLOATS), *values([1e-30, -1e-30, 0.84, 1.26, 6], [F32, F64])],
    doc="The error function.",
)

erfc: Op = Op(
    "chlo.erfc",
    numpy=error_function.erfc,
    kind="elementwise",
    jvp=(lambda t, ans, x: neg(mul(t, _bell(x))),),
    samples=[*smooth(1, -3, 3, _FLOATS), *special(1, _FLOATS), *values([0.24, 0.85, 3, 5, 9, 26], [F32, F64])],
    doc="1 - erf(x), without cancellation for large x.",
)

erf_inv: Op = Op(
    "chlo.erf_inv",
    numpy=error_function.erf_inv,
    kind="elementwise",
    jvp=(lambda t, ans, x: strong_mul(t, mul(exp(strong_mul(ans, ans)), math.sqrt(math.pi) / 2)),),
    samples=[
        *smooth(1, -0.9, 0.9, _FLOATS),
        *special(1, _FLOATS),
        *values([1e-30, 0.99, -0.9999, 1 - 2.0**-24, 1 - 2.0**-53], [F32, F64]),
    ],
    doc="The inverse of the error function: NaN outside [-1, 1], infinite at its ends.",
)
