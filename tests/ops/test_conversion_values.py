"""The NumPy rules of comparisons, choices and conversions against definitions."""

import itertools
import math

import ml_dtypes
import numpy as np
import pytest

from tests.ops.harness import assert_same_bits, assert_ulps
from tests.ops.values import INTEGERS, integers, run, wrapped
from xformlib.array import ArrayImpl
from xformlib.dtypes import iinfo
from xformlib.ops import elementwise as ew

BF16 = np.dtype(ml_dtypes.bfloat16)
INF, NAN = math.inf, math.nan

# -- comparison and choice --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "uint32", "bool"])
def test_comparisons(dtype):
    values = np.array([0, 1] if dtype == "bool" else [0, 1, 5] if dtype == "uint32" else [-1, 0, 1, 5])
    if "float" in dtype:
        values = np.array([-INF, -1, -0.0, 0.0, 1, INF, NAN])
    x, y = [g.ravel().astype(dtype) for g in np.meshgrid(values, values)]
    a, b = x.astype(float), y.astype(float)
    for name, want in {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}.items():
        got = run(getattr(ew, name), x, y)
        assert_same_bits(got, want, name)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_total_order(dtype):
    x = np.array([-NAN, -INF, -2, -1e-30, -0.0, 0.0, 1e-30, 2, INF, NAN]).astype(dtype)
    x = x[[0, 1, 2, 4, 5, 7, 8, 9]]
    for i, j in itertools.product(range(len(x)), repeat=2):
        less = run(ew.compare, x[i], x[j], comparison_direction="LT", compare_type="TOTALORDER")
        equal = run(ew.compare, x[i], x[j], comparison_direction="EQ", compare_type="TOTALORDER")
        assert (bool(less), bool(equal)) == (i < j, i == j)


def test_select_takes_a_scalar_condition_and_literals():
    x = np.arange(3.0, dtype=np.float32)
    assert run(ew.select, True, x, -x).tolist() == [0, 1, 2]
    condition, x = ArrayImpl(np.array([True, False])), ArrayImpl(np.array([3.5, 4.5], np.float32))
    for got, want in ((ew.select(condition, 1.5, x), [1.5, 4.5]), (ew.select(condition, x, 1.5), [3.5, 1.5])):
        assert_same_bits(np.asarray(got), np.array(want, np.float32), "literal")


def test_clamp():
    low, x, high = np.float32(-1), np.array([-2, -1, -0.0, 0.5, 1, 3, INF, NAN], np.float32), np.float32(1)
    assert_same_bits(run(ew.clamp, low, x, high), np.array([-1, -1, -0.0, 0.5, 1, 1, 1, NAN], np.float32), "clamp")
    assert run(ew.clamp, np.int8(3), np.int8(2), np.int8(1)) == 1, "the upper bound wins"


# -- conversion -------------------------------------------------------------------------------------------------------

FLOATS = [np.dtype(np.float16), BF16, np.dtype(np.float32), np.dtype(np.float64)]


@pytest.mark.parametrize("source", FLOATS, ids=str)
@pytest.mark.parametrize("target", INTEGERS, ids=str)
def test_floats_to_integers_saturate(source, target):
    info = iinfo(target)
    powers = [s * 2.0**k for k in range(66) for s in (1, -1)]
    with np.errstate(over="ignore"):
        x = np.array([0.0, -0.0, 0.5, -0.5, 2.9, -2.9, 1e30, -1e30, INF, -INF, *powers]).astype(source)
    x = np.concatenate([x, np.nextafter(x, np.zeros((), source)), np.array([NAN]).astype(source)])
    want = []
    for v in x.astype(float).tolist():
        if math.isnan(v):
            want.append(0)
        elif math.isinf(v):
            want.append(info.max if v > 0 else info.min)
        else:
            want.append(min(max(math.trunc(v), info.min), info.max))
    assert_same_bits(run(ew.convert, x, dtype=target), np.array(want, target), "convert")


@pytest.mark.parametrize(("source", "target"), list(itertools.product(INTEGERS, INTEGERS)), ids=str)
def test_integers_to_integers_wrap(source, target):
    x = integers(source)
    want = [wrapped(v, target) for v in x.tolist()]
    assert_same_bits(run(ew.convert, x, dtype=target), np.array(want, target), "convert")


