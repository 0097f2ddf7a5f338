"""Parsed indices as operations, the cheapest that do them.

- Ints and slices alone: slice, reverse, reshape; an update writes the part back.
- Traced ints beside slices: dynamic_slice and dynamic_update_slice.
- Index arrays: gather and scatter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from xformlib import dtypes
from xformlib.array import ArrayImpl, Tracer
from xformlib.dims import GatherDims, ScatterDims
from xformlib.errors import IndexingError
from xformlib.keys import with_weak_type
from xformlib.numpy.index_grammar import POINTS, Index, Span
from xformlib.op import Op, state
from xformlib.ops import elementwise as ew
from xformlib.ops import movement
from xformlib.ops.creation import full
from xformlib.ops.indexing import dynamic_slice, dynamic_update_slice, gather
from xformlib.ops.scatter import scatter, scatter_add, scatter_max, scatter_min, scatter_mul

__all__ = ["ADD", "MAX", "MIN", "MUL", "SET", "SUB", "Rules", "Way", "read", "repetitions", "update"]

_BOOL = np.dtype(np.bool_)
_LITERAL = 64  # index arrays up to this size are literals of a program, larger ones arguments


# -- positions along one axis ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rules:
    """What indices mean: ``mode`` is one of clip, drop (or fill), wrap, promise_in_bounds."""

    mode: str
    from_end: bool = True  # negative indices count from the end
    sorted: bool = False
    unique: bool = False

    def position(self, i: Any, size: int) -> Any:
        """Index ``i`` of an axis as a position; still out of range under drop and promise_in_bounds."""
        if isinstance(i, Tracer):
            return self._traced(_signed(i, size), size)
        if isinstance(i, np.ndarray):
            i = (np.minimum(i, np.uint64(size)) if i.dtype == np.uint64 else i).astype(np.int64)
        if self.mode == "wrap":
            return i % size if size else i
        if self.from_end:
            i = i + size * (i < 0)
        low, high = (0, size - 1) if self.mode == "clip" else (-1, size)
        return np.clip(i, low, high) if isinstance(i, np.ndarray) else max(low, min(i, high))

    def _traced(self, i: Any, size: int) -> Any:
        if self.mode == "wrap":
            i = ew.rem(i, max(size, 1))
            return ew.select(ew.lt(i, 0), ew.add(i, size), i)
        if self.from_end:
            i = ew.select(ew.lt(i, 0), ew.add(i, size), i)
        return ew.clamp(0, i, max(size - 1, 0)) if self.mode == "clip" else i


def _index_dtype(shape: Sequence[int]) -> np.dtype[Any]:
    return np.dtype(np.int32 if max(shape, default=0) < 2**31 - 1 else np.int64)


def _signed(i: Any, size: int) -> Any:
    """A traced index as int32 (int64 for large axes); what is out of range stays so."""
    target = _index_dtype((size,))
    limits = dtypes.iinfo(i.dtype)
    if limits.max > dtypes.iinfo(target).max:
        i = ew.min(i, size)
    if limits.min < dtypes.iinfo(target).min:
        i = ew.max(i, -size - 1)
    return i if i.dtype == target else ew.convert(i, dtype=target)


def _inside(position: Any, size: int) -> Any:
    """Whether positions are within an axis of ``size`` elements."""
    if isinstance(position, Tracer):
        return ew.bitwise_and(ew.ge(position, 0), ew.lt(position, size))
    return (position >= 0) & (position < size)


def _all_of(conditions: Sequence[Any]) -> Any:
    """The conjunction of arrays and bools; a bool where it is known."""
    if any(c is False for c in conditions):
        return False
    out: Any = True
    for c in conditions:
        if isinstance(c, Tracer) or not np.all(c):
            out = c if out is True else ew.bitwise_and(out, c)
    return out


# -- ints and slices ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Block:
    """The rectangular part that ints and slices address.

    starts, sizes: a block without strides; dynamic starts are traced.
    spans: what is taken of the block, per axis; ints take all of the one element.
    inside: whether all ints are in range (a bool where that is known).
    """

    index: Index
    starts: tuple[Any, ...]
    sizes: tuple[int, ...]
    spans: tuple[Span, ...]
    inside: Any

    @property
    def is_static(self) -> bool:
        return not any(isinstance(s, Tracer) for s in self.starts)

    @property
    def is_dense(self) -> bool:
        return all(s.step == 1 for s in self.spans)

    @property
    def taken(self) -> tuple[int, ...]:
        """Sizes of what is taken, with axes of size 1 for ints."""
        return tuple([s.size for s in self.spans])

    @property
    def reversed(self) -> tuple[int, ...]:
        return tuple([d for d, s in enumerate(self.spans) if s.reverse])


def _block(index: Index, rules: Rules) -> _Block:
    starts: list[Any] = []
    sizes, spans, inside = [], [], []
    for a, n in zip(index.axes, index.shape, strict=True):
        if isinstance(a, Span):
            dense = a.step == 1
            starts.append(a.start if dense else 0)
            sizes.append(a.size if dense else n)
            spans.append(a._replace(start=0) if dense else a)
            continue
        position = rules.position(a, n)
        if rules.mode == "drop":
            inside.append(_inside(position, n))
        starts.append(position if isinstance(position, Tracer) else max(0, min(position, n - 1)))
        sizes.append(1)
        spans.append(Span(0, 1, 1, False))
    return _Block(index, tuple(starts), tuple(sizes), tuple(spans), _all_of(inside))


def _starts(block: _Block) -> list[Any]:
    dtype = _index_dtype(block.index.shape)
    return [ew.convert(s, dtype=dtype) if isinstance(s, Tracer) else full((), s, dtype) for s in block.starts]


def _read_block(x: Any, block: _Block) -> Any:
    """What the block takes of ``x``, with axes of size 1 for ints."""
    spans = block.spans
    if not block.is_static:
        x = dynamic_slice(x, *_starts(block), slice_sizes=block.sizes)
    else:
        spans = tuple([s._replace(start=s.start + start) for s, start in zip(spans, block.starts, strict=True)])
    if any(s != Span(0, n, 1, s.reverse) for s, n in zip(spans, x.shape, strict=True)):
        x = movement.slice(
            x,
            start_indices=tuple([s.start for s in spans]),
            limit_indices=tuple([s.start + (s.size - 1) * s.step + 1 if s.size else s.start for s in spans]),
            strides=tuple([s.step for s in spans]),
        )
    return movement.rev(x, dimensions=block.reversed) if block.reversed else x


def _write_block(x: Any, block: _Block, new: Any) -> Any:
    """``x`` with ``new``, in the shape :func:`_read_block` gives, in the block's place. Strides need static starts."""
    if block.reversed:
        new = movement.rev(new, dimensions=block.reversed)
    if block.taken == x.shape:
        return new
    if block.is_dense:
        return dynamic_update_slice(x, new, *_starts(block))
    low = [s.start + start for s, start in zip(block.spans, block.starts, strict=True)]
    ends = [a + (s.size - 1) * s.step + 1 if s.size else a for a, s in zip(low, block.spans, strict=True)]
    padding = {
        "edge_padding_low": tuple(low),
        "edge_padding_high": tuple([n - end for n, end in zip(x.shape, ends, strict=True)]),
        "interior_padding": tuple([s.step - 1 for s in block.spans]),
    }
    own = movement.pad(full(new.shape, True, _BOOL), full((), False, _BOOL), **padding)
    return ew.select(own, movement.pad(new, full((), 0, x.dtype), **padding), x)


