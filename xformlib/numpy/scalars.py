"""Dtypes as names of this namespace: ``jnp.float32`` is a dtype argument, and makes arrays when called."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from xformlib.numpy._util import cast
from xformlib.numpy.creation import asarray

__all__: list[str] = []


class ScalarType(type):
    """The type of ``jnp.float32`` and its like."""

    dtype: np.dtype[Any]

    def __call__(cls, x: Any = 0) -> Any:
        from xformlib.dtypes import requested

        return cast(asarray(x), requested(cls.dtype))

    def __eq__(cls, other: object) -> bool:
        return cls is other or (not isinstance(other, ScalarType) and _same(cls.dtype, other))

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __repr__(cls) -> str:
        return f"<class 'xformlib.numpy.{cls.__name__}'>"


def _same(dtype: Any, other: Any) -> bool:
    try:
        return bool(dtype == other)
    except TypeError:
        return False


def _scalar(name: str) -> Any:
    dtype = np.dtype(getattr(ml_dtypes, name, None) or getattr(np, name))
    return ScalarType(name, (), {"dtype": dtype, "__module__": "xformlib.numpy", "__doc__": f"The dtype {name}."})


bool_ = _scalar("bool_")
int4, int8, int16, int32, int64 = (_scalar(f"int{n}") for n in (4, 8, 16, 32, 64))
uint4, uint8, uint16, uint32, uint64 = (_scalar(f"uint{n}") for n in (4, 8, 16, 32, 64))
float16, float32, float64, bfloat16 = (_scalar(n) for n in ("float16", "float32", "float64", "bfloat16"))
complex64, complex128 = _scalar("complex64"), _scalar("complex128")
float8_e4m3fn, float8_e5m2 = _scalar("float8_e4m3fn"), _scalar("float8_e5m2")
