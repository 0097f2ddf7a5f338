"""Comparisons, and choosing between values by them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from xformlib.array import Array
from xformlib.dtypes import issubdtype
from xformlib.op import Op, Sample, bind
from xformlib.ops.samples import BF16, BOOL, C64, F16, F32, F64, I8, I32, U8, U32, draw, smooth, special

__all__ = ["clamp", "compare", "eq", "ge", "gt", "le", "lt", "ne", "select"]

_BOOL = np.dtype(np.bool_)
_DIRECTIONS = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def _compare(x: Any, y: Any, comparison_direction: str, compare_type: str) -> Any:
    if compare_type == "TOTALORDER":
        x, y = _total_order(x), _total_order(y)
    return _DIRECTIONS[comparison_direction](x, y)


def _total_order(x: Any) -> Any:
    """Integers in the order -NaN, -inf, ..., -0, 0, ..., inf, NaN of floating-point numbers."""
    bits = x.view(f"i{x.dtype.itemsize}")
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


def _params(direction: str, kind: str) -> dict[str, str]:
    return {"comparison_direction": direction, "compare_type": kind}


compare: Op = Op(
    "stablehlo.compare",
    numpy=_compare,
    kind="elementwise",
    attrs={"comparison_direction": "direction", "compare_type": "compare_type"},
    types=lambda x, y, **_: (x.shape, _BOOL),
    jvp=(None, None),
    weak=False,
    samples=[
        s
        for direction in _DIRECTIONS
        for s in [
            *special(2, [F32, F16, BF16, F64], _params(direction, "FLOAT")),
            *special(2, [I8, I32], _params(direction, "SIGNED")),
            *special(2, [U8, U32, BOOL], _params(direction, "UNSIGNED")),
            *special(2, [F32], _params(direction, "TOTALORDER")),
        ]
    ]
    + smooth(2, dtypes=[C64], params=_params("EQ", "FLOAT"), diff=False),
    doc="Compares; NaN is unequal to everything and not ordered, except in the total order.",
)


@functools.cache
def compare_type(dtype: Any) -> str:
    """StableHLO's name of the comparison a dtype takes."""
    if dtype.kind == "b" or issubdtype(dtype, np.unsignedinteger):
        return "UNSIGNED"
    return "SIGNED" if issubdtype(dtype, np.integer) else "FLOAT"


def _comparison(direction: str) -> Any:
    def apply(x: Any, y: Any) -> Any:
        dtype = x.dtype if isinstance(x, Array) else y.dtype
        return bind(compare, x, y, comparison_direction=direction, compare_type=compare_type(dtype))

    apply.__name__ = direction.lower()
    apply.__doc__ = f"``compare`` with direction {direction}."
    return apply


eq, ne, lt, le, gt, ge = (_comparison(d) for d in ("EQ", "NE", "LT", "LE", "GT", "GE"))


def _select_tangent(tangents: Any, ans: Any, pred: Any, x: Any, y: Any) -> Any:
    _, tx, ty = tangents
    if tx is None and ty is None:
        return None
    return select(pred, 0.0 if tx is None else tx, 0.0 if ty is None else ty)


def _select_batch(size: int, operands: Any, batched: Any) -> Any:
    # A rank-0 condition may stand beside larger values: each operand gets the whole shape.
    shape = max([x.shape[1:] if b else x.shape for x, b in zip(operands, batched, strict=True)], key=len)
    whole = [_to_batch(x, b, (size, *shape)) for x, b in zip(operands, batched, strict=True)]
    return select(*whole)


def _to_batch(x: Any, batched: bool, shape: tuple[int, ...]) -> Any:
    from xformlib.ops.movement import broadcast_in_dim

    if x.shape == shape:
        return x
    rank = len(x.shape)
    dims = (0,) if batched else tuple(range(len(shape) - rank, len(shape)))
    return broadcast_in_dim(x, shape=shape, broadcast_dimensions=dims)


def _choice(shape: tuple[int, ...], dtype: Any) -> Sample:
    def make(rng: np.random.Generator) -> list[np.ndarray]:
        return [draw(rng, shape, BOOL, 0, 1), draw(rng, shape, dtype, 0, 9), draw(rng, shape, dtype, 0, 9)]

    return Sample(make)


select: Op = Op(
    "stablehlo.select",
    numpy=np.where,
    kind="elementwise",
    types=lambda pred, x, y: (x.shape, x.dtype),
    jvp=_select_tangent,
    batch=_select_batch,
    transpose=(
        None,
        lambda ct, pred, x, y: select(pred, ct, 0.0),
        lambda ct, pred, x, y: select(pred, 0.0, ct),
    ),
    samples=[_choice(shape, F32) for shape in [(5,), (2, 3), (), (0, 3)]]
    + [_choice((6,), d) for d in (F16, BF16, F64, C64, I8, U32, BOOL)],
    doc="Elements of the second operand where the first is true, else of the third.",
)


def _low(t: Any, ans: Any, low: Any, x: Any, high: Any) -> Any:
    from xformlib.ops.bitwise import bitwise_and

    return select(bitwise_and(lt(x, low), lt(low, high)), t, 0.0)


def _inside(t: Any, ans: Any, low: Any, x: Any, high: Any) -> Any:
    from xformlib.ops.bitwise import bitwise_and

    return select(bitwise_and(gt(x, low), lt(x, high)), t, 0.0)


def _high(t: Any, ans: Any, low: Any, x: Any, high: Any) -> Any:
    from xformlib.ops.arithmetic import max

    return select(gt(max(x, low), high), t, 0.0)


def _clamp(low: Any, x: Any, high: Any) -> Any:
    out = np.minimum(np.maximum(x, low), high)
    return out if out.dtype is x.dtype else out.astype(x.dtype)


def _limited(shape: tuple[int, ...], dtype: Any) -> Sample:
    def make(rng: np.random.Generator) -> list[np.ndarray]:
        return [np.full(shape, -1, dtype), draw(rng, shape, dtype, -2, 2), np.full(shape, 1, dtype)]

    return Sample(make)


def _fixed(*operands: Sequence[float], dtype: Any, note: str = "ties") -> Sample:
    return Sample(lambda rng: [np.array(x).astype(dtype) for x in operands], diff=False, note=note)


clamp: Op = Op(
    "stablehlo.clamp",
    numpy=_clamp,
    kind="elementwise",
    jvp=(_low, _inside, _high),
    samples=[_limited(shape, F32) for shape in [(9,), (2, 3), (), (0, 3)]]
    + [_limited((9,), d) for d in (F16, BF16, F64)]
    + [_fixed([2] * 5, range(5), [3] * 5, dtype=d) for d in (F32, F16, I8, U32)]
    + [_fixed([-1] * 4, [np.nan, np.inf, -np.inf, -0.0], [1] * 4, dtype=F32, note="NaN stays")]
    + [_fixed([3, 3, np.nan, 0], [0, 5, 0, 0], [1, 1, 1, np.nan], dtype=F32, note="crossed and NaN bounds")],
    doc="The middle operand, limited to the interval of the others; the tangent passes strictly inside.",
)
