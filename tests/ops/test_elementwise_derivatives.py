"""Derivatives of elementwise ops where they are a matter of policy, or hard: kinks, singular points, tails."""

import math

import numpy as np
import pytest

import xformlib as xf
from xformlib.array import ArrayImpl, KeyArray
from xformlib.dtypes import KeyDType
from xformlib.ops import elementwise as ew

INF = math.inf


def number(x, dtype=np.float32):
    return ArrayImpl(np.asarray(x, dtype))


def slope(f, x, dtype=np.float32):
    """f'(x), checked in both modes."""
    reverse = float(xf.grad(f)(number(x, dtype)))
    forward = float(xf.jvp(f, (number(x, dtype),), (number(1, dtype),))[1])
    np.testing.assert_equal(reverse + 0, forward + 0)  # of 0 and -0 either will do
    return reverse + 0


def test_ties_share_the_tangent():
    for op in (ew.max, ew.min):
        assert [float(g) for g in xf.grad(op, (0, 1))(number(2), number(2))] == [0.5, 0.5]
    assert slope(lambda x: ew.max(x, 0.0), 0.0) == 0.5


def test_kinks():
    assert slope(ew.abs, 0.0) == 0
    assert slope(ew.sign, 0.0) == 0
    assert slope(ew.floor, 1.0) == 0
    assert slope(ew.sqrt, 0.0) == INF
    assert slope(ew.cbrt, 0.0) == INF
    assert slope(ew.rsqrt, 0.0) == -INF
    assert slope(ew.log, 0.0) == INF


def test_clamp_passes_the_tangent_strictly_inside():
    clamp = lambda x: ew.clamp(number(0), x, number(1))  # noqa: E731
    assert [slope(clamp, x) for x in (-1.0, 0.0, 0.5, 1.0, 2.0)] == [0, 0, 1, 0, 0]
    assert slope(lambda low: ew.clamp(low, number(0), number(1)), 0.5) == 1
    assert slope(lambda high: ew.clamp(number(0), number(2), high), 1.0) == 1
    # Crossed bounds: the upper one wins.
    assert slope(lambda low: ew.clamp(low, number(0), number(1)), 3.0) == 0
    assert slope(lambda high: ew.clamp(number(3), number(0), high), 1.0) == 1


@pytest.mark.parametrize(
    ("x", "y", "in_base", "in_exponent"),
    [
        (0, 0, 0, 0),
        (0, 1, 1, 0),
        (0, 2, 0, 0),
        (0, 0.5, INF, 0),
        (0, 1.5, 0, 0),
        (0, -1, -INF, -INF),
        (-2, 2, -4, math.nan),
        (-2, 3, 12, math.nan),
        (2, 0, 0, math.log(2)),
        (-2, 0, 0, math.nan),
    ],
)
def test_pow(x, y, in_base, in_exponent):
    got = [float(g) for g in xf.grad(ew.pow, (0, 1))(number(x, np.float64), number(y, np.float64))]
    np.testing.assert_allclose(got, [in_base, in_exponent], rtol=1e-14)


@pytest.mark.parametrize(("n", "first", "second"), [(0, 0, 0), (1, 1, 0), (2, 0, 2), (3, 0, 0)])
def test_integer_powers_at_zero(n, first, second):
    for power in (lambda x: ew.pow(x, float(n)), lambda x: ew.integer_pow(x, n)):
        assert slope(power, 0.0) == first
        assert slope(xf.grad(power), 0.0) == second


def test_tails_of_saturating_functions():
    e = math.exp(-40)
    for x in (40.0, -40.0):
        assert slope(ew.logistic, x, np.float64) == pytest.approx(e / (1 + e) ** 2, rel=1e-14)
    assert slope(ew.tanh, 20.0, np.float64) == pytest.approx(4 * e / (1 + e) ** 2, rel=1e-14)
    for x in (-200.0, 190.0, 500.0):
        assert slope(ew.tanh, x) == 0
        assert slope(xf.grad(ew.tanh), x) == 0
    assert float(xf.grad(xf.grad(xf.grad(ew.tanh)))(number(0))) == -2


