"""dot_general: products summed over paired axes."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from xformlib import dtypes
from xformlib.array import Aval
from xformlib.dims import DotDims
from xformlib.op import Op, Sample
from xformlib.ops.factors import factor_text
from xformlib.ops.movement import move_axis, permute

__all__ = ["DotDims", "dot_general"]

Dims = tuple[int, ...]


def _free(rank: int, *used: Dims) -> Dims:
    """Axes that are neither batch nor contracted."""
    taken = {d for dims in used for d in dims}
    return tuple([d for d in range(rank) if d not in taken])


def _split(lhs: Any, rhs: Any, dims: DotDims) -> tuple[Dims, Dims]:
    """The free axes of both operands."""
    return (
        _free(len(lhs.shape), dims.lhs_batching_dimensions, dims.lhs_contracting_dimensions),
        _free(len(rhs.shape), dims.rhs_batching_dimensions, dims.rhs_contracting_dimensions),
    )


def _types(lhs: Any, rhs: Any, dot_dimension_numbers: DotDims, dtype: Any) -> tuple[Dims, Any]:
    lhs_free, rhs_free = _split(lhs, rhs, dot_dimension_numbers)
    batch = [lhs.shape[d] for d in dot_dimension_numbers.lhs_batching_dimensions]
    return (*batch, *[lhs.shape[d] for d in lhs_free], *[rhs.shape[d] for d in rhs_free]), dtype


# -- evaluation -----------------------------------------------------------------------------------------------------


def _accumulator(*types: Any) -> Any:
    """The dtype NumPy multiplies and adds in: at least float32 for floats; booleans count in float32."""
    if all(t.kind == "b" for t in types):
        return np.dtype(np.float32)
    # Low-precision floats round once, at the end; integers wrap alike in any wider width.
    least = np.float32 if any(dtypes.issubdtype(t, np.inexact) for t in types) else np.int32
    return np.result_type(least, *[t for t in types if t.itemsize >= 4])


class _Plan(NamedTuple):
    """How NumPy multiplies operands of given shapes: as stacks of matrices, views where the strides allow it."""

    lhs_axes: Dims
    lhs_shape: Dims
    rhs_axes: Dims
    rhs_shape: Dims
    shape: Dims
    accumulator: Any


@functools.lru_cache(maxsize=4096)
def _plan(lhs_shape: Dims, lhs_dtype: Any, rhs_shape: Dims, rhs_dtype: Any, dims: DotDims, dtype: Any) -> _Plan:
    lhs, rhs = Aval(lhs_shape, lhs_dtype), Aval(rhs_shape, rhs_dtype)
    lhs_free, rhs_free = _split(lhs, rhs, dims)
    batch = tuple([lhs_shape[d] for d in dims.lhs_batching_dimensions])
    rows = math.prod([lhs_shape[d] for d in lhs_free])
    inner = math.prod([lhs_shape[d] for d in dims.lhs_contracting_dimensions])
    columns = math.prod([rhs_shape[d] for d in rhs_free])
    return _Plan(
        (*dims.lhs_batching_dimensions, *lhs_free, *dims.lhs_contracting_dimensions),
        (*batch, rows, inner),
        (*dims.rhs_batching_dimensions, *dims.rhs_contracting_dimensions, *rhs_free),
        (*batch, inner, columns),
        _types(lhs, rhs, dims, dtype)[0],
        _accumulator(lhs_dtype, rhs_dtype, dtype),
    )


def _dot(lhs: Any, rhs: Any, dot_dimension_numbers: DotDims, dtype: Any) -> Any:
    plan = _plan(lhs.shape, lhs.dtype, rhs.shape, rhs.dtype, dot_dimension_numbers, dtype)
    a = lhs.transpose(plan.lhs_axes).reshape(plan.lhs_shape)
    b = rhs.transpose(plan.rhs_axes).reshape(plan.rhs_shape)
    wide = plan.accumulator
    if wide != lhs.dtype or wide != rhs.dtype:
        a, b = a.astype(wide), b.astype(wide)
    product = np.matmul(a, b).reshape(plan.shape)
    return product if wide == dtype else product.astype(dtype)


# -- rules ----------------------------------------------------------------------------------------------------------


def _positions(dims: Dims, order: Sequence[int]) -> Dims:
    """Where each of ``order``'s axes stands among ``dims``."""
    return tuple([dims.index(d) for d in order])


def _lhs_transpose(ct: Any, lhs: Any, rhs: Any, dot_dimension_numbers: DotDims, dtype: Any) -> Any:
    """ct[batch, i, j] rhs[batch, k, j] summed over j: axes (batch, i, k), put back where lhs has them."""
    dims = dot_dimension_numbers
    lhs_free, rhs_free = _split(lhs, rhs, dims)
    batch, first = len(dims.lhs_batching_dimensions), len(dims.lhs_batching_dimensions) + len(lhs_free)
    product = dot_general(
        ct,
        rhs,
        dot_dimension_numbers=DotDims(
            tuple(range(batch)), dims.rhs_batching_dimensions, tuple(range(first, len(ct.shape))), rhs_free
        ),
        dtype=lhs.dtype,
    )
    # The contracted axes of rhs come out in rhs's order; each belongs to its partner in lhs.
    partner = dict(zip(dims.rhs_contracting_dimensions, dims.lhs_contracting_dimensions, strict=True))
    axes = (*dims.lhs_batching_dimensions, *lhs_free, *[partner[d] for d in sorted(partner)])
    return permute(product, _positions(axes, range(len(lhs.shape))))


