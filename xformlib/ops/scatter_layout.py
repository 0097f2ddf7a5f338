"""How the axes of a scatter's operand, indices and updates belong together, and its evaluation with NumPy."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from xformlib.dims import ScatterDims
from xformlib.ops.indexing import along, batching_axes, index_columns
from xformlib.ops.reduction import accumulator

__all__ = ["Layout", "combining", "layout_of", "put_last"]

Dims = tuple[int, ...]


@dataclass(frozen=True)
class Layout:
    """How the axes of operand, indices and updates belong together; static.

    Every update element is addressed by a *point*, a position along the operand's ``lead`` axes (those that are
    indexed, batching or inserted), and lies along the ``rest`` axes as it stands.

    column: per lead axis, the component of the index vector that holds its start; None: it starts at 0.
    batch_axis: per lead axis, the batch axis of the indices it goes along with, or None.
    window: per lead axis, the axis of ``points`` along which its window runs, or None (one element).
    points: shape of the points: batch axes of the indices, then windows of lead axes.
    permutation: brings updates to axes (points, rest).
    """

    shape: Dims
    lead: Dims
    rest: Dims
    column: tuple[int | None, ...]
    batch_axis: tuple[int | None, ...]
    window: tuple[int | None, ...]
    points: Dims
    permutation: Dims
    rest_sizes: Dims


@functools.lru_cache(maxsize=4096)
def layout_of(shape: Dims, indices_shape: Dims, updates_shape: Dims, dims: ScatterDims) -> Layout:
    """The layout of a scatter."""
    indexed = dims.scatter_dims_to_operand_dims
    lead = (*indexed, *dims.input_batching_dims, *[d for d in dims.inserted_window_dims if d not in indexed])
    rest = tuple([d for d in range(len(shape)) if d not in lead])
    windows = [d for d in range(len(shape)) if d not in dims.inserted_window_dims + dims.input_batching_dims]
    update_axis = dict(zip(windows, dims.update_window_dims, strict=True))
    scattered = [a for a in range(len(updates_shape)) if a not in dims.update_window_dims]
    lead_windows = [d for d in lead if d in update_axis]
    axes = (*scattered, *[update_axis[d] for d in lead_windows])
    batching = dict(
        zip(
            dims.input_batching_dims,
            batching_axes(dims.scatter_indices_batching_dims, dims.index_vector_dim),
            strict=True,
        )
    )
    return Layout(
        shape,
        lead,
        rest,
        tuple([indexed.index(d) if d in indexed else None for d in lead]),
        tuple([batching.get(d) for d in lead]),
        tuple([len(scattered) + lead_windows.index(d) if d in lead_windows else None for d in lead]),
        tuple([updates_shape[a] for a in axes]),
        (*axes, *[update_axis[d] for d in rest]),
        tuple([updates_shape[update_axis[d]] for d in rest]),
    )


# -- evaluation -----------------------------------------------------------------------------------------------------


def positions(layout: Layout, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Row-major positions of all points along the lead axes, and which are inside (None: all)."""
    rank = len(layout.points)
    linear: Any = np.zeros((1,) * rank, np.int64)
    inside: Any = True
    for i, d in enumerate(layout.lead):
        size, column, window, batch = layout.shape[d], layout.column[i], layout.window[i], layout.batch_axis[i]
        width = 1 if window is None else layout.points[window]
        position: Any = np.zeros((1,) * rank, np.int64)
        if column is not None:
            # Far-off starts are brought near, so that adding the window can't overflow.
            start = np.minimum(np.maximum(columns[..., column], -width), size)
            position = start.reshape(start.shape + (1,) * (rank - start.ndim))
        if batch is not None:
            position = position + along(np.arange(size), batch, rank)
        if window is not None:
            position = position + along(np.arange(width), window, rank)
        inside = inside & (position >= 0) & (position < size)
        linear = linear * size + position
    linear = np.broadcast_to(linear, layout.points).reshape(-1)
    if np.all(inside):
        return linear, None
    return linear, np.broadcast_to(inside, layout.points).reshape(-1)


def evaluation(combine: Callable[[np.ndarray, np.ndarray, np.ndarray, bool], None]) -> Any:
    """The NumPy rule of scatter with ``combine(target, rows, updates, unique)`` working in place."""

    def rule(
        operand: Any,
        indices: Any,
        updates: Any,
        scatter_dimension_numbers: ScatterDims,
        indices_are_sorted: bool,
        unique_indices: bool,
    ) -> np.ndarray:
        dims = scatter_dimension_numbers
        layout = layout_of(operand.shape, indices.shape, updates.shape, dims)
        rows, inside = positions(layout, index_columns(indices, dims.index_vector_dim))
        values = updates.transpose(layout.permutation).reshape(rows.size, *layout.rest_sizes)
        if inside is not None:
            rows, values = rows[inside], values[inside]
        order = layout.lead + layout.rest
        out = np.array(operand.transpose(order), order="C")
        count = math.prod([operand.shape[d] for d in layout.lead])
        target = out.reshape(count, *[operand.shape[d] for d in layout.rest])
        if rows.size:
            combine(target[(slice(None), *map(slice, layout.rest_sizes))], rows, values, unique_indices)
        return out.transpose(np.argsort(order)) if order else out

    return rule


def _put(target: np.ndarray, rows: np.ndarray, values: np.ndarray, unique: bool) -> None:
    target[rows] = values  # NumPy assigns in order: of repeated rows the last one stays


put_last = evaluation(_put)


def combining(ufunc: np.ufunc) -> Any:
    """The NumPy rule of the scatter that combines with ``ufunc``."""

    def combine(target: np.ndarray, rows: np.ndarray, values: np.ndarray, unique: bool) -> None:
        wide = accumulator(target.dtype)
        if unique:
            target[rows] = ufunc(target[rows], values)
        elif target.ndim == 1 and wide == target.dtype:
            ufunc.at(target, rows, values)
        else:
            # Sorted runs of equal rows, each reduced at once: ufunc.at is slow on rows and on narrow types.
            order = np.argsort(rows, kind="stable")
            rows = rows[order]
            starts = np.flatnonzero(np.concatenate([[True], rows[1:] != rows[:-1]]))
            reduced = ufunc.reduceat(values[order].astype(wide, copy=False), starts, axis=0, dtype=wide)
            rows = rows[starts]
            target[rows] = ufunc(target[rows].astype(wide, copy=False), reduced).astype(target.dtype, copy=False)

    return evaluation(combine)
