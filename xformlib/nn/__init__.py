"""Functions for neural networks."""

from __future__ import annotations

from typing import Any

from xformlib import numpy as jnp
from xformlib.array import Array
from xformlib.numpy._util import array, axes_of, inexact
from xformlib.ops import elementwise as ops
from xformlib.ops.gradient import stop_gradient

__all__ = [
    "elu",
    "gelu",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "logsumexp",
    "one_hot",
    "relu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "swish",
    "tanh",
]


def relu(x: Any) -> Array:
    """The positive part; its derivative at 0 is 0.

    >>> import xformlib as xf, xformlib.numpy as jnp
    >>> print(xf.nn.relu(jnp.array([-1.0, 2.0])))
    [0. 2.]
    """
    x = array(x, "relu")
    return jnp.where(x > 0, x, jnp.zeros_like(x))  # type: ignore[no-any-return]


def sigmoid(x: Any) -> Array:
    """1 / (1 + exp(-x))."""
    return ops.logistic(inexact(array(x, "sigmoid")))  # type: ignore[no-any-return]


def softplus(x: Any) -> Array:
    """log(1 + exp(x))."""
    return jnp.logaddexp(x, 0)


def log_sigmoid(x: Any) -> Array:
    """The logarithm of the sigmoid."""
    return -softplus(-array(x, "log_sigmoid"))


def silu(x: Any) -> Array:
    """x times its sigmoid."""
    x = array(x, "silu")
    return x * sigmoid(x)  # type: ignore[no-any-return]


swish = silu


def tanh(x: Any) -> Array:
    """Hyperbolic tangent."""
    return jnp.tanh(x)  # type: ignore[no-any-return]


def elu(x: Any, alpha: Any = 1.0) -> Array:
    """x for positive x, ``alpha * (exp(x) - 1)`` below."""
    x = array(x, "elu")
    return jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0.0, x)))  # type: ignore[no-any-return]


def leaky_relu(x: Any, negative_slope: Any = 1e-2) -> Array:
    """x for positive x, ``negative_slope * x`` below."""
    x = array(x, "leaky_relu")
    return jnp.where(x >= 0, x, negative_slope * x)  # type: ignore[no-any-return]


def gelu(x: Any, approximate: bool = True) -> Array:
    """x times the normal distribution function of x (Hendrycks & Gimpel, 2016), or its tanh approximation."""
    x = inexact(array(x, "gelu"))
    if approximate:
        return x * 0.5 * (1.0 + jnp.tanh((2 / jnp.pi) ** 0.5 * (x + 0.044715 * x**3)))  # type: ignore[no-any-return]
    return x * 0.5 * ops.erfc(-x * 0.5**0.5)  # type: ignore[no-any-return]


def _shifted(x: Any, axis: Any, where: Any) -> tuple[Any, Any]:
    """``x`` minus its maximum, which carries no derivative, and that maximum. Masked elements are -inf."""
    x = inexact(x)
    if where is not None:
        x = jnp.where(where, x, -jnp.inf)
    top = stop_gradient(jnp.max(x, axis, keepdims=True, initial=-jnp.inf))
    top = jnp.where(jnp.isfinite(top), top, 0)
    return x - top, top


def softmax(x: Any, axis: Any = -1, where: Any = None) -> Array:
    """Exponentials that sum to 1 along axes; elements outside the mask are 0.

    >>> import xformlib as xf, xformlib.numpy as jnp
    >>> print(xf.nn.softmax(jnp.zeros(4)))
    [0.25 0.25 0.25 0.25]
    """
    x = array(x, "softmax")
    weights = jnp.exp(_shifted(x, axis, where)[0])
    return weights / jnp.sum(weights, axis, keepdims=True)  # type: ignore[no-any-return]


def log_softmax(x: Any, axis: Any = -1, where: Any = None) -> Array:
    """The logarithm of the softmax, without overflow or cancellation."""
    x = array(x, "log_softmax")
    shifted, _ = _shifted(x, axis, where)
    return shifted - jnp.log(jnp.sum(jnp.exp(shifted), axis, keepdims=True))  # type: ignore[no-any-return]


def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, where: Any = None) -> Array:
    """log(sum(b * exp(a))) without overflow; -inf (with derivative 0) where nothing is added."""
    x = array(a, "logsumexp")
    dims = axes_of(axis, x.ndim, "logsumexp")
    shifted, top = _shifted(x, dims, where)
    terms = jnp.exp(shifted) if b is None else b * jnp.exp(shifted)
    out = jnp.log(jnp.sum(terms, dims, keepdims=True)) + top
    return out if keepdims else jnp.squeeze(out, dims)  # type: ignore[no-any-return]


def one_hot(x: Any, num_classes: int, *, dtype: Any = None, axis: int = -1) -> Array:
    """1 at the position each integer names along a new axis, 0 elsewhere; out of range gives zeros.

    >>> import xformlib as xf, xformlib.numpy as jnp
    >>> print(xf.nn.one_hot(jnp.array([1]), 3))
    [[0. 1. 0.]]
    """
    x = array(x, "one_hot")
    hit = x[..., None] == jnp.arange(num_classes, dtype=x.dtype)
    out = hit.astype(jnp.float_ if dtype is None else dtype)  # type: ignore[attr-defined]
    return jnp.moveaxis(out, -1, axis)
