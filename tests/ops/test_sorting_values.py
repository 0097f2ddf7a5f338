"""sort against Python's own, which is stable, with the order the record promises."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xformlib as xf
from tests.ops.harness import wrap
from xformlib import dtypes
from xformlib.array import ArrayImpl
from xformlib.ops.sorting import argsort, sort

TYPES = [
    np.dtype(t)
    for t in (bool, "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", dtypes.bfloat16)
]


def real_key(v):
    """Numbers in order, -0 as 0, then NaN."""
    return (1, 0.0) if math.isnan(v) else (0, v + 0)


def key(v):
    if isinstance(v, complex):
        return (*real_key(v.real), *real_key(v.imag))
    return real_key(v)


def order_of(columns, num_keys):
    rows = [
        tuple([key(c[i].item() if hasattr(c[i], "item") else float(c[i])) for c in columns[:num_keys]])
        for i in range(len(columns[0]))
    ]
    return sorted(range(len(rows)), key=rows.__getitem__)


def awkward(rng, shape, dtype):
    """Values with ties, extremes, zeros of either sign and NaN."""
    x = rng.integers(-3, 4, shape).astype(dtype)
    if dtypes.issubdtype(dtype, np.inexact):
        for v in (np.nan, -np.nan, -0.0, np.inf, -np.inf):
            x = np.where(rng.random(shape) < 0.1, np.asarray(v).astype(dtype), x)
        if dtype.kind == "c":
            x = x.astype(dtype)
            x.imag = awkward(rng, shape, x.real.dtype)
    elif dtype.kind in "iu":
        for v in (np.iinfo(dtype).min, np.iinfo(dtype).max):
            x = np.where(rng.random(shape) < 0.1, np.asarray(v, dtype), x)
    return x.astype(dtype)


def same(a, b):
    return np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


def run(*operands, dimension=0, num_keys=1):
    out = sort(*wrap(operands), dimension=dimension, is_stable=True, num_keys=num_keys)
    return [np.asarray(x) for x in out]


@pytest.mark.parametrize("n", [0, 1, 9, 700], ids=lambda n: f"n={n}")
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_one_key_and_what_it_carries(dtype, n):
    rng = np.random.default_rng(n)
    x, number = awkward(rng, (n,), dtype), np.arange(n, dtype=np.int32)
    order = order_of([x], 1)
    values, carried = run(x, number)
    assert carried.tolist() == order
    assert same(values, x[order])
    (alone,) = run(x)
    assert alone.dtype == dtype
    # Which NaN is which is not promised for values sorted alone.
    numbers = ~np.isnan(x[order].astype(np.complex128))
    assert same(alone[numbers], x[order][numbers])
    assert np.isnan(alone[~numbers].astype(np.complex128)).all()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([t for t in TYPES if t.kind != "c"]), min_size=1, max_size=4),
    st.integers(1, 4),
    st.integers(0, 12),
    st.integers(0, 2**32 - 1),
)
def test_several_keys(types, num_keys, n, seed):
    rng = np.random.default_rng(seed)
    operands = [awkward(rng, (n,), t) for t in types]
    num_keys = min(num_keys, len(operands))
    order = order_of(operands, num_keys)
    got = run(*operands, np.arange(n, dtype=np.int32), num_keys=num_keys)
    assert got[-1].tolist() == order
    for g, x in zip(got, operands, strict=False):
        assert same(g, x[order])


@pytest.mark.parametrize("dimension", [0, 1, 2])
@pytest.mark.parametrize("n", [5, 300])
def test_every_axis(dimension, n):
    shape = [2, 2, 2]
    shape[dimension] = n
    x = awkward(np.random.default_rng(4), tuple(shape), np.dtype(np.float32))
    position = np.broadcast_to(
        np.arange(n, dtype=np.int32).reshape([-1 if d == dimension else 1 for d in range(3)]), shape
    )
    values, carried = run(x, position, dimension=dimension)
    for a, b, c in zip(*[np.moveaxis(v, dimension, -1).reshape(-1, n) for v in (x, values, carried)], strict=True):
        assert c.tolist() == order_of([a], 1)
        assert same(b, a[c])


def test_argsort_descending_is_stable_and_puts_nan_first():
    x = ArrayImpl(np.array([1.0, np.nan, 3.0, 1.0, -0.0, 0.0, 3.0, np.nan], np.float32))
    down = argsort(x, dimension=0, index_dtype=np.int32, descending=True)
    assert np.asarray(down).tolist() == [1, 7, 2, 6, 0, 3, 4, 5]
    up = argsort(x, dimension=0, index_dtype=np.int64)
    assert up.dtype == np.int64
    assert np.asarray(up).tolist() == [4, 5, 0, 3, 2, 6, 1, 7]


def test_tangents_move_with_their_values():
    x, v = np.array([3.0, 1.0, 2.0, 1.0]), np.array([30.0, 10.0, 20.0, 11.0])
    c, w = np.arange(4.0), np.arange(4.0) + 0.5

    def f(x, c):
        return sort(x, c, dimension=0, is_stable=True, num_keys=1)

    (a, b), (da, db) = xf.jvp(f, tuple(wrap([x, c])), tuple(wrap([v, w])))
    assert np.asarray(a).tolist() == [1, 1, 2, 3]
    assert np.asarray(b).tolist() == [1, 3, 2, 0]
    assert np.asarray(da).tolist() == [10, 11, 20, 30]
    assert np.asarray(db).tolist() == [1.5, 3.5, 2.5, 0.5]
    _, pull = xf.vjp(f, *wrap([x, c]))
    dx, dc = pull(tuple(wrap([np.array([1.0, 2.0, 3.0, 4.0]), np.array([5.0, 6.0, 7.0, 8.0])])))
    assert np.asarray(dx).tolist() == [4, 1, 3, 2]
    assert np.asarray(dc).tolist() == [8, 5, 7, 6]
