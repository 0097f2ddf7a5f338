"""Running sums, products and extrema: ``stablehlo.reduce_window`` over a window that reaches back to the start.

The variant names the running form, so that lowering can choose a linear algorithm for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xformlib import dtypes
from xformlib.op import Op, Sample, registry
from xformlib.ops import elementwise as ew
from xformlib.ops.creation import full
from xformlib.ops.factors import factor_text, touched
from xformlib.ops.movement import move_axis, rev
from xformlib.ops.reduction import accumulator, highest, lowest
from xformlib.ops.segments import shift_rows

__all__ = ["cummax", "cummin", "cumprod", "cumsum"]


def _evaluation(ufunc: np.ufunc) -> Any:
    def rule(x: Any, axis: int, reverse: bool) -> np.ndarray:
        source = np.flip(x, axis) if reverse else x
        out = ufunc.accumulate(source, axis=axis, dtype=accumulator(x.dtype)).astype(x.dtype, copy=False)
        return np.flip(out, axis) if reverse else out

    return rule


def _emitter(name: str, body: str, init: Callable[[Any], Any]) -> Any:
    def emit(frame: Any, operands: Any, *, axis: int, reverse: bool) -> Any:
        from xformlib.attributes import encode, string_attr
        from xformlib.lowering.ir import ir, tensor_type, unknown_location

        (x,) = operands
        wide = accumulator(x.dtype)
        if wide != x.dtype:
            running = registry[name](ew.convert(x, dtype=wide), axis=axis, reverse=reverse)
            return ew.convert(running, dtype=x.dtype)._value.owner
        start = frame.tracer_of(np.asarray(init(x.dtype), x.dtype))
        rank, n, scalar = len(x.shape), x.shape[axis], tensor_type((), x.dtype)
        padding = np.zeros((rank, 2), np.int64)
        padding[axis, 1 if reverse else 0] = max(n - 1, 0)
        operation = ir.Operation.create(
            "stablehlo.reduce_window",
            results=[x._value.type],
            operands=[x._value, start._value],
            attributes={
                **encode({"axis": "i64", "reverse": "bool"}, {"axis": axis, "reverse": reverse}),
                "window_dimensions": ir.DenseI64ArrayAttr.get([max(n, 1) if d == axis else 1 for d in range(rank)]),
                "padding": ir.DenseElementsAttr.get(padding),
                "xform.variant": string_attr(name.partition(":")[2]),
            },
            regions=1,
        )
        block = operation.regions[0].blocks.append(scalar, scalar, arg_locs=[unknown_location] * 2)
        with ir.InsertionPoint(block):
            value = ir.Operation.create(body, results=[scalar], operands=list(block.arguments)).result
            ir.Operation.create("stablehlo.return", operands=[value])
        return operation

    return emit


# -- derivatives by doubling windows (Hillis and Steele, 1986) ------------------------------------------------------


def _along_rows(doubled: Callable[[Any, Any], Any]) -> Any:
    """A jvp rule from one for running forward along the first axis."""

    def rule(tangents: Any, ans: Any, x: Any, axis: int, reverse: bool) -> Any:
        def turned(v: Any) -> Any:
            return rev(v, dimensions=(0,)) if reverse else v

        out = doubled(turned(move_axis(x, axis, 0)), turned(move_axis(tangents[0], axis, 0)))
        return move_axis(turned(out), 0, axis)

    return rule


def _product_tangents(x: Any, t: Any) -> Any:
    step = 1
    while step < x.shape[0]:
        before, t_before = shift_rows(x, step, 1), shift_rows(t, step, 0)
        x, t = ew.mul(before, x), ew.add(ew.mul(t_before, x), ew.mul(before, t))
        step *= 2
    return t


def _extremum_tangents(better: Callable[[Any, Any], Any], identity: Callable[[Any], Any]) -> Any:
    """The mean of the tangents of all elements so far that attain the extremum."""

    def doubled(x: Any, t: Any) -> Any:
        count = full(x.shape, 1, x.dtype)
        zero = full(x.shape, 0, x.dtype)
        step = 1
        while step < x.shape[0]:
            before = shift_rows(x, step, identity(x.dtype))
            t_before, count_before = shift_rows(t, step, 0), shift_rows(count, step, 0)
            best = better(before, x)
            earlier, own = ew.eq(before, best), ew.eq(x, best)
            t = ew.add(ew.select(earlier, t_before, zero), ew.select(own, t, zero))
            count = ew.add(ew.select(earlier, count_before, zero), ew.select(own, count, zero))
            x = best
            step *= 2
        return ew.div(t, count)

    return _along_rows(doubled)


# -- records --------------------------------------------------------------------------------------------------------


def _samples(integer: Any = np.int32) -> list[Sample]:
    cases = [
        (np.float32, (5,), 0, False, ""),
        (np.float32, (2, 4, 3), 1, True, ""),
        (np.float32, (3, 1), 1, False, "one element"),
        (np.float32, (0, 2), 0, False, "nothing"),
        (np.float32, (2, 0), 0, True, "nothing"),
        (dtypes.bfloat16, (9,), 0, False, "accumulated in float32"),
        (integer, (2, 6), 1, True, "integers"),
    ]

    def maker(dtype: Any, shape: tuple[int, ...]) -> Any:
        return lambda rng: [(3 * rng.standard_normal(shape)).astype(dtype)]

    return [Sample(maker(t, s), {"axis": a, "reverse": r}, note=note) for t, s, a, r, note in cases]


def _at(values: Any, note: str, diff: bool = True) -> Sample:
    return Sample(lambda rng: [np.asarray(values, np.float32)], {"axis": 0, "reverse": False}, diff=diff, note=note)


def _record(variant: str, ufunc: np.ufunc, body: str, init: Any, doc: str, samples: list[Sample], **rules: Any) -> Op:
    name = f"stablehlo.reduce_window:{variant}"
    return Op(
        name,
        numpy=_evaluation(ufunc),
        attrs={"axis": "i64", "reverse": "bool"},
        batch=lambda size, operands, batched, axis, reverse: registry[name](
            operands[0], axis=axis + 1, reverse=reverse
        ),
        factors=lambda x, axis, reverse: factor_text(
            [touched(len(x.shape), [axis], "in")], [touched(len(x.shape), [axis], "out")]
        ),
        emit=_emitter(name, body, init),
        arity=1,
        samples=[*_samples(), *samples],
        doc=doc,
        **rules,
    )


_EXTREMA = [
    _at([1.0, 1.0, 0.0, 1.0, 2.0, 2.0], "ties share the cotangent", diff=False),
    _at([0.0, np.nan, 1.0, np.inf], "NaN propagates", diff=False),
]

cumsum: Op = _record(
    "cumsum",
    np.add,
    "stablehlo.add",
    lambda dtype: 0,
    "Sum of the elements so far along an axis, from its start or (reverse) from its end.",
    [],
    linear="all",
    transpose=(lambda ct, x, axis, reverse: cumsum(ct, axis=axis, reverse=not reverse),),
)
cumprod: Op = _record(
    "cumprod",
    np.multiply,
    "stablehlo.multiply",
    lambda dtype: 1,
    "Product of the elements so far along an axis; its derivative is right where factors are zero.",
    [_at([2.0, 0.0, 3.0, 0.0, 1.0], "zeros")],
    jvp=_along_rows(_product_tangents),
)
cummax: Op = _record(
    "cummax",
    np.maximum,
    "stablehlo.maximum",
    lowest,
    "Largest element so far along an axis; NaN once there is one; ties share the cotangent equally.",
    _EXTREMA,
    jvp=_extremum_tangents(lambda a, b: ew.max(a, b), lowest),
)
cummin: Op = _record(
    "cummin",
    np.minimum,
    "stablehlo.minimum",
    highest,
    "Smallest element so far along an axis; NaN once there is one; ties share the cotangent equally.",
    _EXTREMA,
    jvp=_extremum_tangents(lambda a, b: ew.min(a, b), highest),
)
