"""The NumPy rules of functions of floats against independent answers: mpmath, SciPy, C's special cases."""

import itertools
import math

import ml_dtypes
import mpmath
import numpy as np
import pytest
import scipy.special

from tests.ops.harness import assert_same_bits, assert_ulps
from tests.ops.values import run
from xformlib.array import ArrayImpl
from xformlib.ops import elementwise as ew
from xformlib.ops.gradient import strong_div, strong_mul

BF16 = np.dtype(ml_dtypes.bfloat16)
INF, NAN = math.inf, math.nan


# -- functions of floats ----------------------------------------------------------------------------------------------

# name: (mpmath's function, intervals of ordinary arguments)
FUNCTIONS = {
    "exp": (mpmath.exp, [(-80, 80), (-1e-3, 1e-3)]),
    "expm1": (mpmath.expm1, [(-30, 30), (-1e-6, 1e-6)]),
    "log": (mpmath.log, [(1e-30, 1e-20), (0.5, 2), (2, 1e30)]),
    "log1p": (mpmath.log1p, [(-0.99, 3), (-1e-6, 1e-6), (3, 1e30)]),
    "logistic": (lambda x: 1 / (1 + mpmath.exp(-x)), [(-80, 80), (-1, 1)]),
    "sqrt": (mpmath.sqrt, [(1e-30, 1e-20), (0, 2), (2, 1e30)]),
    "rsqrt": (lambda x: 1 / mpmath.sqrt(x), [(1e-30, 1e-20), (0.1, 2), (2, 1e30)]),
    "cbrt": (lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), [(-2, 2), (1, 1e30), (-1e-20, 1e-20)]),
    "sin": (mpmath.sin, [(-7, 7), (1e3, 1e6), (-1e-6, 1e-6)]),
    "cos": (mpmath.cos, [(-7, 7), (1e3, 1e6)]),
    "tan": (mpmath.tan, [(-1.5, 1.5), (1e3, 1e6)]),
    "tanh": (mpmath.tanh, [(-10, 10), (-1e-6, 1e-6)]),
    "asin": (mpmath.asin, [(-1, 1), (-1e-6, 1e-6)]),
    "acos": (mpmath.acos, [(-1, 1), (0.999, 1)]),
    "atan": (mpmath.atan, [(-10, 10), (1e3, 1e30)]),
    "sinh": (mpmath.sinh, [(-80, 80), (-1e-6, 1e-6)]),
    "cosh": (mpmath.cosh, [(-80, 80)]),
    "asinh": (mpmath.asinh, [(-10, 10), (-1e-6, 1e-6), (1e3, 1e30)]),
    "acosh": (mpmath.acosh, [(1, 1.001), (1, 1e30)]),
    "atanh": (mpmath.atanh, [(-0.999, 0.999), (-1e-6, 1e-6)]),
    "erf": (mpmath.erf, [(-4, 4), (-1e-6, 1e-6), (0.8, 1.3)]),
    "erfc": (mpmath.erfc, [(-4, 4), (4, 9), (0.2, 1.3)]),
    "erf_inv": (mpmath.erfinv, [(-0.99, 0.99), (-1e-6, 1e-6), (0.99, 1 - 1e-7)]),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name, dtype):
    exact, intervals = FUNCTIONS[name]
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(low, high, 60) for low, high in intervals]).astype(dtype)
    with mpmath.workdps(40):
        want = np.array([float(exact(mpmath.mpf(float(v)))) for v in x])
    # The reference is rounded to double precision, which costs half a unit more.
    assert_ulps(run(getattr(ew, name), x), want.astype(dtype), 4, name)


@pytest.mark.parametrize("name", ["exp", "erfc", "erf_inv", "expm1", "logistic", "tanh"])
def test_far_tails_in_double_precision(name):
    x = {"exp": [-700, 700], "erfc": [9, 15, 26], "erf_inv": [1 - 1e-12, -1 + 2.0**-53, 1e-300]}.get(name, [-700, 36])
    exact = FUNCTIONS[name][0]
    with mpmath.workdps(40):
        want = np.array([float(exact(mpmath.mpf(float(v)))) for v in x])
    assert_ulps(run(getattr(ew, name), np.array(x, float)), want, 4, name)


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), BF16], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_16_bit_float(name, dtype):
    """Computed in float32 and rounded once: within a unit of the double-precision result rounded once."""
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    with np.errstate(all="ignore"):
        want = run(getattr(ew, name), x.astype(np.float64)).astype(dtype)
    assert_ulps(run(getattr(ew, name), x), want, 1, name)


