"""Dimension numbers of the ops that have them, as StableHLO names them. Free of MLIR, so that records can hold them."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["DotDims", "GatherDims", "ScatterDims"]


class DotDims(NamedTuple):
    """Dimension numbers of dot_general."""

    lhs_batching_dimensions: tuple[int, ...] = ()
    rhs_batching_dimensions: tuple[int, ...] = ()
    lhs_contracting_dimensions: tuple[int, ...] = ()
    rhs_contracting_dimensions: tuple[int, ...] = ()


class GatherDims(NamedTuple):
    """Dimension numbers of gather."""

    offset_dims: tuple[int, ...] = ()
    collapsed_slice_dims: tuple[int, ...] = ()
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()
    start_index_map: tuple[int, ...] = ()
    index_vector_dim: int = 0


class ScatterDims(NamedTuple):
    """Dimension numbers of scatter."""

    update_window_dims: tuple[int, ...] = ()
    inserted_window_dims: tuple[int, ...] = ()
    input_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()
    scatter_dims_to_operand_dims: tuple[int, ...] = ()
    index_vector_dim: int = 0
