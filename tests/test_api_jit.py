"""jit: when it traces, what is part of the signature, and what it does to its arguments."""

from __future__ import annotations

import functools
import gc
import threading
import weakref

import numpy as np
import pytest

import xformlib as xf
import xformlib.numpy as jnp
from xformlib import errors
from xformlib.api.jit import JitFunction
from xformlib.array import Array

pytestmark = pytest.mark.usefixtures("interpreted")


def traced(f=lambda *args, **kwargs: args[0]):
    """A function, and a list that grows whenever it is run: once per trace."""
    traces = []

    def g(*args, **kwargs):
        traces.append((args, kwargs))
        return f(*args, **kwargs)

    return g, traces


# -- signatures -------------------------------------------------------------------------------------------------------


def test_traced_once_per_signature():
    f, traces = traced(lambda x: x + 1)
    g = xf.jit(f)
    for x in (np.ones(3, np.float32), np.zeros(3, np.float32), jnp.ones(3)):
        assert np.array_equal(g(x), np.asarray(x) + 1)
    assert len(traces) == 1
    for x in (np.ones(4, np.float32), np.ones(3, np.int32), np.ones((3, 1), np.float32), np.float32(1)):
        g(x)
    assert len(traces) == 5
    g(1.0)  # weakly typed: another signature
    assert len(traces) == 6
    g(2.0)
    assert len(traces) == 6


def test_structure_is_part_of_the_signature():
    f, traces = traced(lambda t: xf.tree.map(lambda x: x * 2, t))
    g = xf.jit(f)
    g({"a": 1.0, "b": 2.0})
    g({"b": 3.0, "a": 4.0})
    assert len(traces) == 1
    assert g({"a": 1.0, "c": 2.0})["c"] == 4.0
    assert g([1.0, 2.0]) == [2.0, 4.0]
    assert g((1.0, 2.0)) == (2.0, 4.0)
    assert g((1.0, None)) == (2.0, None)
    assert len(traces) == 5


def test_options_are_part_of_the_signature():
    f, traces = traced(lambda x: x / 3)
    g = xf.jit(f)
    assert g(1.0).dtype == np.float32
    with xf.enable_x64():
        assert g(1.0).dtype == np.float64
        assert abs(float(g(1.0)) - 1 / 3) < 1e-15
    assert g(1.0).dtype == np.float32
    assert len(traces) == 2


def test_jits_of_the_same_function_share_programs():
    f, traces = traced(lambda x: x + 1)
    for _ in range(3):
        assert float(xf.jit(f)(1.0)) == 2.0
    assert len(traces) == 1


def test_programs_live_as_long_as_the_function():
    class Big:
        pass

    def make():
        big = Big()
        f = xf.jit(lambda x: x + (big is None))
        f(1.0)
        return weakref.ref(big)

    ref = make()
    gc.collect()
    assert ref() is None


def test_call_styles_are_one_trace_each():
    f, traces = traced(lambda x, y=2.0: x * y)
    g = xf.jit(f)
    assert float(g(3.0)) == 6.0
    assert float(g(3.0, 4.0)) == 12.0
    assert float(g(3.0, y=4.0)) == 12.0
    assert float(g(y=4.0, x=3.0)) == 12.0
    assert float(g(x=5.0, y=4.0)) == 20.0
    assert len(traces) == 4


def test_clear_caches():
    f, traces = traced(lambda x: x + 1)
    g = xf.jit(f)
    g(1.0)
    g.clear_cache()
    g(1.0)
    assert len(traces) == 2
    xf.clear_caches()
    g(1.0)
    assert len(traces) == 3


# -- static arguments -------------------------------------------------------------------------------------------------


def test_static_arguments():
    f, traces = traced(lambda x, n, name: x * n if name == "times" else x)
    g = xf.jit(f, static_argnums=(1, 2))
    assert float(g(2.0, 3, "times")) == 6.0
    assert float(g(5.0, 3, "times")) == 15.0
    assert len(traces) == 1
    assert float(g(2.0, 4, "times")) == 8.0
    assert float(g(2.0, 3, "other")) == 2.0
    assert len(traces) == 3


def test_static_by_number_or_name_and_call_style():
    def f(x, n):
        assert isinstance(n, int)
        return x * n

    for options in (
        {"static_argnums": 1},
        {"static_argnums": (-1,)},
        {"static_argnames": "n"},
        {"static_argnames": ["n"]},
    ):
        g = xf.jit(f, **options)
        assert float(g(2.0, 3)) == 6.0
        assert float(g(2.0, n=3)) == 6.0
        assert float(g(n=3, x=2.0)) == 6.0


