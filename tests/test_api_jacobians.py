"""Jacobians and Hessians: shapes, trees, and agreement of both modes with finite differences."""

from __future__ import annotations

import numpy as np
import pytest

import xformlib as xf
import xformlib.numpy as jnp
from xformlib import errors

pytestmark = pytest.mark.usefixtures("interpreted", "x64")


def numeric(f, x, h=1e-6):
    """Jacobian by central differences: shape of the output, then of the input."""
    x = np.asarray(x, np.float64)
    columns = []
    for i in range(x.size):
        e = np.zeros(x.size)
        e[i] = h
        e = e.reshape(x.shape)
        columns.append((np.asarray(f(jnp.asarray(x + e))) - np.asarray(f(jnp.asarray(x - e)))) / (2 * h))
    return np.stack(columns, -1).reshape(np.shape(columns[0]) + x.shape)


def vector(x):
    return jnp.stack([jnp.sin(x[0]) * x[1], x[1] ** 3, x[0] * x[1] * x[2]])


def wide(x):
    return jnp.sum(jnp.sin(x) * x, axis=1)


X3 = np.array([0.3, -1.2, 2.0])
X23 = np.array([[0.1, 0.2, 0.3], [1.0, -1.0, 2.0]])


@pytest.mark.parametrize(
    ("f", "x"),
    [(vector, X3), (wide, X23), (lambda x: jnp.sum(x * x), X23), (lambda x: x * 2, X23), (jnp.exp, np.array(0.5))],
)
def test_both_modes_and_finite_differences(f, x):
    want = numeric(f, x)
    for jacobian in (xf.jacfwd, xf.jacrev):
        got = jacobian(f)(jnp.asarray(x))
        assert got.shape == np.shape(f(jnp.asarray(x))) + x.shape
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-7, atol=1e-8)


def test_hessian_is_symmetric_and_right():
    def f(x):
        return jnp.exp(x[0] * x[1]) + jnp.sin(x[2]) * x[0] ** 2

    got = np.asarray(xf.hessian(f)(jnp.asarray(X3)))
    np.testing.assert_allclose(got, got.T, rtol=1e-13)
    np.testing.assert_allclose(got, numeric(xf.grad(f), X3), rtol=1e-7, atol=1e-8)
    for second in (xf.jacrev(xf.grad(f)), xf.jacfwd(xf.jacfwd(f)), xf.jacrev(xf.jacrev(f)), xf.jacrev(xf.jacfwd(f))):
        np.testing.assert_allclose(np.asarray(second(jnp.asarray(X3))), got, rtol=1e-12, atol=1e-14)


def test_trees():
    def f(p, y):
        return {"s": jnp.sum(p["a"]) * y, "v": p["a"] * p["b"]}

    args = {"a": jnp.asarray([1.0, 2.0]), "b": jnp.asarray(3.0)}, jnp.asarray(5.0)
    for jacobian in (xf.jacfwd, xf.jacrev):
        got = jacobian(f)(*args)
        assert set(got) == {"s", "v"} and set(got["s"]) == {"a", "b"}
        assert np.array_equal(got["s"]["a"], [5.0, 5.0]) and float(got["s"]["b"]) == 0.0
        assert np.array_equal(got["v"]["a"], np.diag([3.0, 3.0])) and np.array_equal(got["v"]["b"], [1.0, 2.0])
        both = jacobian(f, argnums=(0, 1))(*args)
        assert isinstance(both["s"], tuple)
        assert float(both["s"][1]) == 3.0 and np.array_equal(both["v"][1], [0.0, 0.0])
        one = jacobian(f, argnums=(1,))(*args)
        assert isinstance(one["s"], tuple) and float(one["s"][0]) == 3.0
        last = jacobian(f, argnums=-1)(*args)
        assert float(last["s"]) == 3.0


def test_has_aux():
    for jacobian in (xf.jacfwd, xf.jacrev):
        got, aux = jacobian(lambda x: (x * x, {"sum": jnp.sum(x), "name": "n"}), has_aux=True)(jnp.asarray([1.0, 2.0]))
        assert np.array_equal(got, np.diag([2.0, 4.0]))
        assert float(aux["sum"]) == 3.0 and aux["name"] == "n"
    got, aux = xf.hessian(lambda x: (jnp.sum(x**3), "aux"), has_aux=True)(jnp.asarray([1.0, 2.0]))
    np.testing.assert_allclose(np.asarray(got), np.diag([6.0, 12.0]), rtol=1e-14)
    assert aux == "aux"


def test_holomorphic():
    z = jnp.asarray([1.0 + 1.0j, 2.0 - 1.0j])
    for jacobian in (xf.jacfwd, xf.jacrev):
        got = jacobian(lambda z: z * z * z, holomorphic=True)(z)
        np.testing.assert_allclose(np.asarray(got), np.diag(3 * np.asarray(z) ** 2), rtol=1e-14)
        with pytest.raises(errors.GradientError, match="complex"):
            jacobian(lambda x: x, holomorphic=True)(1.0)


def test_complex_values_without_holomorphic():
    z, x = jnp.asarray([1.0 + 2.0j]), jnp.asarray([2.0])
    for jacobian, f, at in (
        (xf.jacfwd, lambda z: z * z, z),
        (xf.jacrev, lambda z: z * z, z),
        (xf.jacrev, lambda x: x * 1j, x),
        (xf.hessian, lambda z: jnp.real(z * jnp.conj(z)), z),
    ):
        with pytest.raises(errors.GradientError, match="holomorphic=True"):
            jacobian(f)(at)
    assert np.array_equal(xf.jacfwd(lambda x: x * 1j)(x), [[1j]])
    assert np.array_equal(xf.jacrev(lambda z: jnp.real(z * jnp.conj(z)))(z), [[2 - 4j]])


def test_integer_outputs():
    for jacobian in (xf.jacfwd, xf.jacrev):
        with pytest.raises(errors.GradientError, match=r"output\['n'\].*int32.*has_aux"):
            jacobian(lambda x: {"n": x.astype(np.int32), "x": x})(jnp.asarray([1.0]))


def test_integers_are_refused():
    for jacobian in (xf.jacfwd, xf.jacrev, xf.hessian):
        with pytest.raises(errors.GradientError, match="int"):
            jacobian(lambda x: x)(3)


def test_constant_outputs():
    for jacobian in (xf.jacfwd, xf.jacrev):
        got = jacobian(lambda x: (x, 2.0, jnp.ones(2)))(jnp.asarray([1.0, 2.0, 3.0]))
        assert np.array_equal(got[0], np.eye(3))
        assert np.array_equal(got[1], np.zeros(3)) and np.array_equal(got[2], np.zeros((2, 3)))


def test_empty_input():
    for jacobian in (xf.jacfwd, xf.jacrev):
        assert jacobian(lambda x: x * 2)(jnp.zeros(0)).shape == (0, 0)


def test_jacobian_under_other_transformations():
    def f(x):
        return jnp.sin(x) * jnp.sum(x)

    xs = jnp.asarray(X23)
    want = np.stack([numeric(f, x) for x in X23])
    for jacobian in (xf.jacfwd, xf.jacrev):
        np.testing.assert_allclose(np.asarray(xf.vmap(jacobian(f))(xs)), want, rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(np.asarray(xf.jit(jacobian(f))(xs[0])), want[0], rtol=1e-7, atol=1e-8)

        def trace(x, j=jacobian):
            return jnp.sum(j(f)(x) * np.eye(3))

        np.testing.assert_allclose(np.asarray(xf.grad(trace)(xs[0])), numeric(trace, X23[0]), rtol=1e-6, atol=1e-7)
