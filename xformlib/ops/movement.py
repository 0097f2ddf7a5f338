"""Ops that move elements without changing them. All are linear, take PRNG keys, and have exact transposes."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from xformlib.array import Aval
from xformlib.op import Op, Sample
from xformlib.ops.creation import full
from xformlib.ops.factors import factor_text, touched

__all__ = [
    "broadcast_batch",
    "broadcast_in_dim",
    "concatenate",
    "expand_dims",
    "move_axis",
    "pad",
    "permute",
    "reshape",
    "rev",
    "slice",
    "slice_in_dim",
    "squeeze",
    "transpose",
]


def _of(*shapes: tuple[int, ...], dtype: Any = np.float32) -> Any:
    return lambda rng: [(3 * rng.standard_normal(shape)).astype(dtype) for shape in shapes]


def _f32(*shape: int) -> Any:
    return _of(shape)


# -- broadcast_in_dim -----------------------------------------------------------------------------------------------


def _broadcast(x: Any, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]) -> np.ndarray:
    middle = [1] * len(shape)
    for size, d in zip(x.shape, broadcast_dimensions, strict=True):
        middle[d] = size
    return np.broadcast_to(x.reshape(middle) if len(shape) != x.ndim else x, shape)


def _broadcast_transpose(ct: Any, x: Any, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]) -> Any:
    from xformlib.ops.reduction import reduce_sum

    new = [d for d in range(len(shape)) if d not in broadcast_dimensions]
    stretched = [d for size, d in zip(x.shape, broadcast_dimensions, strict=True) if size != shape[d]]
    out = reduce_sum(ct, dimensions=tuple(sorted(new + stretched)))
    return reshape(out, shape=x.shape) if stretched else out


def _broadcast_batch(
    size: int, operands: Any, batched: Any, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]
) -> Any:
    dims = (0, *[d + 1 for d in broadcast_dimensions])
    return broadcast_in_dim(operands[0], shape=(size, *shape), broadcast_dimensions=dims)


broadcast_in_dim: Op = Op(
    "stablehlo.broadcast_in_dim",
    numpy=_broadcast,
    kind="movement",
    attrs={"shape": "result_shape", "broadcast_dimensions": "i64s"},
    types=lambda x, shape, broadcast_dimensions: (shape, x.dtype),
    linear="all",
    transpose=(_broadcast_transpose,),
    batch=_broadcast_batch,
    factors=lambda x, shape, broadcast_dimensions: factor_text(
        [[d if n == shape[d] else ("stretched", d) for n, d in zip(x.shape, broadcast_dimensions, strict=True)]],
        [range(len(shape))],
    ),
    samples=[
        Sample(_f32(), {"shape": (2, 3), "broadcast_dimensions": ()}),
        Sample(_f32(3), {"shape": (2, 3), "broadcast_dimensions": (1,)}),
        Sample(_f32(2, 1), {"shape": (2, 4, 3), "broadcast_dimensions": (0, 2)}),
        Sample(_f32(1), {"shape": (0,), "broadcast_dimensions": (0,)}),
    ],
    doc="Repeats along new axes and along axes of size one.",
)

# -- reshape --------------------------------------------------------------------------------------------------------

reshape: Op = Op(
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


def squeeze(x: Any, dimensions: Sequence[int]) -> Any:
    """``x`` without the given axes of size one."""
    return reshape(x, shape=tuple([n for d, n in enumerate(x.shape) if d not in dimensions]))


def expand_dims(x: Any, dimensions: Sequence[int]) -> Any:
    """``x`` with axes of size one, standing at ``dimensions`` of the result."""
    shape = list(x.shape)
    for d in sorted(dimensions):
        shape.insert(d, 1)
    return reshape(x, shape=tuple(shape))


# -- transpose ------------------------------------------------------------------------------------------------------


def _inverse(permutation: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(permutation)), key=permutation.__getitem__))


transpose: Op = Op(
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
    factors=lambda x, permutation: factor_text([range(len(permutation))], [permutation]),
    samples=[
        Sample(_f32(2, 3), {"permutation": (1, 0)}),
        Sample(_f32(2, 3, 4), {"permutation": (2, 0, 1)}),
        Sample(_f32(), {"permutation": ()}),
        Sample(_of((0, 2, 1), dtype=np.int8), {"permutation": (1, 2, 0)}),
    ],
    doc="Permutes axes.",
)


def permute(x: Any, order: Sequence[int]) -> Any:
    """``x`` with its axes in another order; ``x`` itself where that is the order they have."""
    order = tuple(order)
    return x if order == tuple(range(len(order))) else transpose(x, permutation=order)


def move_axis(x: Any, source: int, destination: int) -> Any:
    """``numpy.moveaxis`` for one axis."""
    rank = len(x.shape)
    source, destination = source % rank, destination % rank
    order = [d for d in range(rank) if d != source]
    order.insert(destination, source)
    return permute(x, order)


# -- rev ------------------------------------------------------------------------------------------------------------


def _rev(x: Any, dimensions: tuple[int, ...]) -> Any:
    return x[tuple([builtins.slice(None, None, -1 if d in dimensions else None) for d in range(x.ndim)])]


rev: Op = Op(
    "stablehlo.reverse",
    numpy=_rev,
    kind="movement",
    attrs={"dimensions": "i64s"},
    types=lambda x, dimensions: (x.shape, x.dtype),
    linear="all",
    transpose=(lambda ct, x, dimensions: rev(ct, dimensions=dimensions),),
    batch=lambda size, operands, batched, dimensions: rev(operands[0], dimensions=tuple([d + 1 for d in dimensions])),
    factors=lambda x, dimensions: factor_text(
        [touched(len(x.shape), dimensions, "in")], [touched(len(x.shape), dimensions, "out")]
    ),
    samples=[
        Sample(_f32(4), {"dimensions": (0,)}),
        Sample(_f32(2, 3, 1), {"dimensions": (1, 2)}),
        Sample(_f32(0, 3), {"dimensions": (0, 1)}),
        Sample(_f32(), {"dimensions": ()}),
        Sample(_of((2, 3), dtype=np.uint32), {"dimensions": (1,)}),
    ],
    doc="Reverses the order along axes.",
)

# -- slice ----------------------------------------------------------------------------------------------------------


def _slice(x: Any, start_indices: tuple[int, ...], limit_indices: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    return x[tuple(map(builtins.slice, start_indices, limit_indices, strides))]


def _slice_transpose(
    ct: Any, x: Any, start_indices: tuple[int, ...], limit_indices: tuple[int, ...], strides: tuple[int, ...]
) -> Any:
    # The last element taken stands at start + (taken - 1) * stride; all behind it is padding, too.
    high = [
        n - start - ((taken - 1) * stride + 1 if taken else 0)
        for n, start, stride, taken in zip(x.shape, start_indices, strides, ct.shape, strict=True)
    ]
    return pad(
        ct,
        full((), 0, ct.dtype),
        edge_padding_low=start_indices,
        edge_padding_high=tuple(high),
        interior_padding=tuple([s - 1 for s in strides]),
    )


def _slice_batch(
    size: int,
    operands: Any,
    batched: Any,
    start_indices: tuple[int, ...],
    limit_indices: tuple[int, ...],
    strides: tuple[int, ...],
) -> Any:
    return slice(
        operands[0],
        start_indices=(0, *start_indices),
        limit_indices=(size, *limit_indices),
        strides=(1, *strides),
    )


def _slice_factors(
    x: Any, start_indices: tuple[int, ...], limit_indices: tuple[int, ...], strides: tuple[int, ...]
) -> str:
    cut = [d for d, n in enumerate(x.shape) if (start_indices[d], limit_indices[d], strides[d]) != (0, n, 1)]
    return factor_text([touched(len(x.shape), cut, "in")], [touched(len(x.shape), cut, "out")])


slice: Op = Op(
    "stablehlo.slice",
    numpy=_slice,
    kind="movement",
    attrs={"start_indices": "i64s", "limit_indices": "i64s", "strides": "i64s"},
    linear="all",
    transpose=(_slice_transpose,),
    batch=_slice_batch,
    factors=_slice_factors,
    samples=[
        Sample(_f32(7), {"start_indices": (1,), "limit_indices": (6,), "strides": (2,)}),
        Sample(_f32(4, 5), {"start_indices": (0, 4), "limit_indices": (4, 5), "strides": (3, 1)}),
        Sample(_f32(3, 2), {"start_indices": (2, 0), "limit_indices": (2, 2), "strides": (1, 1)}, note="empty result"),
        Sample(_f32(), {"start_indices": (), "limit_indices": (), "strides": ()}),
        Sample(_f32(0, 2), {"start_indices": (0, 1), "limit_indices": (0, 2), "strides": (5, 7)}),
        Sample(_of((6,), dtype=np.bool_), {"start_indices": (2,), "limit_indices": (6,), "strides": (3,)}),
    ],
    doc="A rectangular part, with strides.",
)


def broadcast_batch(x: Any, size: int) -> Any:
    """An unbatched value repeated along a new leading axis."""
    return broadcast_in_dim(x, shape=(size, *x.shape), broadcast_dimensions=tuple(range(1, len(x.shape) + 1)))


def slice_in_dim(x: Any, start: int, limit: int, axis: int, stride: int = 1) -> Any:
    """Elements ``start:limit:stride`` along one axis."""
    rank = len(x.shape)
    return slice(
        x,
        start_indices=tuple([start if d == axis else 0 for d in range(rank)]),
        limit_indices=tuple([limit if d == axis else n for d, n in enumerate(x.shape)]),
        strides=tuple([stride if d == axis else 1 for d in range(rank)]),
    )


# -- pad ------------------------------------------------------------------------------------------------------------


def _padded_size(n: int, low: int, high: int, interior: int) -> int:
    return low + n + max(n - 1, 0) * interior + high


def _pad(x: Any, value: Any, **config: tuple[int, ...]) -> np.ndarray:
    low, interior = config["edge_padding_low"], config["interior_padding"]
    shape = tuple(map(_padded_size, x.shape, low, config["edge_padding_high"], interior))
    out = np.full(shape, value, x.dtype)
    sources, targets = [], []
    for n, size, start, gap in zip(x.shape, shape, low, interior, strict=True):
        step = gap + 1
        first = max(0, -(start // step))  # the first element that negative padding does not cut off
        last = min(n, -((start - size) // step))
        sources.append(builtins.slice(first, max(first, last)))
        targets.append(builtins.slice(start + first * step, max(0, start + (last - 1) * step + 1), step))
        if last <= first:
            return out
    out[tuple(targets)] = x[tuple(sources)]
    return out


def _pad_operand_transpose(ct: Any, x: Any, value: Any, **config: tuple[int, ...]) -> Any:
    rank = len(x.shape)
    if 0 in x.shape:
        return full(x.shape, 0, ct.dtype)
    whole = pad(
        ct,
        full((), 0, ct.dtype),
        edge_padding_low=tuple([-p for p in config["edge_padding_low"]]),
        edge_padding_high=tuple([-p for p in config["edge_padding_high"]]),
        interior_padding=(0,) * rank,
    )
    if not any(config["interior_padding"]):
        return whole
    steps = tuple([p + 1 for p in config["interior_padding"]])
    return slice(whole, start_indices=(0,) * rank, limit_indices=whole.shape, strides=steps)


def _pad_value_transpose(ct: Any, x: Any, value: Any, **config: tuple[int, ...]) -> Any:
    from xformlib.ops.elementwise import select
    from xformlib.ops.reduction import reduce_sum

    # Selecting, not subtracting the operand's part from the whole: exact, and no inf - inf.
    own = pad(full(x.shape, False, np.bool_), full((), True, np.bool_), **config)
    padding = select(own, ct, full(ct.shape, 0, ct.dtype))
    return reduce_sum(padding, dimensions=tuple(range(len(ct.shape))))


def _pad_batch(size: int, operands: Any, batched: Any, **config: tuple[int, ...]) -> Any:
    from xformlib.ops.elementwise import select

    x, value = operands
    if not batched[1]:
        return pad(x, value, **{k: (0, *v) for k, v in config.items()})
    # One padding value per example: pad with anything, then select.
    zero = full((), 0, x.dtype)
    shape = x.shape[1:] if batched[0] else x.shape
    if batched[0]:
        padded = pad(x, zero, **{k: (0, *v) for k, v in config.items()})
    else:
        padded = broadcast_batch(pad(x, zero, **config), size)
    own = pad(full(shape, True, np.bool_), full((), False, np.bool_), **config)
    own = broadcast_in_dim(own, shape=padded.shape, broadcast_dimensions=tuple(range(1, len(padded.shape))))
    return select(own, padded, broadcast_in_dim(value, shape=padded.shape, broadcast_dimensions=(0,)))


def _pad_factors(x: Any, value: Any, **config: tuple[int, ...]) -> str:
    rank = len(x.shape)
    moved = [d for d in range(rank) if any(widths[d] for widths in config.values())]
    return factor_text([touched(rank, moved, "in"), []], [touched(rank, moved, "out")])


def _padding(low: tuple[int, ...], high: tuple[int, ...], interior: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    return {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": interior}


pad: Op = Op(
    "stablehlo.pad",
    numpy=_pad,
    kind="movement",
    attrs={"edge_padding_low": "i64s", "edge_padding_high": "i64s", "interior_padding": "i64s"},
    linear="all",
    transpose=(_pad_operand_transpose, _pad_value_transpose),
    batch=_pad_batch,
    factors=_pad_factors,
    samples=[
        Sample(_of((3,), ()), _padding((1,), (2,), (0,))),
        Sample(_of((3, 4), ()), _padding((-1, 2), (1, -2), (0, 1))),
        Sample(_of((5,), ()), _padding((-3,), (-1,), (2,)), note="negative padding cuts dilated elements"),
        Sample(_of((2, 3), ()), _padding((-2, 0), (0, 1), (0, 0)), note="empty result"),
        Sample(_of((4,), ()), _padding((-6,), (3,), (1,)), note="the cut begins within the last gap"),
        Sample(_of((0, 2), ()), _padding((1, 0), (1, 0), (3, 1)), note="all padding"),
        Sample(_of((), ()), _padding((), (), ())),
        Sample(_of((2, 1), (), dtype=np.int32), _padding((0, 1), (1, 0), (2, 2))),
    ],
    doc="Padding at the edges (negative: cut off) and between elements. Interior padding is applied before a cut.",
)

# -- concatenate ----------------------------------------------------------------------------------------------------


def _concatenate_transpose(ct: Any, *operands: Any, dimension: int) -> list[Any]:
    out, start = [], 0
    for x in operands:
        limit = start + x.shape[dimension]
        out.append(slice_in_dim(ct, start, limit, dimension) if isinstance(x, Aval) else None)
        start = limit
    return out


def _concatenate_batch(size: int, operands: Any, batched: Any, dimension: int) -> Any:
    operands = [x if b else broadcast_batch(x, size) for x, b in zip(operands, batched, strict=True)]
    return concatenate(*operands, dimension=dimension + 1)


def _concatenate_factors(*operands: Any, dimension: int) -> str:
    rank = len(operands[0].shape)
    sides = [touched(rank, [dimension], i) for i in range(len(operands))]
    return factor_text(sides, [touched(rank, [dimension], "out")])


concatenate: Op = Op(
    "stablehlo.concatenate",
    numpy=lambda *operands, dimension: np.concatenate(operands, axis=dimension),
    kind="movement",
    attrs={"dimension": "i64"},
    linear="all",
    transpose=_concatenate_transpose,
    batch=_concatenate_batch,
    factors=_concatenate_factors,
    samples=[
        Sample(_of((2,), (3,)), {"dimension": 0}),
        Sample(_of((2, 1), (2, 0), (2, 4)), {"dimension": 1}),
        Sample(_of((1, 3)), {"dimension": 0}, note="one operand"),
        Sample(_of((0, 0), (0, 2), dtype=np.int8), {"dimension": 1}),
    ],
    doc="Joins arrays along one axis; the other axes have equal sizes.",
)