@pytest.mark.parametrize(
    "values",
    [
        (1, True, 1.0),
        (0.0, -0.0),
        (1, np.int32(1), np.float32(1)),
        ((1, 2), (1.0, 2), (True, 2)),
        (1j, 1.0j + 0.0, -0.0 + 1j),
    ],
)
def test_static_values_differ_by_type(values):
    f, traces = traced(lambda k: jnp.float32(0))
    g = xf.jit(f, static_argnums=0)
    for v in values * 2:
        g(v)
    seen = [repr((type(a), a)) for (a,), _ in traces]
    assert len(set(seen)) == len(seen)
    assert set(seen) == {repr((type(v), v)) for v in values}


def test_dtype_of_static_values():
    f = xf.jit(lambda k: jnp.asarray(k), static_argnums=0)
    assert [str(f(k).dtype) for k in (1, True, 1.0, 1)] == ["int32", "bool", "float32", "int32"]


def test_mutated_static_argument():
    class Box:
        def __init__(self, v):
            self.v = v

        def __hash__(self):
            return hash(self.v)

        def __eq__(self, other):
            return isinstance(other, Box) and self.v == other.v

    f = xf.jit(lambda b, y: y + b.v, static_argnums=0)
    b = Box(100)
    results = [int(f(b, 1))]
    b.v = 0
    results += [int(f(b, 1)), int(f(b, 1))]
    assert results == [101, 1, 1]


def test_static_arguments_are_not_arrays():
    f = xf.jit(lambda x, n: x, static_argnums=1)
    for bad in ([1, 2], {"a": 1}, np.ones(3), jnp.ones(3)):
        with pytest.raises(errors.StaticArgumentError, match="static argument 1"):
            f(1.0, bad)


def test_static_shape():
    f = xf.jit(lambda n: jnp.zeros(n), static_argnums=0)
    assert f(3).shape == (3,) and f(5).shape == (5,)
    with pytest.raises(errors.TracerIntegerConversionError):
        xf.jit(lambda n: jnp.zeros(n))(3)


# -- what is jitted ---------------------------------------------------------------------------------------------------


def test_methods():
    traces = []

    class Model:
        def __init__(self, a):
            self.a = a

        @functools.partial(xf.jit, static_argnums=0)
        def times(self, x):
            traces.append(1)
            return self.a * x

        @staticmethod
        @xf.jit
        def plain(x):
            return x + 1

        @classmethod
        @functools.partial(xf.jit, static_argnums=0)
        def of_class(cls, x):
            assert cls is Model
            return x + 2

    first, second = Model(2.0), Model(3.0)
    assert [float(first.times(5.0)), float(second.times(5.0)), float(first.times(1.0))] == [10.0, 15.0, 2.0]
    assert len(traces) == 2
    assert float(first.plain(1.0)) == 2.0 and float(Model.of_class(1.0)) == 3.0
    assert float(xf.grad(first.times)(1.0)) == 2.0


def test_bound_methods():
    class Counter:
        def step(self, x):
            return x + self.by

    c = Counter()
    c.by = 2.0
    g = xf.jit(c.step)
    assert float(g(1.0)) == 3.0


def test_decorators_and_callables():
    @xf.jit
    def plain(x):
        return x + 1

    @xf.jit(static_argnames="n")
    def with_options(x, n):
        return x * n

    assert isinstance(plain, JitFunction)
    assert float(plain(1.0)) == 2.0 and float(with_options(2.0, n=3)) == 6.0
    assert plain.__wrapped__(1) == 2
    assert float(xf.jit(functools.partial(lambda a, x: a * x, 3.0))(2.0)) == 6.0
    assert float(xf.jit(jnp.sin)(0.0)) == 0.0
    assert float(xf.jit(xf.jit(lambda x: x * 2))(2.0)) == 4.0
    assert "plain" in repr(plain)


def test_variadic_functions():
    f = xf.jit(lambda *args, **kwargs: sum(args) + sum(kwargs.values()))
    assert float(f(1.0, 2.0, 3.0)) == 6.0
    assert float(f(1.0, a=2.0)) == 3.0
    g = xf.jit(lambda *args: args[0] * args[1], static_argnums=1)
    assert float(g(3.0, 2)) == 6.0


def test_outputs():
    def f(x):
        return {"x": x, "twice": [x, x], "python": 3, "float": 2.5, "bool": True, "none": None, "numpy": np.arange(2)}

    out = xf.jit(f)(jnp.ones(2))
    assert out["none"] is None
    assert all(isinstance(v, Array) for v in xf.tree.leaves(out))
    assert out["python"].dtype == np.int32 and out["python"].weak_type and int(out["python"]) == 3
    assert out["bool"].dtype == np.bool_ and not out["bool"].weak_type
    assert np.array_equal(out["numpy"], [0, 1])
    assert np.array_equal(out["twice"][0], out["twice"][1])
    assert xf.jit(lambda: None)() is None
    assert xf.jit(lambda x: ())(1.0) == ()


