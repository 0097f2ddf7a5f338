"""x[index] and x.at[index] against NumPy, at once and staged; what is out of range; derivatives; errors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import xformlib as xf
import xformlib.numpy as jnp
from tests.numpy.index_cases import array, by_records, fits, indexed, staged, with_traced_positions
from xformlib import errors

few = settings(max_examples=150, deadline=None)
f32 = np.float32


def values(shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(f32)


def same(got, want):
    got = np.asarray(got)
    assert got.shape == want.shape and got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


# -- against NumPy ----------------------------------------------------------------------------------------------------


@few
@given(indexed())
def test_reads(case):
    shape, index = case
    assume(fits(shape, index))
    x = values(shape)
    want = np.asarray(x[index])
    same(array(x)[index], want)
    same(by_records(array(x), index), want)
    same(staged(lambda x: x[index], x), want)
    same(with_traced_positions(lambda x, i: x[i], x, index), want)


@few
@given(indexed(arrays=False))
def test_basic_reads(case):
    shape, index = case
    x = values(shape)
    want = np.asarray(x[index])
    same(array(x)[index], want)
    same(by_records(array(x), index), want)
    same(staged(lambda x: x[index], x), want)
    same(with_traced_positions(lambda x, i: x[i], x, index), want)


UPDATES = {
    "set": None,
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


def updated(x, index, y, ufunc):
    x = x.copy()
    if ufunc is None:
        x[index] = y
    else:
        ufunc.at(x, index, y)
    return x


def spread(shape, draw):
    """A shape that broadcasts to ``shape``."""
    kept = shape[draw(st.integers(0, len(shape))) :]
    return tuple(1 if draw(st.booleans()) else n for n in kept)


@few
@given(indexed(), st.sampled_from(sorted(UPDATES)), st.data())
def test_updates(case, name, data):
    shape, index = case
    assume(fits(shape, index))
    # Integers: sums do not depend on the order.
    x = np.random.default_rng(0).integers(-9, 9, shape).astype(np.int32)
    y = np.random.default_rng(1).integers(-9, 9, spread(x[index].shape, data.draw)).astype(np.int32)
    want = updated(x, index, y, UPDATES[name])
    same(getattr(array(x).at[index], name)(array(y)), want)
    same(getattr(array(x).at[index], name)(array(y), mode="promise_in_bounds"), want)  # by ops
    same(staged(lambda x, y: getattr(x.at[index], name)(y), x, y), want)
    same(with_traced_positions(lambda x, i, y: getattr(x.at[i], name)(y), x, index, y), want)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "complex64", "int8", "uint8", "bool", "float64"])
def test_dtypes(dtype, x64):
    x = np.asarray(jnp.array([[0, 1, 2], [3, 4, 5]]).astype(dtype))
    rows = np.array([1, 0, 1])
    same(array(x)[rows], x[rows])
    same(array(x)[1, ::-1], x[1, ::-1])
    same(staged(lambda x, i: x[i], x, rows), x[rows])
    want = x.copy()
    want[0] = x[1]
    same(array(x).at[0].set(array(x)[1]), want)
    same(staged(lambda x: x.at[np.array([0])].set(x[1:]), x), want)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_dtypes_of_indices(dtype, x64):
    """Also where the axis is longer than the dtype's largest value."""
    x = values(300)
    info = np.iinfo(dtype)
    index = np.array([0, 1, 100, info.max, info.min], dtype)
    want = x[
        np.clip(np.where(index.astype(object) < 0, index.astype(object) + 300, index.astype(object)), 0, 299).astype(
            int
        )
    ]
    for got in (array(x)[index], array(x)[array(index)], staged(lambda x, i: x[i], x, index)):
        same(got, want)
    for i, w in zip(index, want, strict=True):
        same(array(x)[i], w)
        same(staged(lambda x, i: x[i], x, i), w)


# -- out of range -----------------------------------------------------------------------------------------------------

