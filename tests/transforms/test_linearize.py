"""linearize: primal operations outside, tangent operations in a linear function that captures its residuals."""

from __future__ import annotations

import numpy as np
import pytest

from tests.transforms.programs import array, names, program
from xformlib.array import Tracer
from xformlib.ops.elementwise import add, mul, sin
from xformlib.staging import replay, stage
from xformlib.transforms.linearize import linearize


def apply(linear, *tangents):
    return replay(linear.program, [*tangents, *linear.program.captures])


def test_primal_work_is_done_once(evaluations):
    x = array(0.5)
    p = program(lambda x: [sin(sin(x))], x)
    evaluations.clear()
    outs, linear = linearize(p, [x], [True])
    assert evaluations["stablehlo.sine"] == 2
    first = apply(linear, array(1.0))
    second = apply(linear, array(-2.0))
    assert evaluations["stablehlo.sine"] == 2
    assert float(outs[0]) == np.sin(np.sin(0.5))
    assert float(first[0]) == pytest.approx(np.cos(np.sin(0.5)) * np.cos(0.5), rel=1e-15)
    assert float(second[0]) == -2 * float(first[0])


def test_the_linear_function_holds_linear_operations_only():
    x, y = array([0.5, 1.0]), array([2.0, 3.0])
    p = program(lambda x, y: [add(mul(sin(x), y), x)], x, y)
    _, linear = linearize(p, [x, y], [True, True])
    assert set(names(linear.program)) == {"stablehlo.multiply", "stablehlo.add"}
    a, b = array([1.0, 2.0]), array([-1.0, 0.5])
    both = apply(linear, add(a, b), add(b, a))
    parts = [apply(linear, a, b), apply(linear, b, a)]
    assert np.allclose(both[0], add(parts[0][0], parts[1][0]), rtol=1e-15)


def test_activity():
    x, y, c = array(1.0), array(2.0), array([3.0, 4.0])
    p = program(lambda x, y: [mul(x, x), mul(y, y), c], x, y)
    outs, linear = linearize(p, [x, y, *p.captures], [True, False, False])
    assert linear.active_out == (True, False, False)
    assert len(linear.program.in_avals) == 1
    assert len(outs) == 3


def test_inside_another_function():
    """Staged: primal operations go to the open function; residuals are its values."""
    x = array(0.5)
    p = program(lambda x: [sin(x)], x)

    def f(x):
        outs, linear = linearize(p, [x], [True])
        assert isinstance(linear.program.captures[0], Tracer)
        return [*outs, *apply(linear, x)]

    q = stage(f, [x.aval], kind="outer")
    assert names(q) == ["stablehlo.sine", "stablehlo.cosine", "stablehlo.multiply"]
    assert [float(v) for v in replay(q, [x])] == [np.sin(0.5), 0.5 * np.cos(0.5)]


def test_a_linear_function_can_be_linearised():
    x = array([1.0, 2.0])
    p = program(lambda x: [mul(x, x)], x)
    _, linear = linearize(p, [x], [True])
    captures = linear.program.captures
    _, again = linearize(linear.program, [x, *captures], [True] + [False] * len(captures))
    t = array([1.0, -1.0])
    assert np.array_equal(apply(again, t)[0], apply(linear, t)[0])
