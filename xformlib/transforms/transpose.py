"""transpose: walks a linear function backwards, turning cotangents of its outputs into cotangents of its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xformlib.array import Aval
from xformlib.errors import RuleError
from xformlib.keys import physical_value
from xformlib.lowering.ir import type_info
from xformlib.op import Op, Refusal, at_location, state
from xformlib.ops.elementwise import add
from xformlib.staging import Program, Step, returned, steps


def transpose(program: Program, args: Sequence[Any], wanted: Sequence[bool], cotangents: Sequence[Any]) -> list[Any]:
    """Cotangents of the wanted arguments (None elsewhere, and where zero).

    The program is linear in the wanted arguments; ``args`` holds the values of the others.
    """
    arguments = list(program.block.arguments)
    linear = {v for v, w in zip(arguments, wanted, strict=True) if w}
    known = {v: physical_value(x) for v, x, w in zip(arguments, args, wanted, strict=True) if not w}
    backward = []
    for step in steps(program):
        if any(v in linear for v in step.operands):
            linear.update(step.results)
            backward.append((step, state.location))
        else:  # a constant that a rule wrote into the linear function
            result = step.op(*[known[v] for v in step.operands], **step.params)
            known.update(zip(step.results, result if step.op.multi else [result], strict=True))
    ct: dict[Any, Any] = {}
    for v, c in zip(returned(program), cotangents, strict=True):
        accumulate(ct, v, c)
    for step, location in reversed(backward):
        with at_location(location):
            _step(step, known, linear, ct)
    return [ct.get(v) if w else None for v, w in zip(arguments, wanted, strict=True)]


def accumulate(ct: dict[Any, Any], value: Any, term: Any) -> None:
    """Add a cotangent."""
    if term is not None:
        old = ct.get(value)
        ct[value] = term if old is None else add(old, term)


def _step(step: Step, known: dict[Any, Any], linear: set[Any], ct: dict[Any, Any]) -> None:
    cts = [ct.pop(v, None) for v in step.results]
    if all(c is None for c in cts):
        return
    operands = [known[v] if v in known else Aval(*type_info(v.type)) for v in step.operands]
    wanted = [v in linear for v in step.operands]
    if step.op.name == "func.call":
        from xformlib.transforms.calls import transpose_call

        terms: Sequence[Any] = transpose_call(step.params["program"], operands, wanted, cts)
    else:
        terms = transpose_rule(step.op, operands, wanted, cts if step.op.multi else cts[0], step.params)
    for v, w, term in zip(step.operands, wanted, terms, strict=True):
        if w:
            accumulate(ct, v, term)


def transpose_rule(
    op: Op, operands: Sequence[Any], wanted: Sequence[bool], ct: Any, params: dict[str, Any]
) -> Sequence[Any]:
    """One cotangent per wanted operand (None elsewhere) by the op's record."""
    rule = op.transpose
    if rule is None or isinstance(rule, Refusal):
        why = rule.why if rule is not None else "its record has no transpose rule"
        raise RuleError(f"{op.name} can't be differentiated in reverse mode: {why}.")
    if not isinstance(rule, tuple):
        return list(rule(ct, *operands, **params))
    out = []
    for r, w in zip(rule, wanted, strict=True):
        if w and r is None:
            raise RuleError(f"{op.name} is not linear in the operand that is differentiated.")
        out.append(r(ct, *operands, **params) if w else None)
    return out