# -- index arrays ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Lookup:
    """The dimension numbers and the index vectors of a gather or scatter.

    vectors: (points..., indexed axes). inside: whether points are in range (a bool where that is known).
    windows: result axes that are slices of the array; the others are axes of points.
    """

    index: Index
    vectors: Any
    points: tuple[int, ...]
    axes: tuple[int, ...]
    windows: tuple[int, ...]
    inside: Any

    @property
    def collapsed(self) -> tuple[int, ...]:
        return tuple([d for d, a in enumerate(self.index.axes) if not isinstance(a, Span) or a.step != 1])

    @property
    def flat_shape(self) -> tuple[int, ...]:
        """The result's shape without new axes."""
        return tuple([n for n, item in _result_axes(self.index) if item is not None])

    @property
    def reversed(self) -> tuple[int, ...]:
        """Result axes that gather gives, and scatter takes, in reverse order."""
        items = [item for _, item in _result_axes(self.index) if item is not None]
        return tuple([r for r, d in enumerate(items) if d != POINTS and self.index.axes[d].reverse])


def _result_axes(index: Index) -> list[tuple[int, Any]]:
    """Sizes of the result's axes, with what they are: the number of a spanned axis, POINTS, or None for new ones."""
    out: list[tuple[int, Any]] = []
    for item in index.layout:
        if item == POINTS:
            out += [(n, POINTS) for n in index.points or ()]
        else:
            out.append((1 if item is None else index.axes[item].size, item))  # type: ignore[index]
    return out


