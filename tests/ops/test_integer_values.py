"""The NumPy rules of integer arithmetic, shifts and logic against Python's integers."""

import ml_dtypes
import numpy as np
import pytest

from tests.ops.harness import assert_same_bits
from tests.ops.values import INTEGERS, integers, run, wrapped
from xformlib.dtypes import iinfo
from xformlib.ops import elementwise as ew


def _width(dtype):
    return iinfo(dtype).bits


def _truncated(x, y):
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


def _power(x, y, dtype):
    if y >= 0:
        return pow(x, y, 1 << _width(dtype))
    return {1: 1, -1: -1 if y % 2 else 1, 0: -1}.get(x, 0)


def _unsigned(x, dtype):
    return x % (1 << _width(dtype))


def _shift(x, by, dtype, f, beyond):
    by = _unsigned(by, dtype)
    return f(x, by) if by < _width(dtype) else beyond(x)


def _sign_extended(x, dtype):
    return x - (1 << _width(dtype)) if x >> (_width(dtype) - 1) == 1 else x


INTEGER_OPS = {
    "add": lambda x, y, d: x + y,
    "sub": lambda x, y, d: x - y,
    "mul": lambda x, y, d: x * y,
    "div": lambda x, y, d: _truncated(x, y) if y else -1,
    "rem": lambda x, y, d: x - y * _truncated(x, y) if y else x,
    "max": lambda x, y, d: max(x, y),
    "min": lambda x, y, d: min(x, y),
    "pow": _power,
    "bitwise_and": lambda x, y, d: x & y,
    "bitwise_or": lambda x, y, d: x | y,
    "bitwise_xor": lambda x, y, d: x ^ y,
    "shift_left": lambda x, y, d: _shift(x, y, d, lambda a, b: a << b, lambda a: 0),
    "shift_right_logical": lambda x, y, d: _shift(_unsigned(x, d), y, d, lambda a, b: a >> b, lambda a: 0),
    "shift_right_arithmetic": lambda x, y, d: _shift(
        _sign_extended(x, d), y, d, lambda a, b: a >> b, lambda a: -1 if a < 0 else 0
    ),
}
UNARY_INTEGER_OPS = {
    "neg": lambda x, d: -x,
    "bitwise_not": lambda x, d: ~x,
    "population_count": lambda x, d: _unsigned(x, d).bit_count(),
    "count_leading_zeros": lambda x, d: _width(d) - _unsigned(x, d).bit_length(),
    "abs": lambda x, d: abs(x),
    "sign": lambda x, d: (x > 0) - (x < 0),
}


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("name", INTEGER_OPS)
def test_integers(name, dtype):
    """Against Python's integers: all pairs of 8-bit integers, awkward ones of the others."""
    values = integers(dtype)
    x, y = [g.ravel() for g in np.meshgrid(values, values)]
    rule = INTEGER_OPS[name]
    want = [wrapped(rule(a, b, dtype), dtype) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    assert_same_bits(run(getattr(ew, name), x, y), np.array(want, dtype), name)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("name", UNARY_INTEGER_OPS)
def test_one_integer(name, dtype):
    x = integers(dtype)
    want = [wrapped(UNARY_INTEGER_OPS[name](a, dtype), dtype) for a in x.tolist()]
    assert_same_bits(run(getattr(ew, name), x), np.array(want, dtype), name)


@pytest.mark.parametrize("dtype", [ml_dtypes.int2, ml_dtypes.uint2, ml_dtypes.int4, ml_dtypes.uint4])
@pytest.mark.parametrize("name", INTEGER_OPS)
def test_integers_of_few_bits(name, dtype):
    info = iinfo(dtype)
    x, y = [g.ravel() for g in np.meshgrid(*[np.arange(int(info.min), int(info.max) + 1)] * 2)]

    want = [wrapped(INTEGER_OPS[name](a, b, dtype), dtype) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    got = run(getattr(ew, name), x.astype(np.int8).astype(dtype), y.astype(np.int8).astype(dtype))
    assert got.dtype == dtype
    assert got.astype(np.int8).tolist() == want


def test_booleans():
    x, y = np.array([False, False, True, True]), np.array([False, True, False, True])
    for op in (ew.add, ew.max, ew.bitwise_or):
        assert run(op, x, y).tolist() == [False, True, True, True]
    for op in (ew.mul, ew.min, ew.bitwise_and):
        assert run(op, x, y).tolist() == [False, False, False, True]
    assert run(ew.bitwise_xor, x, y).tolist() == [False, True, True, False]
    assert run(ew.bitwise_not, x).tolist() == [True, True, False, False]