FAR = np.array([0, -1, -3, 3, -4, 2**31 - 1, -(2**31), 100, -100], np.int32)


def reference(x, i, mode, from_end=True):
    """Position by position; None where there is no element."""
    n, i = len(x), int(i)
    if mode == "wrap":
        return i % n
    i = i + n if from_end and i < 0 else i
    return min(max(i, 0), n - 1) if mode == "clip" else i if 0 <= i < n else None


@pytest.mark.parametrize("from_end", [True, False])
@pytest.mark.parametrize("mode", ["clip", "fill", "wrap"])
def test_reads_out_of_range(mode, from_end):
    x = values((3, 2))
    want = np.stack([np.full(2, -1, f32) if (p := reference(x, i, mode, from_end)) is None else x[p] for i in FAR])

    def read(x, i):
        return x.at[i].get(mode=mode, fill_value=-1, wrap_negative_indices=from_end)

    same(read(array(x), FAR), want)
    same(staged(read, x, FAR), want)
    same(read(array(x).T, (slice(None), FAR)), want.T)
    for i, w in zip(FAR, want, strict=True):
        same(read(array(x), int(i)), w)
        same(staged(lambda x: read(x, int(i)), x), w)  # noqa: B023
        same(staged(read, x, i), w)


@pytest.mark.parametrize("from_end", [True, False])
@pytest.mark.parametrize("mode", [None, "drop", "clip", "wrap", "fill"])
@pytest.mark.parametrize("name", sorted(UPDATES))
def test_updates_out_of_range(name, mode, from_end):
    x, y = values((3, 2)).astype(np.int32), np.arange(18).reshape(9, 2).astype(np.int32)

    def want(indices, y):
        out = x.copy()
        for i, v in zip(indices, y, strict=True):
            if (p := reference(x, i, mode or "drop", from_end)) is not None:
                out = updated(out, p, v, UPDATES[name])
        return out

    def update(x, i, y):
        return getattr(x.at[i], name)(y, mode=mode, wrap_negative_indices=from_end)

    same(update(array(x), FAR, array(y)), want(FAR, y))
    same(staged(update, x, FAR, y), want(FAR, y))
    for i, v in zip(FAR, y, strict=True):
        w = want([i], [v])
        same(update(array(x), int(i), array(v)), w)
        same(staged(lambda x, v: update(x, int(i), v), x, v), w)  # noqa: B023
        same(staged(update, x, i, v), w)


def test_ints_of_any_size():
    x = values(3)
    same(array(x)[2**70], x[2])
    same(array(x).at[-(2**70)].get(mode="clip"), x[0])
    same(array(x).at[2**70].set(1), x)
    same(array(x).at[2**40].get(mode="fill"), f32(np.nan))


@pytest.mark.parametrize(
    ("dtype", "want"), [("float32", np.nan), ("int8", -128), ("uint16", 65535), ("bool", True), ("complex64", np.nan)]
)
def test_default_fill(dtype, want):
    same(jnp.zeros(2, dtype).at[np.array([2])].get(mode="fill"), np.array([want], dtype))
    same(jnp.zeros(2, dtype).at[2].get(mode="fill"), np.array(want, dtype))


def test_axes_of_size_zero():
    x = jnp.zeros((0, 3))
    same(x[:, 1], np.zeros(0, f32))
    same(x[:, np.array([1])], np.zeros((0, 1), f32))
    same(x[np.zeros(0, int)], np.zeros((0, 3), f32))
    same(x.at[np.array([0])].set(1), np.zeros((0, 3), f32))
    with pytest.raises(IndexError, match="size 0"):
        x[0]
    with pytest.raises(IndexError, match="size 0"):
        x[np.array([0])]
    with pytest.raises(IndexError, match="size 0"):
        x.at[0].set(1)


# -- other updates ----------------------------------------------------------------------------------------------------

REPEATED = np.array([1, 1, 2, 7])


def applied(x, indices, f):
    x = x.copy()
    for i in indices:
        if i < len(x):
            x[i] = f(x[i])
    return x


