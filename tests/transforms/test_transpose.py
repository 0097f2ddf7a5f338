"""transpose: cotangents add up, flow only where wanted, and a function that is not linear is refused."""

from __future__ import annotations

import numpy as np
import pytest

from tests.transforms.programs import array, program
from xformlib import errors
from xformlib.op import Refusal
from xformlib.ops.elementwise import add, mul, neg, sin, sub
from xformlib.transforms.transpose import transpose


def test_uses_add_up():
    x = array([1.0, 2.0])
    p = program(lambda x: [add(x, add(x, neg(x))), x], x)
    (ct,) = transpose(p, [None], [True], [array([1.0, 10.0]), array([100.0, 1000.0])])
    assert np.array_equal(ct, [101.0, 1010.0])


def test_the_same_output_twice():
    x = array(1.0)
    p = program(lambda x: [x, x], x)
    (ct,) = transpose(p, [None], [True], [array(2.0), array(3.0)])
    assert float(ct) == 5.0
    (ct,) = transpose(p, [None], [True], [array(2.0), None])
    assert float(ct) == 2.0


def test_unused_inputs_and_absent_cotangents():
    x, y = array(1.0), array(2.0)
    p = program(lambda x, y: [neg(x), neg(y)], x, y)
    assert transpose(p, [None, None], [True, True], [None, None]) == [None, None]
    first, second = transpose(p, [None, None], [True, True], [array(3.0), None])
    assert float(first) == -3.0 and second is None


def test_known_operands():
    x, c = array([1.0, 2.0]), array([3.0, 4.0])
    p = program(lambda x, c: [mul(x, c), mul(c, x)], x, c)
    one = array([1.0, 1.0])
    first, second = transpose(p, [None, c], [True, False], [one, one])
    assert np.array_equal(first, [6.0, 8.0]) and second is None


def test_constants_inside_a_linear_function():
    x = array([1.0, 2.0])
    p = program(lambda x: [mul(x, sin(add(array(1.0), 1.0)))], x)
    (ct,) = transpose(p, [None], [True], [x])
    assert np.allclose(ct, np.sin(2.0) * np.array([1.0, 2.0]), rtol=1e-15)


def test_dead_code_gets_no_cotangent(evaluations):
    x = array(1.0)

    def f(x):
        neg(neg(x))
        return [sub(x, neg(x))]

    p = program(f, x)
    evaluations.clear()
    (ct,) = transpose(p, [None], [True], [array(1.0)])
    assert float(ct) == 2.0
    # One for the difference's second operand, one for the transpose of neg.
    assert evaluations["stablehlo.negate"] == 2


def test_not_linear():
    x = array(1.0)
    with pytest.raises(errors.RuleError, match=r"stablehlo.sine can't be differentiated in reverse mode"):
        transpose(program(lambda x: [sin(x)], x), [None], [True], [x])


def test_refused(temporary_op):
    op = temporary_op("xform.test_refused", numpy=np.negative, kind="elementwise", transpose=Refusal("only a test"))
    x = array(1.0)
    with pytest.raises(errors.RuleError, match="reverse mode: only a test"):
        transpose(program(lambda x: [op(x)], x), [None], [True], [x])


def test_operand_that_is_not_linear(temporary_op):
    op = temporary_op(
        "xform.test_quotient", numpy=np.divide, kind="elementwise", transpose=(lambda ct, x, y: mul(ct, y), None)
    )
    x = array(1.0)
    p = program(lambda x, y: [op(x, y)], x, x)
    with pytest.raises(errors.RuleError, match="not linear in the operand"):
        transpose(p, [x, None], [False, True], [x])
