"""Inner functions: every pass derives a callee once per signature, and calls what it derived."""

from __future__ import annotations

import numpy as np
import pytest

import xformlib as xf
from tests.transforms.programs import array, names, program
from xformlib import dtypes
from xformlib.api.jit import jit
from xformlib.array import ArrayImpl, KeyArray
from xformlib.link import link
from xformlib.ops.elementwise import add, mul, neg, sin
from xformlib.ops.movement import reshape
from xformlib.ops.reduction import reduce_sum
from xformlib.staging import replay

pytestmark = pytest.mark.usefixtures("interpreted")


def counted(f):
    """``f``, and a list that grows by one whenever it is traced or run."""
    runs = []

    def g(*args):
        runs.append(1)
        return f(*args)

    return g, runs


def test_a_call_is_recorded_as_a_call():
    x = array([1.0, 2.0])
    inner = jit(lambda x: sin(x))
    p = program(lambda x: [inner(inner(x))], x)
    assert names(p) == ["func.call", "func.call"]
    assert len(p.callees) == 1
    text = str(link(p))
    assert text.count("func.func private") == 1 and text.count("stablehlo.sine") == 1


@pytest.mark.parametrize("n", [1, 10])
def test_callee_is_traced_and_differentiated_once(n):
    f, runs = counted(lambda x: mul(sin(x), x))
    inner = jit(f)

    def repeated(x):
        for _ in range(n):
            x = inner(x)
        return x

    def gradient(x):
        return [xf.grad(repeated)(x)]

    p = program(gradient, array(0.5))
    assert len(runs) == 1
    # The forward callee and the transposed linear callee; the linear one itself is never called.
    assert len(p.callees) == 2
    link(p).operation.verify()


def test_derivatives_through_calls_agree_with_inlining():
    x, y = array([0.5, -1.0]), array([2.0, 3.0])

    def inner(x, y):
        return mul(sin(x), y), mul(x, x), y

    def outer(call):
        def f(x, y):
            a, b, c = call(x, y)
            d, _, _ = call(a, b)
            return reduce_sum(add(mul(d, c), a), dimensions=(0,))

        return f

    matrix = array([[1.0, 2.0], [0.5, -1.0]])
    for transformation, args in (
        (lambda f: f, (x, y)),
        (lambda f: xf.grad(f, (0, 1)), (x, y)),
        (lambda f: xf.grad(f, 1), (x, y)),
        (lambda f: xf.hessian(f), (x, y)),
        (lambda f: xf.jacrev(xf.grad(f)), (x, y)),
        (lambda f: xf.vmap(f, (0, None)), (matrix, y)),
        (lambda f: xf.vmap(xf.grad(f), (None, 1), 1), (x, matrix)),
        (lambda f: xf.grad(lambda x, y: reduce_sum(xf.vmap(f)(x, y), dimensions=(0,))), (matrix, matrix)),
        (lambda f: lambda x, y: xf.jvp(f, (x, y), (y, x)), (x, y)),
        (lambda f: jit(xf.grad(jit(f))), (x, y)),
    ):
        got, want = transformation(outer(jit(inner))), transformation(outer(inner))
        for a, b in zip(xf.tree.leaves(got(*args)), xf.tree.leaves(want(*args)), strict=True):
            assert np.allclose(a, b, rtol=1e-13, atol=1e-15)


def test_batched_callee_is_derived_once_per_signature():
    f, runs = counted(lambda x, y: mul(x, y))
    inner = jit(f)
    x = array(np.ones((3, 2)))
    p = program(lambda x: [xf.vmap(inner)(x, x), xf.vmap(inner)(neg(x), x), xf.vmap(lambda a: inner(a, a))(x)], x)
    assert len(runs) == 1
    assert len(p.callees) == 1
    p = program(
        lambda x: [xf.vmap(inner, (0, None))(x, array([1.0, 2.0])), xf.vmap(inner, (None, 0))(array([1.0, 2.0]), x)], x
    )
    assert len(runs) == 1
    assert len(p.callees) == 2


def test_activity_is_part_of_the_signature():
    inner = jit(lambda x, y: mul(sin(x), y))
    x, y = array(0.5), array(2.0)
    assert float(xf.grad(inner, 0)(x, y)) == pytest.approx(2 * np.cos(0.5), rel=1e-15)
    assert float(xf.grad(inner, 1)(x, y)) == pytest.approx(np.sin(0.5), rel=1e-15)
    both = xf.grad(inner, (0, 1))(x, y)
    assert [float(g) for g in both] == pytest.approx([2 * np.cos(0.5), np.sin(0.5)], rel=1e-15)