@pytest.mark.parametrize("index", [1, slice(0, 2), np.array([0, 2]), REPEATED], ids=repr)
def test_apply(index):
    x = np.array([2, 3, 5], f32)
    want = applied(
        x, np.atleast_1d(np.arange(9)[index]) if not isinstance(index, np.ndarray) else index, lambda v: 1 - 2 * v
    )
    same(array(x).at[index].apply(lambda v: 1 - 2 * v), want)
    same(staged(lambda x: x.at[index].apply(lambda v: 1 - 2 * v), x), want)


@pytest.mark.parametrize("index", [1, slice(0, 2), np.array([0, 2]), REPEATED], ids=repr)
def test_divide_and_power(index):
    x = np.array([2, 3, 5], f32)
    size = np.shape(np.arange(9)[index])
    y = np.array([2, 4, 0.5, 3], f32)[: size[0]] if size else f32(2)
    for name in ("divide", "power"):
        product = np.ones(3, f32)
        inside = np.array(index) < 3 if isinstance(index, np.ndarray) else ...
        where = index[inside] if isinstance(index, np.ndarray) else index
        np.multiply.at(product, where, np.asarray(y)[inside])
        want = x / product if name == "divide" else x**product
        np.testing.assert_allclose(getattr(array(x).at[index], name)(y), want, rtol=1e-6)
        np.testing.assert_allclose(staged(lambda x: getattr(x.at[index], name)(y), x), want, rtol=1e-6)  # noqa: B023


def test_divide_makes_floats():
    same(jnp.array([1, 2]).at[0].divide(2), np.array([0.5, 2], f32))
    same(jnp.array([3, 2]).at[np.array([0, 0])].divide(jnp.array([2, 2])), np.array([0.75, 2], f32))


def test_traced_repeated_indices_apply():
    x = np.array([2, 3, 5], f32)
    got = staged(lambda x, i: x.at[i].apply(lambda v: 1 - 2 * v), x, REPEATED)
    same(got, applied(x, REPEATED, lambda v: 1 - 2 * v))


def test_many_traced_indices_that_may_repeat_need_a_promise_to_apply():
    x, i = np.arange(20, dtype=f32), np.arange(20)
    with pytest.raises(xf.errors.IndexingError, match="unique_indices=True"):
        staged(lambda x, i: x.at[i].apply(lambda v: v + 1), x, i)
    same(staged(lambda x, i: x.at[i].apply(lambda v: v + 1, unique_indices=True), x, i), x + 1)


def test_promises():
    x = jnp.zeros(4)
    i = np.array([0, 2])
    same(x.at[i].add(1.0, indices_are_sorted=True, unique_indices=True), np.array([1, 0, 1, 0], f32))
    same(staged(lambda x, i: x.at[i].mul(2.0, unique_indices=True), np.ones(4, f32), i), np.array([2, 1, 2, 1], f32))


# -- dtypes of updates ------------------------------------------------------------------------------------------------


def test_weak_types_stay():
    x = jnp.asarray(2.0)
    assert x[()].weak_type and x.at[()].set(jnp.float32(3)).weak_type and x[None].weak_type
    y = jnp.zeros(3)
    assert not y[0].weak_type and not y.at[0].set(1.0).weak_type
    assert staged(lambda x: x[None][0], x).weak_type
    assert staged(lambda x: x[None].at[np.array([0])].add(1), x).weak_type


def test_python_scalars_adapt():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for dtype in ("float16", "int8", "bfloat16", "complex64"):
            assert jnp.zeros(2, dtype).at[0].set(1).dtype == dtype
        assert jnp.zeros(2).at[0].set(np.float64(1.5)).dtype == f32
        same(jnp.zeros(2, "uint8").at[0].set(300), np.array([44, 0], np.uint8))


