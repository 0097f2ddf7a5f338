"""Calls of inner functions (``jit`` met while staging): every pass derives a callee once per signature and calls that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xformlib.array import Aval, Tracer
from xformlib.ops.control import call
from xformlib.ops.movement import broadcast_batch
from xformlib.staging import Frame, Program, physical, stage
from xformlib.transforms.batch import batch
from xformlib.transforms.linearize import Linear, linearize
from xformlib.transforms.transpose import transpose


@dataclass(frozen=True)
class _Split:
    """A callee's forward program, its linear program, and where the latter's residuals come from."""

    forward: Program
    linear: Linear
    residuals: tuple[tuple[str, Any], ...]  # ("argument", i) | ("result", i) | ("constant", array)


def jvp_call(program: Program, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Outputs and tangents of a call, by a forward and a linear callee."""
    active = tuple([t is not None for t in tangents])
    if not any(active):
        outs = call(program, primals)
        return outs, [None] * len(outs)
    split = _derived(program, ("linearize", active), lambda: _split(program, active))
    results = call(split.forward, [*primals, *split.forward.captures])
    n = len(program.out_avals)
    source = {"argument": primals, "result": results[n:]}
    residuals = [v if kind == "constant" else source[kind][v] for kind, v in split.residuals]
    given = [t for t in tangents if t is not None]
    out_tangents = iter(call(split.linear.program, [*given, *residuals]))
    return results[:n], [next(out_tangents) if a else None for a in split.linear.active_out]


def _derived(program: Program, key: Any, make: Any) -> Any:
    found = program.memo.get(key)
    if found is None:
        found = program.memo[key] = make()
    return found


def _arguments(frame: Frame, program: Program) -> list[Tracer]:
    return [frame.argument(_physical_aval(a)) for a in program.all_in_avals]


def _physical_aval(aval: Aval) -> Aval:
    return Aval(*physical(aval), aval.weak_type)


def _split(program: Program, active: tuple[bool, ...]) -> _Split:
    frame = Frame("jit (forward)")
    with frame:
        arguments = _arguments(frame, program)
        outs, linear = linearize(program, arguments, active)
        position = {t._value: i for i, t in enumerate(arguments)}
        sources: list[tuple[str, Any]] = []
        extra: list[Any] = []
        for c in linear.program.captures:
            if not isinstance(c, Tracer):
                sources.append(("constant", c))
            elif c._value in position:
                sources.append(("argument", position[c._value]))
            else:
                sources.append(("result", len(extra)))
                extra.append(c)
        forward = frame.finish([*outs, *extra])
    return _Split(forward, linear, tuple(sources))


def transpose_call(
    program: Program, operands: Sequence[Any], wanted: Sequence[bool], cotangents: Sequence[Any]
) -> list[Any]:
    """Cotangents of the wanted operands of a call of a linear callee."""
    present = tuple([c is not None for c in cotangents])
    key = ("transpose", tuple(wanted), present)
    transposed, nonzero = _derived(program, key, lambda: _transposed(program, tuple(wanted), present))
    known = [x for x, w in zip(operands, wanted, strict=True) if not w]
    given = [c for c in cotangents if c is not None]
    results = iter(call(transposed, [*known, *given, *transposed.captures]))
    return [next(results) if n else None for n in nonzero]


def _transposed(
    program: Program, wanted: tuple[bool, ...], present: tuple[bool, ...]
) -> tuple[Program, tuple[bool, ...]]:
    frame = Frame("jit (backward)")
    with frame:
        avals = [_physical_aval(a) for a in program.all_in_avals]
        args = [None if w else frame.argument(a) for a, w in zip(avals, wanted, strict=True)]
        outs = program.out_avals
        cts = [frame.argument(_physical_aval(a)) if p else None for a, p in zip(outs, present, strict=True)]
        results = transpose(program, args, wanted, cts)
        return frame.finish([r for r in results if r is not None]), tuple([r is not None for r in results])


def batch_call(program: Program, operands: Sequence[Any], batched: Sequence[bool], size: int) -> tuple[Any, ...]:
    """Results of a call on batched operands, all batched."""
    key = ("batch", tuple(batched), size)
    vectorised = _derived(program, key, lambda: _batched(program, tuple(batched), size))
    return tuple(call(vectorised, [*operands, *vectorised.captures]))


def _batched(program: Program, batched: tuple[bool, ...], size: int) -> Program:
    def run(*args: Any) -> list[Any]:
        outs, flags = batch(program, args, batched, size)
        return [o if f else broadcast_batch(o, size) for o, f in zip(outs, flags, strict=True)]

    avals = [_physical_aval(a) for a in program.all_in_avals]
    avals = [Aval((size, *a.shape), a.dtype, a.weak_type) if b else a for a, b in zip(avals, batched, strict=True)]
    return stage(run, avals, kind="jit (batched)")
