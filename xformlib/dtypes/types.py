"""The dtypes there are, their families, and their widths.

A dtype is a NumPy dtype (of ml_dtypes for bfloat16 and the smaller floats and integers) or a :class:`KeyDType`.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import ml_dtypes
import numpy as np

from xformlib.errors import DtypeError, user_frame
from xformlib.options import current

DType = Any  # np.dtype | KeyDType; NumPy's own stubs know nothing of ml_dtypes

bool_ = np.dtype(np.bool_)
int8, int16, int32, int64 = (np.dtype(f"int{n}") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (np.dtype(f"uint{n}") for n in (8, 16, 32, 64))
float16, float32, float64 = (np.dtype(f"float{n}") for n in (16, 32, 64))
complex64, complex128 = np.dtype(np.complex64), np.dtype(np.complex128)
bfloat16 = np.dtype(ml_dtypes.bfloat16)
int2, int4 = np.dtype(ml_dtypes.int2), np.dtype(ml_dtypes.int4)
uint2, uint4 = np.dtype(ml_dtypes.uint2), np.dtype(ml_dtypes.uint4)
float4_e2m1fn = np.dtype(ml_dtypes.float4_e2m1fn)
float8_e3m4 = np.dtype(ml_dtypes.float8_e3m4)
float8_e4m3 = np.dtype(ml_dtypes.float8_e4m3)
float8_e4m3b11fnuz = np.dtype(ml_dtypes.float8_e4m3b11fnuz)
float8_e4m3fn = np.dtype(ml_dtypes.float8_e4m3fn)
float8_e4m3fnuz = np.dtype(ml_dtypes.float8_e4m3fnuz)
float8_e5m2 = np.dtype(ml_dtypes.float8_e5m2)
float8_e5m2fnuz = np.dtype(ml_dtypes.float8_e5m2fnuz)
float8_e8m0fnu = np.dtype(ml_dtypes.float8_e8m0fnu)

#: The dtype of "no tangent": what integers have for derivatives. Its arrays hold nothing.
float0: np.dtype[Any] = np.dtype([("float0", np.void, 0)])

#: Integers of less than a byte, and floats of a byte or less: they combine with nothing but Python scalars.
NARROW_SIGNED = (int2, int4)
NARROW_UNSIGNED = (uint2, uint4)
NARROW_FLOATS = (
    float4_e2m1fn,
    float8_e3m4,
    float8_e4m3,
    float8_e4m3b11fnuz,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
)

SIGNED = (*NARROW_SIGNED, int8, int16, int32, int64)
UNSIGNED = (*NARROW_UNSIGNED, uint8, uint16, uint32, uint64)
FLOATS = (*NARROW_FLOATS, bfloat16, float16, float32, float64)
COMPLEX = (complex64, complex128)

#: Every dtype an array can have, besides those of PRNG keys.
ALL = (bool_, *SIGNED, *UNSIGNED, *FLOATS, *COMPLEX)

_SUPPORTED = frozenset(ALL)
_NARROWED = {int64: int32, uint64: uint32, float64: float32, complex128: complex64}
_BITS = {int2: 2, uint2: 2, int4: 4, uint4: 4, float4_e2m1fn: 4}


class extended(np.generic):
    """Abstract parent of dtypes NumPy does not know."""


class prng_key(extended):
    """Abstract parent of the dtypes of PRNG keys.

    >>> import xformlib as xf
    >>> xf.dtypes.issubdtype(KeyDType("fry"), prng_key)
    True
    """


class KeyDType:
    """The dtype of PRNG keys of one generator.

    Attributes:
        impl: the generator's short name.
        name: the dtype's name.
        itemsize: bytes of a key.

    >>> KeyDType("fry")
    key<fry>
    """

    __slots__ = ("impl",)
    type = prng_key
    kind = "key"
    itemsize = 8

    def __init__(self, impl: str) -> None:
        self.impl = impl

    @property
    def name(self) -> str:
        return f"key<{self.impl}>"

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyDType) and other.impl == self.impl

    def __hash__(self) -> int:
        return hash((KeyDType, self.impl))


# -- from what names a dtype -------------------------------------------------------------------------------------------


def named(dtype: Any) -> np.dtype[Any]:
    """The NumPy dtype that a string, class or other object names, whether arrays can have it or not.

    Raises:
        DtypeError: it names none.
    """
    if isinstance(dtype, str):
        dtype = getattr(ml_dtypes, dtype, dtype)
    try:
        # Scalar types such as xformlib.numpy.float32 have a dtype; NumPy's have a descriptor of that name.
        own = getattr(dtype, "dtype", None)
        is_scalar_type = isinstance(own, np.dtype) and not hasattr(dtype, "shape")
        found: np.dtype[Any] = np.dtype(own if is_scalar_type else dtype).newbyteorder("=")
        return found
    except TypeError:
        raise DtypeError(f"{dtype!r:.60} is not a dtype; give one such as 'float32' or xformlib.numpy.int32.") from None


def as_dtype(dtype: Any, name: str = "dtype") -> DType:
    """The dtype that an object names, of those that arrays can have; None is float64.

    Args:
        dtype: a dtype, its name, a scalar type of Python, NumPy or this library, or None.
        name: the argument's name, for errors.

    Raises:
        DtypeError: not a dtype, or one that arrays can't have.
    """
    if isinstance(dtype, KeyDType):
        return dtype
    found = float64 if dtype is None else named(dtype)
    if found not in _SUPPORTED:
        raise DtypeError(
            f"{name} {dtype!r:.60} is not supported: arrays hold bool, integers, floats and complex numbers. "
            "Convert the data to one of these, or keep it in NumPy."
        )
    return found


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = True) -> DType:
    """The dtype as this library holds it: 64-bit types become 32-bit ones unless x64 is on.

    Args:
        dtype: see :func:`as_dtype`; ``float0`` is allowed too.
        allow_extended_dtype: whether dtypes of PRNG keys are allowed.

    Raises:
        DtypeError: objects, strings, dates, structured types.

    >>> canonicalize_dtype(float), canonicalize_dtype("int8")
    (dtype('float32'), dtype('int8'))
    """
    try:
        found = current().canonical[dtype]
    except (KeyError, TypeError):
        found = _canonicalize(dtype)
    if not allow_extended_dtype and isinstance(found, KeyDType):
        raise DtypeError(f"dtype {found} of PRNG keys is not a dtype of numbers.")
    return found


def _canonicalize(dtype: Any) -> DType:
    found = float0 if isinstance(dtype, np.dtype) and dtype == float0 else as_dtype(dtype)
    state = current()
    if not state.enable_x64:
        found = _NARROWED.get(found, found)
    if isinstance(
        dtype, np.dtype | type | str | KeyDType
    ):  # few; other things that name dtypes may be many, or mutable
        state.canonical[dtype] = found
    return found


def python_scalar_dtype(kind: type) -> DType:
    """The dtype of Python scalars of type ``bool``, ``int``, ``float`` or ``complex``: the default dtype of its kind.

    >>> python_scalar_dtype(int)
    dtype('int32')
    """
    return canonicalize_dtype(kind)


_narrowing_was_announced = False


def requested(dtype: Any, name: str = "dtype") -> DType:
    """The canonical dtype for one that the user asked for; narrowing it to 32 bits is announced, once per process.

    Args:
        dtype: see :func:`as_dtype`. Python's ``int``, ``float`` and ``complex`` ask for no width.
        name: the argument's name, for errors and the warning.

    Raises:
        DtypeError: not a dtype, or one that arrays can't have.

    >>> requested("float16")
    dtype('float16')
    """
    global _narrowing_was_announced
    given = as_dtype(dtype, name)
    canonical = canonicalize_dtype(given)
    asks_for_width = not any(dtype is x for x in (int, float, complex, None))  # not ==: np.dtype("float64") == float
    if canonical != given and asks_for_width and not _narrowing_was_announced:
        _narrowing_was_announced = True
        _warn(
            f"{name} {given} was asked for, but 64-bit types are off: {canonical} is used. Turn them on with "
            "xformlib.config.update('jax_enable_x64', True) or XFORMLIB_ENABLE_X64=1, or for a block of code with "
            "xformlib.enable_x64(). (This is said once.)"
        )
    return canonical


def _warn(message: str) -> None:
    """Warn at the user's line."""
    frame = user_frame()
    if frame is None:
        warnings.warn(message, UserWarning, stacklevel=3)
    else:
        warnings.warn_explicit(message, UserWarning, frame.f_code.co_filename, frame.f_lineno)


