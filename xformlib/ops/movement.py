"""Ops that move elements without changing them. All are linear, take PRNG keys, and have exact transposes."""

from __future__ import annotations

from typing import Any

import numpy as np

from xformlib.op import Op, Sample

__all__ = ["broadcast_in_dim", "reshape", "transpose"]


def _f32(*shape: int) -> Any:
    return lambda rng: [rng.standard_normal(shape).astype(np.float32)]


# -- broadcast_in_dim -----------------------------------------------------------------------------------------------


def _broadcast(x: Any, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]) -> np.ndarray:
    middle = [1] * len(shape)
    for size, d in zip(x.shape, broadcast_dimensions, strict=True):
        middle[d] = size
    return np.broadcast_to(x.reshape(middle) if len(shape) != x.ndim else x, shape)


def _broadcast_transpose(ct: Any, x: Any, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]) -> Any:
    from xformlib.ops.reduction import reduce_sum

    new = [d for d in range(len(shape)) if d not in broadcast_dimensions]
    stretched = [
        d for size, d in zip(x.shape, broadcast_dimensions, strict=True) if size != shape[d]
    ]
    out = reduce_sum(ct, dimensions=tuple(sorted(new + stretched)))
    return reshape(out, shape=x.shape) if stretched else out


def _broadcast_batch(
    size: int, operands: Any, batched: Any, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]
) -> Any:
    dims = (0, *[d + 1 for d in broadcast_dimensions])
    return broadcast_in_dim(operands[0], shape=(size, *shape), broadcast_dimensions=dims)


broadcast_in_dim = Op(
    "stablehlo.broadcast_in_dim",
    numpy=_broadcast,
    kind="movement",
    attrs={"shape": "result_shape", "broadcast_dimensions": "i64s"},
    types=lambda x, shape, broadcast_dimensions: (shape, x.dtype),
    linear="all",
    transpose=(_broadcast_transpose,),
    batch=_broadcast_batch,
    samples=[
        Sample(_f32(), {"shape": (2, 3), "broadcast_dimensions": ()}),
        Sample(_f32(3), {"shape": (2, 3), "broadcast_dimensions": (1,)}),
        Sample(_f32(2, 1), {"shape": (2, 4, 3), "broadcast_dimensions": (0, 2)}),
        Sample(_f32(1), {"shape": (0,), "broadcast_dimensions": (0,)}),
    ],
    doc="Repeats along new axes and along axes of size one.",
)

# -- reshape --------------------------------------------------------------------------------------------------------

reshape = Op(
    "stablehlo.reshape",
    numpy=lambda x, shape: x.reshape(shape),
    kind="movement",
    attrs={"shape": "result_shape"},
    types=lambda x, shape: (shape, x.dtype),
    linear="all",
    transpose=(lambda ct, x, shape: reshape(ct, shape=x.shape),),
    batch=lambda size, operands, batched, shape: reshape(operands[0], shape=(size, *shape)),
    samples=[
        Sample(_f32(2, 3), {"shape": (3, 2)}),
        Sample(_f32(1), {"shape": ()}),
        Sample(_f32(0, 3), {"shape": (3, 0, 2)}),
    ],
    doc="The same elements in row-major order with another shape.",
)

# -- transpose ------------------------------------------------------------------------------------------------------


def _inverse(permutation: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(permutation)), key=permutation.__getitem__))


transpose = Op(
    "stablehlo.transpose",
    numpy=lambda x, permutation: np.transpose(x, permutation),
    kind="movement",
    attrs={"permutation": "i64s"},
    types=lambda x, permutation: (tuple([x.shape[i] for i in permutation]), x.dtype),
    linear="all",
    transpose=(lambda ct, x, permutation: transpose(ct, permutation=_inverse(permutation)),),
    batch=lambda size, operands, batched, permutation: transpose(
        operands[0], permutation=(0, *[p + 1 for p in permutation])
    ),
    factors=lambda x, permutation: _axis_factors(permutation),
    samples=[
        Sample(_f32(2, 3), {"permutation": (1, 0)}),
        Sample(_f32(2, 3, 4), {"permutation": (2, 0, 1)}),
        Sample(_f32(), {"permutation": ()}),
    ],
    doc="Permutes axes.",
)


def _axis_factors(permutation: tuple[int, ...]) -> str:
    names = "abcdefghijklmnopqrstuvwxyz"[: len(permutation)]
    return f"{names}->{''.join(names[p] for p in permutation)}"
