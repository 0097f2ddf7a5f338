"""Reductions: ``stablehlo.reduce`` with a fixed body, one record per body."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xformlib import dtypes
from xformlib.op import Op, Sample, registry
from xformlib.ops import elementwise as ew
from xformlib.ops.creation import full, iota
from xformlib.ops.factors import factor_text
from xformlib.ops.movement import broadcast_in_dim, concatenate, permute, reshape, slice_in_dim
from xformlib.ops.numpy_rules import is_narrow_integer

__all__ = [
    "argmax",
    "argmin",
    "highest",
    "lowest",
    "reduce_and",
    "reduce_max",
    "reduce_min",
    "reduce_or",
    "reduce_prod",
    "reduce_sum",
    "reduce_xor",
]


def reduced_shape(x: Any, dimensions: tuple[int, ...]) -> tuple[int, ...]:
    """The shape without the reduced axes."""
    return tuple([n for i, n in enumerate(x.shape) if i not in dimensions])


def expand(x: Any, like: Any, dimensions: tuple[int, ...]) -> Any:
    """A reduced value repeated back over the reduced axes of ``like``."""
    kept = tuple([i for i in range(len(like.shape)) if i not in dimensions])
    return broadcast_in_dim(x, shape=like.shape, broadcast_dimensions=kept)


def lowest(dtype: Any) -> Any:
    """The identity of maximum: -inf, the smallest integer, or False."""
    return _extreme(dtype, -1)


def highest(dtype: Any) -> Any:
    """The identity of minimum: inf, the largest integer, or True."""
    return _extreme(dtype, 1)


def _extreme(dtype: Any, sign: int) -> Any:
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return dtype.type(sign > 0)
    if dtypes.issubdtype(dtype, np.integer):
        info = dtypes.iinfo(dtype)
        return np.asarray(info.max if sign > 0 else info.min).astype(dtype)[()]
    if dtype.kind == "c":
        return dtype.type(complex(sign * np.inf, sign * np.inf))
    # A float8 without infinities turns inf into NaN; its largest finite number does.
    value = np.asarray(sign * np.inf).astype(dtype)
    if not np.isinf(value.astype(np.float64)):
        value = np.asarray(sign * float(dtypes.finfo(dtype).max), dtype)
    return value[()]


def emitter(body: str, variant: str, init: Any) -> Any:
    """Emits ``stablehlo.reduce`` with ``body`` applied by its region and ``init(dtype)`` as initial value."""

    def emit(frame: Any, operands: Any, *, dimensions: tuple[int, ...]) -> Any:
        from xformlib.attributes import string_attr
        from xformlib.lowering.ir import ir, tensor_type, unknown_location

        (x,) = operands
        start = frame.tracer_of(np.asarray(init(x.dtype), x.dtype))
        scalar = tensor_type((), x.dtype)
        operation = ir.Operation.create(
            "stablehlo.reduce",
            results=[tensor_type(reduced_shape(x, dimensions), x.dtype)],
            operands=[x._value, start._value],
            attributes={
                "dimensions": ir.DenseI64ArrayAttr.get(list(dimensions)),
                "xform.variant": string_attr(variant),
            },
            regions=1,
        )
        block = operation.regions[0].blocks.append(scalar, scalar, arg_locs=[unknown_location] * 2)
        with ir.InsertionPoint(block):
            value = ir.Operation.create(body, results=[scalar], operands=list(block.arguments)).result
            ir.Operation.create("stablehlo.return", operands=[value])
        return operation

    return emit


def batch_reduction(op: Any) -> Any:
    """Batching shifts the reduced axes by one."""

    def rule(size: int, operands: Any, batched: Any, dimensions: tuple[int, ...]) -> Any:
        return op()(operands[0], dimensions=tuple([d + 1 for d in dimensions]))

    return rule


def factors(x: Any, dimensions: tuple[int, ...]) -> str:
    """Kept axes are factors of operand and result, reduced ones are marked."""
    rank = range(len(x.shape))
    return factor_text([rank], [[d for d in rank if d not in dimensions]], dimensions)


def _samples(*cases: tuple[Any, tuple[int, ...], tuple[int, ...]], note: str = "", diff: bool = True) -> list[Sample]:
    """Samples from (dtype, shape, dimensions)."""

    def maker(dtype: Any, shape: tuple[int, ...]) -> Any:
        return lambda rng: [np.asarray(3 * rng.standard_normal(shape)).astype(dtype)]

    return [Sample(maker(t, s), {"dimensions": d}, diff=diff, note=note) for t, s, d in cases]


def _at(values: Any, dimensions: tuple[int, ...], note: str, **options: Any) -> Sample:
    return Sample(lambda rng: [np.asarray(values, np.float32)], {"dimensions": dimensions}, note=note, **options)


# -- sum ------------------------------------------------------------------------------------------------------------


def accumulator(dtype: Any) -> Any:
    """The dtype elements are combined in: float32 for low-precision floats, int8 for integers of less than a byte."""
    if is_narrow_integer(dtype):
        return np.dtype(np.int8)
    return np.dtype(np.float32) if dtype.itemsize < 4 and dtypes.issubdtype(dtype, np.floating) else dtype


def _wide(ufunc: np.ufunc) -> Any:
    """Reduce in a wider dtype and round once."""

    def rule(x: Any, dimensions: tuple[int, ...]) -> Any:
        return ufunc.reduce(x, axis=dimensions, dtype=accumulator(x.dtype)).astype(x.dtype, copy=False)

    return rule


reduce_sum: Op = Op(
    "stablehlo.reduce:add",
    numpy=_wide(np.add),
    kind="reduction",
    attrs={"dimensions": "i64s"},
    linear="all",
    transpose=(lambda ct, x, dimensions: expand(ct, x, dimensions),),
    batch=batch_reduction(lambda: reduce_sum),
    factors=factors,
    emit=emitter("stablehlo.add", "add", lambda dtype: 0),
    arity=1,
    samples=_samples(
        (np.float32, (3, 4), (0,)),
        (np.float32, (2, 3, 4), (0, 2)),
        (np.float32, (0, 3), (0,)),
        (np.float32, (), ()),
        (np.float32, (2, 1), (1,)),
        (dtypes.bfloat16, (40, 3), (0,)),
        (np.float16, (3, 5), (0, 1)),
        (np.complex64, (3, 2), (1,)),
        (np.int8, (4, 100), (1,)),
        (np.bool_, (3, 2), (1,)),
    ),
    doc="Sum over axes. float16, bfloat16 and float8 are accumulated in float32; integers wrap; booleans: any.",
)

# -- product --------------------------------------------------------------------------------------------------------


def _product_tangent(tangents: Any, ans: Any, x: Any, dimensions: tuple[int, ...]) -> Any:
    """Products of pairs, halving the axis: linear work, and right with any number of zeros and to any order."""
    (t,) = tangents
    kept = tuple([d for d in range(len(x.shape)) if d not in dimensions])
    count = math.prod([x.shape[d] for d in dimensions])
    x, t = [reshape(permute(v, (*dimensions, *kept)), shape=(count, *ans.shape)) for v in (x, t)]
    while x.shape[0] > 1:
        half = x.shape[0] // 2
        (a, b), (ta, tb) = [(slice_in_dim(v, 0, half, 0), slice_in_dim(v, half, 2 * half, 0)) for v in (x, t)]
        product, tangent = ew.mul(a, b), ew.add(ew.mul(ta, b), ew.mul(a, tb))
        if x.shape[0] % 2:
            last = x.shape[0]
            product = concatenate(product, slice_in_dim(x, last - 1, last, 0), dimension=0)
            tangent = concatenate(tangent, slice_in_dim(t, last - 1, last, 0), dimension=0)
        x, t = product, tangent
    return reshape(t, shape=ans.shape) if t.shape[0] else None


reduce_prod: Op = Op(
    "stablehlo.reduce:mul",
    numpy=_wide(np.multiply),
    kind="reduction",
    attrs={"dimensions": "i64s"},
    jvp=_product_tangent,
    batch=batch_reduction(lambda: reduce_prod),
    factors=factors,
    emit=emitter("stablehlo.multiply", "mul", lambda dtype: 1),
    arity=1,
    samples=[
        *_samples(
            (np.float32, (3, 4), (0,)),
            (np.float32, (2, 3, 3), (0, 2)),
            (np.float32, (0, 3), (0,)),
            (np.float32, (), ()),
            (np.float32, (2, 1), (1,)),
            (dtypes.bfloat16, (4, 3), (0,)),
            (np.complex64, (3, 2), (1,)),
            (np.int16, (4, 7), (1,)),
            (np.bool_, (3, 2), (1,)),
        ),
        _at([[0.0, 2.0, 3.0], [0.0, 2.0, 0.0]], (1,), "one and several zeros"),
    ],
    doc="Product over axes; the derivative is right where factors are zero, to every order.",
)

# -- maximum, minimum -----------------------------------------------------------------------------------------------


def _extremum_tangent(tangents: Any, ans: Any, x: Any, dimensions: tuple[int, ...]) -> Any:
    """The mean of the tangents where the extremum is attained."""
    (t,) = tangents
    attained = ew.eq(x, expand(ans, x, dimensions))
    count = reduce_sum(ew.convert(attained, dtype=t.dtype), dimensions=dimensions)
    return ew.div(reduce_sum(ew.select(attained, t, full(t.shape, 0, t.dtype)), dimensions=dimensions), count)


def _extremum(ufunc: np.ufunc, identity: Callable[[Any], Any]) -> Any:
    def rule(x: Any, dimensions: tuple[int, ...]) -> Any:
        initial = {} if x.size else {"initial": identity(x.dtype)}
        wide = x.astype(np.int8) if is_narrow_integer(x.dtype) else x
        return ufunc.reduce(wide, axis=dimensions, **initial).astype(x.dtype, copy=False)

    return rule


_EXTREMUM_SAMPLES = [
    *_samples(
        (np.float32, (3, 4), (0,)),
        (np.float32, (2, 3, 4), (0, 2)),
        (np.float32, (), ()),
        (np.float32, (2, 1), (1,)),
        (dtypes.bfloat16, (4, 3), (0,)),
        (np.int8, (4, 7), (1,)),
        (np.uint32, (4, 7), (0, 1)),
        (np.bool_, (3, 2), (1,)),
    ),
    *_samples((np.float32, (0, 3), (0,)), (np.int32, (2, 0), (1,)), diff=False, note="nothing: the identity"),
    _at([[1.0, 2.0, 2.0], [3.0, 3.0, 3.0]], (1,), "ties share the cotangent", diff=False),
    _at([[1.0, np.nan, 2.0], [np.inf, -np.inf, 0.0]], (1,), "NaN propagates", diff=False),
]

reduce_max: Op = Op(
    "stablehlo.reduce:max",
    numpy=_extremum(np.maximum, lowest),
    kind="reduction",
    attrs={"dimensions": "i64s"},
    jvp=_extremum_tangent,
    batch=batch_reduction(lambda: reduce_max),
    factors=factors,
    emit=emitter("stablehlo.maximum", "max", lowest),
    arity=1,
    samples=_EXTREMUM_SAMPLES,
    doc="Largest element over axes; NaN if there is one; ties share the cotangent equally.",
)
reduce_min: Op = Op(
    "stablehlo.reduce:min",
    numpy=_extremum(np.minimum, highest),
    kind="reduction",
    attrs={"dimensions": "i64s"},
    jvp=_extremum_tangent,
    batch=batch_reduction(lambda: reduce_min),
    factors=factors,
    emit=emitter("stablehlo.minimum", "min", highest),
    arity=1,
    samples=_EXTREMUM_SAMPLES,
    doc="Smallest element over axes; NaN if there is one; ties share the cotangent equally.",
)

# -- bitwise --------------------------------------------------------------------------------------------------------

_BITWISE_SAMPLES = _samples(
    (np.bool_, (3, 4), (1,)),
    (np.bool_, (0, 2), (0,)),
    (np.bool_, (), ()),
    (np.int32, (3, 4), (0, 1)),
    (np.uint8, (5, 1), (0,)),
)


def _all_ones(dtype: Any) -> Any:
    return np.invert(np.zeros((), dtype))


reduce_and: Op = Op(
    "stablehlo.reduce:and",
    numpy=lambda x, dimensions: np.bitwise_and.reduce(x, axis=dimensions).astype(x.dtype, copy=False),
    kind="reduction",
    attrs={"dimensions": "i64s"},
    batch=batch_reduction(lambda: reduce_and),
    factors=factors,
    emit=emitter("stablehlo.and", "and", _all_ones),
    arity=1,
    samples=_BITWISE_SAMPLES,
    doc="Bitwise (booleans: logical) and over axes.",
)
reduce_or: Op = Op(
    "stablehlo.reduce:or",
    numpy=lambda x, dimensions: np.bitwise_or.reduce(x, axis=dimensions).astype(x.dtype, copy=False),
    kind="reduction",
    attrs={"dimensions": "i64s"},
    batch=batch_reduction(lambda: reduce_or),
    factors=factors,
    emit=emitter("stablehlo.or", "or", lambda dtype: 0),
    arity=1,
    samples=_BITWISE_SAMPLES,
    doc="Bitwise (booleans: logical) or over axes.",
)
reduce_xor: Op = Op(
    "stablehlo.reduce:xor",
    numpy=lambda x, dimensions: np.bitwise_xor.reduce(x, axis=dimensions).astype(x.dtype, copy=False),
    kind="reduction",
    attrs={"dimensions": "i64s"},
    batch=batch_reduction(lambda: reduce_xor),
    factors=factors,
    emit=emitter("stablehlo.xor", "xor", lambda dtype: 0),
    arity=1,
    samples=_BITWISE_SAMPLES,
    doc="Bitwise (booleans: logical) exclusive or over axes.",
)

# -- argmax, argmin -------------------------------------------------------------------------------------------------


def _arg_sample(dtype: Any, shape: tuple[int, ...], axis: int, index_dtype: Any) -> Sample:
    params = {"axis": axis, "index_dtype": np.dtype(index_dtype)}
    return Sample(lambda rng: [(3 * rng.standard_normal(shape)).astype(dtype)], params)


_ARG_SPECIALS = np.asarray([[1, np.nan, np.nan], [np.inf, -np.inf, np.inf], [-0.0, 0.0, -0.0]], np.float32)
_ARG_SAMPLES = [
    _arg_sample(np.float32, (3, 4), 1, np.int32),
    _arg_sample(np.float32, (5,), 0, np.int8),
    _arg_sample(dtypes.bfloat16, (4, 1, 2), 0, np.uint32),
    _arg_sample(np.int32, (1, 6), 0, np.int64),
    _arg_sample(np.bool_, (2, 5), 1, np.int32),
    _arg_sample(np.float32, (0, 3), 1, np.int32),
    Sample(
        lambda rng: [_ARG_SPECIALS],
        {"axis": 1, "index_dtype": np.dtype(np.int32)},
        note="first NaN wins, first extremum wins",
    ),
]


def _arg(name: str, numpy: Callable[..., Any], extremum: Callable[[], Op]) -> Op:
    """The position of the first extremum, or of the first NaN. Staged as max, compare, where, min: the fast form."""

    def emit(frame: Any, operands: Any, *, axis: int, index_dtype: Any) -> Any:
        (x,) = operands
        best = expand(extremum()(x, dimensions=(axis,)), x, (axis,))
        hit = ew.eq(x, best)
        if dtypes.issubdtype(x.dtype, np.inexact):
            hit = ew.bitwise_or(hit, ew.ne(x, x))
        position = iota(shape=x.shape, dtype=index_dtype, iota_dimension=axis)
        nowhere = full(x.shape, dtypes.iinfo(index_dtype).max, index_dtype)
        return reduce_min(ew.select(hit, position, nowhere), dimensions=(axis,))._value.owner

    return Op(
        name,
        numpy=lambda x, axis, index_dtype: np.asarray(numpy(x, axis=axis)).astype(index_dtype),
        kind="reduction",
        attrs={"axis": "i64", "index_dtype": "result_dtype"},
        batch=lambda size, operands, batched, axis, index_dtype: registry[name](
            operands[0], axis=axis + 1, index_dtype=index_dtype
        ),
        factors=lambda x, axis, index_dtype: factors(x, (axis,)),
        emit=emit,
        weak=False,
        samples=_ARG_SAMPLES,
        doc="Position of the extremum along an axis: the first NaN if there is one, else the first extremum.",
    )


argmax: Op = _arg("stablehlo.reduce:argmax", np.argmax, lambda: reduce_max)
argmin: Op = _arg("stablehlo.reduce:argmin", np.argmin, lambda: reduce_min)