# -- families ----------------------------------------------------------------------------------------------------------

_FAMILY: dict[Any, type] = {
    **dict.fromkeys(NARROW_SIGNED, np.signedinteger),
    **dict.fromkeys(NARROW_UNSIGNED, np.unsignedinteger),
    **dict.fromkeys((*NARROW_FLOATS, bfloat16), np.floating),
}


def family(dtype: np.dtype[Any]) -> type:
    """A class of NumPy's hierarchy that stands for the dtype there; ml_dtypes' own stand beside the hierarchy."""
    return _FAMILY.get(dtype, dtype.type)


@functools.lru_cache(maxsize=4096)
def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Like ``numpy.issubdtype``, and right for bfloat16, small floats and integers, and the dtypes of PRNG keys.

    Args:
        arg1: a dtype, or an abstract class such as ``numpy.floating``.
        arg2: likewise.

    Raises:
        DtypeError: an argument is neither.

    >>> issubdtype(bfloat16, np.floating), issubdtype("int4", np.signedinteger), issubdtype(np.float32, np.integer)
    (True, True, False)
    """
    parent = _class(arg2)
    child = _class(arg1)
    if isinstance(parent, type):
        if isinstance(child, type):
            return issubclass(child, parent)
        return issubclass(child.type if isinstance(child, KeyDType) else family(child), parent)
    return not isinstance(child, type) and bool(child == parent)


def _class(x: Any) -> Any:
    """An abstract class as it is; a dtype for all else."""
    if isinstance(x, type) and issubclass(x, np.generic) and (x in _ABSTRACT or issubclass(x, extended)):
        return x
    return x if isinstance(x, KeyDType) else named(x)


_ABSTRACT = frozenset(
    [
        np.generic,
        np.number,
        np.integer,
        np.signedinteger,
        np.unsignedinteger,
        np.inexact,
        np.floating,
        np.complexfloating,
        np.flexible,
        np.character,
    ]
)

_KINDS = {
    "bool": np.bool_,
    "signed integer": np.signedinteger,
    "unsigned integer": np.unsignedinteger,
    "integral": np.integer,
    "real floating": np.floating,
    "complex floating": np.complexfloating,
    "numeric": np.number,
}


def isdtype(dtype: Any, kind: Any) -> bool:
    """The Array API's ``isdtype``.

    Args:
        dtype: a dtype.
        kind: a dtype, a kind (``"bool"``, ``"signed integer"``, ``"unsigned integer"``, ``"integral"``,
            ``"real floating"``, ``"complex floating"``, ``"numeric"``), or a tuple of these, of which one must hold.

    Raises:
        DtypeError: no such kind.

    >>> isdtype(np.float32, "real floating"), isdtype("int4", ("bool", "integral"))
    (True, True)
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str) and kind in _KINDS:
        return issubdtype(dtype, _KINDS[kind])
    if isinstance(kind, type) and kind in _ABSTRACT:
        raise DtypeError(f"isdtype: kind must be a dtype, a string or a tuple; use issubdtype for {kind.__name__}.")
    try:
        other = as_dtype(kind, "isdtype: kind")
    except DtypeError as e:
        raise DtypeError(
            f"isdtype: kind {kind!r:.60} is neither a dtype nor one of {', '.join(map(repr, _KINDS))}."
        ) from e
    return bool(as_dtype(dtype) == other)


