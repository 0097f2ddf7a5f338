"""The error function, its complement and its inverse for NumPy, to a few units in the last place.

The argument ranges are those of Sun Microsystems' fdlibm ``s_erf.c``; for the inverse those of M. Giles, "Approximating
the erfinv function" (GPU Computing Gems, 2012). The coefficients were fitted in 50 digits by interpolation at Chebyshev
nodes, which is near the best uniform approximation: their own error is below 3e-18, for the inverse below 6e-8, which
one step of Halley's iteration makes exact to double precision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["erf", "erf_inv", "erfc"]

# Coefficients from the highest power down.
# |x| <= 0.84375: erf(x) = x + x P(x^2) / Q(x^2).
_NEAR_P = [
    -1.984702742949449e-05,
    -0.0004758438208708455,
    -0.00868778814714607,
    -0.04750693311232493,
    -0.3173394193519721,
    0.1283791670955126,
]
_NEAR_Q = [
    1.9757304199483976e-05,
    0.0006689073311828194,
    0.01045820585046082,
    0.09261409260785639,
    0.4579167399966744,
    1.0,
]
# 0.84375 <= x <= 1.25: erf(x) = c + P(x - 1) / Q(x - 1), with few bits in c.
_MIDDLE = 0.845062911510467529296875
_MIDDLE_P = [
    -0.0021384725717794057,
    0.03519681333977411,
    -0.11040724555759479,
    0.3174963374553275,
    -0.3720996478587144,
    0.41485552704511164,
    -0.00236211856075266,
]
_MIDDLE_Q = [
    0.011890635173064646,
    0.013448268959373899,
    0.12533500935482428,
    0.07111273013053435,
    0.5385959705333493,
    0.10667134989315517,
    1.0,
]
# 1.25 <= x <= 1/0.35 and 1/0.35 <= x <= 28: erfc(x) = exp(-x^2 - c + P(1/x^2) / Q(1/x^2)) / x, with
# c such that little is left to the quotient.
_TAIL = 0.5625
_TAIL_P = [
    -1.908490115268808,
    -38.14599225398039,
    -175.43675370624845,
    -294.4485212326627,
    -215.04868331483885,
    -73.01716505629592,
    -11.36028555978902,
    -0.7057048827534732,
    -0.009864943844161684,
]
_TAIL_Q = [
    0.978500424243383,
    37.63910826272582,
    290.89813796781965,
    797.3773605871833,
    959.2694747485195,
    555.4745909640317,
    158.05690975293876,
    20.85211908984032,
    1.0,
]
_FAR_P = [
    -410.2032171322484,
    -1931.88896911919,
    -2265.5445941930384,
    -1030.718995109963,
    -212.3769900371065,
    -20.408743982233197,
    -0.8337687159418072,
    -0.009864942924700098,
]
_FAR_Q = [
    298.1832203801677,
    3329.622937079662,
    7637.668305675313,
    6371.003675863893,
    2364.098527264002,
    417.31952927497593,
    33.83382128913501,
    1.0,
]
# erf_inv(x) = x P(w - 2.5) for w = -log(1 - x^2) < 5, else x P(sqrt(w) - 3).
_INVERSE_NEAR = [
    -8.931925970244222e-09,
    2.3335967195708108e-08,
    4.6813134805534123e-07,
    -3.4639852676333717e-06,
    -4.9724196894547514e-06,
    0.00021834938623976644,
    -0.001252726391773229,
    -0.004177392875203149,
    0.24664027905463662,
    1.501409360450329,
]
_INVERSE_FAR = [
    9.039508662789153e-08,
    -1.7476080119989159e-06,
    1.4589844533704675e-05,
    -6.779867720025729e-05,
    0.00018351853956382464,
    -0.000240018111739325,
    -0.00016465253581212836,
    0.0014689313894754163,
    -0.0035467293088358824,
    0.005685510408721841,
    -0.007645808475029816,
    0.009445789312709566,
    1.0016753317520786,
    2.832976790001605,
]
_TWO_OVER_SQRT_PI = 1.1283791670955126


def _polynomial(coefficients: Sequence[float], x: np.ndarray) -> Any:
    out = coefficients[0] * x + coefficients[1]
    for c in coefficients[2:]:
        out *= x
        out += c
    return out


def _ratio(p: Sequence[float], q: Sequence[float], x: np.ndarray) -> Any:
    return _polynomial(p, x) / _polynomial(q, x)


def _piecewise(
    x: np.ndarray, conditions: Sequence[np.ndarray], pieces: Sequence[Callable[[np.ndarray], np.ndarray]]
) -> np.ndarray:
    """Each piece evaluated where its condition is the first that holds; the last piece elsewhere."""
    out = np.empty_like(x)
    rest = np.ones(x.shape, np.bool_)
    for condition, piece in zip([*conditions, rest], pieces, strict=True):
        chosen = rest & condition
        if chosen.any():
            out[chosen] = piece(x[chosen])
            rest = rest & ~condition
    return out


def _apply(function: Callable[[np.ndarray], np.ndarray], x: Any) -> Any:
    """Run a float64 function on any floating array, rounding its results once."""
    wide = np.asarray(x).reshape(-1).astype(np.float64)
    return function(wide).astype(x.dtype).reshape(x.shape)


# -- erf and erfc -----------------------------------------------------------------------------------------------------


def _near(x: np.ndarray) -> Any:
    """erf(x) - x."""
    return x * _ratio(_NEAR_P, _NEAR_Q, x * x)


def _middle(x: np.ndarray) -> Any:
    """erf(x) - c."""
    return _ratio(_MIDDLE_P, _MIDDLE_Q, x - 1)


def _exp_minus_square(x: np.ndarray, c: float = 0.0, rest: np.ndarray | float = 0.0) -> Any:
    """exp(-x^2 - c + rest), keeping relative precision: the square of the leading bits is exact, the rest is small."""
    lead = np.trunc(x * 1024) / 1024
    return np.exp(-lead * lead - c) * np.exp((lead - x) * (lead + x) + rest)


def _tail(x: np.ndarray) -> Any:
    """erfc(x) for x >= 1.25."""
    x = np.minimum(x, 30.0)  # where it is 0
    y = 1 / (x * x)
    pieces = [lambda y: _ratio(_FAR_P, _FAR_Q, y), lambda y: _ratio(_TAIL_P, _TAIL_Q, y)]
    return _exp_minus_square(x, _TAIL, _piecewise(y, [y < 0.1225], pieces)) / x


def _erf64(x: np.ndarray) -> Any:
    size = np.abs(x)
    pieces = [lambda x: x + _near(x), lambda x: _middle(x) + _MIDDLE, lambda x: 1 - _tail(x)]
    near = ~(size >= 0.84375)  # NaN goes along
    return np.copysign(_piecewise(size, [near, size < 1.25], pieces), x)


def _erfc64(x: np.ndarray) -> Any:
    pieces = [
        lambda x: 2 - _tail(-x),
        lambda x: (1 + _MIDDLE) + _middle(-x),
        lambda x: 1 - (x + _near(x)),
        lambda x: 0.5 - ((x - 0.5) + _near(x)),
        lambda x: (1 - _MIDDLE) - _middle(x),
        _tail,
    ]
    return _piecewise(x, [x <= -1.25, x <= -0.84375, ~(x >= 0.25), x < 0.84375, x < 1.25], pieces)


# -- the inverse ------------------------------------------------------------------------------------------------------


def _inverse(x: np.ndarray) -> Any:
    """erf_inv(x) to 26 bits, enough for all types but float64; infinite at the ends."""
    w = -np.log((1 - x) * (1 + x))
    pieces = [lambda w: _polynomial(_INVERSE_NEAR, w - 2.5), lambda w: _polynomial(_INVERSE_FAR, np.sqrt(w) - 3)]
    factor = _piecewise(w, [~(w >= 5)], pieces)
    return np.where(np.abs(x) == 1, np.copysign(np.inf, x), x * factor)


def _halley(x: np.ndarray) -> Any:
    """erf_inv(x) by one step towards erf(y) = x from the approximation; by erfc in the tails, for precision."""
    y = _inverse(x)
    size = np.abs(y)
    p = np.abs(x)
    miss = np.where(size < 0.5, _erf64(size) - p, (1 - p) - _erfc64(size))
    step = miss / (_TWO_OVER_SQRT_PI * _exp_minus_square(size))
    return np.where(np.isinf(y), y, np.copysign(size - step / (1 + size * step), x))


def erf(x: Any) -> Any:
    """The error function of real arrays."""
    return _apply(_erf64, x)


def erfc(x: Any) -> Any:
    """1 - erf(x), without cancellation for large x."""
    return _apply(_erfc64, x)


def erf_inv(x: Any) -> Any:
    """The inverse of the error function: NaN outside [-1, 1], infinite at its ends."""
    return _apply(_halley if x.dtype == np.float64 else _inverse, x)
