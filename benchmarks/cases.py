"""The cases. Each gives a function to time for xformlib, and where it makes sense for NumPy and JAX, on the same values.

JAX and xformlib share their API, so most cases are written once, for a module ``xf`` and its NumPy namespace ``jnp``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Run = Callable[[], Any]


@dataclass(frozen=True)
class Case:
    """A named timing: ``make(xf, jnp)`` for either library, ``numpy`` where NumPy can do it too."""

    name: str
    make: Callable[[Any, Any], Run]
    numpy: Run | None = None


_small = np.linspace(0, 1, 4, dtype=np.float32)
_rows = np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8)


def _eager(name: str, f: Callable[[Any, Any], Any], g: Callable[[Any], Any]) -> Case:
    def make(xf: Any, jnp: Any) -> Run:
        x = jnp.asarray(_small)
        return lambda: xf.block_until_ready(f(jnp, x))

    return Case(f"eager {name}", make, lambda: g(_small))


def ten_operations(jnp: Any, x: Any) -> Any:
    """Nine elementwise operations and a sum."""
    for _ in range(3):
        x = jnp.sin(x) * x + 1.0
    return jnp.sum(x)


def _grad_eager(xf: Any, jnp: Any) -> Run:
    x = jnp.asarray(_small)
    return lambda: xf.block_until_ready(xf.grad(lambda v: ten_operations(jnp, v))(x))


def _trace(xf: Any, jnp: Any) -> Run:
    x = jnp.asarray(_small)

    def hundred(v: Any) -> Any:
        for _ in range(50):
            v = jnp.sin(v) * 2.0
        return v

    # A new function object each time: neither library may find it in a cache.
    return lambda: xf.jit(lambda v: hundred(v)).lower(x)


def _jit_call(xf: Any, jnp: Any) -> Run:
    f, x = xf.jit(lambda v: v + 1.0), jnp.asarray(_small)
    return lambda: xf.block_until_ready(f(x))


def _polynomial(xf: Any, jnp: Any) -> Run:
    f, x = xf.jit(lambda v: v * v + v * 2.0), jnp.ones((5000, 5000), jnp.float32)
    return lambda: xf.block_until_ready(f(x))


_large = np.ones((5000, 5000), np.float32)


def _pairwise(n: int) -> Case:
    points = np.random.default_rng(0).standard_normal((n, 3)).astype(np.float32)

    def make(xf: Any, jnp: Any) -> Run:
        distance = lambda a, b: jnp.sum(jnp.abs(a - b))  # noqa: E731 - as in the example
        f = xf.jit(xf.vmap(xf.vmap(distance, in_axes=(None, 0)), in_axes=(0, None)))
        x = jnp.asarray(points)
        return lambda: xf.block_until_ready(f(x, x))

    return Case(f"pairwise L1, {n} points, jit", make, lambda: np.abs(points[:, None] - points[None]).sum(-1))


def digits_step(xf: Any, jnp: Any) -> Run:
    """A training step of the digits example, in either library."""
    rng = np.random.default_rng(0)
    sizes = [64, 128, 64, 10]
    params = [
        (jnp.asarray(rng.standard_normal((m, n)).astype(np.float32) * 0.1), jnp.zeros(n, jnp.float32))
        for m, n in itertools.pairwise(sizes)
    ]
    images = jnp.asarray(rng.random((64, 64), np.float32))
    labels = jnp.asarray(rng.integers(0, 10, 64).astype(np.int32))

    def loss(params: Any) -> Any:
        x = images
        for w, b in params[:-1]:
            x = xf.nn.relu(x @ w + b)
        w, b = params[-1]
        log_p = xf.nn.log_softmax(x @ w + b)
        return -jnp.mean(jnp.take_along_axis(log_p, labels[:, None], axis=1))

    def step(params: Any, mean: Any, square: Any) -> Any:
        value, gradient = xf.value_and_grad(loss)(params)
        mean = xf.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
        square = xf.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, square, gradient)
        update = lambda p, m, s: p - 1e-3 * m / (jnp.sqrt(s) + 1e-8)  # noqa: E731
        return xf.tree.map(update, params, mean, square), mean, square, value

    f = xf.jit(step)
    zeros = xf.tree.map(jnp.zeros_like, params)
    return lambda: xf.block_until_ready(f(params, zeros, zeros))


CASES: list[Case] = [
    _eager("x + y", lambda jnp, x: x + x, lambda x: x + x),
    _eager("x * 2.0", lambda jnp, x: x * 2.0, lambda x: x * 2.0),
    _eager("sin", lambda jnp, x: jnp.sin(x), np.sin),
    _eager("sum", lambda jnp, x: jnp.sum(x), np.sum),
    _eager("x > 0", lambda jnp, x: x > 0, lambda x: x > 0),
    _eager("x[1]", lambda jnp, x: x[1], lambda x: x[1]),
    _eager("reshape", lambda jnp, x: jnp.reshape(x, (2, 2)), lambda x: np.reshape(x, (2, 2))),
    Case("eager matmul 8x8", lambda xf, jnp: _matmul(xf, jnp), lambda: _rows @ _rows),
    Case("grad of 10 operations, not jitted", _grad_eager),
    Case("trace 100 operations", _trace),
    Case("jit call", _jit_call),
    Case("x*x + x*2, 5000x5000, jit", _polynomial, lambda: _large * _large + _large * 2.0),
    _pairwise(100),
    _pairwise(2000),
    Case("digits training step, jit", digits_step),
]


def _matmul(xf: Any, jnp: Any) -> Run:
    x = jnp.asarray(_rows)
    return lambda: xf.block_until_ready(x @ x)
