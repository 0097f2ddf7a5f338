"""Rounding to integers, and the neighbourhood of floating-point numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from xformlib.op import Op
from xformlib.ops.samples import BF16, F16, F32, F64, smooth, special, values

__all__ = ["ceil", "floor", "is_finite", "nextafter", "round_nearest_afz", "round_nearest_even"]

_FLOATS = [F32, F16, BF16, F64]
_TIES = [0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, -0.49999997, 8388609.0, -0.2, -0.0]


def _samples() -> Any:
    return [*smooth(1, -4, 4, _FLOATS), *special(1, _FLOATS), *values(_TIES, [F32, F64], note="ties")]


floor: Op = Op(
    "stablehlo.floor",
    numpy=np.floor,
    kind="elementwise",
    jvp=(None,),
    samples=_samples(),
    doc="The largest integer not above x.",
)

ceil: Op = Op(
    "stablehlo.ceil",
    numpy=np.ceil,
    kind="elementwise",
    jvp=(None,),
    samples=_samples(),
    doc="The smallest integer not below x.",
)

round_nearest_even: Op = Op(
    "stablehlo.round_nearest_even",
    numpy=np.rint,
    kind="elementwise",
    jvp=(None,),
    samples=_samples(),
    doc="The nearest integer, ties to even.",
)


def _round_away(x: Any) -> Any:
    whole = np.trunc(x)
    # The distance is exact, unlike x + 0.5, which rounds up just below a tie.
    far = np.abs(x - whole) >= np.array(0.5, x.dtype)
    return np.where(far, whole + np.copysign(np.ones((), x.dtype), x), whole)


round_nearest_afz: Op = Op(
    "stablehlo.round_nearest_afz",
    numpy=_round_away,
    kind="elementwise",
    jvp=(None,),
    samples=_samples(),
    doc="The nearest integer, ties away from zero.",
)

is_finite: Op = Op(
    "stablehlo.is_finite",
    numpy=np.isfinite,
    kind="elementwise",
    types=lambda x: (x.shape, np.dtype(np.bool_)),
    jvp=(None,),
    weak=False,
    samples=_samples(),
    doc="Whether x is neither infinite nor NaN.",
)

nextafter: Op = Op(
    "chlo.next_after",
    numpy=np.nextafter,
    kind="elementwise",
    jvp=(None, None),
    samples=[*smooth(2, dtypes=[F32, F64, F16], diff=False), *special(2, [F32, F64])],
    doc="The number next to x in the direction of y.",
)