def test_closed_over_arrays_are_arguments_of_the_callee():
    c = array([3.0, 4.0])
    inner = jit(lambda x: mul(x, c))
    x = array([1.0, 2.0])
    assert np.array_equal(inner(x), [3.0, 8.0])
    p = program(lambda x: [inner(x)], x)
    assert p.captures == (c,)
    assert np.array_equal(replay(p, [x, c])[0], [3.0, 8.0])
    assert np.array_equal(xf.grad(lambda x: reduce_sum(inner(x), dimensions=(0,)))(x), c)


def test_closed_over_tracers_are_differentiated_and_batched():
    def f(x):
        inner = jit(lambda y: mul(x, y))
        return inner(inner(x))  # x^3

    assert float(xf.grad(f)(array(2.0))) == 12.0
    assert float(xf.grad(xf.grad(f))(array(2.0))) == 12.0
    assert np.array_equal(xf.vmap(f)(array([1.0, 2.0, 3.0])), [1.0, 8.0, 27.0])
    assert np.array_equal(xf.vmap(xf.grad(f))(array([1.0, 2.0])), [3.0, 12.0])


def test_calls_nest():
    inner = jit(lambda x: mul(x, x))
    middle = jit(lambda x: add(inner(x), inner(neg(x))))
    outer = jit(lambda x: mul(middle(x), x))  # 2 x^3
    x = array(3.0)
    assert float(outer(x)) == 54.0
    assert float(xf.grad(outer)(x)) == 54.0
    assert float(xf.grad(xf.grad(outer))(x)) == 36.0
    assert float(xf.grad(xf.grad(xf.grad(outer)))(x)) == 12.0
    assert np.array_equal(jit(xf.vmap(xf.grad(outer)))(array([1.0, 2.0])), [6.0, 24.0])


def test_outputs_that_are_arguments_constants_or_unused():
    inner = jit(lambda x, y: (x, array(2.0), y, x))
    x, y = array(3.0), array(4.0)

    def f(x, y):
        a, b, _, d = inner(x, y)
        return mul(mul(a, b), d)  # 2 x^2

    assert [float(g) for g in xf.grad(f, (0, 1))(x, y)] == [12.0, 0.0]
    assert [float(v) for v in xf.jvp(f, (x, y), (array(1.0), array(1.0)))] == [18.0, 12.0]


def test_integer_arguments_and_outputs():
    inner = jit(lambda x, n: (mul(x, x), add(n, n)))
    n = array(3, np.int32)
    value, tangent = xf.jvp(lambda x: inner(x, n), (array(2.0),), (array(1.0),))
    assert [float(value[0]), int(value[1]), float(tangent[0])] == [4.0, 6, 4.0]
    assert tangent[1].dtype == dtypes.float0


def test_keys_go_through_calls():
    key = KeyArray(ArrayImpl(np.arange(8, dtype=np.uint32).reshape(4, 2)), dtypes.KeyDType("fry"))
    inner = jit(lambda k: reshape(k, shape=(2, 2)))
    out = inner(key)
    assert out.is_key and out.shape == (2, 2)
    nested = jit(lambda k: inner(k))(key)
    assert nested.is_key and np.array_equal(nested._base, out._base)
    batched = xf.vmap(jit(lambda k: reshape(k, shape=(1, 1))))(key)
    assert batched.is_key and batched.shape == (4, 1, 1)
    assert np.array_equal(np.asarray(batched._base).ravel(), np.arange(8))


def test_weak_types_go_through_calls():
    weak = ArrayImpl(np.float32(2.0), True)
    inner = jit(lambda x: mul(x, x))
    assert inner(weak).weak_type
    assert jit(lambda x: inner(x))(weak).weak_type
    assert not inner(ArrayImpl(np.float32(2.0))).weak_type


def test_inline():
    inner = jit(lambda x: sin(x), inline=True)
    p = program(lambda x: [inner(x)], array(1.0))
    assert names(p) == ["stablehlo.sine"]


def test_calls_in_linear_functions():
    """A call on tangents only, as the derivative of a call is, is itself differentiated."""
    inner = jit(lambda x: mul(sin(x), sin(x)))
    x, t = array(0.4), array(1.3)

    def directional(x, t):
        return xf.jvp(inner, (x,), (t,))[1]

    assert float(xf.grad(directional, 1)(x, t)) == pytest.approx(np.sin(0.8), rel=1e-14)
    assert float(xf.grad(directional, 0)(x, t)) == pytest.approx(2 * np.cos(0.8) * 1.3, rel=1e-14)
