"""Dtypes: which there are, how wide they are, and how they combine.

>>> result_type("int8", 1.5)
dtype('float32')
"""

from xformlib.dtypes.promotion import (
    describe,
    dtype,
    is_weak,
    promote,
    promote_types,
    result_type,
    scalar_type_of,
    to_complex_dtype,
    to_floating_dtype,
    to_inexact_dtype,
    to_numeric_dtype,
)
from xformlib.dtypes.types import (
    ALL,
    DType,
    KeyDType,
    as_dtype,
    bfloat16,
    canonicalize_dtype,
    extended,
    finfo,
    float0,
    iinfo,
    isdtype,
    issubdtype,
    itemsize_bits,
    prng_key,
    python_scalar_dtype,
    real_dtype,
    requested,
)
from xformlib.errors import TypePromotionError

__all__ = [
    "ALL",
    "DType",
    "KeyDType",
    "TypePromotionError",
    "as_dtype",
    "bfloat16",
    "canonicalize_dtype",
    "describe",
    "dtype",
    "extended",
    "finfo",
    "float0",
    "iinfo",
    "is_weak",
    "isdtype",
    "issubdtype",
    "itemsize_bits",
    "prng_key",
    "promote",
    "promote_types",
    "python_scalar_dtype",
    "real_dtype",
    "requested",
    "result_type",
    "scalar_type_of",
    "to_complex_dtype",
    "to_floating_dtype",
    "to_inexact_dtype",
    "to_numeric_dtype",
]
