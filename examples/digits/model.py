"""The model, its loss, and Adam written out by hand: everything that is compiled."""

from __future__ import annotations

from typing import Any, NamedTuple

import xformlib as xf
import xformlib.numpy as jnp

Params = list[tuple[Any, Any]]  # one (weights, bias) per layer


class Adam(NamedTuple):
    """State of the optimiser: step count and running moments of the gradient (Kingma & Ba, 2015)."""

    step: Any
    mean: Any
    square: Any


def init_params(key: Any, sizes: list[int]) -> Params:
    """Weights of scale sqrt(2 / inputs) (He et al., 2015) and zero biases, for layers of the given sizes."""
    keys = xf.random.split(key, len(sizes) - 1)
    return [
        (xf.random.normal(k, (m, n)) * (2.0 / m) ** 0.5, jnp.zeros(n))
        for k, m, n in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


def logits(params: Params, images: Any) -> Any:
    """Class scores (batch, 10) of images (batch, 64)."""
    x = images
    for weights, bias in params[:-1]:
        x = xf.nn.relu(x @ weights + bias)
    weights, bias = params[-1]
    return x @ weights + bias


def loss(params: Params, images: Any, labels: Any) -> Any:
    """Mean cross-entropy plus a little weight decay."""
    log_p = xf.nn.log_softmax(logits(params, images))
    nll = -jnp.mean(jnp.take_along_axis(log_p, labels[:, None], axis=1))
    return nll + 1e-4 * sum(jnp.sum(w * w) for w, _ in params)


def init_adam(params: Params) -> Adam:
    """Zero moments."""
    zeros = xf.tree.map(jnp.zeros_like, params)
    return Adam(jnp.zeros((), jnp.int32), zeros, zeros)


@xf.jit
def train_step(params: Params, state: Adam, images: Any, labels: Any, rate: float) -> tuple[Params, Adam, Any]:
    """One step of Adam on a batch; returns the new parameters and state, and the loss before the step."""
    value, gradient = xf.value_and_grad(loss)(params, images, labels)
    step = state.step + 1
    mean = xf.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state.mean, gradient)
    square = xf.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, state.square, gradient)
    t = step.astype(jnp.float32)
    scale = rate * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
    params = xf.tree.map(lambda p, m, s: p - scale * m / (jnp.sqrt(s) + 1e-8), params, mean, square)
    return params, Adam(step, mean, square), value


@xf.jit
def predict(params: Params, images: Any) -> Any:
    """The most likely digit of each image."""
    return jnp.argmax(logits(params, images), axis=1)
