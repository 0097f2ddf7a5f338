"""Dtypes and how they combine: canonical widths, weak Python scalars, and the promotion lattice.

A dtype is a NumPy dtype (ml_dtypes for bfloat16, float8 and 4-bit integers) or a :class:`KeyDType`. Promotion is the join in
JAX's documented lattice, in which weak Python scalars stand below the sized types of their kind.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import ml_dtypes
import numpy as np

from xformlib.options import current
from xformlib.errors import DtypeError

__all__ = [
    "KeyDType",
    "bfloat16",
    "canonicalize_dtype",
    "finfo",
    "float0",
    "iinfo",
    "issubdtype",
    "prng_key",
    "promote_types",
    "result_type",
]

float0: np.dtype[Any] = np.dtype([("float0", np.void, 0)])
bfloat16 = np.dtype(ml_dtypes.bfloat16)

_FLOAT8 = [
    np.dtype(getattr(ml_dtypes, n))
    for n in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz")
]
_INT4 = [np.dtype(ml_dtypes.int4), np.dtype(ml_dtypes.uint4)]

_BOOL = np.dtype(np.bool_)
_SIGNED = [np.dtype(f"int{n}") for n in (8, 16, 32, 64)]
_UNSIGNED = [np.dtype(f"uint{n}") for n in (8, 16, 32, 64)]
_FLOAT = [np.dtype(f"float{n}") for n in (16, 32, 64)]
_COMPLEX = [np.dtype(np.complex64), np.dtype(np.complex128)]

ALL = [_BOOL, *_SIGNED, *_UNSIGNED, *_INT4, *_FLOAT8, bfloat16, *_FLOAT, *_COMPLEX]

_NARROW = {
    np.dtype(wide): np.dtype(narrow)
    for wide, narrow in {
        "int64": "int32",
        "uint64": "uint32",
        "float64": "float32",
        "complex128": "complex64",
    }.items()
}


class extended:  # noqa: N801 - JAX's name
    """Abstract parent of dtypes NumPy does not know."""


class prng_key(extended):  # noqa: N801 - JAX's name
    """Abstract parent of the dtypes of PRNG keys."""


class KeyDType:
    """The dtype of PRNG keys of one generator.

    >>> import xformlib as xf
    >>> xf.random.key(0).dtype
    key<fry>
    """

    __slots__ = ("name",)
    type = prng_key
    kind = "key"
    itemsize = 8

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"key<{self.name}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyDType) and other.name == self.name

    def __hash__(self) -> int:
        return hash((KeyDType, self.name))


# -- widths -----------------------------------------------------------------------------------------------------------

_canonical: dict[bool, dict[Any, Any]] = {False: {}, True: {}}


def canonicalize_dtype(dtype: Any) -> Any:
    """The dtype as this library holds it: 64-bit types become 32-bit ones unless x64 is enabled.

    Raises:
        DtypeError: for objects, strings, dates and structured types.

    >>> canonicalize_dtype(float)
    dtype('float32')
    """
    cache = _canonical[current().enable_x64]
    try:
        found = cache.get(dtype)
    except TypeError:
        found = None
    if found is None:
        if isinstance(dtype, KeyDType):
            return dtype
        found = as_dtype(dtype)
        if not current().enable_x64:
            found = _NARROW.get(found, found)
        try:
            cache[dtype] = found
        except TypeError:
            pass
    return found


def as_dtype(dtype: Any) -> Any:
    """A NumPy dtype (or key dtype) from anything that names one.

    Raises:
        DtypeError: not a dtype, or one that arrays can't have.
    """
    if isinstance(dtype, KeyDType):
        return dtype
    if dtype is None:
        return np.dtype(np.float64)
    found = _named(dtype)
    if found not in _SUPPORTED:
        raise DtypeError(
            f"dtype {dtype!r} is not supported; arrays hold bool, integers, floats and complex numbers. "
            "Convert the data to one of these."
        )
    return found


def _named(dtype: Any) -> Any:
    if isinstance(dtype, str) and hasattr(ml_dtypes, dtype):
        return np.dtype(getattr(ml_dtypes, dtype))
    try:
        own = getattr(dtype, "dtype", None)  # on NumPy's scalar types this is a descriptor, not a dtype
        return np.dtype(own if isinstance(own, np.dtype) else dtype).newbyteorder("=")
    except TypeError:
        raise DtypeError(f"{dtype!r:.60} is not a dtype; give one such as 'float32' or xformlib.numpy.int32.") from None


_SUPPORTED = frozenset(ALL)
_warned_narrowing = False


def requested(dtype: Any) -> Any:
    """A dtype the user asked for by name; its narrowing to 32 bits is announced once per process."""
    global _warned_narrowing
    given = as_dtype(dtype)
    canonical = canonicalize_dtype(given)
    if canonical != given and not _warned_narrowing and dtype not in (float, int, complex, None):
        _warned_narrowing = True
        warnings.warn(
            f"dtype {given} was asked for, but 64-bit types are off: {canonical} is used. Enable them with "
            "xformlib.config.update('jax_enable_x64', True), XFORMLIB_ENABLE_X64=1, or xformlib.enable_x64(). "
            "(This is said once.)",
            UserWarning,
            stacklevel=4,
        )
    return canonical


def python_scalar_dtype(kind: type) -> Any:
    """The dtype of a Python scalar: bool, or the default int, float or complex."""
    return canonicalize_dtype({bool: np.bool_, int: np.int64, float: np.float64, complex: np.complex128}[kind])


# -- hierarchy ----------------------------------------------------------------------------------------------------------

_ABSTRACT = {np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact, np.floating, np.complexfloating}


@functools.cache
def issubdtype(dtype: Any, parent: Any) -> bool:
    """Like ``numpy.issubdtype``, and right for bfloat16, float8, 4-bit integers and key dtypes.

    >>> issubdtype(bfloat16, np.floating)
    True
    """
    if isinstance(parent, type) and issubclass(parent, extended):
        return isinstance(dtype, KeyDType) and issubclass(prng_key, parent)
    if isinstance(dtype, KeyDType):
        return isinstance(parent, KeyDType) and dtype == parent
    if isinstance(dtype, type) and issubclass(dtype, extended):
        return False
    if isinstance(dtype, type) and dtype in _ABSTRACT:
        return isinstance(parent, type) and issubclass(dtype, parent)
    concrete = _named(dtype)
    if parent in _ABSTRACT:
        return issubclass(_abstract_kind(concrete), parent)
    if isinstance(parent, type) and parent in (float, int, complex):
        parent = {float: np.floating, int: np.integer, complex: np.complexfloating}[parent]
        return issubclass(_abstract_kind(concrete), parent)
    return bool(concrete == _named(parent))


def _abstract_kind(dtype: Any) -> type:
    if dtype in _FLOAT8 or dtype == bfloat16:
        return np.floating
    if dtype in _INT4:
        return np.signedinteger if dtype == _INT4[0] else np.unsignedinteger
    return dtype.type  # type: ignore[no-any-return]


def isdtype(dtype: Any, kind: Any) -> bool:
    """The Array API's ``isdtype``: ``kind`` is a dtype, a name such as ``"real floating"``, or a tuple of these.

    >>> isdtype(np.float32, "real floating")
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    names = {
        "bool": np.bool_,
        "signed integer": np.signedinteger,
        "unsigned integer": np.unsignedinteger,
        "integral": np.integer,
        "real floating": np.floating,
        "complex floating": np.complexfloating,
        "numeric": np.number,
    }
    if isinstance(kind, str) and kind in names:
        return issubdtype(dtype, names[kind])
    return bool(as_dtype(dtype) == as_dtype(kind))


