"""Dtypes against JAX's tables (tests/data), and the rest of what xformlib.dtypes promises."""

from __future__ import annotations

import enum
import itertools
import json
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xformlib as xf
from xformlib import dtypes
from xformlib.errors import DtypeError, TypePromotionError
from xformlib.options import enable_x64, numpy_dtype_promotion

DATA = Path(__file__).parent / "data"
TABLES = json.loads((DATA / "dtypes.json").read_text())
PROMOTION = json.loads((DATA / "promotion.json").read_text())
WIDTHS = [("x32", False), ("x64", True)]
KEY = dtypes.KeyDType("fry")


class Value:
    """Something with the attributes of an array."""

    shape = ()

    def __init__(self, name: str) -> None:
        self.weak_type = name.endswith("*")
        self.dtype = dtypes.as_dtype(name.rstrip("*"))


def text(combine: Any, *args: Any) -> str:
    """A result as the tables write it."""
    try:
        dtype, weak = combine(*args)
    except TypePromotionError:
        return "error"
    return str(dtype) + "*" * weak


def with_flag(*args: Any) -> Any:
    return dtypes.result_type(*args, return_weak_type_flag=True)


# -- promotion ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("table", "x64"), WIDTHS)
def test_pairs(table: str, x64: bool) -> None:
    """Every pair of dtypes and Python scalars."""
    scalars = {"i*": 1, "f*": 1.0, "c*": 1j}
    types = {"i*": int, "f*": float, "c*": complex}
    with enable_x64(x64):
        for names, result in TABLES[table]["pairs"].items():
            expected = "error" if result.startswith("error") else result
            operands = [scalars[n] if n in scalars else Value(n) for n in names.split(",")]
            assert text(with_flag, *operands) == expected, names
            assert text(with_flag, *[types.get(n, n) for n in names.split(",")]) == expected, names
            described = [d for x in operands for d in dtypes.describe(x)]
            assert text(dtypes.promote, *described) == expected, names
            if expected != "error":
                assert str(dtypes.promote_types(*[types.get(n, n) for n in names.split(",")])) == expected.rstrip("*")


@pytest.mark.parametrize("case", PROMOTION["tables"])
def test_promotion_of_weak_arrays(case: str) -> None:
    """Every pair of dtypes, weak or not, under standard and strict promotion."""
    x64, mode = case.split(",")
    table = PROMOTION["tables"][case]
    with enable_x64(x64 == "True"), numpy_dtype_promotion(mode):
        for a, row in zip(table["names"], table["rows"], strict=True):
            for b, index in zip(table["names"], row.split(), strict=True):
                expected = PROMOTION["results"][int(index)]
                if expected:  # else JAX itself fails
                    assert text(with_flag, Value(a), Value(b)) == expected, (a, b)


@pytest.mark.parametrize("case", PROMOTION["triples"])
def test_promotion_of_three(case: str) -> None:
    x64, mode = case.split(",")
    with enable_x64(x64 == "True"), numpy_dtype_promotion(mode):
        for names, expected in PROMOTION["triples"][case].items():
            assert text(with_flag, *map(Value, names.split(","))) == expected, names


names = st.sampled_from([str(d) + weak for d in dtypes.ALL for weak in ("", "*")])


@given(st.lists(names, min_size=1, max_size=4), st.randoms(), st.booleans(), st.sampled_from(["standard", "strict"]))
def test_order_and_repetition_do_not_matter(args: Any, random: Any, x64: bool, mode: str) -> None:
    shuffled = [*args, args[0]]
    random.shuffle(shuffled)
    with enable_x64(x64), numpy_dtype_promotion(mode):
        assert text(with_flag, *map(Value, args)) == text(with_flag, *map(Value, shuffled))


def test_weak_values_do_not_change_strong_ones_of_their_kind() -> None:
    for d in dtypes.ALL:
        canonical = dtypes.canonicalize_dtype(d)
        if dtypes.issubdtype(d, np.integer):
            assert dtypes.result_type(d, 1) == canonical
        if dtypes.issubdtype(d, np.floating):
            assert dtypes.result_type(d, 1, 2.0) == canonical


