"""NumPy's functions on arrays that can be traced, differentiated and vectorised."""

import numpy as _np

from xformlib import array_methods as _array_methods
from xformlib.array import Array as ndarray
from xformlib.dtypes import finfo, iinfo, isdtype, issubdtype, promote_types, result_type
from xformlib.numpy import creation, linear, manipulation, reductions, searching, ufuncs
from xformlib.numpy.creation import *  # noqa: F403
from xformlib.numpy.linear import *  # noqa: F403
from xformlib.numpy.manipulation import *  # noqa: F403
from xformlib.numpy.reductions import *  # noqa: F403
from xformlib.numpy.scalars import (
    bfloat16,
    bool_,
    complex64,
    complex128,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
    int4,
    int8,
    int16,
    int32,
    int64,
    uint4,
    uint8,
    uint16,
    uint32,
    uint64,
)
from xformlib.numpy.searching import *  # noqa: F403
from xformlib.numpy.ufuncs import *  # noqa: F403

pi, e, inf, nan, newaxis, euler_gamma = _np.pi, _np.e, _np.inf, _np.nan, None, _np.euler_gamma
generic, number, inexact, floating, complexfloating = (
    _np.generic,
    _np.number,
    _np.inexact,
    _np.floating,
    _np.complexfloating,
)
integer, signedinteger, unsignedinteger = _np.integer, _np.signedinteger, _np.unsignedinteger
dtype = _np.dtype
float_, int_, complex_, uint = float, int, complex, uint32

__all__ = [
    *creation.__all__,
    *linear.__all__,
    *manipulation.__all__,
    *reductions.__all__,
    *searching.__all__,
    *ufuncs.__all__,
    "bfloat16",
    "bool_",
    "complex64",
    "complex128",
    "complexfloating",
    "dtype",
    "e",
    "euler_gamma",
    "finfo",
    "float8_e4m3fn",
    "float8_e5m2",
    "float16",
    "float32",
    "float64",
    "floating",
    "generic",
    "iinfo",
    "inexact",
    "inf",
    "int4",
    "int8",
    "int16",
    "int32",
    "int64",
    "integer",
    "isdtype",
    "issubdtype",
    "nan",
    "ndarray",
    "newaxis",
    "number",
    "pi",
    "promote_types",
    "result_type",
    "signedinteger",
    "uint4",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unsignedinteger",
]

_array_methods.install()