def finfo(dtype: Any) -> Any:
    """Limits of a floating dtype."""
    d = _named(dtype)
    return ml_dtypes.finfo(d) if d in _FLOAT8 or d == bfloat16 else np.finfo(d)


def iinfo(dtype: Any) -> Any:
    """Limits of an integer dtype."""
    d = _named(dtype)
    return ml_dtypes.iinfo(d) if d in _INT4 else np.iinfo(d)


# -- promotion -----------------------------------------------------------------------------------------------------------

_WEAK_INT, _WEAK_FLOAT, _WEAK_COMPLEX = "i*", "f*", "c*"


def _lattice() -> dict[Any, frozenset[Any]]:
    """Each type with all types above it (and itself)."""
    i8, i16, i32, i64 = _SIGNED
    u8, u16, u32, u64 = _UNSIGNED
    f16, f32, f64 = _FLOAT
    c64, c128 = _COMPLEX
    above: dict[Any, list[Any]] = {
        _BOOL: [_WEAK_INT],
        _WEAK_INT: [u8, i8, *_INT4],
        u8: [i16, u16],
        u16: [i32, u32],
        u32: [i64, u64],
        u64: [_WEAK_FLOAT],
        i8: [i16],
        i16: [i32],
        i32: [i64],
        i64: [_WEAK_FLOAT],
        _WEAK_FLOAT: [bfloat16, f16, *_FLOAT8, _WEAK_COMPLEX],
        bfloat16: [f32],
        f16: [f32],
        f32: [f64, c64],
        f64: [c128],
        _WEAK_COMPLEX: [c64],
        c64: [c128],
        c128: [],
        **{d: [] for d in [*_FLOAT8, *_INT4]},
    }
    out: dict[Any, frozenset[Any]] = {}

    def reach(t: Any) -> frozenset[Any]:
        if t not in out:
            out[t] = frozenset([t]).union(*[reach(u) for u in above[t]])
        return out[t]

    for t in above:
        reach(t)
    return out


_UPPER = _lattice()
_promoted: dict[Any, tuple[Any, bool]] = {}