def test_results_depend_on_the_width_in_force() -> None:
    """The memo of one setting must not answer under another."""
    for _ in range(2):
        assert dtypes.promote_types("uint32", "int32") == np.int32
        with enable_x64():
            assert dtypes.promote_types("uint32", "int32") == np.int64
        with numpy_dtype_promotion("strict"), pytest.raises(TypePromotionError, match="'strict'"):
            dtypes.promote_types("uint32", "int32")


def test_numpy_scalars_are_strong() -> None:
    assert with_flag(np.float64(1), np.float32(1)) == (np.float32, False)
    with enable_x64():
        assert with_flag(np.float64(1), np.float16(1)) == (np.float64, False)
    assert with_flag(np.bool_(True), 1) == (np.int32, True)
    assert with_flag(True) == (np.bool_, False)
    assert with_flag(np.dtype("float64")) == (np.float32, False)


def test_subclasses_of_python_scalars() -> None:
    class Level(enum.IntEnum):
        LOW = 1

    assert with_flag(Level.LOW, np.int8(1)) == (np.int8, False)
    assert with_flag(Level.LOW) == (np.int32, True)


def test_keys_and_float0_combine_with_themselves_only() -> None:
    class Keys(Value):
        def __init__(self) -> None:
            self.dtype, self.weak_type = KEY, False

    assert dtypes.result_type(Keys()) == KEY
    assert dtypes.promote(KEY, False, KEY, False) == (KEY, False)
    with pytest.raises(DtypeError, match=r"float32, key<fry> can't be combined"):
        dtypes.result_type(Keys(), 1.0)
    with pytest.raises(ValueError, match="float0"):
        dtypes.promote_types(dtypes.float0, "float32")


@pytest.mark.parametrize("bad", [None, [1, 2], object(), "no such", np.array(["a"]), np.datetime64("2000-01-01")])
def test_result_type_of_what_has_no_dtype(bad: Any) -> None:
    with pytest.raises(TypeError):
        dtypes.result_type(bad)
    with pytest.raises(TypeError):
        dtypes.result_type(1.0, bad)


def test_result_type_of_nothing() -> None:
    with pytest.raises(ValueError, match="at least one"):
        dtypes.result_type()


def test_errors_name_the_dtypes() -> None:
    with pytest.raises(TypePromotionError, match=r"int4, int8 have no common type.*astype"):
        dtypes.promote_types("int4", "int8")
    with pytest.raises(TypePromotionError, match=r"float32 \(weak\), uint4"):
        dtypes.result_type(1.0, "uint4")
    assert issubclass(dtypes.TypePromotionError, (DtypeError, ValueError))


# -- to a kind ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("table", "x64"), WIDTHS)
def test_to_inexact(table: str, x64: bool) -> None:
    with enable_x64(x64):
        for name, result in TABLES[table]["to_inexact"].items():
            given = {"weak int": int, "weak float": float}.get(name, name)
            assert str(dtypes.to_inexact_dtype(given)) == result.rstrip("*"), name


def test_to_kinds() -> None:
    with enable_x64():
        assert dtypes.to_floating_dtype("complex128") == np.float64
        assert dtypes.to_floating_dtype("int64") == np.float64
        assert dtypes.to_floating_dtype("int32") == np.float32
        assert dtypes.to_complex_dtype("int64") == np.complex128
        assert dtypes.to_complex_dtype("bfloat16") == np.complex64
    assert dtypes.to_complex_dtype("int64") == np.complex64
    assert dtypes.to_numeric_dtype(bool) == np.int32
    assert dtypes.to_numeric_dtype("int4") == dtypes.as_dtype("int4")
    assert dtypes.real_dtype(np.dtype("complex128")) == np.float64
    assert dtypes.real_dtype(np.dtype("int8")) == np.int8


def test_scalar_type_of() -> None:
    kinds = {"bool": bool, "int4": int, "uint8": int, "bfloat16": float, "float8_e5m2": float, "complex64": complex}
    assert {n: dtypes.scalar_type_of(n) for n in kinds} == kinds
    assert dtypes.scalar_type_of(2.5) is float
    with pytest.raises(DtypeError, match="no Python scalars"):
        dtypes.scalar_type_of(KEY)


