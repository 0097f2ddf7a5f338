"""Sorting several arrays together by one or more keys: NaN last, -0 and 0 equal, ascending."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xformlib import dtypes
from xformlib.op import Op, Sample
from xformlib.ops.creation import iota
from xformlib.ops.factors import factor_text, touched
from xformlib.ops.indexing import along, take_along_axis
from xformlib.ops.movement import broadcast_batch, rev

__all__ = ["argsort", "sort"]

# -- evaluation -----------------------------------------------------------------------------------------------------


def _keys(x: np.ndarray) -> list[np.ndarray]:
    """Keys NumPy orders as we order ``x``: the comparison of ml_dtypes' types puts NaN anywhere, and a complex number
    with NaN as one part only is ordered by the other."""
    if x.dtype.kind == "c":
        return [x.real, x.imag]
    if x.dtype.isbuiltin == 1:
        return [x]
    return [x.astype(np.float32 if dtypes.issubdtype(x.dtype, np.floating) else np.int32)]


def _order(keys: Sequence[np.ndarray], dimension: int) -> np.ndarray:
    keys = [part for k in keys for part in _keys(k)]
    if len(keys) > 1:
        return np.lexsort(keys[::-1], axis=dimension)
    (key,) = keys
    if key.itemsize > 4 or key.shape[dimension] < 256:
        return np.argsort(key, axis=dimension, kind="stable")
    # Key and position in one integer: NumPy sorts those with vector instructions, many times faster than it argsorts.
    packed = _ordered_bits(key).astype(np.uint64) << np.uint64(32)
    packed |= along(np.arange(key.shape[dimension], dtype=np.uint64), dimension, key.ndim)
    packed.sort(axis=dimension)
    return (packed & np.uint64(0xFFFFFFFF)).astype(np.int64)


def _ordered_bits(key: np.ndarray) -> np.ndarray:
    """uint32 in the order of the key."""
    if key.dtype.kind in "bu":
        return key.astype(np.uint32)
    sign = np.uint32(0x80000000)
    if key.dtype.kind == "i":
        return key.astype(np.int32).view(np.uint32) ^ sign
    number = key.astype(np.float32) + np.float32(0)  # -0 becomes 0
    bits = number.view(np.uint32)
    # Negative numbers are ordered backwards by their bits.
    bits = np.where(bits & sign, ~bits, bits | sign)
    bits[np.isnan(number)] = 0xFFFFFFFF
    return bits


def _sort(*operands: np.ndarray, dimension: int, is_stable: bool, num_keys: int) -> list[np.ndarray]:
    if len(operands) == 1 and operands[0].dtype.kind in "biuf":
        return [_sort_alone(operands[0], dimension)]
    order = _order(operands[:num_keys], dimension)
    return [np.take_along_axis(x, order, dimension) for x in operands]


def _sort_alone(x: np.ndarray, dimension: int) -> np.ndarray:
    # Equal elements can't be told apart, but for zeros of either sign: NumPy's unstable sort is several times faster.
    mixed = x.dtype.kind == "f" and bool(((x == 0) & np.signbit(x)).any())
    return np.sort(x, axis=dimension, kind="stable" if mixed else None)


# -- staging --------------------------------------------------------------------------------------------------------


def _emit(frame: Any, operands: Any, **params: Any) -> Any:
    from xformlib import attributes
    from xformlib.lowering.ir import ir, tensor_type, unknown_location

    values = [t._value for t in operands]
    operation = ir.Operation.create(
        "stablehlo.sort",
        results=[v.type for v in values],
        operands=values,
        attributes=attributes.encode(sort.attrs, params),
        regions=1,
    )
    scalars = [tensor_type((), t.dtype) for t in operands for _ in range(2)]
    block = operation.regions[0].blocks.append(*scalars, arg_locs=[unknown_location] * len(scalars))
    with ir.InsertionPoint(block):
        pairs = []
        for i, x in enumerate(operands[: params["num_keys"]]):
            pairs += _components(x.dtype, block.arguments[2 * i], block.arguments[2 * i + 1])
        ir.Operation.create("stablehlo.return", operands=[_less(pairs)])
    return operation


def _op(name: str, *operands: Any, **attributes: Any) -> Any:
    from xformlib.lowering.ir import ir

    return ir.Operation.create(name, operands=list(operands), attributes=attributes, infer_type=True).result


def _components(dtype: Any, a: Any, b: Any) -> list[tuple[Any, Any, Any]]:
    """The pairs of real numbers compared for one key, each with its dtype: complex numbers compare both parts."""
    if dtype.kind != "c":
        return [(dtype, a, b)]
    real = np.dtype(np.float32 if dtype == np.complex64 else np.float64)
    return [(real, _op(part, a), _op(part, b)) for part in ("stablehlo.real", "stablehlo.imag")]


def _compare(direction: str, dtype: Any, a: Any, b: Any) -> Any:
    from xformlib.lowering.ir import context, ir

    floating = dtypes.issubdtype(dtype, np.floating)
    signed = dtypes.issubdtype(dtype, np.signedinteger)
    kind = "FLOAT" if floating else "SIGNED" if signed else "UNSIGNED"
    return _op(
        "stablehlo.compare",
        a,
        b,
        comparison_direction=ir.Attribute.parse(f"#stablehlo<comparison_direction {direction}>", context),
        compare_type=ir.Attribute.parse(f"#stablehlo<comparison_type {kind}>", context),
    )


def _less(pairs: Sequence[tuple[Any, Any, Any]]) -> Any:
    """Lexicographic order of the pairs: the first that differs decides."""
    dtype, a, b = pairs[0]
    less = _compare("LT", dtype, a, b)
    floating = dtypes.issubdtype(dtype, np.floating)
    if floating:  # every number comes before NaN
        a_nan, b_nan = _compare("NE", dtype, a, a), _compare("NE", dtype, b, b)
        less = _op("stablehlo.or", less, _op("stablehlo.and", b_nan, _compare("EQ", dtype, a, a)))
    if len(pairs) == 1:
        return less
    equal = _compare("EQ", dtype, a, b)
    if floating:
        equal = _op("stablehlo.or", equal, _op("stablehlo.and", a_nan, b_nan))
    return _op("stablehlo.or", less, _op("stablehlo.and", equal, _less(pairs[1:])))


# -- rules ----------------------------------------------------------------------------------------------------------


def _tangents(tangents: Any, ans: Any, *operands: Any, dimension: int, is_stable: bool, num_keys: int) -> list[Any]:
    """Tangents move along with their values: sort the positions, too, and gather along them."""
    position = iota(shape=operands[0].shape, dtype=np.dtype(np.int32), iota_dimension=dimension)
    keys = operands[:num_keys]
    order = sort(*keys, position, dimension=dimension, is_stable=True, num_keys=num_keys)[-1]
    return [None if t is None else take_along_axis(t, order, dimension) for t in tangents]


def _batch(size: int, operands: Any, batched: Any, dimension: int, is_stable: bool, num_keys: int) -> Any:
    operands = [x if b else broadcast_batch(x, size) for x, b in zip(operands, batched, strict=True)]
    return sort(*operands, dimension=dimension + 1, is_stable=is_stable, num_keys=num_keys)


def _factors(*operands: Any, dimension: int, is_stable: bool, num_keys: int) -> str:
    rank = len(operands[0].shape)
    sides = [touched(rank, [dimension], i) for i in range(len(operands))]
    return factor_text(sides, [touched(rank, [dimension], ("out", i)) for i in range(len(operands))])


def _sample(
    shape: tuple[int, ...],
    types: Sequence[Any],
    dimension: int,
    num_keys: int,
    note: str = "",
    scale: float = 3,
    diff: bool = True,
) -> Sample:
    def make(rng: np.random.Generator) -> list[np.ndarray]:
        return [(scale * rng.standard_normal(shape)).astype(t) for t in types]

    return Sample(make, {"dimension": dimension, "is_stable": True, "num_keys": num_keys}, note=note, diff=diff)


def _specials(rng: np.random.Generator) -> list[np.ndarray]:
    x = np.array([0.0, np.nan, -np.inf, -0.0, 1.0, np.inf, -np.nan, 0.0, -2e-38, 1.0], np.float32)
    return [x, np.arange(10, dtype=np.int32)]


sort: Op = Op(
    "stablehlo.sort",
    numpy=_sort,
    attrs={"dimension": "i64", "is_stable": "bool", "num_keys": "i64"},
    multi=True,
    jvp=_tangents,
    batch=_batch,
    factors=_factors,
    emit=_emit,
    samples=[
        _sample((7,), [np.float32], 0, 1),
        _sample((3, 4), [np.float32, np.float32], 0, 1, note="a key and what it carries"),
        _sample((2, 5, 1), [np.int32, np.float32, np.uint8], 1, 2, note="two keys, ties", diff=False),
        Sample(_specials, {"dimension": 0, "is_stable": True, "num_keys": 1}, diff=False, note="NaN last, zeros equal"),
        _sample((6,), [dtypes.bfloat16, np.int32], 0, 1, diff=False),
        _sample((6,), [np.bool_, np.int32], 0, 1),
        _sample((5,), [np.complex64], 0, 1),
        _sample((0, 2), [np.float32], 0, 1),
        _sample((1,), [np.uint32, np.float32], 0, 1),
    ],
    doc="Sorts arrays together along an axis, ascending by the first ``num_keys`` of them; NaN last; -0 equals 0.",
)


def argsort(x: Any, *, dimension: int, index_dtype: Any, descending: bool = False) -> Any:
    """The order that sorts ``x`` stably along one axis; descending puts NaN first."""
    position = iota(shape=x.shape, dtype=np.dtype(index_dtype), iota_dimension=dimension)
    if not descending:
        return sort(x, position, dimension=dimension, is_stable=True, num_keys=1)[1]
    # Sorting backwards and turning the result round keeps equal elements in order.
    axes = (dimension,)
    x, position = rev(x, dimensions=axes), rev(position, dimensions=axes)
    return rev(sort(x, position, dimension=dimension, is_stable=True, num_keys=1)[1], dimensions=axes)
