"""NumPy arrays to device buffers and back: every dtype and layout, in place where asked for."""

from __future__ import annotations

import gc
import sys

import ml_dtypes
import numpy as np
import pytest

from xformlib.runtime.buffers import ALIGNMENT, aligned_empty, dtype_of, from_numpy, to_numpy
from xformlib.runtime.errors import ArgumentError

INTEGERS = [f"{sign}int{n}" for sign in ("", "u") for n in (8, 16, 32, 64)]
FLOATS = ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
SMALL = ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"]
DTYPES = [np.dtype(getattr(ml_dtypes, n, n)) for n in ("bool", *INTEGERS, *FLOATS, *SMALL)]
SHAPES = [(), (1,), (7,), (2, 3), (0,), (3, 0, 2), (1, 2, 1, 3, 2)]


def sample(shape, dtype):
    values = np.random.default_rng(0).integers(0, 256, (*shape, dtype.itemsize), np.uint8)
    if dtype == np.bool_:
        values &= 1
    return np.frombuffer(values.tobytes(), dtype).reshape(shape)


def same(x, y):
    assert (x.shape, x.dtype) == (y.shape, y.dtype)
    assert x.tobytes() == y.tobytes()  # NaN included


@pytest.mark.parametrize("alias", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_round_trip(dtype, shape, alias):
    x = aligned_empty(shape, dtype)
    x[...] = sample(shape, dtype)
    view = from_numpy(x, alias=alias)
    assert dtype_of(view) == dtype
    y = to_numpy(view)
    same(x, y)
    assert not y.flags.writeable
    assert np.shares_memory(x, y) == (alias and x.size > 0)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_any_layout(dtype):
    x = sample((4, 6), dtype)
    for y in (x.T, x[::2, ::-1], x[1:, 1:5], np.broadcast_to(x[:1], (4, 6)), np.asfortranarray(x)):
        for alias in (False, True):
            same(to_numpy(from_numpy(y, alias=alias)), np.array(y, order="C"))


def test_a_copy_does_not_change_with_the_array():
    x = aligned_empty((8,), np.float32)
    x[:] = 1
    view = from_numpy(x)
    x[:] = 2
    np.testing.assert_array_equal(to_numpy(view), np.ones(8, np.float32))


def test_memory_used_in_place_lives_as_long_as_the_results():
    x = aligned_empty((1000,), np.float32)
    x[:] = 3
    before = sys.getrefcount(x)
    view = from_numpy(x, alias=True)
    y = to_numpy(view)
    del view
    gc.collect()
    assert sys.getrefcount(x) > before
    del y
    gc.collect()
    assert sys.getrefcount(x) == before


def test_read_only_arrays_are_used_in_place():
    x = aligned_empty((8,), np.float32)
    x[:] = 1
    x.flags.writeable = False
    assert np.shares_memory(to_numpy(from_numpy(x, alias=True)), x)
    assert not x.flags.writeable


def test_memory_that_is_not_aligned_is_copied():
    x = aligned_empty((9,), np.float32)[1:]
    x[:] = 1
    assert not np.shares_memory(to_numpy(from_numpy(x, alias=True)), x)


def test_other_byte_order():
    x = np.arange(5, dtype=">i4")
    for alias in (False, True):
        same(to_numpy(from_numpy(x, alias=alias)), np.arange(5, dtype=np.int32))


def test_a_dtype_that_devices_lack_is_refused():
    for dtype in (ml_dtypes.int4, np.longdouble, object, "datetime64[s]", "U3"):
        with pytest.raises(ArgumentError, match="dtype"):
            from_numpy(np.zeros(2, dtype))


def test_aligned():
    for shape in SHAPES:
        x = aligned_empty(shape, np.float64)
        assert x.shape == shape
        assert x.size == 0 or x.ctypes.data % ALIGNMENT == 0
        assert x.flags.writeable