# -- widths and names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("table", "x64"), WIDTHS)
def test_defaults(table: str, x64: bool) -> None:
    with enable_x64(x64):
        for name, value in {"int": 1, "float": 1.0, "complex": 1j, "bool": True}.items():
            assert text(with_flag, value) == TABLES[table]["scalars"][name]
            assert str(dtypes.canonicalize_dtype(type(value))) == TABLES[table]["dtype_arguments"][name]
            assert str(dtypes.python_scalar_dtype(type(value))) == TABLES[table]["dtype_arguments"][name]


def test_canonicalize() -> None:
    narrow = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}
    for d in dtypes.ALL:
        assert str(dtypes.canonicalize_dtype(d)) == narrow.get(str(d), str(d))
        with enable_x64():
            assert dtypes.canonicalize_dtype(d) == d
            assert dtypes.canonicalize_dtype(str(d)) == d
            assert dtypes.canonicalize_dtype(d.type) == d
    assert dtypes.canonicalize_dtype(None) == np.float32
    assert dtypes.canonicalize_dtype(">f4") == np.float32
    assert dtypes.canonicalize_dtype(dtypes.float0) == dtypes.float0
    assert dtypes.canonicalize_dtype(KEY) is KEY
    with pytest.raises(ValueError, match="key<fry>"):
        dtypes.canonicalize_dtype(KEY, allow_extended_dtype=False)


class ScalarType:
    """A callable that stands for a dtype, like xformlib.numpy.float32."""

    dtype = np.dtype("float16")


def test_scalar_types_with_a_dtype() -> None:
    assert dtypes.as_dtype(ScalarType) == np.float16
    assert dtypes.as_dtype(ScalarType()) == np.float16


UNSUPPORTED = ["O", "S3", "U", "M8[s]", "m8[s]", "V4", object, str, [("a", "i4")], dtypes.float0]
if np.dtype("longdouble") != np.float64:
    UNSUPPORTED += ["longdouble", "clongdouble"]


@pytest.mark.parametrize("bad", UNSUPPORTED)
def test_unsupported(bad: Any) -> None:
    with pytest.raises(TypeError, match=r"dtype_of_x .* is not supported.*Convert"):
        dtypes.requested(bad, "dtype_of_x")


@pytest.mark.parametrize("bad", ["float31", 3, np.ones(2)])
def test_not_a_dtype(bad: Any) -> None:
    with pytest.raises(TypeError, match="is not a dtype; give one such as"):
        dtypes.as_dtype(bad)


def test_narrowing_is_announced_once_per_process_at_the_users_line() -> None:
    program = """
import warnings
import numpy as np
from xformlib import dtypes, options
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for quiet in (float, int, complex, None, "float32", bool):
        dtypes.requested(quiet)
    with options.enable_x64():
        assert dtypes.requested("int64") == np.int64
    assert not seen, seen
    assert dtypes.requested(np.dtype("float64"), "out_dtype") == np.float32  # here
    dtypes.requested("int64")
(w,) = seen
assert w.category is UserWarning
assert "out_dtype float64" in str(w.message) and "jax_enable_x64" in str(w.message)
print(w.lineno, w.filename)
"""
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    line = 1 + next(i for i, s in enumerate(program.splitlines()) if "# here" in s)
    assert out.split() == [str(line), "<string>"]


def test_canonicalizing_is_silent() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dtypes.canonicalize_dtype("float64")
        dtypes.result_type("float64", "int64")


# -- families ----------------------------------------------------------------------------------------------------------


def test_families() -> None:
    families = {
        np.signedinteger: ["int2", "int4", "int8", "int16", "int32", "int64"],
        np.unsignedinteger: ["uint2", "uint4", "uint8", "uint16", "uint32", "uint64"],
        np.floating: [str(d) for d in dtypes.ALL if "float" in str(d)],
        np.complexfloating: ["complex64", "complex128"],
        np.bool_: ["bool"],
    }
    assert sorted(itertools.chain(*families.values())) == sorted(map(str, dtypes.ALL))
    for (kind, members), d in itertools.product(families.items(), dtypes.ALL):
        assert dtypes.issubdtype(d, kind) == (str(d) in members), (d, kind)
        assert dtypes.issubdtype(d.type, kind) == (str(d) in members)
    for d in dtypes.ALL:
        assert dtypes.issubdtype(d, np.generic)
        assert dtypes.issubdtype(d, np.number) == (d != np.bool_)
        assert dtypes.issubdtype(d, np.inexact) == ("float" in str(d) or "complex" in str(d))
        assert dtypes.issubdtype(d, np.integer) == ("int" in str(d))
        assert dtypes.issubdtype(d, d)
        assert not dtypes.issubdtype(d, dtypes.extended)


