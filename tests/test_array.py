"""Arrays as Python and NumPy see them: operators, methods, containers, memory."""

from __future__ import annotations

import copy
import operator
import pickle
import warnings

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xformlib as xf
import xformlib.numpy as jnp
from tests.numpy.index_cases import staged
from xformlib import errors, options
from xformlib.array import Array, ArrayImpl, Tracer
from xformlib.array_methods import ArrayMethods
from xformlib.dlpack import from_dlpack
from xformlib.operators import METHODS

f32 = np.float32
DTYPES = [
    *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "int4", "float8_e4m3fn"),
]


def same(got, want):
    """Bit for bit, with dtype and weakness."""
    assert type(got) is type(want)
    assert (got.shape, got.dtype, got.weak_type) == (want.shape, want.dtype, want.weak_type)
    assert np.asarray(got).tobytes() == np.asarray(want).tobytes()


def like(got, want):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-6)


# -- the quick forms of operators are those of xformlib.numpy ---------------------------------------------------------

NUMBERS = st.sampled_from(
    [0, 1, -1, 2, 3, 127, 128, -128, -129, 255, 300, 65504, 2**31 - 1, 2**24 + 1, 2**31, -(2**40)]
)
FLOATS = st.sampled_from([0.0, -0.0, 0.1, -2.5, 1e10, 1e-45, float("inf"), float("nan"), 1 + 2**-11 + 2**-30])
SCALARS = st.booleans() | NUMBERS | FLOATS | st.sampled_from([1j, -0.5 + 2j])


@st.composite
def arrays(draw):
    name = draw(st.sampled_from(DTYPES))
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    shape = draw(st.sampled_from([(), (3,), (2, 3), (1, 3), (4,)]))
    values = draw(st.lists(st.sampled_from([0, 1, 2, -1, 3, 7]), min_size=8, max_size=8))
    data = np.resize(np.array(values), shape).astype(dtype)
    return ArrayImpl(data, name != "bool" and draw(st.integers(0, 3)) == 0)


OTHERS = arrays() | SCALARS | SCALARS.map(np.asarray) | st.sampled_from([np.float32(2), np.int8(-3), np.bool_(True)])


def outcome(f, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return f(*args)
        except Exception as e:
            return type(e)


@settings(max_examples=1000, deadline=None)
@given(st.sampled_from(sorted(METHODS)), arrays(), OTHERS, st.booleans(), st.sampled_from(["standard", "strict"]))
def test_quick_operators(name, x, y, x64, promotion):
    if isinstance(y, ArrayImpl) and hash((name, x.shape)) % 2:
        y = ArrayImpl(y._np.astype(x.dtype), y.weak_type)
    args = (x,) if name == "__neg__" else (x, y)
    with xf.enable_x64(x64), xf.numpy_dtype_promotion(promotion):
        got, want = outcome(METHODS[name], *args), outcome(getattr(ArrayMethods, name), *args)
    if isinstance(want, Array):
        same(got, want)
    else:
        assert got is want


def test_quick_operators_look_at_options(monkeypatch):
    calls = []
    monkeypatch.setattr(jnp, "add", lambda x, y: calls.append((x, y)))
    x = jnp.ones(3)
    assert (x + x).tolist() == [2, 2, 2] and not calls
    for block in (options.numpy_rank_promotion("raise"), options.debug_nans(), options.debug_infs()):
        with block:
            x + x
    assert len(calls) == 3


# -- operators --------------------------------------------------------------------------------------------------------

BINARY = [
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow),
    *(operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge, divmod),
]
INTEGER = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]


@pytest.mark.parametrize("op", BINARY + INTEGER, ids=lambda op: op.__name__)
def test_binary_operators(op):
    """With arrays, Python and NumPy scalars and NumPy arrays on either side; at once and staged."""
    kind = np.int32 if op in INTEGER else f32
    a, b = np.array([4, 6, 5], kind), np.array([2, 1, 3], kind)
    two = 2 if op in INTEGER else 2.0
    for left, right in [(a, b), (a, two), (two, b), (a, kind(2)), (kind(2), b), (a[:, None], b)]:
        want = op(left, right)
        with_array = [jnp.asarray(left) if isinstance(left, np.ndarray) else left]
        with_array.append(jnp.asarray(right) if isinstance(right, np.ndarray) else right)
        for got in (op(*with_array), staged(lambda x, y: jnp.stack(list(pair(op(x, y)))), *with_array)):
            like(
                jnp.stack(list(pair(got))) if isinstance(got, tuple) else got,
                np.reshape(pair_stack(want), got_shape(got)),
            )
    like(op(a, jnp.asarray(b)), op(a, b))
    assert isinstance(op(a, jnp.asarray(b)), tuple if op is divmod else ArrayImpl)