def _rhs_transpose(ct: Any, lhs: Any, rhs: Any, dot_dimension_numbers: DotDims, dtype: Any) -> Any:
    """lhs[batch, i, k] ct[batch, i, j] summed over i: axes (batch, k, j), put back where rhs has them."""
    dims = dot_dimension_numbers
    lhs_free, rhs_free = _split(lhs, rhs, dims)
    batch = len(dims.lhs_batching_dimensions)
    product = dot_general(
        lhs,
        ct,
        dot_dimension_numbers=DotDims(
            dims.lhs_batching_dimensions, tuple(range(batch)), lhs_free, tuple(range(batch, batch + len(lhs_free)))
        ),
        dtype=rhs.dtype,
    )
    partner = dict(zip(dims.lhs_contracting_dimensions, dims.rhs_contracting_dimensions, strict=True))
    axes = (*dims.rhs_batching_dimensions, *[partner[d] for d in sorted(partner)], *rhs_free)
    return permute(product, _positions(axes, range(len(rhs.shape))))


def _batch(size: int, operands: Any, batched: Any, dot_dimension_numbers: DotDims, dtype: Any) -> Any:
    lhs, rhs = operands
    shift = [batched[0], batched[1], batched[0], batched[1]]
    dims = [tuple([d + s for d in v]) for v, s in zip(dot_dimension_numbers, shift, strict=True)]
    if all(batched):
        dims[0], dims[1] = (0, *dims[0]), (0, *dims[1])
        return dot_general(lhs, rhs, dot_dimension_numbers=DotDims(*dims), dtype=dtype)
    # The batch axis is one more free axis of its operand, and the first one.
    out = dot_general(lhs, rhs, dot_dimension_numbers=DotDims(*dims), dtype=dtype)
    before = len(dims[0]) if batched[0] else len(lhs.shape) - len(dims[2])
    return move_axis(out, before, 0)


def _factors(lhs: Any, rhs: Any, dot_dimension_numbers: DotDims, dtype: Any) -> str:
    dims = dot_dimension_numbers
    lhs_free, rhs_free = _split(lhs, rhs, dims)
    left: list[Any] = [("lhs", d) for d in range(len(lhs.shape))]
    right: list[Any] = [("rhs", d) for d in range(len(rhs.shape))]
    for i, j in zip(dims.lhs_batching_dimensions, dims.rhs_batching_dimensions, strict=True):
        right[j] = left[i]
    for i, j in zip(dims.lhs_contracting_dimensions, dims.rhs_contracting_dimensions, strict=True):
        right[j] = left[i]
    result = [left[d] for d in (*dims.lhs_batching_dimensions, *lhs_free)] + [right[d] for d in rhs_free]
    return factor_text([left, right], [result], [left[d] for d in dims.lhs_contracting_dimensions])


# -- the record -----------------------------------------------------------------------------------------------------


def _sample(
    a: Dims, b: Dims, dims: Sequence[Dims], dtype: Any = np.float32, result: Any = None, note: str = ""
) -> Sample:
    def make(rng: np.random.Generator) -> list[np.ndarray]:
        return [np.asarray(3 * rng.standard_normal(s)).astype(dtype) for s in (a, b)]

    params = {"dot_dimension_numbers": DotDims(*dims), "dtype": np.dtype(result or dtype)}
    return Sample(make, params, note=note)


_PLAIN = ((), (), (1,), (0,))

dot_general: Op = Op(
    "stablehlo.dot_general",
    numpy=_dot,
    kind="contraction",
    attrs={"dot_dimension_numbers": "dot", "dtype": "result_dtype"},
    types=_types,
    jvp=(
        lambda t, ans, lhs, rhs, **params: dot_general(t, rhs, **params),
        lambda t, ans, lhs, rhs, **params: dot_general(lhs, t, **params),
    ),
    transpose=(_lhs_transpose, _rhs_transpose),
    batch=_batch,
    factors=_factors,
    samples=[
        _sample((2, 3), (3, 4), _PLAIN),
        _sample((2, 3), (4, 3), ((), (), (1,), (1,))),
        _sample((5, 2, 3), (3, 5, 4), ((0,), (1,), (2,), (0,)), note="batch"),
        _sample((2, 3, 4, 5), (5, 6, 3), ((), (), (1, 3), (2, 0)), note="two contracted axes, crossed"),
        _sample((2, 3, 4), (3, 2, 1), ((0, 1), (1, 0), (), ()), note="two batch axes, nothing contracted"),
        _sample((3,), (3,), ((), (), (0,), (0,)), note="scalar result"),
        _sample((), (2,), ((), (), (), ()), note="outer product with a 0-d array"),
        _sample((2, 0), (0, 3), _PLAIN, note="sum of nothing"),
        _sample((0, 3), (3, 2), _PLAIN, note="empty result"),
        _sample((2, 3), (3, 2), _PLAIN, np.complex64),
        _sample((2, 40), (40, 2), _PLAIN, dtypes.bfloat16, note="accumulated in float32, rounded once"),
        _sample((2, 40), (40, 2), _PLAIN, np.float16, np.float32, note="wider result"),
        _sample((2, 30), (30, 2), _PLAIN, np.int8, np.int32),
        _sample((2, 3), (3, 2), _PLAIN, np.bool_),
        _sample((2, 3), (3,), ((), (), (1,), (0,)), np.uint16),
    ],
    doc="Products summed over contracted axes; result axes: batch, free of lhs, free of rhs.",
)
