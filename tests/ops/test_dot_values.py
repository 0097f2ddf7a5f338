"""dot_general against a sum over single elements, on random dimension numbers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xformlib as xf
from tests.ops.harness import finite_differences, unwrap, wrap
from tests.ops.values import run
from xformlib import dtypes
from xformlib.array import ArrayImpl
from xformlib.dims import DotDims
from xformlib.ops.contraction import dot_general

quick = settings(max_examples=60, deadline=None)
MATRICES = DotDims((), (), (1,), (0,))
SEEDS = st.integers(0, 2**32 - 1)


@st.composite
def contractions(draw):
    """(lhs shape, rhs shape, dimension numbers): axes of every role in any order, sizes down to zero."""
    sizes = st.integers(0, 3)
    batch = draw(st.lists(sizes, max_size=2))
    contracted = draw(st.lists(sizes, max_size=2))

    def operand():
        roles = [("batch", i) for i in range(len(batch))] + [("contracted", i) for i in range(len(contracted))]
        free = draw(st.lists(sizes, max_size=2))
        axes = draw(st.permutations([*roles, *[("free", n) for n in free]]))
        shape = tuple([{"batch": batch, "contracted": contracted}[r][i] if r != "free" else i for r, i in axes])
        place = {axis: d for d, axis in enumerate(axes)}
        return shape, place

    (lhs, left), (rhs, right) = operand(), operand()
    pairs = draw(st.permutations(range(len(contracted))))
    return (
        lhs,
        rhs,
        DotDims(
            tuple([left["batch", i] for i in range(len(batch))]),
            tuple([right["batch", i] for i in range(len(batch))]),
            tuple([left["contracted", i] for i in pairs]),
            tuple([right["contracted", i] for i in pairs]),
        ),
    )


def reference(lhs, rhs, dims):
    lhs_free = [d for d in range(lhs.ndim) if d not in dims.lhs_batching_dimensions + dims.lhs_contracting_dimensions]
    rhs_free = [d for d in range(rhs.ndim) if d not in dims.rhs_batching_dimensions + dims.rhs_contracting_dimensions]
    batch = [lhs.shape[d] for d in dims.lhs_batching_dimensions]
    shape = (*batch, *[lhs.shape[d] for d in lhs_free], *[rhs.shape[d] for d in rhs_free])
    summed = [lhs.shape[d] for d in dims.lhs_contracting_dimensions]
    out = np.zeros(shape, np.result_type(lhs, rhs))
    for position in itertools.product(*map(range, shape)):
        b, f, g = np.split(np.array(position, int), [len(batch), len(batch) + len(lhs_free)])
        for k in itertools.product(*map(range, summed)):
            i, j = [0] * lhs.ndim, [0] * rhs.ndim
            for axes, values, index in (
                (dims.lhs_batching_dimensions, b, i),
                (dims.rhs_batching_dimensions, b, j),
                (lhs_free, f, i),
                (rhs_free, g, j),
                (dims.lhs_contracting_dimensions, k, i),
                (dims.rhs_contracting_dimensions, k, j),
            ):
                for d, v in zip(axes, values, strict=True):
                    index[d] = v
            out[position] += lhs[tuple(i)] * rhs[tuple(j)]
    return out


def dot(dims, dtype=np.float64):
    return lambda a, b: dot_general(a, b, dot_dimension_numbers=dims, dtype=np.dtype(dtype))


@quick
@given(contractions(), SEEDS)
def test_values(case, seed):
    lhs, rhs, dims = case
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal(lhs), rng.standard_normal(rhs)
    want = reference(a, b, dims)
    got = np.asarray(dot(dims)(*wrap([a, b])))
    assert got.shape == want.shape
    assert np.allclose(got, want, rtol=1e-12, atol=1e-12)


@quick
@given(contractions(), SEEDS)
def test_gradients(case, seed):
    lhs, rhs, dims = case
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal(lhs), rng.standard_normal(rhs)
    y, pull = xf.vjp(dot(dims), *wrap([a, b]))
    c, v, w = [rng.standard_normal(s) for s in (y.shape, lhs, rhs)]
    (tangent,), _ = finite_differences(lambda a, b: [reference(a, b, dims)], [a, b], [v, w])
    da, db = unwrap(pull(ArrayImpl(c)))
    assert (da.shape, db.shape) == (lhs, rhs)
    assert np.isclose(np.sum(c * tangent), np.sum(v * da) + np.sum(w * db), rtol=1e-8, atol=1e-8)


@quick
@given(contractions(), SEEDS, st.sampled_from([(0, None), (None, 0), (0, 0)]))
def test_vmap(case, seed, axes):
    lhs, rhs, dims = case
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((3, *lhs) if axes[0] == 0 else lhs)
    b = rng.standard_normal((3, *rhs) if axes[1] == 0 else rhs)
    got = np.asarray(xf.vmap(dot(dims), in_axes=axes)(*wrap([a, b])))
    loop = [reference(a[k] if axes[0] == 0 else a, b[k] if axes[1] == 0 else b, dims) for k in range(3)]
    assert got.shape == np.stack(loop).shape
    assert np.allclose(got, np.stack(loop), rtol=1e-12, atol=1e-12)


def test_integers_wrap_in_their_own_width():
    a, b = np.full((2, 3), 100, np.int8), np.full((3, 2), 100, np.int8)
    got = run(dot_general, a, b, dot_dimension_numbers=MATRICES, dtype=np.dtype(np.int8))
    assert got.tolist() == [[(30000 + 128) % 256 - 128] * 2] * 2
    wide = run(dot_general, a, b, dot_dimension_numbers=MATRICES, dtype=np.dtype(np.int32))
    assert wide.tolist() == [[30000] * 2] * 2
    unsigned = np.array([[3000000000, 2]], np.uint32)
    got = run(dot_general, unsigned, unsigned.T, dot_dimension_numbers=MATRICES, dtype=np.dtype(np.uint32))
    assert got.tolist() == [[(3000000000**2 + 4) % 2**32]]


def test_booleans_are_any_of_all():
    a = np.array([[True, False], [False, False]])
    got = run(dot_general, a, a, dot_dimension_numbers=MATRICES, dtype=np.dtype(bool))
    assert got.dtype == bool
    assert got.tolist() == [[True, False], [False, False]]
    many = np.ones((1, 512), bool)
    assert run(dot_general, many, many.T, dot_dimension_numbers=MATRICES, dtype=np.dtype(np.int32)).item() == 512


@pytest.mark.parametrize("dtype", [np.float16, dtypes.bfloat16])
def test_low_precision_rounds_once(dtype):
    a = np.ones((1, 3001), dtype)
    got = run(dot_general, a, a.T, dot_dimension_numbers=MATRICES, dtype=np.dtype(dtype))
    assert got.dtype == dtype
    assert float(got.item()) == float(np.asarray(3001.0).astype(dtype))
    assert run(dot_general, a, a.T, dot_dimension_numbers=MATRICES, dtype=np.dtype(np.float32)).item() == 3001.0


def test_result_wider_than_operands_accumulates_there():
    a = np.array([[1.0, 2.0**-30]], np.float32)
    got = run(dot_general, a, np.ones((2, 1), np.float32), dot_dimension_numbers=MATRICES, dtype=np.dtype(np.float64))
    assert got.item() == 1.0 + 2.0**-30


def test_gradient_has_the_operands_dtype_beside_a_wider_result():
    a, b = ArrayImpl(np.ones((2, 3), np.float16)), ArrayImpl(np.ones((3, 2), np.float16))
    y, pull = xf.vjp(dot(MATRICES, np.float32), a, b)
    assert y.dtype == np.float32
    assert [g.dtype for g in pull(y)] == [np.float16, np.float16]