def pair(x):
    return x if isinstance(x, tuple) else (x,)


def pair_stack(x):
    return np.stack(pair(x)) if isinstance(x, tuple) else x


def got_shape(got):
    return (len(got), *got[0].shape) if isinstance(got, tuple) else got.shape


def test_unary_operators():
    x, n = jnp.array([-1.5, 0.5, 2.0]), np.array([-1.5, 0.5, 2.0], f32)
    like(-x, -n)
    like(+x, n)
    like(abs(x), abs(n))
    like(~jnp.array([0, 5]), ~np.array([0, 5]))
    like(~(x > 0), ~(n > 0))
    assert round(x).dtype == np.int32
    like(round(x), [-2, 0, 2])
    like(round(jnp.array([0.126]), 2), [0.13])
    like(staged(lambda x: abs(-x) + +x, x), abs(n) + n)


def test_matmul():
    a, b = np.arange(6.0, dtype=f32).reshape(2, 3), np.arange(3.0, dtype=f32)
    like(jnp.asarray(a) @ jnp.asarray(b), a @ b)
    like(a @ jnp.asarray(b), a @ b)
    like(jnp.asarray(b) @ a.T, b @ a.T)
    with pytest.raises(ValueError):
        jnp.asarray(a) @ 2


@pytest.mark.parametrize(
    "scalar", [f32(2), np.float64(2), np.int8(2), np.bool_(True), ml_dtypes.bfloat16(2)], ids=lambda s: type(s).__name__
)
@pytest.mark.parametrize("op", [operator.add, operator.mul, operator.gt, operator.eq], ids=lambda op: op.__name__)
def test_numpy_scalars_on_the_left(op, scalar):
    x = jnp.array([1.0, 2.0])
    got = op(scalar, x)
    assert isinstance(got, ArrayImpl)
    like(got, op(np.asarray(scalar).astype(f32), np.asarray(x)))
    assert isinstance(staged(lambda x: op(scalar, x), x), ArrayImpl)


def test_unknown_operands():
    x = jnp.ones(2)

    class Other:
        def __radd__(self, y):
            return "added"

        def __eq__(self, y):
            return "compared"

        __hash__ = None

    assert x + Other() == "added"
    assert (x == Other()) == "compared"
    assert (x == "a") is False and (x != None) is True  # noqa: E711
    for bad in ("a", None, {}):
        with pytest.raises(TypeError, match="unsupported operand"):
            x + bad
        with pytest.raises(TypeError, match="not supported between"):
            x < bad  # noqa: B015
    for bad in ([1, 2], (1, 2)):
        for op in (operator.add, operator.eq, operator.matmul):
            with pytest.raises(TypeError, match=r"numpy\.array"):
                op(x, bad)
            with pytest.raises(TypeError, match=r"numpy\.array"):
                staged(lambda x: op(bad, x), x)  # noqa: B023
    with pytest.raises(ValueError, match="broadcast"):
        x + jnp.ones(3)
    with pytest.raises(TypeError):
        pow(x, 2, 3)


def test_in_place_operators_rebind():
    x = y = jnp.ones(2)
    x += 1
    assert np.array_equal(y, [1, 1]) and np.array_equal(x, [2, 2])