def _lookup(index: Index, rules: Rules) -> _Lookup:
    points: list[int] = []
    windows: list[int] = []
    places: dict[Any, int] = {}  # where the points, and each axis with strides, begin among the axes of points
    for r, (n, item) in enumerate([pair for pair in _result_axes(index) if pair[1] is not None]):
        if item != POINTS and index.axes[item].step == 1:
            windows.append(r)
        else:
            places.setdefault(item, len(points))
            points.append(n)
    first, rank = places.get(POINTS, 0), len(points)
    axes, columns, inside = [], [], []
    for d, (a, n) in enumerate(zip(index.axes, index.shape, strict=True)):
        if not isinstance(a, Span):
            column = rules.position(a, n)
            column = column if isinstance(column, Tracer) else np.asarray(column)
            at = first + len(index.points or ()) - len(column.shape)
            if rules.mode == "drop":
                inside.append(_spread(_inside(column, n), at, points))
        elif a.step != 1:
            column, at = a.start + a.step * np.arange(a.size), places[d]
        elif a.start:
            column, at = np.asarray(a.start), rank
        else:
            continue
        axes.append(d)
        columns.append(_spread(column, at, points))
    vectors = _stacked(columns, tuple(points), _index_dtype(index.shape))
    return _Lookup(index, vectors, tuple(points), tuple(axes), tuple(windows), _all_of(inside))


def _spread(x: Any, at: int, points: Sequence[int]) -> Any:
    """An array whose axes are those of ``points`` from ``at`` on, broadcast to all of them."""
    if not isinstance(x, Tracer):
        return np.broadcast_to(x.reshape(x.shape + (1,) * (len(points) - at - x.ndim)), points)
    dims = tuple(range(at, at + len(x.shape)))
    if x.shape == tuple(points):
        return x
    return movement.broadcast_in_dim(x, shape=tuple(points), broadcast_dimensions=dims)