def itemsize_bits(dtype: Any) -> int:
    """Bits of an element; fewer than a byte's for the smallest types.

    >>> itemsize_bits("int4"), itemsize_bits("float32")
    (4, 32)
    """
    found = as_dtype(dtype)
    return _BITS.get(found) or 8 * int(found.itemsize)


def real_dtype(dtype: DType) -> DType:
    """The dtype of the real part.

    >>> real_dtype(np.dtype("complex64"))
    dtype('float32')
    """
    return {complex64: float32, complex128: float64}.get(dtype, dtype)


def finfo(dtype: Any) -> Any:
    """Limits of a floating dtype (of an array, too): ``bits eps max min tiny smallest_subnormal dtype`` and so on.

    Raises:
        DtypeError: not floating or complex.

    >>> float(finfo("bfloat16").eps)
    0.0078125
    """
    found = named(getattr(dtype, "dtype", dtype) if hasattr(dtype, "shape") and not isinstance(dtype, type) else dtype)
    if not issubdtype(found, np.inexact):
        raise DtypeError(f"finfo: {found} is not a floating dtype; use iinfo for integers.")
    return ml_dtypes.finfo(found) if found in _FAMILY else np.finfo(found)


def iinfo(dtype: Any) -> Any:
    """Limits of an integer dtype (of an array, too): ``bits min max dtype``.

    Raises:
        DtypeError: not an integer dtype.

    >>> iinfo("int4").max
    7
    """
    found = named(getattr(dtype, "dtype", dtype) if hasattr(dtype, "shape") and not isinstance(dtype, type) else dtype)
    if not issubdtype(found, np.integer):
        raise DtypeError(f"iinfo: {found} is not an integer dtype; use finfo for floats.")
    return ml_dtypes.iinfo(found) if found in _FAMILY else np.iinfo(found)
