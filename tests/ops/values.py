"""What the tests of single evaluation rules share."""

from typing import Any

import numpy as np

from xformlib.array import ArrayImpl
from xformlib.dtypes import iinfo
from xformlib.op import Op

INTEGERS = [np.dtype(f"{kind}{n}") for kind in ("int", "uint") for n in (8, 16, 32, 64)]


def run(op: Op, *operands: Any, **params: Any) -> np.ndarray:
    """The result of an op's evaluation rule."""
    return np.asarray(op(*[ArrayImpl(np.asarray(x)) for x in operands], **params))


def wrapped(value: int, dtype: Any) -> int:
    """An integer modulo the range of a dtype."""
    info = iinfo(dtype)
    return (value - int(info.min)) % (1 << info.bits) + int(info.min)


def integers(dtype: Any) -> np.ndarray:
    """All integers of 8 bits; of wider types the extremes, powers of two, small ones and a few others."""
    info = iinfo(dtype)
    if info.bits == 8:
        return np.arange(info.min, info.max + 1).astype(dtype)
    rng = np.random.default_rng(2)
    values = {info.min, info.min + 1, info.max, info.max - 1, info.bits, info.bits - 1}
    values |= set(range(-3 if info.min else 0, 10)) | {1 << i for i in range(info.bits - 1)}
    values |= set(rng.integers(info.min, info.max, 20, dtype, True).tolist())
    return np.array(sorted(values), dtype)