# name: (argument, value); NaN gives NaN. Lists, for 0.0 and -0.0 are equal.
SPECIAL = {
    "exp": [(-INF, 0.0), (INF, INF), (0.0, 1.0), (-0.0, 1.0), (1e4, INF), (-1e4, 0.0)],
    "expm1": [(-INF, -1.0), (INF, INF), (0.0, 0.0), (-0.0, -0.0)],
    "log": [(0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF), (-1.0, NAN), (-INF, NAN)],
    "log1p": [(-1.0, -INF), (-0.0, -0.0), (0.0, 0.0), (INF, INF), (-2.0, NAN)],
    "logistic": [(-INF, 0.0), (INF, 1.0), (0.0, 0.5), (-0.0, 0.5)],
    "sqrt": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-1.0, NAN), (-INF, NAN)],
    "rsqrt": [(0.0, INF), (-0.0, -INF), (INF, 0.0), (-1.0, NAN), (4.0, 0.5)],
    "cbrt": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (-8.0, -2.0)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (1e4, 1.0)],
    "asin": [(-0.0, -0.0), (1.5, NAN), (INF, NAN)],
    "acos": [(1.0, 0.0), (-1.5, NAN)],
    "atan": [(-0.0, -0.0), (INF, math.pi / 2), (-INF, -math.pi / 2)],
    "sinh": [(-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "cosh": [(-0.0, 1.0), (INF, INF), (-INF, INF)],
    "asinh": [(-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "acosh": [(1.0, 0.0), (INF, INF), (0.5, NAN), (-INF, NAN)],
    "atanh": [(-0.0, -0.0), (1.0, INF), (-1.0, -INF), (1.5, NAN)],
    "erf": [(-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (10.0, 1.0)],
    "erfc": [(-0.0, 1.0), (INF, 0.0), (-INF, 2.0), (1e4, 0.0), (-1e4, 2.0)],
    "erf_inv": [(-0.0, -0.0), (1.0, INF), (-1.0, -INF), (1.5, NAN), (-INF, NAN)],
    "sign": [(-0.0, -0.0), (0.0, 0.0), (INF, 1.0), (-INF, -1.0), (-3.0, -1.0)],
    "abs": [(-0.0, 0.0), (-INF, INF), (-2.5, 2.5)],
    "neg": [(0.0, -0.0), (-0.0, 0.0), (INF, -INF)],
    "floor": [(-0.0, -0.0), (-0.5, -1.0), (2.5, 2.0), (INF, INF)],
    "ceil": [(-0.0, -0.0), (-0.5, -0.0), (2.5, 3.0), (-INF, -INF)],
    "round_nearest_even": [(0.5, 0.0), (-0.5, -0.0), (1.5, 2.0), (2.5, 2.0), (-2.5, -2.0), (INF, INF), (-0.0, -0.0)],
    "round_nearest_afz": [
        (0.5, 1.0),
        (-0.5, -1.0),
        (1.5, 2.0),
        (2.5, 3.0),
        (-2.5, -3.0),
        (-0.2, -0.0),
        (INF, INF),
        (-0.0, -0.0),
    ],
}


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), BF16, np.dtype(np.float32), np.dtype(np.float64)], ids=str)
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name, dtype):
    with np.errstate(over="ignore"):
        x, want = np.array([*SPECIAL[name], (NAN, NAN)]).T.astype(dtype)
    assert_ulps(run(getattr(ew, name), x), want, 0 if dtype != np.float64 or name != "atan" else 1, name)


def test_error_functions_agree_with_scipy():
    x = np.linspace(-6, 6, 4001)
    for name, reference in (("erf", scipy.special.erf), ("erfc", scipy.special.erfc)):
        np.testing.assert_allclose(run(getattr(ew, name), x), reference(x), rtol=2e-14)
    p = np.linspace(-1, 1, 4001)
    np.testing.assert_allclose(run(ew.erf_inv, p), scipy.special.erfinv(p), rtol=1e-14)


def test_rounding_just_below_a_tie():
    x = np.array([np.nextafter(np.float32(0.5), np.float32(0)), 8388609.0, -8388607.5], np.float32)
    assert_same_bits(run(ew.round_nearest_afz, x), np.array([0.0, 8388609.0, -8388608.0], np.float32), "afz")
    assert_same_bits(run(ew.round_nearest_even, x), np.array([0.0, 8388609.0, -8388608.0], np.float32), "even")


# -- two operands -----------------------------------------------------------------------------------------------------

AWKWARD = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, 0.5, -0.5, 2.5, -7.5, 1e30, -1e30, INF, -INF, NAN]


def _c_pow(x, y):
    try:
        return math.pow(x, y)
    except OverflowError:
        return -INF if x < 0 and y % 2 == 1 else INF
    except ValueError:  # a negative base with a fractional exponent, or zero with a negative one
        if x != 0:
            return NAN
        return math.copysign(INF, x) if y % 2 == 1 else INF


def _c_fmod(x, y):
    try:
        return math.fmod(x, y)
    except ValueError:
        return NAN


def _maximum(x, y):
    return NAN if math.isnan(x) or math.isnan(y) else max(x, y)


def _minimum(x, y):
    return NAN if math.isnan(x) or math.isnan(y) else min(x, y)


