"""grad, value_and_grad, jvp, vjp, linearize: arguments, structure, and nesting."""

from __future__ import annotations

import functools
from collections import namedtuple

import numpy as np
import pytest

import xformlib as xf
import xformlib.numpy as jnp
from xformlib import errors

pytestmark = pytest.mark.usefixtures("interpreted")
f32 = np.float32


def close(got, want, rtol=1e-6):
    got, want = xf.tree.leaves(got), xf.tree.leaves(want)
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert np.shape(g) == np.shape(w)
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=rtol, atol=1e-7)


# -- arguments --------------------------------------------------------------------------------------------------------


def f3(x, y, z):
    return x * y * y * z


@pytest.mark.parametrize(
    ("argnums", "want"),
    [
        (0, 45.0),
        (1, 60.0),
        (-1, 18.0),
        (np.int64(2), 18.0),
        ((0,), (45.0,)),
        ((0, 1), (45.0, 60.0)),
        ((2, 0), (18.0, 45.0)),
        ([0, -1], (45.0, 18.0)),
    ],
)
def test_argnums(argnums, want):
    args = (2.0, 3.0, 5.0)
    got = xf.grad(f3, argnums=argnums)(*args)
    assert isinstance(got, tuple) == isinstance(want, tuple)
    close(got, want)
    value, again = xf.value_and_grad(f3, argnums=argnums)(*args)
    close((value, again), (90.0, want))


def test_keyword_arguments_are_not_differentiated():
    close(xf.grad(lambda x, *, scale: x * scale)(2.0, scale=3.0), 3.0)
    close(xf.grad(lambda x, y=2.0: x * y)(1.0), 2.0)
    with pytest.raises(errors.GradientError, match="by position"):
        xf.grad(lambda x: x)(x=1.0)


def test_has_aux():
    aux = {"text": "kept", "n": 3, "none": None}
    gradient, out = xf.grad(lambda x: (x * x, {**aux, "x": x + 1.0}), has_aux=True)(3.0)
    close(gradient, 6.0)
    assert out["text"] == "kept" and out["none"] is None
    close((out["n"], out["x"]), (3, 4.0))
    (value, out), gradient = xf.value_and_grad(lambda x: (x * x, x), has_aux=True)(3.0)
    close((value, out, gradient), (9.0, 3.0, 6.0))
    with pytest.raises(errors.NotAnArrayError, match="pair"):
        xf.grad(lambda x: x, has_aux=True)(3.0)


def test_aux_is_not_differentiated():
    def f(x):
        g, aux = xf.grad(lambda y: (y * y, y * y * y), has_aux=True)(x)
        return g + aux

    close(xf.grad(f)(2.0), 2.0 + 12.0)


Point = namedtuple("Point", "x y")


def test_pytrees():
    params = {"layers": [(jnp.asarray([1.0, 2.0]), 3.0)], "point": Point(4.0, None), "none": None, "empty": ()}

    def f(p, scale):
        ((w, b),) = p["layers"]
        return jnp.sum(w * w) * b * p["point"].x * scale["s"]

    got = xf.grad(f)(params, {"s": 0.5})
    assert xf.tree.structure(got) == xf.tree.structure(params)
    assert isinstance(got["point"], Point)
    close(got, {"layers": [(np.array([12.0, 24.0]), 10.0)], "point": Point(7.5, None), "none": None, "empty": ()})


def test_dtypes_of_gradients():
    for dtype in (np.float16, jnp.bfloat16, np.float32):
        x = jnp.asarray([1.0, 2.0], dtype)
        assert xf.grad(lambda x: jnp.sum(x * x))(x).dtype == dtype
        # Also where the function computes in another type.
        assert xf.grad(lambda x: jnp.sum(x.astype(np.float32)) * 2)(x).dtype == dtype
    with xf.enable_x64():
        assert xf.grad(lambda x: x * x)(2.0).dtype == np.float64
        assert xf.grad(lambda x: x * x)(np.float32(2.0)).dtype == np.float32


def test_derivatives_are_weakly_typed_where_their_values_are():
    """So that the gradient at a Python scalar takes the dtype of what it meets."""
    for x, weak in ((1.0, True), (np.float32(1.0), False)):
        results = [
            xf.grad(lambda x: x * 2.0)(x),
            xf.grad(lambda x, y: y)(x, np.float32(2.0)),
            xf.grad(xf.grad(lambda x: x * x))(x),
            xf.grad(xf.jit(lambda x: x * x))(x),
            xf.jit(xf.grad(lambda x: x * x))(x),
            xf.jvp(lambda x: x * x, (x,), (x,))[1],
            xf.linearize(jnp.sin, x)[1](x),
            xf.vjp(jnp.sin, x)[1](x)[0],
            xf.jacfwd(jnp.sin)(x),
            xf.hessian(jnp.sin)(x),
        ]
        assert [r.weak_type for r in results] == [weak] * len(results)


