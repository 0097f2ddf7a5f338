"""vmap: which axes, which outputs, and nesting."""

from __future__ import annotations

import numpy as np
import pytest

import xformlib as xf
import xformlib.numpy as jnp
from xformlib import errors

pytestmark = pytest.mark.usefixtures("interpreted")
rng = np.random.default_rng(0)
X = rng.standard_normal((2, 3, 4)).astype(np.float32)
Y = rng.standard_normal((2, 3, 4)).astype(np.float32)


def close(got, want):
    assert np.shape(got) == np.shape(want)
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("axis", range(-3, 3))
@pytest.mark.parametrize("out_axis", range(-3, 3))
def test_axes(axis, out_axis):
    got = xf.vmap(lambda x: x * 2 + 1, axis, out_axis)(X)
    close(got, np.moveaxis(X, axis, out_axis) * 2 + 1)


@pytest.mark.parametrize("axes", [(0, 0), (1, -1), (2, 0), (None, 1), (-2, None)])
def test_axes_of_two_arguments(axes):
    """Elementwise over arrays of which one or both have a batch axis of size 5 somewhere."""
    args = [x[0] if a is None else np.stack([x[0] * k for k in range(5)], a) for x, a in zip((X, Y), axes, strict=True)]
    rows = [[x] * 5 if a is None else list(np.moveaxis(x, a, 0)) for x, a in zip(args, axes, strict=True)]
    close(xf.vmap(lambda a, b: a * b, axes)(*args), np.stack([a * b for a, b in zip(*rows, strict=True)]))


def test_in_axes_trees():
    data = {"a": X[0], "b": (Y[0, 0], X[0].T)}

    def f(d, s):
        return d["a"] * s + d["b"][0] + d["b"][1]

    want = X[0] * 3.0 + Y[0, 0] + X[0]
    close(xf.vmap(f, ({"a": 0, "b": (None, 1)}, None))(data, 3.0), want)
    close(xf.vmap(f, [{"a": 0, "b": (None, 1)}, None])(data, 3.0), want)
    close(xf.vmap(lambda d: d["a"] + d["b"], ({"a": 0, "b": 0},))({"a": X[0], "b": Y[0]}), X[0] + Y[0])
    close(xf.vmap(lambda d: d["a"] + d["b"], (0,))({"a": X[0], "b": Y[0]}), X[0] + Y[0])
    with pytest.raises(errors.VmapError, match="in_axes"):
        xf.vmap(lambda d: d["a"], ({"b": 0},))({"a": X[0]})


def test_none_arguments_and_outputs():
    close(xf.vmap(lambda x, n: x, (0, None))(X, None), X)
    close(xf.vmap(lambda x, n: x)(X, None), X)
    out = xf.vmap(lambda x: (x, None, {"n": None, "x": x}))(X)
    close(out[0], X)
    assert out[1] is None and out[2]["n"] is None
    out = xf.vmap(lambda x: (x, None), out_axes=(1, None))(X)
    close(out[0], np.moveaxis(X, 0, 1))


def test_out_axes_trees():
    def f(x):
        return {"a": x, "b": (x + 1, 2.0)}

    out = xf.vmap(f, out_axes={"a": 1, "b": (-1, None)})(X)
    close(out["a"], np.moveaxis(X, 0, 1))
    close(out["b"][0], np.moveaxis(X + 1, 0, -1))
    close(out["b"][1], np.float32(2.0))
    with pytest.raises(errors.AxisError, match="out_axes"):
        xf.vmap(f, out_axes={"a": 0, "b": 1})(X)  # the constant 2.0 becomes an array of one axis
    with pytest.raises(errors.VmapError, match="depends on mapped"):
        xf.vmap(lambda x: x, out_axes=None)(X)
    with pytest.raises(errors.VmapError, match="out_axes"):
        xf.vmap(lambda x: (x, x), out_axes=(0, 0, 0))(X)


def test_unmapped_outputs_are_broadcast():
    out = xf.vmap(lambda x, y: (y * 2, 3.0, x), (0, None))(X, Y)
    close(out[0], np.broadcast_to(Y * 2, (2, 2, 3, 4)))
    close(out[1], np.full(2, 3.0, np.float32))