@pytest.mark.parametrize(
    ("name", "reference"),
    [("pow", _c_pow), ("rem", _c_fmod), ("atan2", math.atan2), ("max", _maximum), ("min", _minimum)],
)
def test_pairs_of_awkward_floats(name, reference):
    for dtype in (np.float64, np.float32):
        x, y = np.array(list(itertools.product(AWKWARD, AWKWARD))).T.astype(dtype)
        with np.errstate(over="ignore"):
            want = np.array([reference(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]).astype(dtype)
        got = run(getattr(ew, name), x, y)
        if name in ("max", "min"):  # of 0 and -0 either will do
            got, want = got + 0, want + 0
        assert_ulps(got, want, 2 if name == "atan2" else 1, f"{name} in {dtype}")


def test_quotients_follow_ieee():
    x = np.array([1, -1, 0, -0.0, INF, 1, 0], np.float32)
    y = np.array([0, 0, 0, 1, INF, -INF, -0.0], np.float32)
    assert_ulps(run(ew.div, x, y), np.array([INF, -INF, NAN, -0.0, NAN, -0.0, NAN], np.float32), 0, "div")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_nextafter_moves_one_place(dtype):
    x = np.array([1, -1, 0, 0, 1, INF, 5, NAN]).astype(dtype)
    y = np.array([2, -2, 1, -1, 1, 0, NAN, 1]).astype(dtype)
    got = run(ew.nextafter, x, y)
    bits = f"i{x.dtype.itemsize}"
    assert (got.view(bits) - x.view(bits)).tolist()[:2] == [1, 1]
    assert got.view(bits).tolist()[2] == 1
    assert got.view(bits).tolist()[3] == 1 + np.iinfo(bits).min
    assert got[4] == 1
    assert np.isfinite(got[5].astype(float))
    assert np.isnan(got[6:].astype(float)).all()


# -- complex ----------------------------------------------------------------------------------------------------------

COMPLEX = [name for name in FUNCTIONS if name not in ("logistic", "rsqrt", "cbrt", "erf", "erfc", "erf_inv")]


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_function(name):
    rng = np.random.default_rng(1)
    z = rng.uniform(-2, 2, 80) + 1j * rng.uniform(-2, 2, 80)
    with mpmath.workdps(40):
        exact = FUNCTIONS[name][0]
        want = np.array([complex(exact(mpmath.mpc(v))) for v in z])
    assert_ulps(run(getattr(ew, name), z), want, 16, name)


def test_complex_sizes_do_not_overflow():
    big, small = np.complex64(3e38 + 1e38j), np.complex64(3e-38 + 1e-38j)
    assert_ulps(run(ew.abs, [big, small]), np.abs(np.array([big, small], complex)).astype(np.float32), 2, "abs")
    assert_ulps(run(ew.sign, [big, small]), np.array([3 + 1j, 3 + 1j], np.complex64) / np.float32(math.sqrt(10)), 8, "")
    assert_ulps(run(ew.div, [big], [big]), np.array([1 + 0j], np.complex64), 2, "div")
    assert np.isfinite(run(ew.log, big)) and np.isfinite(run(ew.sqrt, big))


def test_complex_quotients_at_the_edges():
    x = np.array([1 + 0j, 1 + 1j, 0, 1 + 1j])
    y = np.array([0, 0, 0, complex(INF, INF)])
    got = run(ew.div, x, y)
    assert np.isinf(got[0].real) and np.isnan(got[0].imag)
    assert np.isinf(got[1].real) and np.isinf(got[1].imag)
    assert np.isnan(got[2])
    assert got[3] == 0


def test_complex_power_of_zero():
    got = run(ew.pow, np.zeros(4, np.complex64), np.array([0, 1, 2 + 1j, -1], np.complex64))
    assert got[0] == 1 and got[1] == 0 and got[2] == 0 and np.isnan(got[3])


def test_parts_of_complex_numbers():
    z = np.array([1 - 2j, complex(-0.0, NAN)], np.complex64)
    assert_same_bits(run(ew.real, z), np.array([1, -0.0], np.float32), "real")
    assert_same_bits(run(ew.imag, z), np.array([-2, NAN], np.float32), "imag")
    assert_same_bits(run(ew.complex, z.real, z.imag), z, "complex")
    assert run(ew.conj, z)[0] == 1 + 2j


# -- derived functions ------------------------------------------------------------------------------------------------


def test_powers_by_squaring():
    x = ArrayImpl(np.array([2.0, -3.0, 0.5], np.float32))
    for n in (-3, -1, 0, 1, 2, 3, 7, 10):
        np.testing.assert_allclose(np.asarray(ew.integer_pow(x, n)), np.asarray(x) ** n, rtol=1e-6)
    assert np.asarray(ew.exp2(ArrayImpl(np.float32(10)))) == 1024
    assert np.asarray(ew.square(x)).tolist() == [4, 9, 0.25]


def test_zero_wins_in_strong_products():
    zero = np.array([0, -0.0, 0, 2, NAN], np.float32)
    other = np.array([INF, NAN, -INF, 3, 1], np.float32)
    assert_ulps(run(strong_mul, zero, other), np.array([0, 0, 0, 6, NAN], np.float32), 0, "product")
    assert_ulps(run(strong_mul, other, zero), np.array([0, 0, 0, 6, NAN], np.float32), 0, "product")
    assert_ulps(run(strong_div, zero, zero), np.array([0, 0, 0, 1, NAN], np.float32), 0, "quotient")