def test_narrowing_warns_at_the_users_line():
    with pytest.warns(FutureWarning, match="float32 are put into an array of dtype int32") as found:
        got = jnp.zeros(2, int).at[0].set(1.5)
    assert found[0].filename == __file__
    same(got, np.array([1, 0], np.int32))
    with pytest.warns(FutureWarning, match="int32 are put into an array of dtype int8"):
        jnp.zeros(2, "int8").at[:1].add(jnp.arange(1))
    with pytest.raises(TypeError, match="complex values can't be put into an array of dtype float32"):
        jnp.zeros(2).at[0].set(1 + 2j)


def test_lists_as_values_and_within_tuples():
    x = jnp.arange(12.0).reshape(3, 4)
    n = np.asarray(x)
    same(x.at[0, :2].set([7, 8]), updated(n, (0, slice(2)), [7, 8], None))
    same(x[[0, 1], 1], n[[0, 1], 1])
    same(x[[True, False, True], :2], n[[True, False, True], :2])
    same(x[0, []], n[0, []])
    same(staged(lambda x, i: x[[i, 0], :], x, np.int32(2)), n[[2, 0]])


# -- other arrays -----------------------------------------------------------------------------------------------------


def test_keys():
    keys = xf.random.split(xf.random.key(0), 3)
    words = np.asarray(xf.random.key_data(keys))

    def check(got, want):
        assert got.is_key
        same(xf.random.key_data(got), want)

    rows = np.array([2, -1, 0, 5])
    check(keys[1], words[1])
    check(keys[::-2], words[::-2])
    check(keys[..., None], words[:, None])
    check(keys[np.array([True, False, True])], words[[0, 2]])
    check(keys[rows], words[[2, 2, 0, 2]])
    check(xf.vmap(lambda i: keys[i])(rows), words[[2, 2, 0, 2]])
    check(keys.at[1].set(keys[0]), words[[0, 0, 2]])
    check(keys.at[np.array([0, 2])].set(keys[1]), words[[1, 1, 1]])
    with pytest.raises(IndexError, match="too many indices"):
        keys[0, 0]
    with pytest.raises(TypeError, match="PRNG keys"):
        keys.at[0].add(keys[1])
    with pytest.raises(TypeError, match="fill"):
        keys.at[5].get(mode="fill")
    with pytest.raises(TypeError, match="can't be put"):
        keys.at[0].set(1)


def test_results_share_no_memory_with_callers():
    index, mask, new = np.array([0, 1]), np.array([True, False, True]), values(3)
    x = jnp.arange(3.0)
    outs = [x[index], x[mask], x.at[:].set(new), x.at[index].set(new[:2])]
    wants = [np.array(o) for o in outs]
    f = xf.jit(lambda x: x[index])
    index[:], mask[:], new[:] = 2, True, 9
    for out, want in zip(outs, wants, strict=True):
        same(out, want)
    index[:] = 1
    same(f(x), np.ones(2, f32))
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(x[1:])[0] = 5


def test_small_parts_do_not_keep_large_arrays():
    big = jnp.zeros((1000, 1000))
    assert np.asarray(big[0]._np).base is None
    assert big[1:]._np.base is not None


# -- transformations --------------------------------------------------------------------------------------------------

READS = [
    (1, slice(None, None, -2)),
    (slice(1, None), np.array([0, 0, 3])),
    (np.array([[0], [2]]), slice(None, None, 2), np.array([1, 4])),
    (np.array([0, 2, 2]), np.array([1, 1, -1])),
    (None, np.array([True, False, True]), ..., 0),
    (..., np.array([9, -9])),
]
SHAPE = (3, 4, 5)