@pytest.mark.parametrize("source", [*FLOATS, *INTEGERS], ids=str)
def test_conversion_to_bool_is_nonzero(source):
    x = np.array([0, 1, 2]).astype(source)
    if source in FLOATS:
        x = np.concatenate([x, np.array([-0.0, NAN, -INF, 0.25]).astype(source)])
    assert (
        run(ew.convert, x, dtype=np.dtype(np.bool_)).tolist() == [False, True, True, False, True, True, True][: len(x)]
    )


def test_complex_to_real_drops_the_imaginary_part():
    z = np.array([1.5 + 2j, complex(NAN, 1), complex(300, 1)], np.complex64)
    assert_same_bits(run(ew.convert, z, dtype=np.dtype(np.float32)), z.real, "real")
    assert run(ew.convert, z, dtype=np.dtype(np.uint8)).tolist() == [1, 0, 255]
    assert run(ew.convert, np.array([0, 1j]), dtype=np.dtype(np.bool_)).tolist() == [False, True]


@pytest.mark.parametrize(
    ("source", "target"),
    [("int4", "uint4"), ("uint4", "int4"), ("int4", "int2"), ("float8_e5m2", "float8_e4m3fn"), ("float32", "int4")],
)
def test_small_types_convert_to_each_other(source, target):
    x = np.array([1, 0, 1]).astype(source)
    assert run(ew.convert, x, dtype=np.dtype(target)).astype(float).tolist() == [1, 0, 1]


def test_bitcast_joins_and_splits_bytes():
    words = np.array([[0x03020100, 0x07060504]], np.uint32)
    octets = np.arange(8, dtype=np.uint8).reshape(1, 2, 4)
    assert_same_bits(run(ew.bitcast_convert, words, dtype=np.dtype(np.uint8)), octets, "split")
    assert_same_bits(run(ew.bitcast_convert, octets, dtype=np.dtype(np.uint32)), words, "joined")
    strided = np.arange(16, dtype=np.uint8).reshape(4, 4).T
    want = np.array([int.from_bytes(bytes(row), "little") for row in strided.tolist()], np.uint32)
    assert_same_bits(run(ew.bitcast_convert, strided, dtype=np.dtype(np.uint32)), want, "strided")


@pytest.mark.parametrize(("exponent", "mantissa"), [(5, 10), (8, 7), (5, 2), (4, 3), (8, 23), (3, 20)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_reduce_precision(exponent, mantissa, dtype):
    rng = np.random.default_rng(3)
    x = (rng.standard_normal(2000) * 2.0 ** rng.integers(-20, 20, 2000)).astype(dtype)
    x = np.concatenate([x, np.array([0, -0.0, INF, -INF, NAN, 65519, 65520, 1 + 2**-11, 1 + 3 * 2**-11], dtype)])
    fraction, power = np.frexp(x.astype(float))
    scale = 2.0 ** (mantissa + 1)
    want = np.ldexp(np.rint(fraction * scale) / scale, power)
    bias = 2 ** (exponent - 1) - 1
    with np.errstate(over="ignore"):
        want = np.where(abs(want) >= np.ldexp(1.0, bias + 1), np.copysign(INF, want), want)
    want = np.where(abs(want) < np.ldexp(1.0, 1 - bias), np.copysign(0.0, want), want)
    got = run(ew.reduce_precision, x, exponent_bits=exponent, mantissa_bits=mantissa)
    assert_ulps(got, want.astype(dtype), 0, "reduce_precision")


def test_reduce_precision_agrees_with_the_types_of_those_formats():
    x = np.random.default_rng(4).standard_normal(2000).astype(np.float32)
    for dtype, exponent, mantissa in ((np.float16, 5, 10), (BF16, 8, 7)):
        got = run(ew.reduce_precision, x, exponent_bits=exponent, mantissa_bits=mantissa)
        normal = abs(x) > 1e-4
        assert_same_bits(got[normal], x.astype(dtype).astype(np.float32)[normal], str(dtype))
