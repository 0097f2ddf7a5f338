"""Logic, shifts and bit counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from xformlib.op import Op
from xformlib.ops.numpy_rules import keep1, keep2, unsigned_bits
from xformlib.ops.samples import BOOL, I8, I32, U8, U32, integers, smooth, special

__all__ = [
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "count_leading_zeros",
    "population_count",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
]

_INTS = [I8, I32, U8, U32]


def _binary_samples() -> Any:
    return [*smooth(2, -50, 50, [I32, BOOL], diff=False), *special(2, [*_INTS, BOOL])]


bitwise_and: Op = Op(
    "stablehlo.and",
    numpy=keep2(np.bitwise_and),
    kind="elementwise",
    jvp=(None, None),
    samples=_binary_samples(),
    doc="Bitwise and of integers, logical and of booleans.",
)

bitwise_or: Op = Op(
    "stablehlo.or",
    numpy=keep2(np.bitwise_or),
    kind="elementwise",
    jvp=(None, None),
    samples=_binary_samples(),
    doc="Bitwise or of integers, logical or of booleans.",
)

bitwise_xor: Op = Op(
    "stablehlo.xor",
    numpy=keep2(np.bitwise_xor),
    kind="elementwise",
    jvp=(None, None),
    samples=_binary_samples(),
    doc="Bitwise exclusive or.",
)

bitwise_not: Op = Op(
    "stablehlo.not",
    numpy=keep1(np.invert),
    kind="elementwise",
    jvp=(None,),
    samples=[*smooth(1, -50, 50, [I32, BOOL], diff=False), *special(1, [*_INTS, BOOL])],
    doc="Bitwise complement of integers, logical not of booleans.",
)

# -- shifts -----------------------------------------------------------------------------------------------------------


def _right_logical(x: Any, by: Any) -> Any:
    if x.dtype.kind == "u":
        return np.right_shift(x, by)
    return _restored(np.right_shift(unsigned_bits(x)[0], unsigned_bits(by)[0]), x.dtype)


def _right_arithmetic(x: Any, by: Any) -> Any:
    if x.dtype.kind == "i":
        return np.right_shift(x, by)
    bits, width = unsigned_bits(x)
    signed = bits.view(f"i{bits.itemsize}")
    if width < 8 * bits.itemsize:  # extend the sign
        top = np.int8(1 << (width - 1))
        signed = (signed ^ top) - top
    # Shifts by more than the sign bit's place all fill with the sign.
    by = np.minimum(unsigned_bits(by)[0], np.array(width - 1, bits.dtype))
    return _restored(np.right_shift(signed, by.view(signed.dtype)), x.dtype)


def _restored(bits: Any, dtype: Any) -> Any:
    return bits.view(dtype) if dtype.kind != "V" else bits.astype(dtype)


def _shift_samples() -> Any:
    makers = [integers([d], [(0, 8 * d.itemsize + 2)]) for d in _INTS]
    return [*smooth(2, 0, 7, [I32], diff=False), *special(2, _INTS), *[s for m in makers for s in m]]


shift_left: Op = Op(
    "stablehlo.shift_left",
    numpy=keep2(np.left_shift),
    kind="elementwise",
    jvp=(None, None),
    samples=_shift_samples(),
    doc="Shift towards the high bits; 0 for shifts by the width or more, and for negative ones.",
)

shift_right_logical: Op = Op(
    "stablehlo.shift_right_logical",
    numpy=_right_logical,
    kind="elementwise",
    jvp=(None, None),
    samples=_shift_samples(),
    doc="Shift towards the low bits, filling with zeros; 0 for shifts by the width or more, and for negative ones.",
)

shift_right_arithmetic: Op = Op(
    "stablehlo.shift_right_arithmetic",
    numpy=_right_arithmetic,
    kind="elementwise",
    jvp=(None, None),
    samples=_shift_samples(),
    doc="Shift towards the low bits, filling with the highest bit, also for shifts by the width or more.",
)

# -- counts -----------------------------------------------------------------------------------------------------------


def _popcount(x: Any) -> Any:
    return np.bitwise_count(unsigned_bits(x)[0]).astype(x.dtype)


def _leading_zeros(x: Any) -> Any:
    bits, width = unsigned_bits(x)
    shift = 1
    while shift < width:  # set every bit below the highest
        bits = bits | (bits >> np.array(shift, bits.dtype))
        shift *= 2
    return (width - np.bitwise_count(bits)).astype(x.dtype)


population_count: Op = Op(
    "stablehlo.popcnt",
    numpy=_popcount,
    kind="elementwise",
    jvp=(None,),
    samples=[*smooth(1, -50, 50, [I32, U8], diff=False), *special(1, _INTS)],
    doc="Number of bits set.",
)

count_leading_zeros: Op = Op(
    "stablehlo.count_leading_zeros",
    numpy=_leading_zeros,
    kind="elementwise",
    jvp=(None,),
    samples=[*smooth(1, -50, 50, [I32, U8], diff=False), *special(1, _INTS)],
    doc="Number of zeros above the highest bit set; the width for 0.",
)
