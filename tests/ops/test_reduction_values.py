"""Reductions, running reductions and their derivatives against single elements."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest

import xformlib as xf
from tests.ops.harness import wrap
from tests.ops.values import run
from xformlib import dtypes
from xformlib.array import ArrayImpl
from xformlib.ops.cumulative import cummax, cummin, cumprod, cumsum
from xformlib.ops.elementwise import mul
from xformlib.ops.reduction import (
    argmax,
    argmin,
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_prod,
    reduce_sum,
    reduce_xor,
)

I32 = np.dtype(np.int32)
NAN, INF = math.nan, math.inf
AXES = [(), (0,), (2,), (0, 1), (0, 2), (0, 1, 2)]


def folded(x, axes, combine, start):
    kept = [d for d in range(x.ndim) if d not in axes]
    out = np.full([x.shape[d] for d in kept], start, x.dtype)
    for p in itertools.product(*map(range, x.shape)):
        at = tuple([p[d] for d in kept])
        out[at] = combine(out[at], x[p])
    return out


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize(
    ("op", "combine", "start"),
    [
        (reduce_sum, np.add, 0),
        (reduce_prod, np.multiply, 1),
        (reduce_max, np.maximum, np.iinfo(np.int16).min),
        (reduce_min, np.minimum, np.iinfo(np.int16).max),
        (reduce_and, np.bitwise_and, -1),
        (reduce_or, np.bitwise_or, 0),
        (reduce_xor, np.bitwise_xor, 0),
    ],
)
def test_integers(op, combine, start, axes):
    x = np.random.default_rng(1).integers(-99, 99, (2, 3, 4)).astype(np.int16)
    with np.errstate(over="ignore"):
        want = folded(x, axes, combine, start)
    got = run(op, x, dimensions=axes)
    assert got.dtype == x.dtype
    assert np.array_equal(got, want)


@pytest.mark.parametrize(
    ("op", "dtype", "want"),
    [
        (reduce_sum, np.float32, 0),
        (reduce_prod, np.float32, 1),
        (reduce_max, np.float32, -INF),
        (reduce_min, np.float16, INF),
        (reduce_max, dtypes.bfloat16, -INF),
        (reduce_max, np.uint8, 0),
        (reduce_min, np.int32, 2**31 - 1),
        (reduce_max, np.bool_, False),
        (reduce_min, np.bool_, True),
        (reduce_and, np.bool_, True),
        (reduce_and, np.uint8, 255),
        (reduce_or, np.bool_, False),
        (reduce_xor, np.int32, 0),
        (reduce_sum, np.bool_, False),
        (reduce_prod, np.bool_, True),
    ],
)
def test_nothing_reduces_to_the_identity(op, dtype, want):
    got = run(op, np.zeros((0, 2), dtype), dimensions=(0,))
    assert got.dtype == dtype
    assert [float(v) for v in got] == [float(want)] * 2


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, dtypes.bfloat16])
def test_nan_propagates(dtype):
    x = np.array([[1, NAN, INF], [-INF, 2, INF]], dtype)
    for op in (reduce_max, reduce_min):
        got = run(op, x, dimensions=(1,)).astype(float)
        assert np.isnan(got[0])
        assert got[1] == (INF if op is reduce_max else -INF)


@pytest.mark.parametrize("dtype", [np.float16, dtypes.bfloat16])
def test_low_precision_sums_round_once(dtype):
    x = np.ones(3001, dtype)
    assert float(run(reduce_sum, x, dimensions=(0,))) == float(np.asarray(3001.0).astype(dtype))
    running = run(cumsum, x, axis=0, reverse=False)
    assert np.array_equal(running, np.arange(1.0, 3002.0).astype(dtype))


# -- argmax, argmin ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, dtypes.bfloat16])
@pytest.mark.parametrize(
    ("values", "largest", "smallest"),
    [
        ([1, 3, 3, 0, 0], 1, 3),
        ([1, NAN, 5, NAN], 1, 1),
        ([INF, -INF, INF, -INF], 0, 1),
        ([-INF, -INF], 0, 0),
        ([0.0, -0.0], 0, 0),
        ([7], 0, 0),
    ],
)
def test_first_extremum_or_first_nan(values, largest, smallest, dtype):
    x = np.array(values, dtype)
    assert int(run(argmax, x, axis=0, index_dtype=I32)) == largest
    assert int(run(argmin, x, axis=0, index_dtype=I32)) == smallest
    y = np.stack([x, x[::-1]], 1)
    assert run(argmax, y, axis=0, index_dtype=I32).shape == (2,)


def test_argmax_has_the_index_dtype():
    assert run(argmax, np.arange(6).reshape(2, 3), axis=1, index_dtype=np.dtype(np.uint8)).dtype == np.uint8


# -- derivatives ------------------------------------------------------------------------------------------------------


def grad(op, x, **params):
    """Gradient of the sum of weights times results, and its Hessian, for arrays of float64."""

    def loss(x):
        y = op(x, **params)
        weights = ArrayImpl(np.cos(np.arange(y.size)).reshape(y.shape))
        return reduce_sum(mul(y, weights), dimensions=tuple(range(len(y.shape))))

    x = ArrayImpl(np.asarray(x, np.float64))
    return np.asarray(xf.grad(loss)(x)), np.asarray(xf.jacfwd(xf.grad(loss))(x))


@pytest.mark.parametrize("x", [[2, 3, 4], [0, 3, 4], [0, 3, 0], [0, 0, 0, 5], [2], [1, 2, 3, 4, 5, 6, 7]])
def test_product_rule(x):
    """d/dx_i is the product of the others, d2/dx_i dx_j that of the rest."""
    first, second = grad(reduce_prod, x, dimensions=(0,))

    def rest(*left_out):
        return (
            0.0 if len(set(left_out)) < len(left_out) else math.prod([v for k, v in enumerate(x) if k not in left_out])
        )

    n = range(len(x))
    assert first.tolist() == [rest(i) for i in n]
    assert second.tolist() == [[rest(i, j) for j in n] for i in n]


def test_product_over_several_axes():
    x = np.array([[[2.0, 0.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 1.0]]])
    first, _ = grad(reduce_prod, x, dimensions=(0, 2))
    weights = np.cos(np.arange(2))
    for p in itertools.product(range(2), repeat=3):
        others = [x[q] for q in itertools.product(range(2), repeat=3) if q[1] == p[1] and q != p]
        assert np.isclose(first[p], weights[p[1]] * math.prod(others))


@pytest.mark.parametrize(("op", "sign"), [(reduce_max, 1.0), (reduce_min, -1.0)])
def test_ties_share_the_gradient(op, sign):
    x = sign * np.array([1.0, 4.0, 4.0, 2.0, 4.0])
    first, second = grad(op, x, dimensions=(0,))
    assert np.allclose(first, [0, 1 / 3, 1 / 3, 0, 1 / 3])
    assert not second.any()


def test_extremum_ignores_tangents_elsewhere():
    x, t = wrap([np.array([1.0, 2.0]), np.array([INF, 3.0])])
    assert float(xf.jvp(lambda x: reduce_max(x, dimensions=(0,)), (x,), (t,))[1]) == 3.0


# -- running reductions -----------------------------------------------------------------------------------------------

RUNNING = [(cumsum, np.add), (cumprod, np.multiply), (cummax, np.maximum), (cummin, np.minimum)]


@pytest.mark.parametrize(("op", "combine"), RUNNING, ids=lambda v: getattr(v, "name", None))
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", [np.float64, np.int8])
def test_running(op, combine, axis, reverse, dtype):
    x = np.random.default_rng(3).integers(-9, 9, (4, 5)).astype(dtype)
    got = run(op, x, axis=axis, reverse=reverse)
    assert got.dtype == dtype
    for i in range(x.shape[axis]):
        part = np.take(x, range(i, x.shape[axis]) if reverse else range(i + 1), axis)
        rows = np.moveaxis(part, axis, 0)
        with np.errstate(over="ignore"):
            want = functools.reduce(combine, rows[::-1] if reverse else rows)
        assert np.array_equal(np.take(got, i, axis), want)


def test_running_extremum_is_nan_from_the_first_nan():
    x = np.array([1.0, NAN, 3.0, INF])
    for op in (cummax, cummin):
        assert np.isnan(run(op, x, axis=0, reverse=False)).tolist() == [False, True, True, True]
        assert np.isnan(run(op, x, axis=0, reverse=True)).tolist() == [True, True, False, False]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("x", [[2, 3, 4, 5, 6], [0, 3, 4], [1, 0, 3, 0, 2], [2]])
def test_running_product_rule(x, reverse):
    first, _ = grad(cumprod, x, axis=0, reverse=reverse)
    weights = np.cos(np.arange(len(x)))
    for k in range(len(x)):
        want = 0.0
        for i in range(len(x)):
            used = range(i, len(x)) if reverse else range(i + 1)
            if k in used:
                want += weights[i] * math.prod([x[j] for j in used if j != k])
        assert np.isclose(first[k], want, rtol=1e-12)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("op", "sign"), [(cummax, 1.0), (cummin, -1.0)])
def test_running_ties_share_the_gradient(op, sign, reverse):
    values = [1.0, 1.0, 0.0, 1.0, 2.0, 2.0, 1.0]
    x = sign * np.array(values[::-1] if reverse else values)
    first, _ = grad(op, x, axis=0, reverse=reverse)
    weights = np.cos(np.arange(len(values)))
    want = np.zeros(len(values))
    for i in range(len(values)):
        used = list(range(i, len(values)) if reverse else range(i + 1))
        best = [j for j in used if sign * x[j] == max(sign * x[k] for k in used)]
        for j in best:
            want[j] += weights[i] / len(best)
    assert np.allclose(first, want, rtol=1e-12)