def test_integer_powers_and_divisions():
    x = jnp.array([-7, 7], dtype=jnp.int32)
    assert (x**2).dtype == np.int32 and (x**2).tolist() == [49, 49]
    assert (x / 2).dtype == f32 and (x // 2).tolist() == [-4, 3] and (x % 2).tolist() == [1, 1]
    assert ((x > 0) ** 2).tolist() == [0, 1]


# -- methods ----------------------------------------------------------------------------------------------------------

M = np.array([[3.0, -1.0, 2.0], [0.0, 5.0, -4.0]], f32)
METHOD_CALLS = {
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "reshape": lambda x: x.reshape(3, -1),
    "reshape tuple": lambda x: x.reshape((3, 2)),
    "reshape F": lambda x: x.reshape(3, 2, order="F"),
    "ravel": lambda x: x.ravel(),
    "ravel F": lambda x: x.ravel("F"),
    "flatten": lambda x: x.flatten(),
    "transpose": lambda x: x.transpose(),
    "transpose axes": lambda x: x.transpose(1, 0),
    "transpose tuple": lambda x: x.transpose((1, 0)),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "squeeze": lambda x: x[None].squeeze(0),
    "sum": lambda x: x.sum(),
    "sum axis": lambda x: x.sum(1, keepdims=True),
    "sum positional": lambda x: x.sum(0, None, None, True),
    "prod": lambda x: x.prod(axis=0),
    "mean": lambda x: x.mean(-1),
    "var": lambda x: x.var(0),
    "std": lambda x: x.std(1, ddof=1),
    "min": lambda x: x.min(),
    "max": lambda x: x.max(0, keepdims=True),
    "ptp": lambda x: np.ptp(x, 1) if isinstance(x, np.ndarray) else x.ptp(1),
    "any": lambda x: (x > 4).any(1),
    "all": lambda x: (x > -9).all(),
    "argmax": lambda x: x.argmax(),
    "argmin": lambda x: x.argmin(1),
    "cumsum": lambda x: x.cumsum(1),
    "cumprod": lambda x: x.cumprod(0),
    "sort": lambda x: np.sort(x) if isinstance(x, np.ndarray) else x.sort(),
    "argsort": lambda x: x.argsort(0),
    "dot": lambda x: x.dot(x.T),
    "clip": lambda x: x.clip(-1, 2),
    "clip max": lambda x: x.clip(max=2),
    "round": lambda x: (x / 3).round(1),
    "conj": lambda x: x.conj(),
    "conjugate": lambda x: x.conjugate(),
    "real": lambda x: x.real,
    "imag": lambda x: x.imag,
    "diagonal": lambda x: x.diagonal(1),
    "trace": lambda x: x.trace(),
    "repeat": lambda x: x.repeat(2, axis=1),
    "take": lambda x: x.take(np.array([2, 0]), axis=1),
    "copy": lambda x: x.copy(),
    "astype": lambda x: x.astype("int8"),
    "view": lambda x: x.view("int32"),
    "view narrow": lambda x: x.view("uint8"),
    "view wide": lambda x: x[:, :2].copy().view("complex64"),
    "searchsorted": lambda x: x[1, :2].searchsorted(1.0),
}


@pytest.mark.parametrize("name", METHOD_CALLS)
def test_methods(name):
    f = METHOD_CALLS[name]
    want = np.asarray(f(M))
    for got in (f(jnp.asarray(M)), staged(f, M)):
        like(got, want)
        assert got.dtype.kind == want.dtype.kind


def test_nonzero():
    for got, want in zip(jnp.asarray(M).nonzero(), M.nonzero(), strict=True):
        like(got, want)
    got = xf.vmap(lambda x: x.nonzero(size=2, fill_value=-1)[0])(jnp.asarray(M))
    like(got, [[0, 1], [1, 2]])


def test_numpy_functions_take_arrays():
    x = jnp.asarray(M)
    assert np.array_equal(np.asarray(np.sum(x)), M.sum()) and np.array_equal(np.add(x, x), M + M)
    assert np.array_equal(np.concatenate([x, M]), np.concatenate([M, M]))
    assert np.array_equal(np.asarray(np.mean(x, axis=0)), M.mean(0))


def test_matrix_transpose_needs_two_axes():
    with pytest.raises(ValueError, match=r"axes|dimension"):
        jnp.ones(3).mT  # noqa: B018


def test_astype():
    x = jnp.asarray([-1.0, 2.9, 300.0, np.nan])
    assert x.astype("uint8").tolist() == [0, 2, 255, 0]
    assert x.astype(jnp.int8).dtype == np.int8 and x.astype(float).dtype == f32 and x.astype(None).dtype == f32
    assert x.astype(f32) is x
    weak = jnp.asarray(1.0)
    assert weak.weak_type and not weak.astype(f32).weak_type
    with pytest.warns(np.exceptions.ComplexWarning) as found:
        assert jnp.array([1 + 2j]).astype(float).tolist() == [1.0]
    assert found[0].filename == __file__
    with pytest.raises(TypeError, match="is not a dtype"):
        x.astype("no such")


@pytest.mark.parametrize("pair", [(a, b) for a in DTYPES[:15] for b in DTYPES[:15]], ids=lambda p: f"{p[0]}-{p[1]}")
def test_view(pair, x64):
    source, target = (np.dtype(getattr(ml_dtypes, n, n)) for n in pair)
    data = (
        np.random.default_rng(0).integers(0, 2, 32, np.uint8).view(bool)
        if "bool" in pair
        else np.arange(32, dtype=np.uint8)
    )
    data = np.stack([data.view(np.uint8), data.view(np.uint8)]).view(source)
    want = data.view(target)
    for got in (ArrayImpl(data).view(target), staged(lambda x: x.view(target), data)):
        assert got.shape == want.shape and got.dtype == target
        assert np.asarray(got).tobytes() == want.tobytes()


def test_views_that_do_not_fit():
    with pytest.raises(ValueError, match="12 bytes, not a multiple of the 8"):
        jnp.ones(3).view("complex64")
    with pytest.raises(ValueError, match="0-d"):
        jnp.float32(1).view("int8")
    with pytest.raises(TypeError, match="int4"):
        jnp.ones(2, "int8").view("int4")


# -- containers -------------------------------------------------------------------------------------------------------


def test_iteration():
    x = jnp.asarray(M)
    assert [row.tolist() for row in x] == M.tolist()
    assert all(isinstance(v, ArrayImpl) and v.shape == () for v in x[0])
    _, b = x
    assert b.tolist() == M[1].tolist() and [v.item() for v in reversed(x[0])] == M[0, ::-1].tolist()
    like(staged(lambda x: jnp.stack([row * 2 for row in x]), M), M * 2)
    assert next(iter(jnp.asarray(1.0)[None])).weak_type
    like(xf.grad(lambda x: sum(r[0] * r[1] for r in x))(x), [[-1, 3, 0], [5, 0, 0]])
    for zero in (jnp.float32(1), staged):
        with pytest.raises(TypeError, match="0-d"):
            iter(zero) if zero is not staged else staged(lambda x: next(iter(x)), f32(1))


def test_membership_and_length():
    x = jnp.asarray(M)
    assert 5.0 in x and 7 not in x and "a" not in x and len(x) == 2
    with pytest.raises(TypeError, match="unsized"):
        len(jnp.float32(1))


def test_truth_and_numbers():
    assert bool(jnp.ones((1, 1))) and not jnp.zeros(()) and int(jnp.float32(2.7)) == 2 and complex(jnp.float32(1)) == 1
    assert [5, 6, 7][jnp.int32(1)] == 6 and list(range(jnp.int32(2))) == [0, 1]
    for bad in (lambda: bool(jnp.ones(2)), lambda: float(jnp.ones(1)), lambda: [0][jnp.float32(0)]):
        with pytest.raises((TypeError, ValueError)):
            bad()
    assert f"{jnp.float32(1.5):.2f}" == "1.50"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: jnp.arange(3.0), "Array([0., 1., 2.], dtype=float32)"),
        (lambda: jnp.asarray(1), "Array(1, dtype=int32, weak_type=True)"),
        (lambda: jnp.zeros((0, 3)), "Array([], shape=(0, 3), dtype=float32)"),
        (lambda: jnp.ones((2, 2), bool), "Array([[ True,  True],\n       [ True,  True]], dtype=bool)"),
        (lambda: jnp.arange(2000), "Array([   0,    1,    2, ..., 1997, 1998, 1999], dtype=int32)"),
    ],
)
def test_repr(make, text):
    assert repr(make()) == text


