"""gather and scatter word for word as the StableHLO specification has them, one element at a time; and random cases."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from xformlib.dims import GatherDims, ScatterDims


def _positions(shape):
    return itertools.product(*map(range, shape))


def _start_index(indices, batch_index, dims, index_vector_dim):
    """The index vector at a position along the batch axes of the indices."""
    if index_vector_dim == indices.ndim:
        return [int(indices[tuple(batch_index)])]
    at = list(batch_index)
    at.insert(index_vector_dim, slice(None))
    return [int(i) for i in indices[tuple(at)]]


def _batching_position(batch_index, batching_dim, index_vector_dim):
    return batch_index[batching_dim - (1 if index_vector_dim < batching_dim else 0)]


def gather(operand, start_indices, dims: GatherDims, slice_sizes):
    batch_shape = [n for d, n in enumerate(start_indices.shape) if d != dims.index_vector_dim]
    dropped = dims.collapsed_slice_dims + dims.operand_batching_dims
    offset_shape = [n for d, n in enumerate(slice_sizes) if d not in dropped]
    rank = len(batch_shape) + len(offset_shape)
    batch_dims = [d for d in range(rank) if d not in dims.offset_dims]
    shape = [0] * rank
    for d, n in [*zip(batch_dims, batch_shape, strict=True), *zip(dims.offset_dims, offset_shape, strict=True)]:
        shape[d] = n
    out = np.zeros(shape, operand.dtype)
    for position in _positions(shape):
        batch_index = [position[d] for d in batch_dims]
        full = [0] * operand.ndim
        for i, d in zip(
            _start_index(start_indices, batch_index, dims, dims.index_vector_dim), dims.start_index_map, strict=True
        ):
            full[d] = min(max(i, 0), operand.shape[d] - slice_sizes[d])
        for d, s in zip(dims.operand_batching_dims, dims.start_indices_batching_dims, strict=True):
            full[d] = _batching_position(batch_index, s, dims.index_vector_dim)
        offsets = iter([position[d] for d in dims.offset_dims])
        for d in range(operand.ndim):
            if d not in dropped:
                full[d] += next(offsets)
        out[position] = operand[tuple(full)]
    return out


def scatter(operand, indices, updates, dims: ScatterDims, combine):
    out = operand.copy()
    scatter_dims = [d for d in range(updates.ndim) if d not in dims.update_window_dims]
    dropped = dims.inserted_window_dims + dims.input_batching_dims
    for position in _positions(updates.shape):
        batch_index = [position[d] for d in scatter_dims]
        full = [0] * operand.ndim
        start = _start_index(indices, batch_index, dims, dims.index_vector_dim)
        for i, d in zip(start, dims.scatter_dims_to_operand_dims, strict=True):
            full[d] = i
        for d, s in zip(dims.input_batching_dims, dims.scatter_indices_batching_dims, strict=True):
            full[d] = _batching_position(batch_index, s, dims.index_vector_dim)
        window = iter([position[d] for d in dims.update_window_dims])
        for d in range(operand.ndim):
            if d not in dropped:
                full[d] += next(window)
        if all(0 <= i < n for i, n in zip(full, operand.shape, strict=True)):
            out[tuple(full)] = combine(out[tuple(full)], updates[position])
    return out


class Case(NamedTuple):
    """Shapes and dimension numbers that serve a gather (slices of ``sizes``) and a scatter (updates of ``window``)."""

    shape: tuple[int, ...]
    indices: np.ndarray
    sizes: tuple[int, ...]
    result: tuple[int, ...]
    gather: GatherDims

    @property
    def scatter(self) -> ScatterDims:
        return ScatterDims(*self.gather)


INDEX_TYPES = [np.int32, np.int64, np.int8, np.uint8, np.uint32, np.uint64]


@st.composite
def cases(draw) -> Case:
    """Any valid combination of batching, collapsed and window axes, windows narrow or whole, and index layouts."""
    rank = draw(st.integers(0, 3))
    shape = tuple([draw(st.integers(1, 4)) for _ in range(rank)])
    roles = [draw(st.sampled_from(["batching", "collapsed", "window", "window"])) for _ in range(rank)]
    batching = tuple([d for d in range(rank) if roles[d] == "batching"])
    collapsed = tuple([d for d in range(rank) if roles[d] == "collapsed"])
    sizes = tuple([draw(st.integers(0, n)) if roles[d] == "window" else 1 for d, n in enumerate(shape)])
    free = [d for d in range(rank) if roles[d] != "batching"]
    indexed = tuple([d for d in draw(st.permutations(free)) if draw(st.booleans())])
    # Axes of the indices: those that go along with batching axes, some of their own, and the index vector's.
    own = [draw(st.integers(0, 3)) for _ in range(draw(st.integers(0, 2)))]
    axes = draw(st.permutations([*[("batching", d) for d in batching], *[("own", n) for n in own]]))
    index_shape = [shape[n] if kind == "batching" else n for kind, n in axes]
    batch_shape = list(index_shape)
    implied = len(indexed) == 1 and draw(st.booleans())
    vector = len(index_shape) if implied else draw(st.integers(0, len(index_shape)))
    if not implied:
        index_shape.insert(vector, len(indexed))
    along = {n: a + (1 if vector <= a and not implied else 0) for a, (kind, n) in enumerate(axes) if kind == "batching"}
    windows = [n for d, n in enumerate(sizes) if roles[d] == "window"]
    result_rank = len(batch_shape) + len(windows)
    chosen = draw(st.permutations(range(result_rank)))
    offset = tuple(sorted(chosen[: len(windows)]))
    w, b = iter(windows), iter(batch_shape)
    result = tuple([next(w) if d in offset else next(b) for d in range(result_rank)])
    dims = GatherDims(offset, collapsed, batching, tuple([along[d] for d in batching]), indexed, vector)
    dtype = draw(st.sampled_from(INDEX_TYPES))
    extreme = st.sampled_from([np.iinfo(dtype).min, np.iinfo(dtype).max])
    near = st.integers(max(-3, np.iinfo(dtype).min), 5)
    count = int(np.prod(index_shape))
    values = draw(st.lists(st.one_of(near, near, near, extreme), min_size=count, max_size=count))
    return Case(shape, np.array(values, dtype).reshape(index_shape), sizes, result, dims)
