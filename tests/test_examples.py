"""The examples run, and give what they promise."""

from __future__ import annotations

import numpy as np
import pytest


def test_digits_reaches_97_percent_and_writes_the_picture(tmp_path):
    from examples.digits.__main__ import train
    from examples.digits.plot import save_plot

    result = train(epochs=30, batch=64, seed=0, quiet=True)
    assert result["accuracy"] >= 0.97
    assert np.mean(result["losses"][-20:]) < 0.1 * result["losses"][0]
    save_plot(result, tmp_path / "digits.png")
    assert (tmp_path / "digits.png").read_bytes().startswith(b"\x89PNG")


def test_tanh_derivatives(capsys):
    from examples import tanh_derivatives

    tanh_derivatives.main()
    values = [float(line.split()[-1]) for line in capsys.readouterr().out.splitlines()]
    t = np.tanh(1.0)
    expected = [t, 1 - t**2, -2 * t * (1 - t**2), (1 - t**2) * (6 * t**2 - 2)]
    assert values == pytest.approx(expected, rel=2e-6)


def test_pairwise_distances_equal_numpy(capsys):
    from examples import pairwise_l1

    pairwise_l1.main()
    assert float(capsys.readouterr().out.split()[-1]) < 1e-5


def test_elementwise_example_traces_once(capsys):
    from examples import elementwise

    elementwise.main(size=50)
    out = capsys.readouterr().out
    assert out.count("tracing with") == 1
    assert "[5. 0. 0.]" in out


def test_polynomial_on_a_large_array():
    import xformlib as xf
    import xformlib.numpy as jnp

    x = np.random.default_rng(0).standard_normal((5000, 5000)).astype(np.float32)
    got = np.asarray(xf.jit(lambda v: v * v + v * 2)(jnp.asarray(x)))
    # The compiler may round product and sum once: the error is relative to the terms, which may cancel.
    assert np.all(np.abs(got - (x * x + x * 2)) <= 2e-7 * (x * x + np.abs(2 * x)))
