"""Random programs under random stacks of transformations.

Each layer of a stack is checked against the one below it: a derivative against finite differences, a map against a
loop, a call against the function itself.
"""

from __future__ import annotations

from unittest import mock

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import xformlib as xf
from tests.conftest import interpret
from tests.ops.harness import finite_differences
from tests.transforms.programs import array
from xformlib.dims import DotDims, GatherDims, ScatterDims
from xformlib.ops.contraction import dot_general
from xformlib.ops.cumulative import cumprod, cumsum
from xformlib.ops.elementwise import add, cos, exp, logistic, mul, neg, select, sin, sub, tanh
from xformlib.ops.indexing import dynamic_slice, dynamic_update_slice, gather
from xformlib.ops.movement import broadcast_in_dim, concatenate, pad, reshape, rev, slice_in_dim, transpose
from xformlib.ops.reduction import reduce_prod, reduce_sum
from xformlib.ops.scatter import scatter_add, scatter_mul

N = 3
MATRIX = array([[0.5, -1.0, 0.2], [0.3, 0.7, -0.4], [-0.6, 0.1, 0.9]])
INDEX = array([[2], [0], [2]], np.int32)
ONE = array(1, np.int32)


def total(x):
    return reduce_sum(x, dimensions=(0,))


def spread(s):
    return broadcast_in_dim(s, shape=(N,), broadcast_dimensions=())


def outer(x, y):
    left = broadcast_in_dim(x, shape=(N, N), broadcast_dimensions=(0,))
    return mul(left, broadcast_in_dim(y, shape=(N, N), broadcast_dimensions=(1,)))


def dot(a, b):
    return dot_general(a, b, dot_dimension_numbers=DotDims((), (), (1,), (0,)), dtype=a.dtype)


def take(x):
    dims = GatherDims((), (0,), (), (), (0,), 1)
    return gather(x, INDEX, dimension_numbers=dims, slice_sizes=(1,), indices_are_sorted=False)


def put(op):
    def apply(x, y):
        dims = ScatterDims((), (0,), (), (), (0,), 1)
        return op(x, INDEX, y, scatter_dimension_numbers=dims, indices_are_sorted=False, unique_indices=False)

    return apply


ONE_OPERAND = {
    "sin": sin,
    "cos": cos,
    "tanh": tanh,
    "logistic": logistic,
    "gauss": lambda x: exp(neg(mul(x, x))),
    "neg": neg,
    "sum": lambda x: spread(mul(total(x), 0.3)),
    "prod": lambda x: spread(reduce_prod(x, dimensions=(0,))),
    "rev": lambda x: rev(x, dimensions=(0,)),
    "roll": lambda x: concatenate(slice_in_dim(x, 1, N, 0), slice_in_dim(x, 0, 1, 0), dimension=0),
    "cumsum": lambda x: cumsum(mul(x, 0.5), axis=0, reverse=True),
    "cumprod": lambda x: cumprod(x, axis=0, reverse=False),
    "matvec": lambda x: dot(MATRIX, x),
    "quadratic": lambda x: dot(transpose(outer(x, sin(x)), permutation=(1, 0)), x),
    "take": take,
    "element": lambda x: spread(reshape(dynamic_slice(x, ONE, slice_sizes=(1,)), shape=())),
}
TWO_OPERANDS = {
    "add": add,
    "sub": sub,
    "mul": mul,
    "choose": lambda x, y: select(array([True, False, True], np.bool_), x, y),
    "put": put(scatter_add),
    "multiply into": put(scatter_mul),
    "update": lambda x, y: dynamic_update_slice(x, slice_in_dim(y, 0, 2, 0), ONE),
    "pad": lambda x, y: slice_in_dim(
        pad(
            x,
            reshape(slice_in_dim(y, 0, 1, 0), shape=()),
            edge_padding_low=(1,),
            edge_padding_high=(0,),
            interior_padding=(1,),
        ),
        0,
        N,
        0,
    ),
}

steps = st.one_of(
    st.tuples(st.sampled_from(sorted(ONE_OPERAND)), st.integers(0, 9), st.just(0)),
    st.tuples(st.sampled_from(sorted(TWO_OPERANDS)), st.integers(0, 9), st.integers(0, 9)),
    st.tuples(st.sampled_from(["call", "closure", "map"]), st.integers(0, 9), st.integers(0, 9)),
)
bodies = st.lists(steps, min_size=1, max_size=5)
transformations = st.lists(st.sampled_from(["grad", "jvp", "linearize", "vmap", "jit"]), min_size=1, max_size=3)
numbers = st.lists(st.floats(-1.5, 1.5, width=32), min_size=N, max_size=N)


def make(body, inner_body):
    """A function of two vectors; ``call`` steps call a jitted inner function, which is one object for all of them."""

    def run(steps, inner, x, y):
        values = [x, y]
        for name, i, j in steps:
            # Most often the newest values.
            a, b = values[-1 - i % len(values)], values[-1 - j % len(values)]
            if name in ONE_OPERAND:
                out = ONE_OPERAND[name](a)
            elif name in TWO_OPERANDS:
                out = TWO_OPERANDS[name](a, b)
            elif inner is None:
                out = mul(a, b)
            elif name == "call":
                out = inner(a, b)
            elif name == "closure":
                out = xf.jit(lambda v, b=b: inner(v, sin(b)))(a)
            else:
                rows = xf.vmap(lambda s, a=a, b=b: inner(mul(a, s), b))(array([0.5, -1.0]))
                out = reduce_sum(rows, dimensions=(0,))
            values.append(out)
        return values[-1]

    inner = xf.jit(lambda x, y: run(inner_body, None, x, y))
    return lambda x, y: run(body, inner, x, y)


W = array([0.7, -0.3, 1.1])


def transformed(name, f):
    """A scalar function of a vector, from another: a directional derivative, a sum of mapped values, or a call."""
    if name == "grad":
        return lambda x: total(mul(W, xf.grad(f)(x)))
    if name == "jvp":
        return lambda x: xf.jvp(f, (x,), (W,))[1]
    if name == "linearize":
        return lambda x: xf.linearize(f, x)[1](W)
    if name == "vmap":
        return lambda x: total(xf.vmap(f, in_axes=1)(outer(x, array([1.0, -0.5, 0.25]))))
    return xf.jit(f)


def expected(name, f, x):
    """(the value of the transformed function by the one below it, error)."""
    if name in ("grad", "jvp", "linearize"):
        (value,), (error,) = finite_differences(lambda x: [np.asarray(f(array(x)))], [x], [np.asarray(W)])
        return value, error
    if name == "vmap":
        return sum(float(f(array(x * s))) for s in (1.0, -0.5, 0.25)), 0.0
    return float(f(array(x))), 0.0


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(bodies, bodies, transformations, numbers, numbers)
def test_random_programs(body, inner_body, stack, x, y):
    x, y = np.array(x), np.array(y)
    with mock.patch("xformlib.execution.execute", interpret):
        g = make(body, inner_body)
        f = lambda v: total(g(v, array(y)))  # noqa: E731 - one of a chain
        for name in stack:
            below, f = f, transformed(name, f)
            got, (want, error) = float(f(array(x))), expected(name, below, x)
            scale = max(abs(want), abs(float(below(array(x)))), 1e-3)
            if error > 1e-5 * scale:
                return  # finite differences say nothing here, nor of higher derivatives
            assert abs(got - want) <= 1e-7 * scale + 10 * error, f"{stack} at {name}: {got}, expected {want}"