@pytest.mark.parametrize("index", READS, ids=repr)
def test_gradients_of_reads(index, x64):
    x = np.random.default_rng(0).normal(size=SHAPE)
    out, pullback = xf.vjp(lambda x: x[index], jnp.asarray(x))
    w = np.random.default_rng(1).normal(size=out.shape)
    want = np.zeros(SHAPE)
    clipped = tuple(np.clip(i, -5, 4) if isinstance(i, np.ndarray) and i.dtype.kind == "i" else i for i in index)
    np.add.at(want, clipped, w)
    np.testing.assert_allclose(pullback(jnp.asarray(w))[0], want, rtol=1e-12)
    second = xf.grad(lambda x: (xf.grad(lambda x: (x[index] ** 3).sum())(x) * x).sum())(jnp.asarray(x))
    count = np.zeros(SHAPE)
    np.add.at(count, clipped, 1)
    np.testing.assert_allclose(second, 9 * count * x**2, rtol=1e-12)


@pytest.mark.parametrize("name", ["set", "add", "subtract", "multiply", "divide", "power", "min", "max", "apply"])
@pytest.mark.parametrize("index", READS, ids=repr)
def test_gradients_of_updates(index, name, x64):
    """Finite differences in a random direction; forward equals reverse."""
    rng = np.random.default_rng(0)
    x = rng.uniform(1, 2, SHAPE)
    y = rng.uniform(1, 2, np.asarray(jnp.asarray(x)[index]).shape)
    if name == "set":  # of repeated indices one counts
        y[...] = 1.5

    def f(x, y):
        part = x.at[index]
        return part.apply(lambda v: v**3) if name == "apply" else getattr(part, name)(y)

    direction = [rng.normal(size=x.shape), rng.normal(size=y.shape)]
    if name == "set":
        direction[1][...] = 1.0
    args = [jnp.asarray(x), jnp.asarray(y)]
    out, tangent = xf.jvp(f, args, [jnp.asarray(d) for d in direction])
    h = 1e-6
    plus, minus = [
        np.asarray(f(*[jnp.asarray(v + s * d) for v, d in zip((x, y), direction, strict=True)])) for s in (h, -h)
    ]
    np.testing.assert_allclose(tangent, (plus - minus) / (2 * h), rtol=1e-6, atol=1e-6)
    w = rng.normal(size=out.shape)
    back = xf.vjp(f, *args)[1](jnp.asarray(w))
    got = sum(float((np.asarray(b) * d).sum()) for b, d in zip(back, direction, strict=True))
    np.testing.assert_allclose(got, (np.asarray(tangent) * w).sum(), rtol=1e-9)


@pytest.mark.parametrize("batched", [(0, None), (None, 0), (0, 0)])
@pytest.mark.parametrize("mode", ["clip", "fill", "wrap"])
def test_vmap(mode, batched):
    x, i = values((4, 3, 5)), np.random.default_rng(1).integers(-5, 5, (4, 2)).astype(np.int32)
    args = [a if b == 0 else a[0] for a, b in zip((x, i), batched, strict=True)]

    def each(f):
        rows = [[a[k] if b == 0 else a for a, b in zip(args, batched, strict=True)] for k in range(4)]
        return np.stack([np.asarray(f(*map(array, row))) for row in rows])

    for f in (
        lambda x, i: x.at[i].get(mode=mode),
        lambda x, i: x.at[i[0]].get(mode=mode),
        lambda x, i: x.at[1:, i].get(mode=mode),
        lambda x, i: x.at[i, i].get(mode=mode),
        lambda x, i: x.at[i].set(7.0, mode=mode),
        lambda x, i: x.at[i[0]].set(7.0, mode=mode),
        lambda x, i: x.at[i[0], ::2].add(7.0, mode=mode),
        lambda x, i: x.at[:, i].add(7.0, mode=mode),
        lambda x, i: x.at[i[1]].apply(lambda v: v - 1, mode=mode),
    ):
        same(xf.vmap(f, in_axes=batched)(*map(array, args)), each(f))


def test_concrete_masks_of_traced_arrays():
    """Un-jitted derivatives know the values of what they trace."""
    g = xf.grad(lambda x: (x[x > 1] ** 2).sum() + x.at[x < 0].set(0.0).sum())(jnp.array([-1.0, 1.0, 2.0]))
    same(g, np.array([0, 1, 5], f32))


