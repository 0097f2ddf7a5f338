"""Concrete values of traced arrays: Python control flow under un-jitted transformations, at linear cost."""

from __future__ import annotations

import numpy as np
import pytest

import xformlib as xf
from tests.transforms.programs import array
from xformlib import errors
from xformlib.ops.elementwise import add, gt, lt, mul, neg, sin
from xformlib.transforms.evaluate import evaluate_slice

pytestmark = pytest.mark.usefixtures("interpreted")


def relu(x):
    return x if gt(x, 0.0) else mul(x, 0.0)


def test_if():
    assert float(xf.grad(relu)(array(2.0))) == 1.0
    assert float(xf.grad(relu)(array(-2.0))) == 0.0
    assert [float(v) for v in xf.jvp(relu, (array(2.0),), (array(3.0),))] == [2.0, 3.0]
    assert float(xf.vjp(relu, array(2.0))[1](array(5.0))[0]) == 5.0
    assert float(xf.linearize(relu, array(2.0))[1](array(5.0))) == 5.0


def power(x, n):
    """x^n by recursion on a traced n."""
    return mul(x, power(x, add(n, -1.0))) if gt(n, 0.0) else array(1.0)


def test_recursion_to_second_order():
    x, n = array(3.0), array(5.0)
    assert float(xf.grad(power)(x, n)) == 5 * 81.0
    assert float(xf.grad(lambda x, n: power(x, n), (0, 1))(x, n)[1]) == 0.0
    assert float(xf.grad(xf.grad(power))(x, n)) == 20 * 27.0
    assert float(xf.jvp(xf.grad(power), (x, n), (array(1.0), array(0.0)))[1]) == 20 * 27.0


def while_loop(x):
    """Doubles until large: x 2^k."""
    while lt(x, 100.0):
        x = add(x, x)
    return mul(x, x)


def test_while_to_second_order():
    x = array(3.0)  # 192 = 64 x
    assert float(xf.grad(while_loop)(x)) == 2 * 64.0**2 * 3.0
    assert float(xf.grad(xf.grad(while_loop))(x)) == 2 * 64.0**2
    assert float(xf.jvp(lambda x: xf.jvp(while_loop, (x,), (array(1.0),))[1], (x,), (array(1.0),))[1]) == 2 * 64.0**2


@pytest.mark.parametrize("order", [0, 1, 2])
def test_loops_stay_linear(evaluations, order):
    """Twice the rounds, about twice the evaluations: what is known is remembered."""

    def loop(n):
        def f(x):
            y = x
            for _ in range(n):
                y = sin(y)
                if gt(y, 2.0):
                    return x
            return y

        return f

    def cost(n):
        f = loop(n)
        for _ in range(order):
            f = xf.grad(f)
        evaluations.clear()
        f(array(0.5))
        return sum(evaluations.values())

    small, large = cost(20), cost(80)
    assert large <= 4 * small + 20


def test_nested_stagings_ask_outward():
    """The inner function's condition depends on the outer function's argument."""

    def f(x):
        def g(y):
            return mul(x, y) if gt(x, 0.0) else mul(neg(x), mul(y, y))

        return xf.grad(g)(x)

    assert float(f(array(2.0))) == 2.0
    assert float(xf.grad(f)(array(2.0))) == 1.0
    assert float(xf.grad(f)(array(-2.0))) == 8.0  # d/dx (-2 x^2) at -2


def test_unmapped_values_are_known_under_vmap():
    def f(x, n):
        return mul(x, 2.0) if gt(n, 0.0) else x

    assert np.array_equal(xf.vmap(f, (0, None))(array([1.0, 2.0]), array(1.0)), [2.0, 4.0])
    assert np.array_equal(xf.vmap(xf.grad(f), (0, None))(array([1.0, 2.0]), array(-1.0)), [1.0, 1.0])
    with pytest.raises(errors.TracerBoolConversionError, match="vmap of f"):
        xf.vmap(f, (None, 0))(array(1.0), array([1.0, 2.0]))


def test_int_float_index_item():
    def f(x):
        n = int(x)
        items = ["a", "b", "c", "d"]
        assert items[array(2, np.int32)] == "c"
        assert float(x) == 3.5 and x.item() == 3.5 and f"{float(x):.1f}" == "3.5"
        return mul(x, float(n))

    assert float(xf.grad(f)(array(3.5))) == 3.0


def test_jit_has_no_values():
    with pytest.raises(errors.TracerBoolConversionError, match="jit of relu"):
        xf.jit(relu)(array(1.0))
    with pytest.raises(errors.TracerBoolConversionError):
        xf.jit(xf.grad(relu))(array(1.0))
    # A jitted function inside un-jitted grad is traced once for all values.
    with pytest.raises(errors.TracerBoolConversionError):
        xf.grad(xf.jit(relu))(array(1.0))


def test_jit_that_looked_at_an_outer_value_is_not_cached():
    """Inside grad, a jitted closure may ask for the value of grad's argument; its program is for this value only."""

    def f(x):
        inner = xf.jit(lambda y: mul(y, 2.0) if gt(x, 0.0) else y)
        return inner(x)

    assert float(xf.grad(f)(array(1.0))) == 2.0
    assert float(xf.grad(f)(array(-1.0))) == 1.0


def test_value_of_a_result_of_a_call():
    inner = xf.jit(lambda x: mul(x, x))

    def f(x):
        y = inner(x)
        return y if gt(y, 3.0) else x

    assert float(xf.grad(f)(array(2.0))) == 4.0
    assert float(xf.grad(f)(array(1.0))) == 1.0


def test_slices_only(evaluations):
    """Only what the asked value depends on is evaluated."""

    def f(x):
        for _ in range(50):
            sin(x)
        return x if gt(x, 0.0) else neg(x)

    evaluations.clear()
    program_cost = []

    def g(x):
        out = f(x)
        program_cost.append(evaluations["stablehlo.sine"])
        return out

    xf.grad(g)(array(1.0))
    assert program_cost == [0]


def test_closed_functions_have_no_values():
    kept = []
    xf.grad(lambda x: kept.append(x) or mul(x, x))(array(1.0))
    assert evaluate_slice(kept[0]) is None
    with pytest.raises(errors.ConcretizationTypeError):
        bool(kept[0])
