"""Arguments for the generated tests of elementwise ops: ordinary values, awkward ones, and awkward shapes."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from xformlib.op import Sample

F16, BF16, F32, F64 = (np.dtype(d) for d in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64))
C64 = np.dtype(np.complex64)
I8, I32, U8, U32 = (np.dtype(d) for d in (np.int8, np.int32, np.uint8, np.uint32))
BOOL = np.dtype(np.bool_)


def draw(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any, low: float, high: float) -> np.ndarray:
    """Values of a dtype, uniform on an interval (complex: each part)."""
    if dtype == BOOL:
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return rng.integers(max(limits.min, int(low)), min(limits.max, int(high)), shape, dtype=dtype, endpoint=True)
    values = rng.uniform(low, high, shape)
    if dtype.kind == "c":
        return (values + 1j * rng.uniform(low, high, shape)).astype(dtype)
    return values.astype(dtype)


def smooth(
    arity: int,
    low: float = -2,
    high: float = 2,
    dtypes: Sequence[Any] = (F32,),
    params: Mapping[str, Any] | None = None,
    **options: Any,
) -> list[Sample]:
    """Ordinary values of several shapes and dtypes, where derivatives are promised."""
    shapes = [(5,), (2, 3), (), (0, 3)]

    def make(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> list[np.ndarray]:
        return [draw(rng, shape, dtype, low, high) for _ in range(arity)]

    return [
        Sample(functools.partial(make, shape=shape, dtype=dtype), params or {}, **options)
        for i, dtype in enumerate(dtypes)
        for shape in (shapes if i == 0 else shapes[:1])
    ]


_SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.inf, -np.inf, np.nan, 3.0e38, -3.0e38]


def awkward(dtype: Any) -> np.ndarray:
    """Zeros, infinities, NaN and large numbers; of integers the extremes and their neighbourhood."""
    if dtype == BOOL:
        return np.array([False, True])
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        chosen = {limits.min, limits.max, 0, 1, 2, 7, limits.max // 2, *([-1, -7] if dtype.kind == "i" else [])}
        return np.array(sorted(chosen), dtype)
    return cast(_SPECIAL, dtype)


def cast(numbers: Sequence[complex], dtype: Any) -> np.ndarray:
    """Numbers as a dtype, infinite where they are out of its range."""
    with np.errstate(over="ignore"):
        return np.array(numbers).astype(dtype)


def special(
    arity: int, dtypes: Sequence[Any] = (F32,), params: Mapping[str, Any] | None = None, **options: Any
) -> list[Sample]:
    """All combinations of awkward values. No derivatives."""
    options = {"diff": False, "note": "special values", **options}

    def make(rng: np.random.Generator, dtype: Any) -> list[np.ndarray]:
        return [g.ravel() for g in np.meshgrid(*[awkward(dtype)] * arity)]

    return [Sample(functools.partial(make, dtype=d), params or {}, **options) for d in dtypes]


def values(
    given: Sequence[complex], dtypes: Sequence[Any], params: Mapping[str, Any] | None = None, **options: Any
) -> list[Sample]:
    """One operand of given values in each dtype. No derivatives."""
    options = {"diff": False, **options}

    def make(rng: np.random.Generator, dtype: Any) -> list[np.ndarray]:
        return [cast(given, dtype)]

    return [Sample(functools.partial(make, dtype=d), params or {}, **options) for d in dtypes]


def integers(dtypes: Sequence[Any], ranges: Sequence[tuple[int, int]], **options: Any) -> list[Sample]:
    """Arbitrary integers beside integers from each range (ends included)."""
    options = {"diff": False, **options}

    def make(rng: np.random.Generator, dtype: Any) -> list[np.ndarray]:
        limits = np.iinfo(dtype)
        bounds = [(limits.min, limits.max), *ranges]
        return [rng.integers(low, high, 40, dtype=dtype, endpoint=True) for low, high in bounds]

    return [Sample(functools.partial(make, dtype=d), **options) for d in dtypes]
