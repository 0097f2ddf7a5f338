"""Ops that move elements, against loops over single elements."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xformlib as xf
from tests.ops.harness import wrap
from tests.ops.values import run
from xformlib import dtypes
from xformlib.array import ArrayImpl
from xformlib.ops.movement import (
    broadcast_in_dim,
    concatenate,
    expand_dims,
    move_axis,
    pad,
    reshape,
    rev,
    slice_in_dim,
    squeeze,
    transpose,
)
from xformlib.ops.movement import slice as slice_

quick = settings(max_examples=100, deadline=None)
shapes = st.lists(st.integers(0, 5), max_size=3).map(tuple)


def numbered(shape, dtype=np.float32):
    return np.arange(1, 1 + int(np.prod(shape))).astype(dtype).reshape(shape)


def padded(x, value, low, high, interior):
    """Each element goes to low + i * (interior + 1), if that is within the result."""
    sizes = [lo + n + max(n - 1, 0) * gap + hi for n, lo, hi, gap in zip(x.shape, low, high, interior, strict=True)]
    out = np.full(sizes, value, x.dtype)
    for position in itertools.product(*map(range, x.shape)):
        target = [lo + i * (gap + 1) for i, lo, gap in zip(position, low, interior, strict=True)]
        if all(0 <= t < n for t, n in zip(target, sizes, strict=True)):
            out[tuple(target)] = x[position]
    return out


@st.composite
def paddings(draw):
    shape = draw(shapes)
    low, high, interior = [], [], []
    for n in shape:
        gap = draw(st.integers(0, 3))
        size = n + max(n - 1, 0) * gap
        lo = draw(st.integers(-size - 2, 3))
        low.append(lo)
        high.append(draw(st.integers(-(size + lo), 3)) if size + lo >= 0 else -(size + lo) + draw(st.integers(0, 3)))
        interior.append(gap)
    return shape, tuple(low), tuple(high), tuple(interior)


@quick
@given(paddings(), st.sampled_from([np.float32, np.int8, np.bool_, dtypes.bfloat16]))
def test_pad(case, dtype):
    shape, low, high, interior = case
    x, value = numbered(shape, dtype), np.asarray(0, dtype)
    got = run(pad, x, value, edge_padding_low=low, edge_padding_high=high, interior_padding=interior)
    want = padded(x, value, low, high, interior)
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    assert np.array_equal(got, want)


@quick
@given(paddings())
def test_gradient_of_pad(case):
    """Every element of the cotangent goes to the operand's element that landed there, or to the padding value."""
    shape, low, high, interior = case
    x, value = numbered(shape, np.float64), np.asarray(0.5)
    config = {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": interior}
    y, pull = xf.vjp(lambda x, v: pad(x, v, **config), *wrap([x, value]))
    ct = np.cos(np.arange(y.size)).reshape(y.shape)
    dx, dv = pull(ArrayImpl(ct))
    origin = padded(x, 0.0, low, high, interior)
    want = np.zeros(shape)
    for c, source in zip(ct.ravel(), origin.ravel(), strict=True):
        if source:
            want.ravel()[int(source) - 1] += c
    assert np.array_equal(dx, want)
    assert np.isclose(float(dv), ct[origin == 0].sum(), atol=1e-14)


def test_padding_value_takes_no_gradient_from_infinite_cotangents_of_the_operand():
    config = {"edge_padding_low": (1,), "edge_padding_high": (0,), "interior_padding": (0,)}
    _, pull = xf.vjp(lambda x, v: pad(x, v, **config), *wrap([np.ones(2), np.asarray(0.0)]))
    assert float(pull(ArrayImpl(np.array([3.0, np.inf, np.nan])))[1]) == 3.0


@st.composite
def slices(draw):
    shape = draw(shapes)
    start = [draw(st.integers(0, n)) for n in shape]
    limit = [draw(st.integers(s, n)) for s, n in zip(start, shape, strict=True)]
    strides = [draw(st.integers(1, 4)) for _ in shape]
    return shape, tuple(start), tuple(limit), tuple(strides)


@quick
@given(slices())
def test_slice_and_its_gradient(case):
    shape, start, limit, strides = case
    x = numbered(shape, np.float64)
    ranges = [range(*r) for r in zip(start, limit, strides, strict=True)]
    want = np.array([x[p] for p in itertools.product(*ranges)]).reshape([len(r) for r in ranges])
    params = {"start_indices": start, "limit_indices": limit, "strides": strides}
    y, pull = xf.vjp(lambda x: slice_(x, **params), ArrayImpl(x))
    assert y.shape == want.shape
    assert np.array_equal(y, want)
    (ct,) = pull(ArrayImpl(10 * want))
    assert np.array_equal(ct, np.where(np.isin(x, want), 10 * x, 0))


@quick
@given(st.lists(st.integers(0, 3), min_size=1, max_size=4), st.integers(0, 2))
def test_concatenate(sizes, axis):
    parts = [numbered(tuple([n if d == axis else 2 for d in range(3)])) for n in sizes]
    got = run(concatenate, *parts, dimension=axis)
    want = np.moveaxis(np.array([s for p in parts for s in np.moveaxis(p, axis, 0)]), 0, axis) if sum(sizes) else None
    assert got.shape == tuple([sum(sizes) if d == axis else 2 for d in range(3)])
    assert want is None or np.array_equal(got, want)


@pytest.mark.parametrize("axes", [(), (0,), (1,), (0, 2), (0, 1, 2)])
def test_rev(axes):
    x = numbered((2, 3, 4))
    got = run(rev, x, dimensions=axes)
    for p in itertools.product(*map(range, x.shape)):
        assert (
            got[p] == x[tuple([n - 1 - i if d in axes else i for d, (i, n) in enumerate(zip(p, x.shape, strict=True))])]
        )


@pytest.mark.parametrize(
    ("shape", "target", "axes"),
    [((), (2, 3), ()), ((3,), (2, 3), (1,)), ((2,), (2, 3), (0,)), ((2, 1), (2, 4, 3), (0, 2)), ((1,), (0,), (0,))],
)
def test_broadcast_in_dim(shape, target, axes):
    x = numbered(shape)
    got = run(broadcast_in_dim, x, shape=target, broadcast_dimensions=axes)
    assert got.shape == target
    for p in itertools.product(*map(range, target)):
        assert got[p] == x[tuple([p[d] if n > 1 else 0 for n, d in zip(shape, axes, strict=True)])]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_transpose(order):
    x = numbered((2, 3, 4))
    got = run(transpose, x, permutation=order)
    for p in itertools.product(*map(range, got.shape)):
        assert got[p] == x[tuple([p[order.index(d)] for d in range(3)])]


def test_reshape_is_row_major():
    x = run(transpose, numbered((2, 3)), permutation=(1, 0))
    assert run(reshape, x, shape=(6,)).tolist() == [1, 4, 2, 5, 3, 6]
    assert run(reshape, np.zeros((0, 3)), shape=(5, 0)).shape == (5, 0)


def test_axes_of_size_one_and_moved_axes():
    x = ArrayImpl(numbered((2, 3)))
    assert expand_dims(x, [0, 3]).shape == (1, 2, 3, 1)
    assert squeeze(expand_dims(x, [1]), [1]).shape == (2, 3)
    assert np.array_equal(move_axis(x, -1, 0), np.asarray(x).T)
    assert move_axis(x, 1, -1) is x
    assert np.array_equal(slice_in_dim(x, 1, 3, 1), np.asarray(x)[:, 1:3])


def test_keys_move_like_numbers():
    keys = xf.random.split(xf.random.key(0), 6)
    words = np.asarray(xf.random.key_data(keys))

    def check(got, want):
        assert got.dtype == keys.dtype
        assert np.array_equal(xf.random.key_data(got), want)

    grid = reshape(keys, shape=(2, 3))
    check(transpose(grid, permutation=(1, 0)), words.reshape(2, 3, 2).transpose(1, 0, 2))
    check(rev(keys, dimensions=(0,)), words[::-1])
    check(concatenate(keys, keys, dimension=0), np.concatenate([words, words]))
    check(slice_in_dim(keys, 1, 6, 0, 2), words[1:6:2])
    first = reshape(slice_in_dim(keys, 0, 1, 0), shape=())
    got = pad(keys, first, edge_padding_low=(1,), edge_padding_high=(-2,), interior_padding=(0,))
    check(got, np.concatenate([words[:1], words[:4]]))
