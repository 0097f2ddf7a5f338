"""Parts of complex numbers. Transposes are those of the real-linear maps without conjugation, as in JAX."""

from __future__ import annotations

from typing import Any

import numpy as np

from xformlib.dtypes import real_dtype
from xformlib.op import Op
from xformlib.ops.arithmetic import neg
from xformlib.ops.samples import C64, F32, smooth, special

__all__ = ["complex", "conj", "imag", "real"]


def _complex_of(dtype: Any) -> Any:
    return np.dtype(np.complex128 if dtype == np.float64 else np.complex64)


def _part_type(x: Any) -> Any:
    return x.shape, real_dtype(x.dtype)


def _make(re: Any, im: Any) -> Any:
    out = np.empty(np.broadcast_shapes(re.shape, im.shape), _complex_of(re.dtype))
    out.real = re
    out.imag = im
    return out


real: Op = Op(
    "stablehlo.real",
    numpy=np.real,
    kind="elementwise",
    types=_part_type,
    linear="all",
    transpose=(lambda ct, x: complex(ct, 0.0),),
    samples=smooth(1, dtypes=[C64]),
    doc="Real part.",
)

imag: Op = Op(
    "stablehlo.imag",
    numpy=np.imag,
    kind="elementwise",
    types=_part_type,
    linear="all",
    transpose=(lambda ct, x: complex(0.0, neg(ct)),),
    samples=smooth(1, dtypes=[C64]),
    doc="Imaginary part.",
)

complex: Op = Op(
    "stablehlo.complex",
    numpy=_make,
    kind="elementwise",
    types=lambda re, im: (re.shape, _complex_of(re.dtype)),
    linear="all",
    transpose=(lambda ct, re, im: real(ct), lambda ct, re, im: neg(imag(ct))),
    samples=[*smooth(2, dtypes=[F32]), *special(2, [F32])],
    doc="Complex numbers of real and imaginary parts.",
)

conj: Op = Op(
    "chlo.conj",
    numpy=np.conj,
    kind="elementwise",
    linear="all",
    transpose=(lambda ct, x: conj(ct),),
    samples=smooth(1, dtypes=[C64]),
    doc="Complex conjugate.",
)