def _stacked(columns: Sequence[Any], points: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """The columns of index vectors, side by side along a last axis."""
    if not any(isinstance(c, Tracer) for c in columns):
        vectors = np.stack(columns, axis=-1).astype(dtype) if columns else np.zeros((*points, 0), dtype)
        return vectors if vectors.size <= _LITERAL else ArrayImpl(vectors)
    shape = (*points, 1)
    parts = [
        movement.reshape(ew.convert(c, dtype=dtype), shape=shape)
        if isinstance(c, Tracer)
        else np.ascontiguousarray(c, dtype).reshape(shape)
        for c in columns
    ]
    return parts[0] if len(parts) == 1 else movement.concatenate(*parts, dimension=len(points))


def _gathered(x: Any, lookup: _Lookup, rules: Rules) -> Any:
    """The result of a read, without new axes."""
    index, collapsed = lookup.index, lookup.collapsed
    empty = [d for d in collapsed if not index.shape[d]]
    if empty and 0 not in lookup.flat_shape:
        raise IndexingError(f"axis {empty[0]} of shape {index.shape} has size 0: there is nothing to take from it.")
    if empty:
        return full(lookup.flat_shape, 0, x.dtype)
    out = gather(
        x,
        lookup.vectors,
        dimension_numbers=GatherDims(lookup.windows, collapsed, (), (), lookup.axes, len(lookup.points)),
        slice_sizes=tuple([1 if d in collapsed else a.size for d, a in enumerate(index.axes)]),
        indices_are_sorted=rules.sorted,
    )
    return movement.rev(out, dimensions=lookup.reversed) if lookup.reversed else out


def _scattered(op: Any, x: Any, lookup: _Lookup, updates: Any, rules: Rules) -> Any:
    """``x`` with updates (without new axes) combined into it by a scatter record."""
    if lookup.reversed:
        updates = movement.rev(updates, dimensions=lookup.reversed)
    return op(
        x,
        lookup.vectors,
        updates,
        scatter_dimension_numbers=ScatterDims(
            lookup.windows, lookup.collapsed, (), (), lookup.axes, len(lookup.points)
        ),
        indices_are_sorted=rules.sorted,
        unique_indices=rules.unique or _points_differ(lookup),
    )


def _points_differ(lookup: _Lookup) -> bool:
    """Whether no point occurs twice, as far as is known."""
    if lookup.index.unique:
        return True
    vectors = lookup.vectors
    if state.frame is None or isinstance(vectors, Tracer):  # evaluation gains nothing by knowing
        return False
    rows = np.asarray(vectors).reshape(-1, len(lookup.axes))
    return len(np.unique(rows, axis=0)) == len(rows)


# -- reading --------------------------------------------------------------------------------------------------------


def read(x: Any, index: Index, rules: Rules, fill_value: Any = None) -> Any:
    """What an index addresses; under drop, ``fill_value`` stands for elements out of range."""
    if index.points is None:
        block = _block(index, rules)
        out, inside = _read_block(x, block), block.inside
    else:
        lookup = _lookup(index, rules)
        out, inside = _gathered(x, lookup, rules), _over_result(lookup)
    if inside is not True:
        fill = full((), _missing(x.dtype), x.dtype) if fill_value is None else fill_value
        out = ew.select(np.asarray(False) if inside is False else inside, out, fill)
    return with_weak_type(_reshaped(out, index.result_shape), x.weak_type)


def _reshaped(x: Any, shape: tuple[int, ...]) -> Any:
    return x if x.shape == shape else movement.reshape(x, shape=shape)


def _over_result(lookup: _Lookup) -> Any:
    """Which elements of the result without new axes are in range."""
    if isinstance(lookup.inside, bool):
        return lookup.inside
    shape = lookup.flat_shape
    axes = tuple([r for r in range(len(shape)) if r not in lookup.windows])
    return movement.broadcast_in_dim(lookup.inside, shape=shape, broadcast_dimensions=axes)


def _missing(dtype: Any) -> Any:
    """What stands for elements that do not exist: NaN, the smallest signed integer, the largest unsigned one, True."""
    if dtypes.issubdtype(dtype, np.inexact):
        return np.nan
    if dtype == _BOOL:
        return True
    limits = dtypes.iinfo(dtype)
    return limits.min if limits.min < 0 else limits.max


# -- updating -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Way:
    """A way of updating: ``combine(old, new)``, the scatter that does it at points, and NumPy's function.

    negated: the scatter takes the negative of the values.
    """

    combine: Op | None
    scatter: Op
    ufunc: np.ufunc | None
    negated: bool = False


SET, ADD = Way(None, scatter, None), Way(ew.add, scatter_add, np.add)
SUB, MUL = Way(ew.sub, scatter_add, np.subtract, negated=True), Way(ew.mul, scatter_mul, np.multiply)
MIN, MAX = Way(ew.min, scatter_min, np.minimum), Way(ew.max, scatter_max, np.maximum)


def update(x: Any, index: Index, values: Any, way: Way, rules: Rules) -> Any:
    """``x`` with values (of the result's shape and the array's dtype) combined into what an index addresses."""
    if 0 in values.shape:
        return x
    if index.points is None:
        block = _block(index, rules)
        if block.is_static or block.is_dense:
            return with_weak_type(_update_block(x, block, values, way), x.weak_type)
    lookup = _lookup(index, rules)
    if any(index.shape[d] == 0 for d in lookup.collapsed):
        return x
    values = _reshaped(values, lookup.flat_shape)
    out = _scattered(way.scatter, x, lookup, ew.neg(values) if way.negated else values, rules)
    return with_weak_type(out, x.weak_type)


def _update_block(x: Any, block: _Block, values: Any, way: Way) -> Any:
    if block.inside is False:
        return x
    new = _reshaped(values, block.taken)
    if way.combine is not None or block.inside is not True:
        old = _read_block(x, block)
        new = new if way.combine is None else way.combine(old, new)
        new = new if block.inside is True else ew.select(block.inside, new, old)
    return _write_block(x, block, new)


def repetitions(x: Any, index: Index, rules: Rules) -> tuple[Any, int]:
    """How often each element of the result is addressed, as an array of its shape, and how often at most.

    The array is None where no element is addressed twice.
    """
    if index.points is None:
        return None, 1
    lookup = _lookup(index, rules)
    if rules.unique or index.unique or 0 in lookup.flat_shape:
        return None, 1
    most = math.prod(lookup.points)
    if not isinstance(lookup.vectors, Tracer):
        rows = np.asarray(lookup.vectors).reshape(most, -1)
        most = int(np.unique(rows, axis=0, return_counts=True)[1].max())
        if most == 1:
            return None, 1
    one = np.dtype(np.int32)
    board = update(full(x.shape, 0, one), index, full(index.result_shape, 1, one), ADD, rules)
    return read(board, index, replace(rules, mode="clip" if rules.mode == "drop" else rules.mode)), most
