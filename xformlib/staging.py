"""Staging: running a Python function once on tracers to record a ``func.func`` of StableHLO ops.

A :class:`Frame` is the function being recorded; a :class:`Program` the finished one. Values of outer functions and
concrete arrays used inside become *captures*: further arguments of the function. This module imports MLIR, so the
library imports it only when the first function is staged.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from xformlib import attributes
from xformlib.array import Array, ArrayImpl, Aval, Tracer
from xformlib.dtypes import KeyDType
from xformlib.errors import (
    NotAnArrayError,
    ShapeError,
    TracerConversionError,
    UnexpectedTracerError,
    user_frame,
)
from xformlib.keys import KEY_WORDS, UI32, physical_value, restamp
from xformlib.lowering.ir import context, ir, tensor_type, type_info, unknown_location
from xformlib.op import Op, at_location, registry, state

__all__ = ["Frame", "Program", "decode", "replay", "stage"]


_names = itertools.count()
_locations: dict[tuple[Any, int], ir.Location] = {}


def physical(aval: Aval) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and dtype of the tensor that carries an array: keys are uint32 words along a trailing axis."""
    if isinstance(aval.dtype, KeyDType):
        return (*aval.shape, KEY_WORDS), UI32
    return aval.shape, aval.dtype


def current_location() -> ir.Location:
    """The location of the op being transformed, else the user's own line."""
    if state.location is not None:
        return state.location
    frame = user_frame()
    if frame is None:
        return unknown_location
    key = (frame.f_code, frame.f_lineno)
    location = _locations.get(key)
    if location is None:
        with context:
            location = ir.Location.file(frame.f_code.co_filename, frame.f_lineno, 0)
            location = ir.Location.name(frame.f_code.co_name, location)
        _locations[key] = location
    return location


@dataclass(eq=False)
class Program:
    """A finished function: one ``func.func`` and what MLIR's types can't say.

    ``in_avals`` describe the explicit arguments; the function takes the ``captures`` after them. ``callees`` maps the
    symbols it calls to their programs. ``memo`` keeps what passes derived from it (its linearisation, its batched forms,
    its executable), so that each is made once.
    """

    func: ir.Operation
    in_avals: tuple[Aval, ...]
    out_avals: tuple[Aval, ...]
    captures: tuple[Any, ...]
    callees: dict[str, Program]
    baked: bool = False  # Python code looked at the value of an outer tracer: valid for this trace only
    memo: dict[Any, Any] = field(default_factory=dict)

    @property
    def block(self) -> ir.Block:
        return self.func.regions[0].blocks[0]

    @property
    def name(self) -> str:
        return str(ir.StringAttr(self.func.attributes["sym_name"]).value)

    @property
    def all_in_avals(self) -> tuple[Aval, ...]:
        """Avals of explicit arguments and captures."""
        return self.in_avals + tuple([Aval(*_aval_of(c)) for c in self.captures])

    @property
    def is_closed(self) -> bool:
        """Whether no capture is a tracer of a function that is still open."""
        return not any(isinstance(c, Tracer) for c in self.captures)

    def __str__(self) -> str:
        return str(self.func.get_asm(assume_verified=True))


def _aval_of(x: Any) -> Aval:
    return Aval(x.shape, x.dtype, x.weak_type)


