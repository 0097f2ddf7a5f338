"""The dtype that values of several dtypes combine to.

Dtypes and the weak types of Python scalars form a lattice, given by JAX's documents; values combine to the least type
above all of theirs. A weakly typed value (a Python scalar, or what was computed from Python scalars only) adapts to the
others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xformlib.dtypes import types as t
from xformlib.dtypes.types import DType, KeyDType, canonicalize_dtype, family
from xformlib.errors import DtypeError, TypePromotionError
from xformlib.options import current

# Weak types: where Python scalars stand in the lattice.
_INT, _FLOAT, _COMPLEX = "int*", "float*", "complex*"

_ABOVE: dict[Any, tuple[Any, ...]] = {
    t.bool_: (_INT,),
    _INT: (t.uint8, t.int8, *t.NARROW_SIGNED, *t.NARROW_UNSIGNED),
    t.uint8: (t.int16, t.uint16),
    t.uint16: (t.int32, t.uint32),
    t.uint32: (t.int64, t.uint64),
    t.uint64: (_FLOAT,),
    t.int8: (t.int16,),
    t.int16: (t.int32,),
    t.int32: (t.int64,),
    t.int64: (_FLOAT,),
    _FLOAT: (t.bfloat16, t.float16, *t.NARROW_FLOATS, _COMPLEX),
    t.bfloat16: (t.float32,),
    t.float16: (t.float32,),
    t.float32: (t.float64, t.complex64),
    t.float64: (t.complex128,),
    _COMPLEX: (t.complex64,),
    t.complex64: (t.complex128,),
}

# Strict promotion: a weak type adapts to what can hold its kind; nothing else changes.
_ABOVE_STRICTLY: dict[Any, tuple[Any, ...]] = {
    _INT: (_FLOAT, *t.SIGNED, *t.UNSIGNED),
    _FLOAT: (_COMPLEX, *t.FLOATS),
    _COMPLEX: t.COMPLEX,
}


def _upper_sets(above: dict[Any, tuple[Any, ...]]) -> dict[Any, frozenset[Any]]:
    """Each type with all types above it, itself included."""
    out: dict[Any, frozenset[Any]] = {}

    def reach(x: Any) -> frozenset[Any]:
        if x not in out:
            out[x] = frozenset([x]).union(*map(reach, above.get(x, ())))
        return out[x]

    for x in (*t.ALL, _INT, _FLOAT, _COMPLEX):
        reach(x)
    return out


_UPPER = {"standard": _upper_sets(_ABOVE), "strict": _upper_sets(_ABOVE_STRICTLY)}

_WIDEST = {
    np.bool_: t.bool_,
    np.signedinteger: t.int64,
    np.unsignedinteger: t.uint64,
    np.floating: t.float64,
    np.complexfloating: t.complex128,
}
_WEAK = {t.int64: _INT, t.uint64: _INT, t.float64: _FLOAT, t.complex128: _COMPLEX}
_DEFAULT = {_INT: t.int64, _FLOAT: t.float64, _COMPLEX: t.complex128}

Typed = tuple[DType, bool]  # a dtype, and whether it is weak


def _widest(dtype: DType) -> DType:
    """The 64-bit dtype of the same kind."""
    return next(wide for kind, wide in _WIDEST.items() if issubclass(family(dtype), kind))


def promote(dtype_a: DType, weak_a: bool, dtype_b: DType, weak_b: bool) -> Typed:
    """The dtype and weakness of combining two values; remembered, since every eager operation asks.

    Raises:
        TypePromotionError: there is no common type: small floats or integers with others of their kind, or different
            dtypes under strict promotion. (A ``DtypeError``.)
        DtypeError: PRNG keys with anything else, ``float0``.

    >>> promote(np.dtype("int8"), False, np.dtype("int32"), True)
    (dtype('int8'), False)
    """
    promoted: dict[Any, Typed] = current().promoted
    found = promoted.get((dtype_a, weak_a, dtype_b, weak_b))
    if found is None:
        found = _combine(((dtype_a, weak_a), (dtype_b, weak_b)))
        promoted[dtype_a, weak_a, dtype_b, weak_b] = found
    return found


def _combine(given: tuple[Typed, ...]) -> Typed:
    """The dtype and weakness of combining any number of values."""
    if any(isinstance(d, KeyDType) or d == t.float0 for d, _ in given):
        return _combine_opaque(given)
    mode = current().numpy_dtype_promotion
    all_weak = all(weak for _, weak in given)
    # Among weak values only, dtypes say more than kinds (unsigned stays unsigned); strict promotion knows kinds only.
    by_kind = mode == "strict" or not all_weak
    nodes = {_WEAK.get(_widest(d), d) if weak and by_kind else d for d, weak in given}
    upper = _UPPER[mode]
    common = frozenset.intersection(*[upper[n] for n in nodes])
    least = [n for n in common if common <= upper[n]]
    if not least:
        raise _no_common_type(given, mode)
    node = least[0]
    weak = (isinstance(node, str) or all_weak) and node != t.bool_
    dtype = _DEFAULT.get(node, node)
    return canonicalize_dtype(_widest(dtype) if weak else dtype), weak


def _combine_opaque(given: tuple[Typed, ...]) -> Typed:
    """Keys and ``float0`` combine with their own kind only."""
    first = given[0][0]
    if all(d == first for d, _ in given):
        return first, False
    names = ", ".join(sorted({str(d) for d, _ in given}))
    raise DtypeError(f"arrays of dtypes {names} can't be combined: PRNG keys and float0 are not numbers.")


def _no_common_type(given: tuple[Typed, ...], mode: str) -> TypePromotionError:
    names = ", ".join(dict.fromkeys([f"{d} (weak)" if weak else str(d) for d, weak in given]))
    if mode == "strict":
        why = "numpy_dtype_promotion is 'strict', which allows no implicit promotion"
    else:
        why = "integers of less than 8 bits and floats of 8 bits or less are not promoted implicitly"
    return TypePromotionError(f"dtypes {names} have no common type: {why}. Convert explicitly, with x.astype(...).")


# -- of values ---------------------------------------------------------------------------------------------------------

_PYTHON_SCALARS = frozenset([bool, int, float, complex])
_WEAK_TYPES = frozenset([int, float, complex])


def describe(x: Any) -> Typed:
    """The canonical dtype and the weakness of an array, dtype, Python scalar or scalar type.

    Raises:
        DtypeError: it has no dtype that arrays can have.
    """
    kind = type(x)
    if kind in _PYTHON_SCALARS:
        return canonicalize_dtype(kind), kind in _WEAK_TYPES
    if isinstance(x, np.dtype | str):
        return canonicalize_dtype(x), False
    if isinstance(x, type):
        return canonicalize_dtype(x), x in _WEAK_TYPES
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return canonicalize_dtype(x.dtype), bool(getattr(x, "weak_type", False))
    if x is None:
        raise DtypeError("None has no dtype; an array, dtype or scalar is needed.")
    if isinstance(x, int | float | complex):  # a subclass, such as an IntEnum
        base = next(b for b in (int, float, complex) if isinstance(x, b))
        return canonicalize_dtype(base), True
    return canonicalize_dtype(x), False


def dtype(x: Any) -> DType:
    """The dtype of an array or Python scalar, as this library would hold it.

    >>> dtype(1.0), dtype(np.ones(2))
    (dtype('float32'), dtype('float32'))
    """
    return describe(x)[0]


def is_weak(x: Any) -> bool:
    """Whether the type of an array or scalar is weak: it adapts to what it is combined with.

    >>> is_weak(1.0), is_weak(np.float32(1)), is_weak(True)
    (True, False, False)
    """
    return describe(x)[1]


def promote_types(a: Any, b: Any) -> DType:
    """The dtype of combining values of two dtypes.

    Args:
        a: a dtype; Python's ``int``, ``float`` and ``complex`` are weak.
        b: likewise.

    Raises:
        TypePromotionError: there is no common type.

    >>> promote_types("int32", "float16"), promote_types("uint8", "int8")
    (dtype('float16'), dtype('int16'))
    """
    return promote(*describe(a), *describe(b))[0]


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """The dtype of combining arrays, dtypes and Python scalars.

    Args:
        args: at least one array, dtype, Python scalar or scalar type.
        return_weak_type_flag: return ``(dtype, weak)``.

    Raises:
        TypePromotionError: there is no common type.

    >>> result_type(np.ones(2, "int8"), 1), result_type("int8", 1.0), result_type("bfloat16", "float16")
    (dtype('int8'), dtype('float32'), dtype('float32'))
    """
    if not args:
        raise DtypeError("result_type: at least one array, dtype or scalar is needed.")
    given = tuple([describe(x) for x in args])
    promoted = current().promoted
    out = promoted.get(given)
    if out is None:
        out = promoted[given] = _combine(given)
    return out if return_weak_type_flag else out[0]


# -- to a kind ---------------------------------------------------------------------------------------------------------


def to_inexact_dtype(dtype: Any) -> DType:
    """The dtype in which functions such as ``sin`` work: floating and complex dtypes unchanged; others float.

    64-bit integers go to float64 (where that exists), smaller ones to float32.

    >>> to_inexact_dtype("int8"), to_inexact_dtype("bfloat16")
    (dtype('float32'), dtype(bfloat16))
    """
    found = canonicalize_dtype(dtype)
    if t.issubdtype(found, np.inexact):
        return found
    return t.float64 if found in (t.int64, t.uint64) else t.float32


def to_floating_dtype(dtype: Any) -> DType:
    """Like :func:`to_inexact_dtype`, with complex dtypes going to that of their parts.

    >>> to_floating_dtype("complex64")
    dtype('float32')
    """
    return t.real_dtype(to_inexact_dtype(dtype))


def to_complex_dtype(dtype: Any) -> DType:
    """The complex dtype that holds values of ``dtype``: complex128 for 64-bit real types, else complex64.

    >>> to_complex_dtype("float16")
    dtype('complex64')
    """
    found = to_inexact_dtype(dtype)
    return t.complex128 if found in (t.float64, t.complex128) else t.complex64


def to_numeric_dtype(dtype: Any) -> DType:
    """bool goes to int32; other dtypes unchanged.

    >>> to_numeric_dtype(bool)
    dtype('int32')
    """
    found = canonicalize_dtype(dtype)
    return t.int32 if found == t.bool_ else found


def scalar_type_of(x: Any) -> type:
    """Python's type for the kind of an array, dtype or scalar: ``bool``, ``int``, ``float`` or ``complex``.

    >>> scalar_type_of(np.ones(2, "int8"))
    <class 'int'>
    """
    found = dtype(x)
    for kind, scalar in ((np.bool_, bool), (np.integer, int), (np.floating, float), (np.complexfloating, complex)):
        if t.issubdtype(found, kind):
            return scalar
    raise DtypeError(f"scalar_type_of: dtype {found} has no Python scalars.")
