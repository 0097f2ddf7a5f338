"""What guards are made of: a builder of StableHLO arithmetic, and a driver that rewrites matching operations in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from xformlib.lowering.ir import context, ir, tensor_type, type_info, unknown_location

__all__ = ["Builder", "Guard", "LegalizationError", "dtype_of", "refusal", "run", "shape_of"]

_SIGNED = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}


class LegalizationError(ValueError):
    """An operation that has no form the compiler takes."""


def refusal(operation: Any, why: str) -> LegalizationError:
    """An error that names an operation and where the user wrote it."""
    place = str(operation.location).removeprefix("loc(").removesuffix(")")
    return LegalizationError(f"{operation.name} can't be compiled: {why}, at {place}")


def shape_of(x: Any) -> tuple[int, ...]:
    """Shape of a value."""
    return type_info(x.type)[0]


def dtype_of(x: Any) -> np.dtype[Any]:
    """Dtype of a value."""
    return type_info(x.type)[1]


class Builder:
    """Makes operations at one place, with one location. Scalars beside values become constants of their type and shape."""

    def __init__(self, operation: Any) -> None:
        self.operation = operation
        self.location = operation.location
        self.ip = ir.InsertionPoint(operation)

    def refuse(self, why: str) -> LegalizationError:
        """The error to raise where the operation has no form the compiler takes."""
        return refusal(self.operation, why)

    def op(self, name: str, results: Sequence[Any], operands: Sequence[Any], regions: int = 0, **attrs: Any) -> Any:
        """Any operation; ``results`` are (shape, dtype) pairs."""
        return ir.Operation.create(
            name,
            results=[tensor_type(*r) for r in results],
            operands=list(operands),
            attributes=attrs or None,
            regions=regions,
            loc=self.location,
            ip=self.ip,
        )

    def const(self, like: Any, value: Any) -> Any:
        """One value, repeated to the shape of ``like``."""
        return self.full(shape_of(like), value, dtype_of(like))

    def full(self, shape: tuple[int, ...], value: Any, dtype: Any) -> Any:
        """One value, repeated."""
        return self.broadcast(self.array(np.asarray(value).astype(dtype).reshape(())), shape, ())

    def array(self, value: np.ndarray) -> Any:
        """A literal array. Complex ones are made of their parts: IREE can't fill a buffer with 128 bits."""
        if value.dtype.kind == "c":
            return self.complex(self.array(value.real), self.array(value.imag))
        attr = ir.DenseElementsAttr.get(np.ascontiguousarray(value), type=tensor_type(value.shape, value.dtype))
        return self.op("stablehlo.constant", [(value.shape, value.dtype)], [], value=attr).result

    def complex(self, real: Any, imag: Any) -> Any:
        shape, dtype = type_info(real.type)
        return self.op("stablehlo.complex", [(shape, np.dtype(f"c{2 * dtype.itemsize}"))], [real, imag]).result

    def real(self, z: Any) -> Any:
        return self._part("real", z)

    def imag(self, z: Any) -> Any:
        return self._part("imag", z)

    def _part(self, name: str, z: Any) -> Any:
        shape, dtype = type_info(z.type)
        return self.op(f"stablehlo.{name}", [(shape, np.dtype(f"f{dtype.itemsize // 2}"))], [z]).result

    def broadcast(self, x: Any, shape: tuple[int, ...], dims: Sequence[int]) -> Any:
        if shape_of(x) == shape:
            return x
        return self.op(
            "stablehlo.broadcast_in_dim",
            [(shape, dtype_of(x))],
            [x],
            broadcast_dimensions=ir.DenseI64ArrayAttr.get(list(dims)),
        ).result

    def _pair(self, x: Any, y: Any) -> tuple[Any, Any]:
        if not isinstance(x, ir.Value):
            x = self.const(y, x)
        if not isinstance(y, ir.Value):
            y = self.const(x, y)
        return x, y

    def binary(self, name: str, x: Any, y: Any) -> Any:
        x, y = self._pair(x, y)
        return self.op(f"stablehlo.{name}", [type_info(x.type)], [x, y]).result

    def unary(self, name: str, x: Any) -> Any:
        return self.op(f"stablehlo.{name}", [type_info(x.type)], [x]).result

    def add(self, x: Any, y: Any) -> Any:
        return self.binary("add", x, y)

    def sub(self, x: Any, y: Any) -> Any:
        return self.binary("subtract", x, y)

    def mul(self, x: Any, y: Any) -> Any:
        return self.binary("multiply", x, y)

    def div(self, x: Any, y: Any) -> Any:
        return self.binary("divide", x, y)

    def max(self, x: Any, y: Any) -> Any:
        return self.binary("maximum", x, y)

    def min(self, x: Any, y: Any) -> Any:
        return self.binary("minimum", x, y)

    def and_(self, x: Any, y: Any) -> Any:
        return self.binary("and", x, y)

    def or_(self, x: Any, y: Any) -> Any:
        return self.binary("or", x, y)

    def xor(self, x: Any, y: Any) -> Any:
        return self.binary("xor", x, y)

    def neg(self, x: Any) -> Any:
        return self.unary("negate", x)

    def abs(self, x: Any) -> Any:
        return self.unary("abs", x)

    def compare(self, direction: str, x: Any, y: Any) -> Any:
        x, y = self._pair(x, y)
        kind = dtype_of(x).kind
        word = "UNSIGNED" if kind in "ub" else "SIGNED" if kind == "i" else "FLOAT"
        return self.op(
            "stablehlo.compare",
            [(shape_of(x), np.dtype(np.bool_))],
            [x, y],
            comparison_direction=ir.Attribute.parse(f"#stablehlo<comparison_direction {direction}>"),
            compare_type=ir.Attribute.parse(f"#stablehlo<comparison_type {word}>"),
        ).result

    def select(self, pred: Any, x: Any, y: Any) -> Any:
        x, y = self._pair(x, y)
        return self.op("stablehlo.select", [type_info(x.type)], [pred, x, y]).result

    def convert(self, x: Any, dtype: Any) -> Any:
        dtype = np.dtype(dtype)
        if dtype_of(x) == dtype:
            return x
        return self.op("stablehlo.convert", [(shape_of(x), dtype)], [x]).result

    def bitcast(self, x: Any, dtype: Any) -> Any:
        return self.op("stablehlo.bitcast_convert", [(shape_of(x), np.dtype(dtype))], [x]).result

    def reshape(self, x: Any, shape: tuple[int, ...]) -> Any:
        return x if shape_of(x) == shape else self.op("stablehlo.reshape", [(shape, dtype_of(x))], [x]).result

    def iota(self, shape: tuple[int, ...], dtype: Any, dimension: int) -> Any:
        axis = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dimension)
        return self.op("stablehlo.iota", [(shape, np.dtype(dtype))], [], iota_dimension=axis).result

    def slice(self, x: Any, start: Sequence[int], limit: Sequence[int]) -> Any:
        shape = tuple([b - a for a, b in zip(start, limit, strict=True)])
        array = ir.DenseI64ArrayAttr.get
        return self.op(
            "stablehlo.slice",
            [(shape, dtype_of(x))],
            [x],
            start_indices=array(list(start)),
            limit_indices=array(list(limit)),
            strides=array([1] * len(shape)),
        ).result

    def concatenate(self, xs: Sequence[Any], dimension: int) -> Any:
        shape = list(shape_of(xs[0]))
        shape[dimension] = sum(shape_of(x)[dimension] for x in xs)
        axis = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dimension)
        return self.op("stablehlo.concatenate", [(tuple(shape), dtype_of(xs[0]))], list(xs), dimension=axis).result

    def transpose(self, x: Any, order: Sequence[int]) -> Any:
        shape = tuple([shape_of(x)[i] for i in order])
        return self.op(
            "stablehlo.transpose", [(shape, dtype_of(x))], [x], permutation=ir.DenseI64ArrayAttr.get(list(order))
        ).result

    def horner(self, x: Any, coefficients: Sequence[float]) -> Any:
        """A polynomial, highest coefficient first."""
        out = self.const(x, coefficients[0])
        for c in coefficients[1:]:
            out = self.add(self.mul(out, x), c)
        return out

    def as_signed(self, x: Any) -> Any:
        """The bits as a signed integer."""
        return self.bitcast(x, _SIGNED[dtype_of(x).itemsize])


Rewrite = Callable[[Any, Builder], Sequence[Any] | None]


@dataclass(frozen=True)
class Guard:
    """One thing the compiler does wrong or not at all, and what is emitted in its place.

    ``rewrite(operation, builder)`` gives the new results, or None where the operation may stay.
    """

    name: str
    ops: tuple[str, ...]
    why: str
    rewrite: Rewrite


def run(module: Any, guards: Sequence[Guard]) -> None:
    """Apply guards in order, each to all functions and their regions; each sees what the ones before it made."""
    with context, unknown_location:
        for guard in guards:
            for operation in _matching(module, frozenset(guard.ops)):
                _replace(operation, guard)


def _matching(module: Any, names: frozenset[str]) -> list[Any]:
    """Operations of some names, inner ones before those around them: rewriting one never removes a later one."""
    found: list[Any] = []

    def collect(operation: Any) -> Any:
        if operation.name in names:
            found.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect, ir.WalkOrder.POST_ORDER)
    return found


def _replace(operation: Any, guard: Guard) -> None:
    with operation.location:
        results = guard.rewrite(operation, Builder(operation))
    if results is None:
        return
    for old, new in zip(operation.results, results, strict=True):
        old.replace_all_uses_with(new)
    operation.erase()
