"""What only real compiled functions can get wrong: memory shared with the caller, devices, several threads."""

from __future__ import annotations

import numpy as np
import pytest

import xformlib as xf
import xformlib.numpy as jnp
from xformlib import errors


def aligned(values):
    """The values in memory that a compiled function could take as it is."""
    values = np.asarray(values, np.float32)
    raw = np.zeros(values.nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    out = raw[start : start + values.nbytes].view(np.float32).reshape(values.shape)
    out[...] = values
    return out


@pytest.mark.parametrize("size", [3, 100_000])
def test_numpy_arguments_may_change_afterwards(size):
    """Results never share memory with the caller's NumPy arrays, also where the program returns its argument."""
    f = xf.jit(lambda x: (x, x + 1, x.reshape(-1, 1)))
    x = aligned(np.ones(size))
    outs = f(x)
    x[:] = 7
    for out, want in zip(outs, (1, 2, 1), strict=True):
        assert np.all(np.asarray(out) == want)
    assert np.all(np.asarray(f(x)[1]) == 8)


def test_closed_over_numpy_arrays_are_looked_at_when_tracing():
    c = aligned(np.ones(3))
    f = xf.jit(lambda x: x + c)
    assert np.array_equal(f(jnp.zeros(3)), [1, 1, 1])
    c[:] = 7
    assert np.array_equal(f(jnp.zeros(3)), [1, 1, 1])


def test_arrays_made_from_numpy_are_copies():
    x = aligned(np.ones(3))
    y = jnp.asarray(x)
    f = xf.jit(lambda y: y * 2)
    assert np.array_equal(f(y), [2, 2, 2])
    x[:] = 7
    assert np.array_equal(y, [1, 1, 1]) and np.array_equal(f(y), [2, 2, 2])


def test_results_are_read_only_views():
    out = np.asarray(xf.jit(lambda x: x * 2)(jnp.ones(3)))
    with pytest.raises(ValueError, match="read-only"):
        out[0] = 5
    assert np.array(xf.jit(lambda x: x * 2)(jnp.ones(3))).flags.writeable


def test_donated_arrays():
    f = xf.jit(lambda x, y: x + y, donate_argnums=0)
    x, y = jnp.ones(3), jnp.ones(3)
    assert np.array_equal(f(x, y), [2, 2, 2])
    assert x.is_deleted() and not y.is_deleted()
    with pytest.raises(errors.DeletedArrayError):
        f(x, y)


def test_a_donated_argument_that_is_returned():
    f = xf.jit(lambda x: x, donate_argnums=0)
    x = jnp.ones(3)
    y = f(x)
    assert np.array_equal(y, [1, 1, 1])


def test_transformations_compose_with_compiled_calls():
    f = xf.jit(lambda x, y: jnp.sin(x) * y)
    x, y = np.float32(0.5), np.float32(2.0)
    assert float(xf.grad(f)(x, y)) == pytest.approx(2 * np.cos(0.5), rel=1e-6)
    assert float(xf.jit(xf.grad(xf.grad(f)))(x, y)) == pytest.approx(-2 * np.sin(0.5), rel=1e-6)
    xs = np.linspace(0, 1, 5, dtype=np.float32)
    np.testing.assert_allclose(xf.vmap(f, (0, None))(xs, y), np.sin(xs) * 2, rtol=1e-6)
    np.testing.assert_allclose(xf.jit(xf.vmap(xf.grad(f), (0, None)))(xs, y), np.cos(xs) * 2, rtol=1e-6)


def test_python_control_flow_on_results_of_compiled_functions():
    inner = xf.jit(lambda x: x * x)

    def f(x):
        y = inner(x)
        return y if y > 3 else x

    assert float(xf.grad(f)(2.0)) == 4.0
    assert float(xf.grad(f)(1.0)) == 1.0


def test_lower_and_compile():
    compiled = xf.jit(lambda x, n: x * n, static_argnums=1).lower(np.ones(3, np.float32), 3).compile()
    assert np.array_equal(compiled(np.full(3, 2, np.float32), 3), [6, 6, 6])
    assert "stablehlo.multiply" in compiled.as_text()
    for bad in (np.ones(4, np.float32), np.ones(3, np.int32), (np.ones(3, np.float32),)):
        with pytest.raises(errors.TreeError):
            compiled(bad, 3)


def test_no_outputs_and_no_inputs():
    assert xf.jit(lambda x: None)(1.0) is None
    assert float(xf.jit(lambda: 2.0)()) == 2.0
    assert np.array_equal(xf.jit(lambda: jnp.arange(3.0))(), [0, 1, 2])


def test_empty_arrays():
    out = xf.jit(lambda x: (x * 2, jnp.sum(x)))(np.zeros((0, 3), np.float32))
    assert out[0].shape == (0, 3) and float(out[1]) == 0.0
