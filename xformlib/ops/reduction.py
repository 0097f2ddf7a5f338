"""Reductions: ``stablehlo.reduce`` with a fixed body, one record per body."""

from __future__ import annotations

from typing import Any

import numpy as np

from xformlib.op import Op, Sample
from xformlib.ops.movement import broadcast_in_dim

__all__ = ["reduce_sum"]


def reduced_shape(x: Any, dimensions: tuple[int, ...]) -> tuple[int, ...]:
    """The shape without the reduced axes."""
    return tuple([n for i, n in enumerate(x.shape) if i not in dimensions])


def expand(x: Any, like: Any, dimensions: tuple[int, ...]) -> Any:
    """A reduced value repeated back over the reduced axes of ``like``."""
    kept = tuple([i for i in range(len(like.shape)) if i not in dimensions])
    return broadcast_in_dim(x, shape=like.shape, broadcast_dimensions=kept)


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


def _sum(x: Any, dimensions: tuple[int, ...]) -> Any:
    # Low precision accumulates in float32 and is rounded once.
    wide = np.float32 if x.dtype.itemsize < 4 and x.dtype.kind not in "iub" else x.dtype
    return np.add.reduce(x, axis=dimensions, dtype=wide).astype(x.dtype, copy=False)


reduce_sum = Op(
    "stablehlo.reduce:add",
    numpy=_sum,
    kind="reduction",
    attrs={"dimensions": "i64s"},
    linear="all",
    transpose=(lambda ct, x, dimensions: expand(ct, x, dimensions),),
    batch=batch_reduction(lambda: reduce_sum),
    emit=emitter("stablehlo.add", "add", lambda dtype: 0),
    arity=1,
    samples=[
        Sample(lambda rng: [rng.standard_normal((3, 4)).astype(np.float32)], {"dimensions": (0,)}),
        Sample(lambda rng: [rng.standard_normal((2, 3, 4)).astype(np.float32)], {"dimensions": (0, 2)}),
        Sample(lambda rng: [rng.standard_normal((0, 3)).astype(np.float32)], {"dimensions": (0,)}),
    ],
    doc="Sum over axes.",
)
