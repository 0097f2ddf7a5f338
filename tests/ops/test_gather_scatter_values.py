"""gather and scatter against the specification, one element at a time, on random dimension numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xformlib as xf
from tests.ops import indexing_reference as reference
from tests.ops.harness import avals, finite_differences, pull_back, push_forward, real_dot, unwrap, wrap
from xformlib import dtypes
from xformlib.array import ArrayImpl
from xformlib.dims import GatherDims, ScatterDims
from xformlib.link import link
from xformlib.ops.elementwise import mul
from xformlib.ops.indexing import dynamic_slice, dynamic_update_slice, gather
from xformlib.ops.reduction import reduce_sum
from xformlib.ops.scatter import scatter, scatter_add, scatter_max, scatter_min, scatter_mul
from xformlib.staging import stage

COMBINE = {
    scatter: lambda old, new: new,
    scatter_add: np.add,
    scatter_mul: np.multiply,
    scatter_min: np.minimum,
    scatter_max: np.maximum,
}
SCATTERS = pytest.mark.parametrize("op", COMBINE, ids=lambda op: op.name.rpartition(":")[2])
quick = settings(max_examples=60, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)


def small_integers(rng, shape, dtype=np.float64):
    """Numbers whose sums and products are exact, with ties and zeros."""
    return rng.integers(-3, 4, shape).astype(dtype)


def gathering(case):
    params = {"dimension_numbers": case.gather, "slice_sizes": case.sizes, "indices_are_sorted": False}
    return lambda x, i: gather(x, i, **params)


def scattering(op, case, unique=False):
    params = {"scatter_dimension_numbers": case.scatter, "indices_are_sorted": False, "unique_indices": unique}
    return lambda x, i, u: op(x, i, u, **params)


# -- values -----------------------------------------------------------------------------------------------------------


@quick
@given(reference.cases(), SEEDS)
def test_gather(case, seed):
    x = np.random.default_rng(seed).standard_normal(case.shape)
    got = np.asarray(gathering(case)(*wrap([x, case.indices])))
    assert np.array_equal(got, reference.gather(x, case.indices, case.gather, case.sizes))


@SCATTERS
@quick
@given(reference.cases(), SEEDS, st.sampled_from([np.float64, np.int16, dtypes.bfloat16]))
def test_scatter(op, case, seed, dtype):
    rng = np.random.default_rng(seed)
    x, u = small_integers(rng, case.shape, dtype), np.clip(small_integers(rng, case.result, dtype), -2, 2)
    want = reference.scatter(x, case.indices, u, case.scatter, COMBINE[op])
    got = np.asarray(scattering(op, case)(*wrap([x, case.indices, u])))
    assert got.dtype == want.dtype
    assert np.array_equal(got.astype(np.float64), want.astype(np.float64))


@quick
@given(reference.cases())
def test_every_case_is_valid_stablehlo(case):
    x, u = np.zeros(case.shape, np.float32), np.zeros(case.result, np.float32)
    link(stage(lambda *a: [gathering(case)(*a)], avals([x, case.indices]), kind="gather")).operation.verify()
    program = stage(lambda *a: [scattering(scatter_add, case)(*a)], avals([x, case.indices, u]), kind="scatter")
    link(program).operation.verify()


def test_scatter_add_in_low_precision_rounds_once():
    x = np.array([256.0], dtypes.bfloat16)
    indices = np.zeros((64, 1), np.int32)
    params = {
        "scatter_dimension_numbers": ScatterDims((), (0,), (), (), (0,), 1),
        "indices_are_sorted": False,
        "unique_indices": False,
    }
    got = scatter_add(*wrap([x, indices, np.ones(64, dtypes.bfloat16)]), **params)
    assert float(got[0]) == 320.0  # one at a time, 256 + 1 stays 256


def test_gather_beyond_the_range_of_narrow_indices():
    x = np.arange(1000.0)
    dims = GatherDims((), (0,), (), (), (0,), 1)
    got = gather(
        *wrap([x, np.array([[255], [3]], np.uint8)]),
        dimension_numbers=dims,
        slice_sizes=(1,),
        indices_are_sorted=False,
    )
    assert np.array_equal(got, [255.0, 3.0])


@pytest.mark.parametrize("starts", [(0, 0), (1, 2), (-5, 3), (100, -100), (2**31 - 1, -(2**31))])
def test_dynamic_slices_are_clamped(starts):
    x = np.arange(20.0).reshape(4, 5)
    r, c = min(max(starts[0], 0), 2), min(max(starts[1], 0), 2)
    scalars = wrap([np.int32(s) for s in starts])
    assert np.array_equal(dynamic_slice(ArrayImpl(x), *scalars, slice_sizes=(2, 3)), x[r : r + 2, c : c + 3])
    want = x.copy()
    want[r : r + 2, c : c + 3] = -1
    assert np.array_equal(dynamic_update_slice(*wrap([x, -np.ones((2, 3))]), *scalars), want)


# -- vmap -------------------------------------------------------------------------------------------------------------


def batched(x, flag, rng):
    """Three examples: the one given and two with its elements in another order."""
    if not flag:
        return x
    return np.stack([x, *[rng.permutation(x.ravel()).reshape(x.shape) for _ in range(2)]])


def check_vmap(f, args, flags, rng):
    args = [batched(x, b, rng) for x, b in zip(args, flags, strict=True)]
    got = np.asarray(xf.vmap(f, in_axes=tuple([0 if b else None for b in flags]))(*wrap(args)))
    loop = [f(*wrap([x[k] if b else x for x, b in zip(args, flags, strict=True)])) for k in range(3)]
    assert np.array_equal(got, np.stack(unwrap(loop)))


@quick
@given(reference.cases(), SEEDS, st.sampled_from([(True, False), (False, True), (True, True)]))
def test_vmap_of_gather(case, seed, flags):
    rng = np.random.default_rng(seed)
    check_vmap(gathering(case), [rng.standard_normal(case.shape), case.indices], flags, rng)


@SCATTERS
@settings(max_examples=30, deadline=None)
@given(reference.cases(), SEEDS, st.tuples(st.booleans(), st.booleans(), st.booleans()).filter(any))
def test_vmap_of_scatter(op, case, seed, flags):
    rng = np.random.default_rng(seed)
    args = [small_integers(rng, case.shape), case.indices, np.clip(small_integers(rng, case.result), -2, 2)]
    check_vmap(scattering(op, case), args, flags, rng)


# -- derivatives ------------------------------------------------------------------------------------------------------


def check_derivative(f, x, u, v, w):
    """Tangents against finite differences, and the transpose against the tangents."""
    program = stage(lambda *a: [f(*a)], avals([x, u]), kind="derivative")
    want, error = finite_differences(lambda *a: unwrap([f(*wrap(a))]), [x, u], [v, w])
    _, (tangent,) = push_forward(program, wrap([x, u]), wrap([v, w]))
    assert np.allclose(tangent, want[0], rtol=1e-8, atol=1e-8 + 10 * np.max(error[0], initial=0))
    c = np.cos(np.arange(x.size)).reshape(x.shape)
    ct_x, ct_u = pull_back(program, wrap([x, u]), [0, 1], wrap([c]))
    forward, size = real_dot([np.asarray(tangent)], [c])
    pairs = [(a, np.asarray(b)) for a, b in ((v, ct_x), (w, ct_u)) if b is not None]
    backward, _ = real_dot([a for a, _ in pairs], [b for _, b in pairs])
    assert abs(forward - backward) <= 1e-11 * max(size, 1)
    return program


@SCATTERS
@settings(max_examples=30, deadline=None)
@given(reference.cases(), SEEDS)
def test_derivative_of_scatter(op, case, seed):
    """Also with repeated and outside indices; for products, with factors of zero."""
    rng = np.random.default_rng(seed)
    x, u = rng.standard_normal(case.shape), rng.standard_normal(case.result)
    if op is scatter_mul:
        u = np.where(rng.random(case.result) < 0.3, 0.0, u)
    apply = scattering(op, case)
    indices = ArrayImpl(case.indices)
    v, w = rng.standard_normal(case.shape), rng.standard_normal(case.result)
    check_derivative(lambda a, b: apply(a, indices, b), x, u, v, w)


@settings(max_examples=20, deadline=None)
@given(reference.cases(), SEEDS)
def test_second_derivative_of_scatter_mul(case, seed):
    rng = np.random.default_rng(seed)
    x, u = rng.standard_normal(case.shape), rng.standard_normal(case.result)
    u = np.where(rng.random(case.result) < 0.3, 0.0, u)
    apply, indices = scattering(scatter_mul, case), ArrayImpl(case.indices)
    v, w = wrap([rng.standard_normal(case.shape), rng.standard_normal(case.result)])

    def tangent(a, b):
        return xf.jvp(lambda a, b: apply(a, indices, b), (a, b), (v, w))[1]

    check_derivative(tangent, x, u, rng.standard_normal(case.shape), rng.standard_normal(case.result))


def elements(op, x, indices, u, unique=False):
    dims = ScatterDims((), (0,), (), (), (0,), 1)
    return op(
        x,
        ArrayImpl(np.asarray(indices, np.int32).reshape(-1, 1)),
        u,
        scatter_dimension_numbers=dims,
        indices_are_sorted=False,
        unique_indices=unique,
    )


def gradients(op, x, indices, u, weights):
    def loss(x, u):
        y = elements(op, x, indices, u)
        return reduce_sum(mul(y, ArrayImpl(np.asarray(weights))), dimensions=(0,))

    return unwrap(xf.grad(loss, (0, 1))(*wrap([np.asarray(x, np.float64), np.asarray(u, np.float64)])))


def test_the_update_that_stays_gets_the_gradient():
    dx, du = gradients(scatter, [1.0, 2.0, 3.0], [1, 1, 7, -1], [4.0, 5.0, 6.0, 7.0], [1.0, 10.0, 100.0])
    assert np.array_equal(dx, [1.0, 0.0, 100.0])
    assert np.array_equal(du, [0.0, 10.0, 0.0, 0.0])


def test_product_rule_of_repeated_indices():
    dx, du = gradients(scatter_mul, [1.0, 1.0], [0, 0, 1], [2.0, 3.0, 5.0], [1.0, 1.0])
    assert np.array_equal(dx, [6.0, 5.0])
    assert np.array_equal(du, [3.0, 2.0, 1.0])


@pytest.mark.parametrize("op", [scatter_max, scatter_min])
def test_ties_share_the_gradient(op):
    sign = 1.0 if op is scatter_max else -1.0
    x, u = sign * np.array([2.0, 0.0, 5.0]), sign * np.array([2.0, 2.0, 3.0, 3.0, 9.0])
    dx, du = gradients(op, x, [0, 0, 1, 1, 7], u, [1.0, 1.0, 1.0])
    assert np.allclose(dx, [1 / 3, 0.0, 1.0])
    assert np.allclose(du, [1 / 3, 1 / 3, 0.5, 0.5, 0.0])


def test_nan_elsewhere_keeps_its_gradient():
    dx, du = gradients(scatter_max, [np.nan, 1.0], [1], [2.0], [3.0, 5.0])
    assert np.array_equal(dx, [3.0, 0.0])
    assert np.array_equal(du, [5.0])