def _node(dtype: Any, weak: bool) -> Any:
    if not weak or dtype == _BOOL:
        return dtype
    kind = _abstract_kind(dtype)
    if issubclass(kind, np.integer):
        return _WEAK_INT
    return _WEAK_FLOAT if issubclass(kind, np.floating) else _WEAK_COMPLEX


def _join(a: Any, b: Any) -> Any:
    common = _UPPER[a] & _UPPER[b]
    least = [t for t in common if common <= _UPPER[t]]
    return least[0] if least else None


def promote(a: Any, weak_a: bool, b: Any, weak_b: bool) -> tuple[Any, bool]:
    """(dtype, weak) of combining two values of the given dtypes and weakness; memoised, for the eager hot path.

    Raises:
        DtypeError: types that have no common type (float8 with other floats, 4-bit integers with other integers), keys,
            or different dtypes under strict promotion.
    """
    key = (a, weak_a, b, weak_b, current().enable_x64, current().numpy_dtype_promotion)
    found = _promoted.get(key)
    if found is None:
        found = _promoted[key] = _promote(a, weak_a, b, weak_b)
    return found


def _promote(a: Any, weak_a: bool, b: Any, weak_b: bool) -> tuple[Any, bool]:
    if isinstance(a, KeyDType) or isinstance(b, KeyDType):
        if a == b:
            return a, False
        raise DtypeError(f"PRNG keys don't combine with other types (got {a} and {b}).")
    if current().numpy_dtype_promotion == "strict" and a != b and not weak_a and not weak_b:
        raise DtypeError(f"strict dtype promotion: {a} and {b} are not promoted implicitly; use .astype(...).")
    join = _join(_node(a, weak_a), _node(b, weak_b))
    if join is None:
        raise DtypeError(f"{a} and {b} have no common type by implicit promotion; convert one with .astype(...).")
    if isinstance(join, str):
        default = {_WEAK_INT: int, _WEAK_FLOAT: float, _WEAK_COMPLEX: complex}[join]
        return python_scalar_dtype(default), True
    return canonicalize_dtype(join), False


def promote_types(a: Any, b: Any) -> Any:
    """The dtype that results from combining two dtypes.

    >>> promote_types('int32', 'float16')
    dtype('float16')
    """
    return promote(*_describe(a), *_describe(b))[0]


def _describe(x: Any) -> tuple[Any, bool]:
    """(dtype, weak) of an array, dtype, scalar type or Python scalar."""
    if isinstance(x, bool | int | float | complex) and not isinstance(x, np.generic):
        return python_scalar_dtype(type(x)), not isinstance(x, bool)
    if x in (int, float, complex) if isinstance(x, type) else False:
        return python_scalar_dtype(x), True
    if x is bool:
        return _BOOL, False
    if hasattr(x, "weak_type") and hasattr(x, "dtype"):
        return x.dtype, x.weak_type
    return canonicalize_dtype(getattr(x, "dtype", x)), False


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """The dtype of combining arrays, dtypes and Python scalars.

    Args:
        args: at least one array, dtype or scalar.
        return_weak_type_flag: return ``(dtype, weak)``.

    >>> result_type(np.int8, 1), result_type(np.int8, 1.0)
    (dtype('int8'), dtype('float32'))
    """
    if not args:
        raise ValueError("result_type needs at least one argument")
    described = [_describe(a) for a in args]
    dtype, weak = described[0]
    # Weak values first among equals: the lattice join is associative, except that canonicalisation must come last.
    node = _node(dtype, weak)
    for d, w in described[1:]:
        if isinstance(d, KeyDType) or isinstance(node, KeyDType):
            promote(dtype, weak, d, w)
            continue
        joined = _join(node, _node(d, w))
        if joined is None:
            raise DtypeError(f"{node} and {d} have no common type by implicit promotion; convert with .astype(...).")
        node = joined
    if isinstance(node, str):
        kinds = {_WEAK_INT: int, _WEAK_FLOAT: float, _WEAK_COMPLEX: complex}
        out = python_scalar_dtype(kinds[node]), True
    else:
        out = canonicalize_dtype(node), False
    return out if return_weak_type_flag else out[0]


def to_inexact(dtype: Any) -> Any:
    """The floating type for functions such as ``sin``: inexact types unchanged, others the default float."""
    return dtype if issubdtype(dtype, np.inexact) else python_scalar_dtype(float)


def real_dtype(dtype: Any) -> Any:
    """The dtype of the real part."""
    return {_COMPLEX[0]: _FLOAT[1], _COMPLEX[1]: _FLOAT[2]}.get(dtype, dtype)


def complex_dtype(dtype: Any) -> Any:
    """The complex dtype with parts of this float dtype."""
    return _COMPLEX[1] if dtype in (_FLOAT[2], _COMPLEX[1]) else _COMPLEX[0]