# Functions that are infinite or have an infinite or undefined slope at 0.
SINGULAR = {
    "sqrt": ew.sqrt,
    "sqrt of sqrt": lambda x: ew.sqrt(ew.sqrt(x)),
    "norm": lambda x: ew.sqrt(ew.add(ew.square(x), ew.square(x))),
    "rsqrt": ew.rsqrt,
    "cbrt": ew.cbrt,
    "log": ew.log,
    "log1p": lambda x: ew.log1p(ew.sub(x, 1.0)),
    "reciprocal": lambda x: ew.div(1.0, x),
    "exp(-1/x^2)": lambda x: ew.exp(ew.div(-1.0, ew.square(x))),
    "overflow": lambda x: ew.exp(ew.mul(ew.sub(1.0, x), 1000.0)),
    "cosh": lambda x: ew.cosh(ew.mul(ew.sub(1.0, x), 1000.0)),
    "x^0.5": lambda x: ew.pow(x, 0.5),
    "x^-1": lambda x: ew.pow(x, -1.0),
    "x^x": lambda x: ew.pow(x, x),
    "asin": lambda x: ew.asin(ew.add(x, 1.0)),
    "acos": lambda x: ew.acos(ew.add(x, 1.0)),
    "acosh": lambda x: ew.acosh(ew.add(x, 1.0)),
    "atanh": lambda x: ew.atanh(ew.add(x, 1.0)),
    "erf_inv": lambda x: ew.erf_inv(ew.add(x, 1.0)),
    "atan2": lambda x: ew.atan2(x, x),
    "rem": lambda x: ew.rem(number(1), x),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_an_untaken_branch_does_not_poison_derivatives(name):
    """where(x > 0, f(x), x) is the identity around and below 0, whatever f: to the third order and in every mode."""
    f = lambda x: ew.select(ew.gt(x, 0.0), SINGULAR[name](x), x)  # noqa: E731
    assert slope(f, 0.0) == 1
    assert slope(xf.grad(f), 0.0) == 0
    assert slope(xf.grad(xf.grad(f)), 0.0) == 0
    forward = lambda x: xf.jvp(f, (x,), (number(1),))[1]  # noqa: E731
    assert slope(forward, 0.0) == 0


def test_the_taken_branch_keeps_its_slope():
    f = lambda x: ew.select(ew.ge(x, 0.0), ew.sqrt(x), x)  # noqa: E731
    assert slope(f, 4.0) == 0.25
    assert slope(f, 0.0) == INF


def test_stop_gradient():
    f = lambda x: ew.mul(ew.stop_gradient(x), x)  # noqa: E731
    assert slope(f, 3.0) == 3
    assert slope(xf.grad(f), 3.0) == 0


def test_conversions_carry_tangents_between_floats_only():
    wide = lambda x: ew.convert(ew.square(ew.convert(x, dtype=np.dtype(np.float64))), dtype=np.dtype(np.float32))  # noqa: E731
    gradient = xf.grad(wide)(number(3))
    assert gradient.dtype == np.float32 and float(gradient) == 6
    through_int = lambda x: ew.mul(ew.convert(ew.convert(x, dtype=np.dtype(np.int32)), dtype=np.dtype(np.float32)), x)  # noqa: E731
    assert slope(through_int, 2.5) == 2


def test_transposes_of_complex_parts_do_not_conjugate():
    z = number(1 + 2j, np.complex64)
    assert complex(xf.grad(ew.real)(z)) == 1
    assert complex(xf.grad(ew.imag)(z)) == -1j
    assert complex(xf.grad(ew.abs)(number(3 + 4j, np.complex64))) == pytest.approx(0.6 - 0.8j)
    assert complex(xf.grad(ew.abs)(number(0, np.complex64))) == 0


def test_keys_are_selected_whole():
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, 2**32, (3, 2), np.uint32) for _ in range(2))
    keys, other = (KeyArray(ArrayImpl(words), KeyDType("fry")) for words in (x, y))
    mask = np.array([True, False, True])
    chosen = ew.select(ArrayImpl(mask), keys, other)
    np.testing.assert_array_equal(np.asarray(chosen._base), np.where(mask[:, None], x, y))
    batched = xf.vmap(lambda p, k: ew.select(p, k, k))(ArrayImpl(mask), keys)
    assert batched.shape == (3,) and batched.is_key
    assert ew.select(ArrayImpl(np.bool_(True)), keys, other).shape == (3,)
    assert xf.vmap(lambda p: ew.select(p, keys, other))(ArrayImpl(mask)).shape == (3, 3)