def test_unused_and_constant():
    close(xf.grad(lambda x, y: x, argnums=(0, 1))(1.0, np.ones(3, f32)), (1.0, np.zeros(3)))
    close(xf.grad(lambda x: 3.0)(1.0), 0.0)
    close(xf.grad(lambda x: jnp.float32(3.0))(np.ones(2, f32)), np.zeros(2))
    close(xf.jvp(lambda x: 3.0, (1.0,), (1.0,)), (3.0, 0.0))
    close(xf.vjp(lambda x: (x, 2.0), 1.0)[1]((3.0, 4.0)), (3.0,))
    close(xf.linearize(lambda x: 2.0, 1.0)[1](5.0), 0.0)


def test_integers_have_float0():
    gradient = xf.grad(lambda x: x["f"] * x["i"], allow_int=True)({"f": 2.0, "i": 3})
    close(gradient["f"], 3.0)
    assert gradient["i"].dtype == xf.float0 and gradient["i"].shape == ()
    _, pull = xf.vjp(lambda x, n: x * n, 2.0, np.arange(3))
    gx, gn = pull(jnp.ones(3))
    close(gx, 3.0)
    assert gn.dtype == xf.float0 and gn.shape == (3,)
    value, tangent = xf.jvp(lambda x, n: (x * n, n), (2.0, 3), (1.0, np.zeros((), xf.float0)))
    close((value, tangent[0]), ((6.0, 3), 3.0))
    assert tangent[1].dtype == xf.float0
    with pytest.raises(errors.GradientError, match="float0"):
        xf.jvp(lambda x, n: x * n, (2.0, 3), (1.0, 1))


def test_holomorphic():
    z = jnp.asarray(1.0 + 2.0j)
    close(xf.grad(lambda z: z * z * z, holomorphic=True)(z), 3 * (1 + 2j) ** 2)
    with pytest.raises(errors.GradientError, match="holomorphic"):
        xf.grad(lambda z: z * z)(z)


def test_real_function_of_a_complex_argument():
    """The gradient is the conjugate of the steepest ascent's direction: that of |z|^2 is 2 conj(z)."""
    z = jnp.asarray(1.0 + 2.0j)
    close(xf.grad(lambda z: jnp.real(z * jnp.conj(z)))(z), 2 - 4j)


# -- jvp, vjp, linearize ----------------------------------------------------------------------------------------------


def test_jvp_of_trees():
    value, tangent = xf.jvp(lambda p, y: {"a": p[0] * y, "b": p[1]}, ((2.0, 3.0), 5.0), ((1.0, 10.0), 100.0))
    close(value, {"a": 10.0, "b": 3.0})
    close(tangent, {"a": 205.0, "b": 10.0})


def test_jvp_with_aux():
    value, tangent, aux = xf.jvp(lambda x: (x * x, ("n", x)), (3.0,), (1.0,), has_aux=True)
    close((value, tangent, aux[1]), (9.0, 6.0, 3.0))
    assert aux[0] == "n"


def test_jvp_takes_lists_and_python_scalars():
    close(xf.jvp(lambda x, y: x * y, [2.0, 3.0], [1.0, 0.0]), (6.0, 3.0))
    close(xf.jvp(lambda x: x * x, (np.float32(3.0),), (1,)), (9.0, 6.0))


def test_vjp_many_times_and_later():
    value, pull = xf.vjp(lambda x, y: (x * y, x + y), 2.0, 3.0)
    close(value, (6.0, 5.0))
    close(pull((1.0, 0.0)), (3.0, 2.0))
    close(pull((0.0, 1.0)), (1.0, 1.0))
    close(pull((1.0, 1.0)), (4.0, 3.0))


def test_vjp_function_takes_one_cotangent():
    _, pull = xf.vjp(lambda x: (x, x), 1.0)
    with pytest.raises(errors.TreeError, match="one tuple"):
        pull(1.0, 1.0)
    with pytest.raises(errors.TreeError, match="was given 0"):
        pull()