def test_weak_types_of_results():
    f = xf.jit(lambda x: x * 2)
    assert f(1.5).weak_type and not f(np.float32(1.5)).weak_type
    assert f(jnp.ones(2, jnp.bfloat16)).dtype == jnp.bfloat16


def test_closures():
    c = jnp.asarray([1.0, 2.0])
    n = np.asarray([3.0, 4.0], np.float32)
    f = xf.jit(lambda x: x * c + n)
    assert np.array_equal(f(jnp.ones(2)), [4.0, 6.0])
    close_over = xf.jit(lambda x: xf.jit(lambda y: x * y)(x + 1))
    assert float(close_over(2.0)) == 6.0


def test_side_effects_happen_while_tracing_only():
    f, traces = traced(lambda x: x)
    g = xf.jit(f)
    for i in range(5):
        g(float(i))
    assert len(traces) == 1


# -- donation ---------------------------------------------------------------------------------------------------------


def test_donated_arrays_are_deleted():
    f = xf.jit(lambda x, y: x + y, donate_argnums=0)
    x, y = jnp.ones(3), jnp.ones(3)
    assert np.array_equal(f(x, y), [2, 2, 2])
    assert x.is_deleted() and not y.is_deleted()
    with pytest.raises(errors.DeletedArrayError, match="donate"):
        x + 1
    with pytest.raises(errors.DeletedArrayError, match="donate"):
        f(x, y)
    assert "deleted" in repr(x)


def test_donation_of_trees_by_name_and_number():
    for options in ({"donate_argnums": (0,)}, {"donate_argnames": "state"}):
        f = xf.jit(lambda state, x: {k: v + x for k, v in state.items()}, **options)
        state = {"a": jnp.ones(2), "b": jnp.zeros(2)}
        new = f(state, 1.0)
        assert all(v.is_deleted() for v in state.values())
        assert np.array_equal(new["a"], [2, 2])
        state = {"a": jnp.ones(2), "b": jnp.zeros(2)}
        f(state=state, x=1.0)
        assert all(v.is_deleted() for v in state.values())


def test_donating_the_same_array_twice():
    f = xf.jit(lambda x, y: x + y, donate_argnums=(0,))
    x = jnp.ones(4)
    try:
        assert np.array_equal(f(x, x), np.full(4, 2.0))
    except errors.XformError as e:
        assert "donat" in str(e)


def test_numpy_arguments_are_never_donated():
    x = np.ones(3, np.float32)
    xf.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert np.array_equal(x, [1, 1, 1])


def test_donation_inside_another_function_is_ignored():
    f = xf.jit(lambda x: x * 2, donate_argnums=0)
    x = jnp.ones(())
    assert float(xf.grad(lambda x: f(x) + x)(x)) == 3.0
    assert not x.is_deleted()


# -- turning it off, and threads --------------------------------------------------------------------------------------


def test_disable_jit():
    f, traces = traced(lambda x: x if x > 0 else -x)
    g = xf.jit(f)
    with xf.disable_jit():
        assert float(g(jnp.float32(-2.0))) == 2.0
        assert float(g(jnp.float32(3.0))) == 3.0
        assert len(traces) == 2
        assert float(xf.grad(g)(jnp.float32(-2.0))) == -1.0
    with pytest.raises(errors.TracerBoolConversionError):
        g(1.0)


def test_threads():
    """Every thread has its own open function; results are right and each signature gives one answer."""
    f = xf.jit(lambda x: xf.grad(lambda y: y * y * y)(x) + x)
    wrong, barrier = [], threading.Barrier(8)

    def work(i):
        barrier.wait()
        for k in range(20):
            x = np.full(i + 1, k, np.float32)
            got = np.asarray(xf.vmap(f)(x))
            if not np.array_equal(got, 3 * x * x + x):
                wrong.append((i, k, got))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# -- stages -----------------------------------------------------------------------------------------------------------


def test_lower_shows_the_program_without_running_it():
    lowered = xf.jit(lambda x, n: x * n, static_argnums=1).lower(xf.ShapeDtypeStruct((2, 3), np.float32), 3)
    assert lowered.out_info == xf.ShapeDtypeStruct((2, 3), np.float32)
    assert "stablehlo.multiply" in lowered.as_text()
    assert xf.jit(lambda x: {"a": x}).eval_shape(jnp.ones(2)) == {"a": xf.ShapeDtypeStruct((2,), np.float32)}
    with pytest.raises(errors.StaticArgumentError, match="dialect"):
        lowered.as_text("hlo")


def test_errors_leave_no_program_behind():
    attempts = []

    def f(x):
        attempts.append(1)
        if len(attempts) == 1:
            raise RuntimeError("first time")
        return x + 1

    g = xf.jit(f)
    with pytest.raises(RuntimeError, match="first time"):
        g(1.0)
    assert float(g(1.0)) == 2.0
