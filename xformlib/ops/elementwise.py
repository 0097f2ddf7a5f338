"""Elementwise arithmetic, comparison, selection and mathematical functions."""

from __future__ import annotations

import numpy as np

from xformlib.op import Op

add = Op(
    "stablehlo.add",
    numpy=np.add,
    kind="elementwise",
    linear="all",
    transpose=(lambda ct, x, y: ct, lambda ct, x, y: ct),
)
mul = Op(
    "stablehlo.multiply",
    numpy=np.multiply,
    kind="elementwise",
    jvp=(lambda t, ans, x, y: mul(t, y), lambda t, ans, x, y: mul(x, t)),
    transpose=(lambda ct, x, y: mul(ct, y), lambda ct, x, y: mul(x, ct)),
)
neg = Op(
    "stablehlo.negate",
    numpy=np.negative,
    kind="elementwise",
    linear="all",
    transpose=(lambda ct, x: neg(ct),),
)
sin = Op(
    "stablehlo.sine",
    numpy=np.sin,
    kind="elementwise",
    jvp=(lambda t, ans, x: mul(t, cos(x)),),
)
cos = Op(
    "stablehlo.cosine",
    numpy=np.cos,
    kind="elementwise",
    jvp=(lambda t, ans, x: neg(mul(t, sin(x))),),
)
tanh = Op(
    "stablehlo.tanh",
    numpy=np.tanh,
    kind="elementwise",
    jvp=(lambda t, ans, x: sub(t, mul(t, mul(ans, ans))),),
)
sub = Op(
    "stablehlo.subtract",
    numpy=np.subtract,
    kind="elementwise",
    linear="all",
    transpose=(lambda ct, x, y: ct, lambda ct, x, y: neg(ct)),
)