def test_vjp_function_is_differentiable_and_batchable():
    def f(x):
        _, pull = xf.vjp(jnp.sin, x)
        return pull(x)[0]  # x cos x

    close(xf.grad(f)(0.5), np.cos(0.5) - 0.5 * np.sin(0.5))
    _, pull = xf.vjp(lambda x: x * x, jnp.asarray([1.0, 2.0]))
    close(xf.vmap(pull)(jnp.eye(2)), (np.diag([2.0, 4.0]),))
    close(xf.jit(lambda c: pull(c))(jnp.ones(2)), (np.array([2.0, 4.0]),))


def test_linearize_many_times():
    value, push = xf.linearize(lambda x, y: {"out": x * y}, 2.0, 3.0)
    close(value, {"out": 6.0})
    close(push(1.0, 0.0), {"out": 3.0})
    close(push(0.0, 1.0), {"out": 2.0})
    close(xf.vmap(push)(jnp.asarray([1.0, 2.0]), jnp.asarray([0.0, 1.0])), {"out": np.array([3.0, 8.0])})
    value, push, aux = xf.linearize(lambda x: (x * x, "aux"), 3.0, has_aux=True)
    close((value, push(1.0)), (9.0, 6.0))
    assert aux == "aux"


def test_primal_work_of_linearize_and_vjp_is_done_once(evaluations):
    _, push = xf.linearize(lambda x: jnp.sin(jnp.sin(x)), 0.5)
    _, pull = xf.vjp(lambda x: jnp.sin(jnp.sin(x)), 0.5)
    before = evaluations["stablehlo.sine"]
    for i in range(5):
        push(float(i))
        pull(float(i))
    assert evaluations["stablehlo.sine"] == before


# -- nesting ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_high_orders(order):
    with xf.enable_x64():
        f, g, h = jnp.sin, lambda x: x * x * x * x * x, lambda x: jnp.exp(x * x)
        for _ in range(order):
            f, g, h = xf.grad(f), xf.grad(g), xf.grad(h)
        x = 0.7
        sines = [np.sin(x), np.cos(x), -np.sin(x), -np.cos(x), np.sin(x)]
        fifth = [x**5, 5 * x**4, 20 * x**3, 60 * x**2, 120 * x]
        gauss = [1, 2 * x, 4 * x**2 + 2, 8 * x**3 + 12 * x, 16 * x**4 + 48 * x**2 + 12]
        close(f(x), sines[order], 1e-13)
        close(g(x), fifth[order], 1e-13)
        close(h(x), gauss[order] * np.exp(x * x), 1e-13)