def test_issubdtype_like_numpy() -> None:
    for child, parent in itertools.product([int, float, np.float32, "int8", np.integer, np.number], repeat=2):
        assert dtypes.issubdtype(child, parent) == np.issubdtype(child, parent), (child, parent)
    assert not dtypes.issubdtype("float32", float)
    assert not dtypes.issubdtype("float8_e5m2", ml_dtypes.bfloat16)
    assert not dtypes.issubdtype(dtypes.float0, np.inexact)
    assert dtypes.issubdtype(dtypes.float0, np.generic)


def test_key_dtype() -> None:
    assert dtypes.issubdtype(KEY, dtypes.prng_key)
    assert dtypes.issubdtype(KEY, dtypes.extended)
    assert dtypes.issubdtype(dtypes.prng_key, dtypes.extended)
    assert dtypes.issubdtype(KEY, np.generic)
    assert not dtypes.issubdtype(KEY, np.number)
    assert dtypes.issubdtype(KEY, KEY)
    assert not dtypes.issubdtype(KEY, "uint32")
    assert not dtypes.issubdtype("uint32", KEY)
    assert repr(KEY) == str(KEY) == KEY.name == "key<fry>"
    assert dtypes.KeyDType("fry") == KEY != dtypes.KeyDType("other")
    assert hash(dtypes.KeyDType("fry")) == hash(KEY)
    assert np.dtype("uint32") != KEY
    assert pickle.loads(pickle.dumps(KEY)) == KEY


def test_isdtype() -> None:
    assert dtypes.isdtype("bfloat16", "real floating")
    assert dtypes.isdtype("int4", ("bool", "signed integer"))
    assert not dtypes.isdtype("bool", "integral")
    assert not dtypes.isdtype("bool", "numeric")
    assert dtypes.isdtype("complex64", "numeric")
    assert dtypes.isdtype(np.int8, np.int8)
    assert not dtypes.isdtype(np.int8, ())
    assert not dtypes.isdtype(KEY, "numeric")
    with pytest.raises(ValueError, match=r"kind 'foo'.*'real floating'"):
        dtypes.isdtype("int4", "foo")
    with pytest.raises(TypeError, match="use issubdtype"):
        dtypes.isdtype("int4", np.integer)


# -- limits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TABLES["finfo"])
def test_finfo(name: str) -> None:
    info = dtypes.finfo(name)
    for attribute, value in TABLES["finfo"][name].items():
        assert float(getattr(info, attribute)) == value, attribute


def test_finfo_and_iinfo() -> None:
    assert dtypes.finfo("complex64").dtype == np.float32
    assert dtypes.finfo(np.ones(2, "float16")).bits == 16
    assert dtypes.finfo(np.float32(1)).bits == 32
    assert dtypes.finfo(float).bits == 64
    assert type(dtypes.finfo("bfloat16").max) is ml_dtypes.bfloat16
    for d in dtypes.ALL:
        if dtypes.issubdtype(d, np.integer):
            bits, signed = dtypes.itemsize_bits(d), dtypes.issubdtype(d, np.signedinteger)
            info = dtypes.iinfo(d)
            assert (info.min, info.max) == ((-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1))
            assert info.bits == bits
    assert dtypes.iinfo(np.arange(3, dtype="int8")).max == 127
    with pytest.raises(ValueError, match="use iinfo"):
        dtypes.finfo("int32")
    for bad in ("float32", bool):
        with pytest.raises(ValueError, match="not an integer dtype"):
            dtypes.iinfo(bad)


def test_itemsize_bits() -> None:
    sizes = {"int2": 2, "uint4": 4, "float4_e2m1fn": 4, "bool": 8, "float8_e5m2": 8, "bfloat16": 16, "complex128": 128}
    assert {n: dtypes.itemsize_bits(n) for n in sizes} == sizes


def test_public_names() -> None:
    assert xf.dtypes is dtypes
    assert xf.float0 is dtypes.float0
    for name in dtypes.__all__:
        assert hasattr(dtypes, name)