# -- compiled ---------------------------------------------------------------------------------------------------------


def test_compiled():
    """One program with all forms."""
    x, i, k = values((3, 4, 5)), np.array([0, -1, 9, -9], np.int32), np.int32(-2)

    def f(x, i, k):
        y = x[0]
        return (
            x[1, ::-1, 1:3],
            x[k],
            x[:, k, None],
            x[i],
            x[:, i],
            x[:, i, ::2],
            x[i[:, None], :, i],
            x.at[i].get(mode="fill"),
            x.at[k].set(1.0),
            x.at[9].set(1.0),
            x.at[k, ::2].add(1.0),
            x.at[::2, ::-2].set(0.5),
            y.at[i, i].add(1.0),
            y.at[:, i].set(2.0),
            y.at[i].multiply(y),
            y.at[i, 1:3].max(0.25),
        )

    args = [array(a) for a in (x, i, k)]
    for got, want in zip(xf.jit(f)(*args), f(*args), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


# -- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "kind", "text"),
    [
        ([0, 1], TypeError, r"jnp\.array"),
        (range(2), TypeError, "range is not an index"),
        (1.0, TypeError, "float is not an index"),
        ("a", TypeError, "named fields"),
        ({}, IndexError, "dict is not an index"),
        (np.array([0.5]), TypeError, "float64"),
        (np.array(["a"]), TypeError, "dtype <U1"),
        ((0, 0, 0), IndexError, "too many indices: the array has 2 axes"),
        ((..., ...), IndexError, "one ellipsis"),
        (slice(None, None, 0), ValueError, "step"),
        (slice(0.5, None), TypeError, "integers or None"),
        (np.array([True, False]), IndexError, r"mask of shape \(2,\) does not fit"),
        ((slice(None), np.ones((3, 1), bool)), IndexError, "too many indices"),
        ((np.array([0, 1, 2]), np.array([0, 1])), ValueError, r"\(3,\), \(2,\) do not broadcast"),
    ],
    ids=repr,
)
def test_wrong_indices(index, kind, text):
    x = jnp.zeros((3, 4))
    for f in (lambda x: x[index], lambda x: x.at[index].set(0.0), lambda x: x.at[index].get(mode="clip")):
        with pytest.raises(kind, match=text) as found:
            f(x)
        assert isinstance(found.value, errors.XformError) and found.value.user_location[0] == __file__
        with pytest.raises(kind, match=text):
            staged(f, x)


def test_wrong_values_and_modes():
    x = jnp.zeros((3, 4))
    with pytest.raises(ValueError, match=r"shape \(3,\) don't broadcast to shape \(4,\)"):
        x.at[0].set(jnp.zeros(3))
    with pytest.raises(ValueError, match="don't broadcast"):
        x.at[0].set(jnp.zeros((1, 4)))
    with pytest.raises(TypeError, match="the new value is str"):
        x.at[0].set("a")
    with pytest.raises(ValueError, match="mode is 'bad', but must be 'clip'"):
        x.at[0].get(mode="bad")
    with pytest.raises(TypeError, match="bool"):
        (x > 0).at[0].subtract(True)


def test_traced_masks_and_bounds():
    with pytest.raises(errors.NonConcreteBooleanIndexError, match="where"):
        xf.jit(lambda x: x[x > 0])(jnp.zeros(3))
    with pytest.raises(IndexError, match="size=n"):
        xf.jit(lambda x: x.at[x > 0].set(1.0))(jnp.zeros(3))
    with pytest.raises(IndexError, match="dynamic_slice_in_dim"):
        xf.jit(lambda x, i: x[i:])(jnp.zeros(3), 1)


def test_assignment_shows_the_way():
    x = jnp.zeros(3)
    with pytest.raises(TypeError, match=r"x\.at\[i\]\.set"):
        x[0] = 1
    with pytest.raises(TypeError, match="reshape"):
        x.shape = (1, 3)
