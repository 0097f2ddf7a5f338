"""Runs of equal row numbers: sorting rows together, and products within runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xformlib.dims import GatherDims
from xformlib.ops import elementwise as ew
from xformlib.ops.creation import full, iota
from xformlib.ops.indexing import gather
from xformlib.ops.movement import broadcast_in_dim, concatenate, slice_in_dim, squeeze

__all__ = ["linear_rows", "product_tangents", "shift_rows", "sorted_runs", "take_rows"]


def linear_rows(index: Any, sizes: Sequence[int], inside: Any) -> Any:
    """Row-major numbers of index vectors (last axis); -1 for those outside."""
    axis = len(index.shape) - 1
    rows = full(index.shape[:-1], 0, index.dtype)
    for i, size in enumerate(sizes):
        column = squeeze(slice_in_dim(index, i, i + 1, axis), [axis])
        rows = ew.add(ew.mul(rows, size), column)
    return ew.select(inside, rows, full(rows.shape, -1, rows.dtype))


def sorted_runs(rows: Any) -> tuple[Any, Any, Any]:
    """(sorted rows, the order that sorts them, which are the last of a run of rows >= 0)."""
    from xformlib.ops.sorting import sort

    position = iota(shape=rows.shape, dtype=np.dtype(np.int32), iota_dimension=0)
    rows, order = sort(rows, position, dimension=0, is_stable=True, num_keys=1)
    return rows, order, ew.bitwise_and(ew.ne(rows, shift_rows(rows, -1, -2)), ew.ge(rows, 0))


def take_rows(x: Any, order: Any) -> Any:
    """``x[order]`` along the first axis."""
    rank = len(x.shape)
    dims = GatherDims(tuple(range(1, rank)), (0,), (), (), (0,), 1)
    sizes = (min(1, x.shape[0]), *x.shape[1:])
    return gather(x, order, dimension_numbers=dims, slice_sizes=sizes, indices_are_sorted=False)


def shift_rows(x: Any, by: int, fill: Any) -> Any:
    """``x`` moved along the first axis (forward for positive ``by``), the gap filled with ``fill``."""
    n = x.shape[0]
    gap = full((min(abs(by), n), *x.shape[1:]), fill, x.dtype)
    if by > 0:
        return concatenate(gap, slice_in_dim(x, 0, max(0, n - by), 0), dimension=0)
    return concatenate(slice_in_dim(x, min(-by, n), n, 0), gap, dimension=0)


def product_tangents(rows: Any, values: Any, tangents: Any) -> Any:
    """At the last of each run of equal ``rows``: the tangent of the product of the run's values.

    Doubling windows (Hillis and Steele, 1986), kept within runs.
    """
    step = 1
    while step < rows.shape[0]:
        same = broadcast_in_dim(ew.eq(shift_rows(rows, step, -2), rows), shape=values.shape, broadcast_dimensions=(0,))
        before, tangents_before = shift_rows(values, step, 1), shift_rows(tangents, step, 0)
        joined = ew.add(ew.mul(tangents_before, values), ew.mul(before, tangents))
        tangents = ew.select(same, joined, tangents)
        values = ew.select(same, ew.mul(before, values), values)
        step *= 2
    return tangents
