"""Changes of type: value conversions, reinterpreted bits, reduced precision."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xformlib import dtypes
from xformlib.op import Op, Sample
from xformlib.ops.factors import factor_text
from xformlib.ops.samples import BF16, BOOL, C64, F16, F32, F64, I8, I32, U8, U32, smooth, special

__all__ = ["bitcast_convert", "convert", "reduce_precision"]

# -- convert ----------------------------------------------------------------------------------------------------------


def _convert(x: Any, dtype: Any) -> Any:
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        x = x.real
    if dtype.kind == "b":
        return np.not_equal(x, 0)
    if dtypes.issubdtype(dtype, np.integer) and dtypes.issubdtype(x.dtype, np.floating):
        return _to_integer(x, dtype)
    if x.dtype.kind == dtype.kind == "V":  # ml_dtypes does not convert between all of its types
        x = x.astype(np.float32 if dtypes.issubdtype(x.dtype, np.floating) else np.int8)
    return x.astype(dtype)


def _to_integer(x: Any, dtype: Any) -> Any:
    """Towards zero; values out of range become the nearest integer, NaN becomes 0."""
    limits = dtypes.iinfo(dtype)
    if x.dtype.itemsize < 4:
        x = x.astype(np.float32)
    # One more than the largest integer is a power of two, exact in every float type.
    above, below = x >= float(int(limits.max) + 1), x <= float(limits.min)
    inside = ~(above | below | np.isnan(x))
    out = np.where(inside, x, np.zeros((), x.dtype)).astype(dtype)
    return np.where(above, np.array(limits.max, dtype), np.where(below, np.array(limits.min, dtype), out))


def _inexact(dtype: Any) -> bool:
    return bool(dtypes.issubdtype(dtype, np.inexact))


def _between(source: Any, target: Any) -> list[Sample]:
    diff = _inexact(source) and _inexact(target)
    params = {"dtype": target}
    return [*smooth(1, dtypes=[source], params=params, diff=diff)[:1], *special(1, [source], params)]


_TYPES = [F32, F16, BF16, F64, I8, I32, U8, U32, BOOL]

convert: Op = Op(
    "stablehlo.convert",
    numpy=_convert,
    kind="elementwise",
    attrs={"dtype": "result_dtype"},
    types=lambda x, dtype: (x.shape, dtype),
    jvp=(lambda t, ans, x, dtype: convert(t, dtype=dtype) if _inexact(dtype) else None,),
    transpose=(lambda ct, x, dtype: convert(ct, dtype=x.dtype),),
    weak=False,
    samples=[
        *smooth(1, dtypes=[F32], params={"dtype": BF16}),
        *[s for a in _TYPES for b in _TYPES if a != b for s in _between(a, b)],
        *[s for d in (F32, F16, I32, BOOL) for s in smooth(1, dtypes=[C64], params={"dtype": d}, diff=_inexact(d))[:1]],
        *[s for d in (F32, F16, I32, BOOL) for s in smooth(1, dtypes=[d], params={"dtype": C64}, diff=_inexact(d))[:1]],
    ],
    doc="Another dtype. Floats become integers towards zero, out of range the nearest, NaN 0; complex numbers become "
    "real by dropping the imaginary part; booleans say whether a value is not 0.",
)

# -- bitcast_convert --------------------------------------------------------------------------------------------------


def _bitcast_type(x: Any, dtype: Any) -> Any:
    old, new = x.dtype.itemsize, dtype.itemsize
    if old == new:
        return x.shape, dtype
    return (*x.shape, old // new) if old > new else x.shape[:-1], dtype


def _bitcast(x: Any, dtype: Any) -> Any:
    x = np.asarray(x)
    if x.dtype.itemsize == dtype.itemsize:
        return x.view(dtype)
    shape, _ = _bitcast_type(x, dtype)
    # A flat copy: views of another width need contiguous elements.
    return np.reshape(x, (math.prod(x.shape),)).view(dtype).reshape(shape)


def _bitcast_factors(x: Any, dtype: Any) -> str:
    out = _bitcast_type(x, dtype)[0]
    common = min(len(x.shape), len(out))
    sides = [[d if d < common else "bytes" for d in range(n)] for n in (len(x.shape), len(out))]
    return factor_text(sides[:1], sides[1:])


def _bits(shape: tuple[int, ...], source: Any, target: Any) -> Sample:
    def make(rng: np.random.Generator) -> list[np.ndarray]:
        size = math.prod(shape) * source.itemsize
        return [np.frombuffer(rng.bytes(size), source).reshape(shape)]

    return Sample(make, {"dtype": target}, diff=False)


bitcast_convert: Op = Op(
    "stablehlo.bitcast_convert",
    numpy=_bitcast,
    kind="inactive",
    attrs={"dtype": "result_dtype"},
    types=_bitcast_type,
    factors=_bitcast_factors,
    weak=False,
    samples=[
        *special(1, [F32], {"dtype": I32}),
        _bits((2, 3), np.dtype(np.int32), F32),
        _bits((), U32, I32),
        _bits((0, 2), F16, np.dtype(np.uint16)),
        _bits((3,), U32, U8),
        _bits((2, 4), U8, U32),
        _bits((2, 2), np.dtype(np.uint16), F32),
        _bits((0, 4), U8, I32),
    ],
    doc="The same bits as another dtype. A narrower one adds a trailing axis; a wider one joins the trailing axis.",
)

# -- reduce_precision -------------------------------------------------------------------------------------------------


def _reduce_precision(x: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    info = dtypes.finfo(x.dtype)
    own = info.nmant
    bits = np.asarray(x).view(f"u{x.dtype.itemsize}")
    one = np.array(1, bits.dtype)
    sign = bits & (one << np.array(8 * x.dtype.itemsize - 1, bits.dtype))
    if mantissa_bits < own:  # to the nearest, ties to even, by a carry that may run into the exponent
        drop = np.array(own - mantissa_bits, bits.dtype)
        last = (bits >> drop) & one
        bits = (bits + (((one << drop) >> one) - one) + last) & ~((one << drop) - one)
    out = bits.view(x.dtype)
    if exponent_bits < 8 * x.dtype.itemsize - 1 - own:
        bias = (1 << (exponent_bits - 1)) - 1
        size = np.abs(out)
        zero, infinite = sign.view(x.dtype), (sign | _infinity(x.dtype)).view(x.dtype)
        out = np.where(size >= _power_of_two(bias + 1, x.dtype), infinite, out)
        out = np.where(size < _power_of_two(1 - bias, x.dtype), zero, out)
    return np.where(np.isnan(x), x, out)


def _infinity(dtype: Any) -> Any:
    return np.array(np.inf, dtype).view(f"u{dtype.itemsize}")


def _power_of_two(exponent: int, dtype: Any) -> Any:
    return np.ldexp(np.float64(1), exponent).astype(dtype)


def _precision(exponent: int, mantissa: int) -> dict[str, int]:
    return {"exponent_bits": exponent, "mantissa_bits": mantissa}


reduce_precision: Op = Op(
    "stablehlo.reduce_precision",
    numpy=_reduce_precision,
    kind="elementwise",
    attrs={"exponent_bits": "i32", "mantissa_bits": "i32"},
    linear="all",
    transpose=(lambda ct, x, **bits: reduce_precision(ct, **bits),),
    samples=[
        *smooth(1, params=_precision(8, 7), diff=False, note="a staircase: finite differences don't apply"),
        *[s for bits in [(5, 10), (8, 7), (4, 3), (8, 23)] for s in special(1, [F32], _precision(*bits))],
        *special(1, [F16, BF16, F64], _precision(4, 3)),
    ],
    doc="Rounds to a format with fewer exponent and mantissa bits; overflow gives infinity, subnormal numbers 0.",
)
