"""jvp: what flows, what does not, and where operations go."""

from __future__ import annotations

import numpy as np
import pytest

from tests.transforms.programs import array, names, program
from xformlib import errors
from xformlib.array import Tracer
from xformlib.op import Refusal
from xformlib.ops.elementwise import add, convert, cos, mul, sin, sub
from xformlib.ops.reduction import reduce_sum
from xformlib.staging import replay, stage
from xformlib.transforms.jvp import jvp


def test_product_rule():
    x, y = array([1.0, 2.0]), array([3.0, 5.0])
    p = program(lambda x, y: [mul(x, y)], x, y)
    outs, tangents = jvp(p, [x, y], [array([1.0, 0.0]), array([0.0, 10.0])])
    assert np.array_equal(outs[0], [3.0, 10.0])
    assert np.array_equal(tangents[0], [3.0, 20.0])


def test_absent_tangents_are_zero_and_stay_absent():
    x, y = array(2.0), array(3.0)
    p = program(lambda x, y: [mul(x, x), mul(y, y), x, array(7.0)], x, y)
    outs, tangents = jvp(p, [x, y], [array(1.0), None])
    assert [float(o) for o in outs] == [4.0, 9.0, 2.0, 7.0]
    assert float(tangents[0]) == 4.0 and float(tangents[2]) == 1.0
    assert tangents[1] is None and tangents[3] is None


def test_integers_carry_no_tangent():
    x = array(2.5)
    p = program(lambda x: [convert(convert(x, dtype=np.dtype(np.int32)), dtype=x.dtype)], x)
    outs, tangents = jvp(p, [x], [array(1.0)])
    assert float(outs[0]) == 2.0
    assert tangents == [None]


def test_captures_have_tangents_of_their_own():
    x, c = array([1.0, 2.0]), array([3.0, 4.0])
    p = program(lambda x: [mul(x, c)], x)
    assert p.captures == (c,)
    _, tangents = jvp(p, [x, c], [None, array([1.0, 1.0])])
    assert np.array_equal(tangents[0], [1.0, 2.0])


def test_operations_go_to_the_open_function():
    x = array(0.5)
    p = program(lambda x: [sin(x)], x)

    def pushed(x, t):
        outs, tangents = jvp(p, [x], [t])
        assert isinstance(outs[0], Tracer) and isinstance(tangents[0], Tracer)
        return tangents

    q = stage(pushed, [x.aval, x.aval], kind="pushed")
    assert names(q) == ["stablehlo.sine", "stablehlo.cosine", "stablehlo.multiply"]
    assert float(replay(q, [x, array(2.0)])[0]) == pytest.approx(2 * np.cos(0.5), rel=1e-15)


def test_without_tangents_nothing_is_added():
    x = array(0.5)
    p = program(lambda x: [sin(mul(x, x))], x)
    q = stage(lambda x: jvp(p, [x], [None])[0], [x.aval], kind="pushed")
    assert names(q) == names(p)


def test_weak_types_pass_through():
    x = array(2.0, np.float32)
    weak = type(x)(np.float32(3.0), True)
    p = program(lambda x, w: [mul(w, w), mul(x, w)], x, weak)
    outs, _ = jvp(p, [x, weak], [x, x])
    assert [o.weak_type for o in outs] == [True, False]


def test_scalars_beside_arrays_are_weak_staged_and_at_once():
    x = array(2.0, np.float32)
    weak = type(x)(np.float32(3.0), True)
    for f in (
        lambda x: mul(x, 2.0),
        lambda x: mul(2, x),
        lambda x: mul(x, np.float32(2.0)),
        lambda x: add(mul(x, x), np.asarray(1, np.float32)),
    ):
        for value in (x, weak):
            (staged,) = program(lambda v, f=f: [f(v)], value).out_avals
            assert staged.weak_type == f(value).weak_type


def test_numpy_arrays_beside_tracers():
    x = array([1.0, 2.0])
    rows = np.array([[1.0, 2.0], [3.0, 4.0]])
    p = program(lambda x: [mul(x, rows[0]), reduce_sum(mul(rows[1], x), dimensions=(0,)), rows], x)
    assert [a.shape for a in p.out_avals] == [(2,), (), (2, 2)]
    outs, tangents = jvp(p, [x], [array([1.0, 0.0])])
    assert [np.asarray(o).tolist() for o in outs] == [[1.0, 4.0], 11.0, rows.tolist()]
    assert [np.asarray(t).tolist() for t in tangents[:2]] == [[1.0, 0.0], 3.0] and tangents[2] is None


def test_rules_nest():
    """The derivative of the derivative, by pushing a program made by pushing."""
    x = array(0.7)
    one = array(1.0)
    p = program(lambda x: [mul(sin(x), x)], x)
    for k in range(1, 4):
        inner = p
        p = stage(
            lambda x, inner=inner: jvp(inner, [x, *inner.captures], [one] + [None] * len(inner.captures))[1],
            [x.aval],
            kind=f"order {k}",
        )
    got = float(replay(p, [x, *p.captures])[0])
    assert got == pytest.approx(-0.7 * np.cos(0.7) - 3 * np.sin(0.7), rel=1e-14)


def test_subtraction_of_one_tangent():
    x, y = array(1.0), array(2.0)
    p = program(lambda x, y: [sub(x, y), add(x, y)], x, y)
    _, only_y = jvp(p, [x, y], [None, array(3.0)])
    assert [float(t) for t in only_y] == [-3.0, 3.0]
    _, only_x = jvp(p, [x, y], [array(3.0), None])
    assert [float(t) for t in only_x] == [3.0, 3.0]


def test_refused_rule(temporary_op):
    op = temporary_op("xform.test_refused", numpy=np.sin, kind="elementwise", jvp=Refusal("it is only a test"))
    x = array(1.0)
    p = program(lambda x: [op(x)], x)
    with pytest.raises(errors.RuleError, match=r"xform.test_refused has no derivative: it is only a test"):
        jvp(p, [x], [x])
    assert jvp(p, [x], [None])[1] == [None]


def test_missing_rule(temporary_op):
    op = temporary_op("xform.test_missing", numpy=np.sin, kind="elementwise")
    x = array(1.0)
    p = program(lambda x: [op(x)], x)
    with pytest.raises(errors.RuleError, match=r"xform.test_missing has no derivative rule"):
        jvp(p, [x], [x])


def test_multiple_results(temporary_op):
    op = temporary_op(
        "xform.test_both",
        numpy=lambda x: (np.sin(x), np.cos(x)),
        types=lambda x: [(x.shape, x.dtype)] * 2,
        multi=True,
        jvp=lambda tangents, ans, x: (mul(tangents[0], ans[1]), None),
    )
    x = array(0.3)
    p = program(lambda x: list(op(x)), x)
    outs, tangents = jvp(p, [x], [array(1.0)])
    assert float(outs[1]) == np.cos(0.3) == float(cos(x))
    assert float(tangents[0]) == np.cos(0.3) and tangents[1] is None