def test_no_hash():
    with pytest.raises(TypeError, match="not hashable"):
        hash(jnp.ones(2))
    with pytest.raises(TypeError, match="not hashable"):
        {jnp.float32(1): 2}


def test_subclasses_and_namespaces():
    x = jnp.ones(2)
    assert isinstance(x, xf.Array) and not isinstance(np.ones(2), xf.Array)
    assert x.__array_namespace__() is jnp
    assert isinstance(staged(lambda x: (isinstance(x, Tracer) and x) + 0, x), xf.Array)


# -- memory -----------------------------------------------------------------------------------------------------------


def test_numpy_views_are_read_only_and_copies_writable():
    x = jnp.ones(3)
    for view in (np.asarray(x), np.asarray(x[1:]), np.from_dlpack(x)):
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 5
    made = np.array(x)
    made[0] = 5
    assert x.tolist() == [1, 1, 1]
    assert np.shares_memory(np.asarray(x), np.asarray(x))
    assert np.asarray(x, "int8").dtype == np.int8
    assert np.asarray(x, copy=False).tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, "int8", copy=False)


def test_numpy_arguments_are_copied():
    a = np.ones(3, f32)
    x, y = jnp.asarray(a), jnp.zeros(3) + a
    a[:] = 9
    assert x.tolist() == [1, 1, 1] and y.tolist() == [1, 1, 1]