@pytest.mark.parametrize("order", [2, 3, 4])
def test_mixed_modes(order):
    """Any order of forward and reverse gives the same."""

    def forward(f):
        return lambda x: xf.jvp(f, (x,), (1.0,))[1]

    def by_linearize(f):
        return lambda x: xf.linearize(f, x)[1](1.0)

    with xf.enable_x64():
        want = [None, None, -np.sin(0.3), -np.cos(0.3), np.sin(0.3)][order]
        modes = [forward, xf.grad, by_linearize]
        for i in range(3**order if order < 4 else 9):
            f = jnp.sin
            for k in range(order):
                f = modes[(i // 3**k) % 3](f)
            close(f(0.3), want, 1e-14)


def test_perturbation_confusion():
    """J. M. Siskind, B. A. Pearlmutter, Perturbation confusion and referential transparency (IFL 2005)."""

    def constant_one(x):
        return xf.grad(lambda y: x + y)(1.0)

    close(xf.grad(lambda x: x * constant_one(x))(1.0), 1.0)
    close(xf.jvp(lambda x: x * xf.jvp(lambda y: x + y, (1.0,), (1.0,))[1], (1.0,), (1.0,)), (1.0, 1.0))
    close(xf.grad(lambda x: x * xf.jvp(lambda y: x * y, (2.0,), (1.0,))[1])(3.0), 6.0)
    close(xf.jvp(lambda x: x * xf.grad(lambda y: x * y)(2.0), (3.0,), (1.0,)), (9.0, 6.0))


def test_amazing_bug():
    """O. Manzyuk et al., Perturbation confusion in forward AD of higher-order functions (JFP 29, 2019)."""

    def derivative(f):
        """The derivative of u -> f(x + u) at 0, as a function of x."""
        return lambda x: xf.jvp(lambda u: f(x + u), (0.0,), (1.0,))[1]

    close(derivative(derivative(jnp.exp))(1.0), np.e)
    close(derivative(lambda x: derivative(jnp.exp)(x))(1.0), np.e)


def test_outer_variables_of_inner_derivatives():
    close(xf.grad(lambda x: xf.grad(lambda y: x * x * y)(1.0) + xf.grad(lambda y: x * y * y)(x))(3.0), 6.0 + 12.0)
    close(xf.grad(lambda x: xf.vmap(lambda y: x * y)(jnp.arange(3.0)).sum())(1.0), 3.0)
    close(xf.vmap(lambda x: xf.grad(lambda y: x * y * y)(2.0))(jnp.arange(3.0)), np.array([0.0, 4.0, 8.0]))
    close(
        xf.vmap(lambda x: xf.vmap(lambda y: x * y)(jnp.arange(2.0)))(jnp.arange(3.0)),
        np.outer(np.arange(3), np.arange(2)),
    )


def test_per_example_gradients():
    w, xs, ys = (
        jnp.asarray([1.0, -2.0]),
        jnp.asarray([[1.0, 2.0], [3.0, 4.0], [0.0, 1.0]]),
        jnp.asarray([1.0, 0.0, 2.0]),
    )

    def loss(w, x, y):
        return (jnp.sum(w * x) - y) ** 2

    residuals = np.asarray(xs) @ np.asarray(w) - np.asarray(ys)
    each = xf.vmap(xf.grad(loss), in_axes=(None, 0, 0))(w, xs, ys)
    close(each, 2 * residuals[:, None] * np.asarray(xs))
    total = xf.grad(lambda w: jnp.sum(xf.vmap(loss, (None, 0, 0))(w, xs, ys)))(w)
    close(total, np.asarray(each).sum(0))


def test_callables_of_all_kinds():
    class Model:
        def __init__(self, a):
            self.a = a

        def __call__(self, x):
            return self.a * x * x

        def method(self, x):
            return self(x) + x

    close(xf.grad(Model(3.0))(2.0), 12.0)
    close(xf.grad(Model(3.0).method)(2.0), 13.0)
    close(xf.grad(functools.partial(f3, 2.0))(3.0, 5.0), 60.0)
    close(xf.grad(functools.partial(f3, z=2.0))(3.0, 5.0), 50.0)


def test_names_and_documents_are_kept():
    def documented(x):
        """The document."""
        return x

    for transformed in (xf.grad(documented), xf.value_and_grad(documented), xf.jit(documented), xf.vmap(documented)):
        assert transformed.__name__ == "documented"
        assert transformed.__doc__ == "The document."


def test_state_is_clean_after_an_error():
    def bad(x):
        raise KeyError("mine")

    for f in (xf.grad(bad), xf.jit(bad), xf.vmap(bad), xf.grad(xf.jit(bad)), xf.jit(xf.grad(bad)), xf.hessian(bad)):
        with pytest.raises(KeyError, match="mine"):
            f(jnp.ones(3) if f.__name__ == "vmap" else jnp.ones(2))
    # Nothing is left open: values are computed at once.
    assert float(jnp.sin(jnp.float32(0.0))) == 0.0
    close(xf.grad(lambda x: x * x)(3.0), 6.0)


@pytest.mark.parametrize("keep", ["global", "attribute", "closure"])
@pytest.mark.parametrize("transformation", ["jit", "grad", "vmap", "jvp", "linearize"])
def test_leaked_tracers(keep, transformation):
    kept = []

    def f(x):
        kept.append(x * 1.0)
        return jnp.sum(x)

    x = jnp.ones(3)
    {
        "jit": lambda: xf.jit(f)(x),
        "grad": lambda: xf.grad(f)(x),
        "vmap": lambda: xf.vmap(f)(x),
        "jvp": lambda: xf.jvp(f, (x,), (x,)),
        "linearize": lambda: xf.linearize(f, x),
    }[transformation]()
    uses = {
        "global": lambda: kept[0] + 1,
        "attribute": lambda: xf.jit(lambda y: y + kept[0])(1.0),
        "closure": lambda: xf.grad(lambda y: jnp.sum(y * kept[0]))(1.0),
    }
    with pytest.raises(errors.UnexpectedTracerError, match="global"):
        uses[keep]()


def test_tracer_of_an_inner_function_used_outside():
    def f(x):
        leaked = []
        xf.grad(lambda y: leaked.append(y) or y * x)(x)
        return x * leaked[0]

    with pytest.raises(errors.UnexpectedTracerError):
        xf.grad(f)(2.0)