def test_keyword_arguments_are_mapped_over_their_first_axis():
    close(xf.vmap(lambda x, *, y: x + y)(X, y=Y), X + Y)
    close(xf.vmap(lambda x, y: x + y, in_axes=(1,))(X, y=np.moveaxis(Y, 1, 0)), np.moveaxis(X + Y, 1, 0))
    with pytest.raises(errors.VmapError, match="keyword argument"):
        xf.vmap(lambda x, y: x + y)(X, y=Y[:1])


def test_axis_size():
    close(xf.vmap(lambda: 2.0, axis_size=3)(), np.full(3, 2.0, np.float32))
    close(xf.vmap(lambda x: x, in_axes=None, axis_size=2)(X), np.stack([X, X]))
    close(xf.vmap(lambda x: x, axis_size=2)(X), X)
    with pytest.raises(errors.VmapError, match="axis_size=5"):
        xf.vmap(lambda x: x, axis_size=5)(X)
    with pytest.raises(errors.VmapError, match="axis_size"):
        xf.vmap(lambda x: x)({})


@pytest.mark.parametrize("size", [0, 1])
def test_small_sizes(size):
    x = X[:size]
    close(xf.vmap(lambda x: jnp.sum(x * x, axis=0))(x), (x * x).sum(1))
    close(xf.vmap(xf.grad(lambda x: jnp.sum(x * x)))(x), 2 * x)


def test_nested():
    close(xf.vmap(xf.vmap(lambda x, y: x * y, (0, None)), (None, 0))(X[0, 0], Y[0, 0]), np.outer(Y[0, 0], X[0, 0]))
    close(xf.vmap(xf.vmap(lambda x, y: x * y, (None, 0)), (0, None))(X[0, 0], Y[0, 0]), np.outer(X[0, 0], Y[0, 0]))
    close(xf.vmap(xf.vmap(xf.vmap(lambda x: x + 1)))(X), X + 1)
    close(xf.vmap(xf.vmap(jnp.sum, 1, 0), 1, 1)(X), X.sum(0).T)


def test_nested_with_inner_closure():
    f = xf.vmap(lambda x: xf.vmap(lambda y: x - y, out_axes=1)(Y[0]))
    close(f(X[0]), X[0][:, :, None] - Y[0].T[None])


def test_sizes_come_from_mapped_arguments_only():
    close(xf.vmap(lambda x, y: x + y.sum(), (0, None))(X[0], Y[:1, 0]), X[0] + Y[0, 0].sum())
    with pytest.raises(errors.VmapError, match="one size"):
        xf.vmap(lambda x, y: x)(X, Y[0])


def test_mapping_inside_other_transformations():
    def f(w, x):
        return jnp.sum(w * x)

    per_example = xf.vmap(f, (None, 0))
    w = Y[0]
    close(per_example(w, X), (w * X).sum((1, 2)))
    close(xf.grad(lambda w: jnp.sum(per_example(w, X)))(w), X.sum(0))
    close(xf.jit(per_example)(w, X), (w * X).sum((1, 2)))
    close(xf.vmap(xf.jit(f), (None, 0))(w, X), (w * X).sum((1, 2)))
    _, tangent = xf.jvp(lambda w: per_example(w, X), (w,), (np.ones_like(w),))
    close(tangent, X.sum((1, 2)))


def test_python_scalars_and_dtypes():
    close(xf.vmap(lambda x, s: x * s, (0, None))(X, 2), X * 2)
    out = xf.vmap(lambda x: x * 2)(np.arange(3, dtype=np.int8))
    assert out.dtype == np.int8
    weak = xf.vmap(lambda x, s: s, (0, None))(X, 2.0)
    assert weak.weak_type


def test_control_flow_on_mapped_values_is_explained():
    with pytest.raises(errors.TracerBoolConversionError, match="where"):
        xf.vmap(lambda x: x if x > 0 else -x)(np.ones(3, np.float32))
