"""Arrays from nothing: constants and iota."""

from __future__ import annotations

from typing import Any

import numpy as np

from xformlib.array import ArrayImpl
from xformlib.op import Op, Sample, bind

__all__ = ["constant", "full", "iota"]

constant = Op(
    "stablehlo.constant",
    numpy=lambda value: value,
    kind="inactive",
    attrs={"value": "elements"},
    types=lambda value: (value.shape, value.dtype),
    samples=[
        Sample(lambda rng: [], {"value": np.asarray(value, dtype)}, ulp=0)
        for value, dtype in [
            (2.5, np.float32),
            ([[1, -2, 3], [0, 5, 127]], np.int8),
            ([-0.0, np.inf, np.nan, 1e-45], np.float32),
            ([True, False, True], np.bool_),
            ([1 + 2j, complex(-0.0, np.nan)], np.complex64),
            (np.zeros((0, 3)), np.float32),
            ([2**64 - 1], np.uint64),
        ]
    ],
    doc="A literal array.",
)


def _iota(shape: tuple[int, ...], dtype: Any, iota_dimension: int) -> np.ndarray:
    column = np.arange(shape[iota_dimension]).astype(dtype)
    return np.broadcast_to(column.reshape([-1 if i == iota_dimension else 1 for i in range(len(shape))]), shape)


iota = Op(
    "stablehlo.iota",
    numpy=_iota,
    kind="inactive",
    attrs={"shape": "result_shape", "dtype": "result_dtype", "iota_dimension": "i64"},
    types=lambda shape, dtype, iota_dimension: (shape, dtype),
    samples=[
        Sample(lambda rng: [], {"shape": (5,), "dtype": np.dtype(np.int32), "iota_dimension": 0}),
        Sample(lambda rng: [], {"shape": (2, 3), "dtype": np.dtype(np.float32), "iota_dimension": 1}),
        Sample(lambda rng: [], {"shape": (0, 3), "dtype": np.dtype(np.uint8), "iota_dimension": 0}),
    ],
    doc="The position along one axis.",
)


def full(shape: tuple[int, ...], value: Any, dtype: Any) -> Any:
    """An array of one repeated value."""
    from xformlib.ops.movement import broadcast_in_dim

    scalar = ArrayImpl(np.asarray(value, dtype))
    if not shape:
        return scalar
    return bind(broadcast_in_dim, scalar, shape=shape, broadcast_dimensions=())