def test_copies():
    x = jnp.asarray(1.5)
    for again in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x), x.copy()):
        same(again, x)
    y = jnp.ones(3)
    assert not np.shares_memory(np.asarray(copy.deepcopy(y)), np.asarray(y))
    assert not np.shares_memory(np.asarray(y.copy()), np.asarray(y))
    b = jnp.ones(2, "bfloat16")
    same(pickle.loads(pickle.dumps(b)), b)


def test_attributes():
    x = jnp.asarray(M)
    assert (x.ndim, x.size, x.itemsize, x.nbytes, len(x.tobytes())) == (2, 6, 4, 24, 24)
    assert x.block_until_ready() is x and x.is_ready() and x.copy_to_host_async() is None
    assert x.device in x.devices() and x.to_device(x.device) is x
    assert x.is_fully_addressable and x.is_fully_replicated and x.addressable_data(0) is x
    assert x.on_device_size_in_bytes() == 24 and x.unsafe_buffer_pointer() == np.asarray(x).ctypes.data
    assert x.item(1, 2) == -4.0 and x.tolist() == M.tolist()
    with pytest.raises(IndexError):
        x.addressable_data(1)


def test_dlpack_with_numpy():
    x = jnp.arange(3.0)
    assert np.shares_memory(np.from_dlpack(x), np.asarray(x))
    a = np.arange(4, dtype=np.int16)
    y = from_dlpack(a)
    assert np.shares_memory(np.asarray(y), a) and y.tolist() == [0, 1, 2, 3]
    assert not np.shares_memory(np.asarray(from_dlpack(a, copy=True)), a)
    same(from_dlpack(x), x)
    assert from_dlpack(np.arange(3.0)).dtype == f32
    with pytest.raises(BufferError, match="64-bit"):
        from_dlpack(np.arange(3.0), copy=False)
    with pytest.raises(TypeError, match="no __dlpack__"):
        from_dlpack([1, 2])
    assert x.__dlpack_device__() == (1, 0)


def test_old_consumers_of_dlpack_get_a_copy():
    class Old:
        def __init__(self, x):
            self.x = x

        def __dlpack__(self, **_):
            return self.x.__dlpack__()

        def __dlpack_device__(self):
            return self.x.__dlpack_device__()

    x = jnp.ones(3)
    got = np.from_dlpack(Old(x))
    assert not np.shares_memory(got, np.asarray(x)) and np.array_equal(got, [1, 1, 1])
    with pytest.raises(BufferError, match="might write"):
        x.__dlpack__(copy=False)
    with pytest.raises(BufferError, match="bfloat16"):
        np.from_dlpack(jnp.ones(2, "bfloat16"))


def test_dlpack_with_torch():
    torch = pytest.importorskip("torch")
    like(from_dlpack(torch.arange(3.0)), [0, 1, 2])
    assert torch.from_dlpack(jnp.arange(3.0)).tolist() == [0, 1, 2]


def test_traced_arrays_have_no_memory():
    for f in (np.asarray, lambda x: x.tobytes(), np.from_dlpack, lambda x: x.unsafe_buffer_pointer()):
        with pytest.raises(errors.TracerArrayConversionError):
            staged(f, f32(1))
    with pytest.raises(AttributeError, match="no device"):
        staged(lambda x: x.device, f32(1))


def test_arrays_work_without_importing_the_numpy_namespace():
    """Tracers made by jit have operators, whatever the user imports."""
    import subprocess
    import sys

    code = "import numpy as np, xformlib as xf; print(xf.eval_shape(lambda x: (x + 1)[0] * x.sum(), np.ones(3, 'f4')))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "float32" in out.stdout, out.stderr
