"""Ops that exist for derivatives only.

``where(x < 1, x, sqrt(x))`` is the identity near 0, so its derivative there is 1; but reverse mode multiplies the zero
cotangent of the untaken branch by the infinite slope of ``sqrt``, which is NaN. The derivative rules of functions whose
slope can be infinite or NaN use :data:`strong_mul` and :data:`strong_div`, in which zero wins: no cotangent arrives, so
none leaves. So do the products within such slopes, for derivatives of higher order. They are ops of their own since
they must stay linear in the tangent, which a select on it is not. The user's own sums and products don't use them.

The price: a zero that came of a product wins as well, as in ``cbrt(x) ** 3`` at 0, whose derivative has the limit 1.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from xformlib.op import Op, Sample
from xformlib.ops.samples import BF16, C64, F16, F32, F64, smooth

__all__ = ["stop_gradient", "strong_div", "strong_mul"]


def _zero_where(zero: Any, out: Any) -> Any:
    return np.where(zero, np.zeros((), out.dtype), out) if zero.any() else out


def _mul(x: Any, y: Any) -> Any:
    return _zero_where((x == 0) | (y == 0), x * y)


def _div(t: Any, c: Any) -> Any:
    return _zero_where(t == 0, t / c)


def _infinite_slopes(name: str, slope: float) -> list[Sample]:
    def make(rng: np.random.Generator, dtype: Any) -> list[np.ndarray]:
        return [np.array([0, -0.0, 1, -2, np.nan]).astype(dtype), np.full(5, slope).astype(dtype)]

    note = f"zero tangents, {name}"
    return [Sample(functools.partial(make, dtype=d), diff=False, note=note) for d in (F32, F16, BF16, F64)]


strong_mul: Op = Op(
    "xform.strong_multiply",
    numpy=_mul,
    kind="elementwise",
    jvp=(lambda t, ans, x, y: strong_mul(t, y), lambda t, ans, x, y: strong_mul(x, t)),
    transpose=(lambda ct, x, y: strong_mul(ct, y), lambda ct, x, y: strong_mul(x, ct)),
    samples=[*smooth(2, 0.5, 2, [F32, C64]), *_infinite_slopes("infinite slopes", np.inf)],
    doc="Product, such as that of tangent and slope; 0 where either is zero, whatever the other.",
)


def _div_slope(dc: Any, ans: Any, t: Any, c: Any) -> Any:
    from xformlib.ops.arithmetic import neg

    return neg(strong_mul(strong_div(ans, c), dc))


strong_div: Op = Op(
    "xform.strong_divide",
    numpy=_div,
    kind="elementwise",
    jvp=(lambda dt, ans, t, c: strong_div(dt, c), _div_slope),
    transpose=(lambda ct, t, c: strong_div(ct, c), None),
    samples=[*smooth(2, 0.5, 2, [F32, C64]), *_infinite_slopes("zero divisors", 0.0)],
    doc="Tangent divided by a value; 0 where the tangent is zero, whatever the divisor.",
)

stop_gradient: Op = Op(
    "xform.stop_gradient",
    numpy=lambda x: x,
    kind="movement",
    types=lambda x: (x.shape, x.dtype),
    jvp=(None,),
    batch=lambda size, operands, batched: stop_gradient(operands[0]),
    factors=lambda x: _same(len(x.shape)),
    samples=smooth(1, dtypes=[F32, F16, BF16, F64, C64], diff=False, note="derivative zero by definition"),
    doc="The same value, taken as constant by derivatives.",
)


def _same(rank: int) -> str:
    from xformlib.ops.factors import factor_text

    return factor_text([range(rank)], [range(rank)])
