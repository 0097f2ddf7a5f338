"""batch: what depends on the batch gets an axis, what does not is computed once."""

from __future__ import annotations

import numpy as np
import pytest

from tests.transforms.programs import array, names, program
from xformlib import errors
from xformlib.op import Refusal
from xformlib.ops.elementwise import add, mul, sin
from xformlib.ops.reduction import reduce_sum
from xformlib.staging import stage
from xformlib.transforms.batch import batch


def test_unbatched_values_are_computed_once():
    x, y = array([1.0, 2.0]), array([3.0, 4.0])
    p = program(lambda x, y: [mul(x, sin(y)), sin(y)], x, y)
    xs = array([[1.0, 2.0], [5.0, 6.0], [7.0, 8.0]])
    outs, flags = batch(p, [xs, y], [True, False], 3)
    assert flags == [True, False]
    assert outs[1].shape == (2,)
    assert np.array_equal(outs[0], np.asarray(xs) * np.sin([3.0, 4.0]))


def test_captures_can_be_batched():
    x, c = array([1.0, 2.0]), array([3.0, 4.0])
    p = program(lambda x: [mul(x, c)], x)
    cs = array([[3.0, 4.0], [5.0, 6.0]])
    outs, flags = batch(p, [x, cs], [False, True], 2)
    assert flags == [True]
    assert np.array_equal(outs[0], [[3.0, 8.0], [5.0, 12.0]])


def test_nothing_batched():
    x = array([1.0, 2.0])
    p = program(lambda x: [add(x, x)], x)
    outs, flags = batch(p, [x], [False], 9)
    assert flags == [False] and outs[0].shape == (2,)


@pytest.mark.parametrize("size", [0, 1, 3])
def test_sizes(size):
    x = array([1.0, 2.0])
    p = program(lambda x: [reduce_sum(sin(x), dimensions=(0,))], x)
    xs = array(np.arange(2.0 * size).reshape(size, 2))
    outs, _ = batch(p, [xs], [True], size)
    assert np.array_equal(outs[0], np.sin(np.asarray(xs)).sum(1))


def test_batch_of_batch():
    x, y = array([1.0, 2.0]), array([3.0, 4.0])
    p = program(lambda x, y: [reduce_sum(mul(x, y), dimensions=(0,))], x, y)
    xs, ys = array([[1.0, 2.0], [5.0, 6.0], [7.0, 8.0]]), array([[3.0, 4.0], [1.0, -1.0]])
    q = stage(lambda x, ys: batch(p, [x, ys], [False, True], 2)[0], [x.aval, ys.aval], kind="inner")
    outs, _ = batch(q, [xs, ys], [True, False], 3)
    assert np.array_equal(outs[0], np.asarray(xs) @ np.asarray(ys).T)


def test_one_operation_for_the_whole_batch():
    x = array([1.0, 2.0])
    p = program(lambda x: [sin(x)], x)
    q = stage(lambda xs: batch(p, [xs], [True], 5)[0], [array(np.ones((5, 2))).aval], kind="batched")
    assert names(q) == ["stablehlo.sine"]


def test_refused(temporary_op):
    op = temporary_op("xform.test_refused", numpy=np.sin, kind="elementwise", batch=Refusal("only a test"))
    x = array(1.0)
    with pytest.raises(errors.RuleError, match=r"xform.test_refused can't be vectorised by vmap: only a test"):
        batch(program(lambda x: [op(x)], x), [array([1.0])], [True], 1)


def test_missing(temporary_op):
    op = temporary_op("xform.test_missing", numpy=np.sin, types=lambda x: (x.shape, x.dtype))
    x = array(1.0)
    with pytest.raises(errors.RuleError, match=r"xform.test_missing has no batching rule"):
        batch(program(lambda x: [op(x)], x), [array([1.0])], [True], 1)