class Frame:
    """A function being recorded. Use as a context manager; it is the innermost open function meanwhile.

    ``kind`` names it in messages. A ``linear`` frame takes only ops that depend on its own tracers.
    """

    def __init__(self, kind: str, *, linear: bool = False) -> None:
        self.kind = kind
        self.linear = linear
        self.open = False
        self.parent: Frame | None = None
        self.arguments: list[Tracer] = []
        self.outer: dict[ir.Value, Any] = {}
        self.captured: dict[int, tuple[Any, Tracer]] = {}
        self.callees: dict[str, Program] = {}
        self.constants: dict[Any, ir.Value] = {}
        self.known: dict[ir.Value, np.ndarray] = {}
        self.baked = False
        with context, unknown_location:
            empty = ir.TypeAttr.get(ir.FunctionType.get([], []))
            self.func = ir.Operation.create(
                "func.func",
                attributes={"sym_name": ir.StringAttr.get(f"f{next(_names)}"), "function_type": empty},
                regions=1,
                ip=False,
            )
            self.block = self.func.regions[0].blocks.append()
            self.ip = ir.InsertionPoint(self.block)

    def __enter__(self) -> Frame:
        self.parent = state.frame
        self.open = True
        state.frame = self
        return self

    def __exit__(self, *_: object) -> None:
        state.frame = self.parent
        self.open = False

    # -- values ---------------------------------------------------------------------------------------------------

    def argument(self, aval: Aval, outer: Any = None) -> Tracer:
        """A new explicit argument. ``outer`` is its value outside, where one is known (for concretisation)."""
        tracer = self._block_argument(aval, outer)
        self.arguments.append(tracer)
        return tracer

    def _block_argument(self, aval: Aval, outer: Any) -> Tracer:
        value = self.block.add_argument(tensor_type(*physical(aval)), unknown_location)
        if outer is not None:
            self.outer[value] = outer
        return Tracer(value, self, *aval)

    def owns_any(self, operands: Sequence[Any]) -> bool:
        return any(type(x) is Tracer and x._frame is self for x in operands)

    def tracer_of(self, x: Any, like: Sequence[Any] = ()) -> Tracer:
        """``x`` as a value of this function: itself, a capture, or a constant."""
        if isinstance(x, Tracer):
            if x._frame is self:
                return x
            self._check_visible(x)
        elif isinstance(x, (bool, int, float, complex, np.ndarray | np.generic)):
            value = np.asarray(x, _dtype_beside(x, like))
            if value.shape:
                return self._literal(value)
            # A bare Python scalar doesn't take part in deciding whether the result is weakly typed.
            return self._constant(value, not isinstance(x, np.ndarray | np.generic))
        elif not isinstance(x, Array):
            raise NotAnArrayError(
                f"an operation was given {type(x).__name__} {x!r:.60}, which is not an array; "
                "wrap it with xformlib.numpy.asarray."
            )
        elif isinstance(x, ArrayImpl) and not x.shape and not self.linear:
            return self._constant(np.asarray(x._load()), x.weak_type)
        found = self.captured.get(id(x))
        if found is None:
            found = self.captured[id(x)] = (x, self._block_argument(x.aval, x))
        return found[1]

    def _constant(self, value: np.ndarray, weak_type: bool = False) -> Tracer:
        key = (value.dtype, value.tobytes())
        made = self.constants.get(key)
        if made is None:
            made = self.constants[key] = self._literal(value)._value
        return Tracer(made, self, (), value.dtype, weak_type)

    def _literal(self, value: np.ndarray) -> Tracer:
        if value.dtype.kind == "c":  # MLIR's bindings can't read complex literals back
            parts = [self._literal(np.ascontiguousarray(x).reshape(value.shape)) for x in (value.real, value.imag)]
            return self.emit(registry["stablehlo.complex"], parts, {})  # type: ignore[no-any-return]
        operation = self._create(registry["stablehlo.constant"], (), {"value": value})
        return Tracer(operation.result, self, value.shape, value.dtype, False)

    def _check_visible(self, x: Tracer) -> None:
        frame: Frame | None = self
        while frame is not None:
            if frame is x._frame:
                return
            frame = frame.parent
        raise UnexpectedTracerError(
            f"A tracer of shape {x.shape} and dtype {x.dtype}, made while tracing {x._frame.kind}, was used "
            + ("in another trace." if x._frame.open else "after that function had returned.")
            + " It was kept in a global, an attribute, a closure or a generator. "
            "Return the value from the transformed function instead of storing it."
        )

    # -- operations -----------------------------------------------------------------------------------------------

    def emit(self, op: Op, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """Record ``op``; its results as tracers of this function."""
        for x in operands:
            if isinstance(x, Array) and isinstance(x.dtype, KeyDType):
                from xformlib.keys import bind_keys

                return bind_keys(op, operands, params)
        if op.name == "stablehlo.constant":
            return self._literal(params["value"]) if params["value"].shape else self._constant(params["value"])
        if op.kind == "elementwise" and len(operands) > 1:
            operands = self._broadcast_scalars(operands)
        tracers = [self.tracer_of(x, operands) for x in operands]
        if op.emit is not None:
            with context, current_location(), self.ip:
                operation = op.emit(self, tracers, **params)
        else:
            operation = self._create(op, tracers, params)
        weak = op.weak and bool(tracers) and all([t.weak_type for t in tracers])
        results = [Tracer(v, self, *type_info(v.type), weak) for v in operation.results]
        return tuple(results) if op.multi else results[0]

    def _broadcast_scalars(self, operands: Sequence[Any]) -> Sequence[Any]:
        """Elementwise ops take rank-0 operands beside larger ones: broadcast them where the shapes differ."""
        shape = next((x.shape for x in operands if isinstance(x, Array) and x.shape), ())
        if not shape:
            return operands
        broadcast = registry["stablehlo.broadcast_in_dim"]
        params = {"shape": shape, "broadcast_dimensions": ()}
        out = []
        for x in operands:
            if not getattr(x, "shape", ()):
                # Here, also if this function is linear: broadcast outside, it would be a residual of full size.
                x = self.emit(broadcast, (self.tracer_of(x, operands),), params)
            out.append(x)
        return out

    def _create(self, op: Op, tracers: Sequence[Tracer], params: dict[str, Any]) -> ir.Operation:
        values = [t._value for t in tracers]
        attrs = attributes.encode(op.attrs, params) if op.attrs else None
        if op.types is not None:
            types = op.types(*tracers, **params)
            results = [tensor_type(*t) for t in (types if op.multi else [types])]
        elif op.kind == "elementwise":
            results = [values[0].type]
        else:
            return self._create_inferred(op, values, attrs)
        return ir.Operation.create(
            op.mlir_name, results=results, operands=values, attributes=attrs, loc=current_location(), ip=self.ip
        )

    def _create_inferred(self, op: Op, values: list[ir.Value], attrs: Any) -> ir.Operation:
        try:
            return ir.Operation.create(
                op.mlir_name, operands=values, attributes=attrs, loc=current_location(), ip=self.ip, infer_type=True
            )
        except ir.MLIRError as e:
            shapes = ", ".join(str(v.type) for v in values)
            why = "; ".join(d.message for d in e.error_diagnostics)
            raise ShapeError(f"{op.name} does not take operands ({shapes}) with {attrs}: {why}") from None

    def finish(self, outs: Sequence[Any]) -> Program:
        """Close the function, returning ``outs`` (tracers, arrays or scalars)."""
        tracers = [self.tracer_of(x) for x in outs]
        with context, unknown_location:
            ir.Operation.create("func.return", operands=[t._value for t in tracers], ip=self.ip)
            inputs = [a.type for a in self.block.arguments]
            function_type = ir.FunctionType.get(inputs, [t._value.type for t in tracers])
            self.func.attributes["function_type"] = ir.TypeAttr.get(function_type)
        # The explicit arguments come first: captures were appended as they were met, perhaps in between.
        assert [a._value for a in self.arguments] == list(self.block.arguments)[: len(self.arguments)]
        return Program(
            self.func,
            tuple([t.aval for t in self.arguments]),
            tuple([t.aval for t in tracers]),
            tuple([outer for outer, _ in self.captured.values()]),
            self.callees,
            self.baked,
        )

    # -- concretisation -------------------------------------------------------------------------------------------

    def concrete(self, x: Tracer, wanted: str, error: type[TracerConversionError]) -> np.ndarray:
        """The value of ``x``, where all it depends on has a concrete value outside; else raise ``error``."""
        from xformlib.transforms.evaluate import evaluate_slice

        value = evaluate_slice(x)
        if value is None:
            raise self.conversion_error(x, wanted, error)
        frame = state.frame
        while frame is not None and frame is not self:
            frame.baked = True
            frame = frame.parent
        return value

    def conversion_error(self, x: Tracer, wanted: str, error: type[TracerConversionError]) -> TracerConversionError:
        """The explained error for a tracer whose concrete value was asked for."""
        return error(
            f"A traced array ({x.aval}, in {self.kind}) was asked for {wanted}, but it has no concrete value: the "
            "function runs once, on placeholders, to record its operations. Either\n"
            "  - use xformlib.numpy.where, lax.select or lax.cond in place of Python control flow on it, "
            "and xformlib.numpy in place of NumPy;\n"
            "  - make the argument it comes from static: jit(f, static_argnums=...);\n"
            "  - or do this part outside the transformed function (an un-jitted grad has concrete values)."
        )


def _dtype_beside(x: Any, operands: Sequence[Any]) -> Any:
    """A bare Python scalar takes the dtype of the arrays it stands with."""
    if not isinstance(x, np.ndarray | np.generic):
        for y in reversed(operands):  # the condition of a select stands first, and has another dtype
            if isinstance(y, Array):
                return y.dtype
    return None


def stage(
    fun: Callable[..., Sequence[Any]],
    avals: Sequence[Aval],
    *,
    kind: str,
    outer: Sequence[Any] | None = None,
) -> Program:
    """Record ``fun(*tracers)`` on arguments of the given avals. ``outer`` are their values outside, None where unknown."""
    frame = Frame(kind)
    # While the user's function runs, ops come from the user's lines, not from the op being transformed.
    with frame, at_location(None):
        arguments = [frame.argument(a, o) for a, o in zip(avals, outer or itertools.repeat(None), strict=False)]
        return frame.finish(fun(*arguments))


def decode(operation: Any, program: Program) -> tuple[Op, dict[str, Any]]:
    """The record and Python parameters of a recorded operation."""
    name = operation.name
    op = registry.get(name)
    if op is None:
        op = registry[f"{name}:{ir.StringAttr(operation.attributes['xform.variant']).value}"]
    if name == "func.call":
        return op, {"program": program.callees[ir.FlatSymbolRefAttr(operation.attributes["callee"]).value]}
    return op, attributes.decode(op.attrs, operation) if op.attrs else {}


@dataclass(slots=True)
class Step:
    """One operation of a program, decoded."""

    op: Op
    params: dict[str, Any]
    operands: list[ir.Value]
    results: list[ir.Value]


def steps(program: Program) -> Iterator[Step]:
    """The operations of a program in order; while each is being handled, new ops get its location."""
    saved = state.location
    try:
        for operation in program.block.operations:
            if operation.name == "func.return":
                return
            op, params = decode(operation, program)
            operands = list(operation.operands)
            state.location = operation.location
            yield Step(op, params, operands[: op.arity] if op.arity is not None else operands, list(operation.results))
    finally:
        state.location = saved


def returned(program: Program) -> list[ir.Value]:
    """The values a program returns."""
    operations = program.block.operations
    return list(operations[len(operations) - 1].operands)


def replay(program: Program, args: Sequence[Any]) -> list[Any]:
    """Run a program's operations on ``args`` (explicit ones, then captures) in whatever is open now."""
    env: dict[ir.Value, Any] = dict(zip(program.block.arguments, map(physical_value, args), strict=True))
    for step in steps(program):
        result = step.op(*[env[v] for v in step.operands], **step.params)
        if step.op.multi:
            env.update(zip(step.results, result, strict=True))
        else:
            env[step.results[0]] = result
    return [restamp(env[v], a) for v, a in zip(returned(program), program.out_avals, strict=True)]
