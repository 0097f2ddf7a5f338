"""jvp: the primary derivative. Walks a program with primal values and tangents.

A tangent of None is zero. Tangents may be tracers of a linear function that is open (see ``linearize``): then the
primal operations go to the functions around it and the tangent operations to it, with no further mechanism.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xformlib import dtypes
from xformlib.array import Aval
from xformlib.errors import RuleError
from xformlib.keys import physical_value, restamp
from xformlib.op import Op, Refusal
from xformlib.ops.creation import full
from xformlib.ops.elementwise import add
from xformlib.staging import Program, Step, returned, steps


def jvp(program: Program, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """(outputs, output tangents) in whatever is open now; both input lists include the captures."""
    arguments = list(program.block.arguments)
    env = dict(zip(arguments, map(physical_value, primals), strict=True))
    tangent = {v: t for v, t in zip(arguments, tangents, strict=True) if t is not None}
    for step in steps(program):
        _step(step, env, tangent)
    outs = returned(program)
    out_primals = [restamp(env[v], a) for v, a in zip(outs, program.out_avals, strict=True)]
    return out_primals, [tangent.get(v) for v in outs]


def _step(step: Step, env: dict[Any, Any], tangent: dict[Any, Any]) -> None:
    op, params = step.op, step.params
    primals = [env[v] for v in step.operands]
    tangents = [tangent.get(v) for v in step.operands]
    if op.name == "func.call":
        from xformlib.transforms.calls import jvp_call

        outs: Any
        out_tangents: Any
        outs, out_tangents = jvp_call(params["program"], primals, tangents)
    else:
        outs = op(*primals, **params)
        active = any([t is not None for t in tangents])
        out_tangents = jvp_rule(op, primals, tangents, outs, params) if active else None
        if not op.multi:
            outs, out_tangents = (outs,), (out_tangents,)
        elif out_tangents is None:
            out_tangents = (None,) * len(outs)
    env.update(zip(step.results, outs, strict=True))
    for v, t in zip(step.results, out_tangents, strict=True):
        if t is not None:
            tangent[v] = t


def jvp_rule(op: Op, primals: Sequence[Any], tangents: Sequence[Any], ans: Any, params: dict[str, Any]) -> Any:
    """The tangent(s) of one op by its record; None where zero."""
    rule = op.jvp
    if isinstance(rule, Refusal):
        raise RuleError(f"{op.name} has no derivative: {rule.why}")
    if isinstance(rule, tuple):
        return _sum_of_terms(rule, primals, tangents, ans, params)
    if rule is not None:
        return rule(tangents, ans, *primals, **params)
    if op.linear:
        return _linear_jvp(op, primals, tangents, params)
    if op.kind == "inactive" or not _differentiable(ans):
        return None
    raise RuleError(f"{op.name} has no derivative rule (jvp) in its record.")


def _sum_of_terms(
    rules: tuple[Any, ...], primals: Sequence[Any], tangents: Sequence[Any], ans: Any, params: dict[str, Any]
) -> Any:
    total = None
    for rule, t in zip(rules, tangents, strict=True):
        if t is not None and rule is not None:
            term = rule(t, ans, *primals, **params)
            total = term if total is None else add(total, term)
    return total


def _linear_jvp(op: Op, primals: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> Any:
    """A linear op applied to the tangents; absent ones are zeros, and a sum leaves them out."""
    linear = range(len(primals)) if op.linear == "all" else op.linear
    if all(tangents[i] is None for i in linear):
        return None
    if op.name in ("stablehlo.add", "stablehlo.subtract") and tangents[1] is None:
        return tangents[0]
    if op.name == "stablehlo.add" and tangents[0] is None:
        return tangents[1]
    args = list(primals)
    for i in linear:
        if tangents[i] is not None:
            args[i] = tangents[i]
        else:  # a literal where it will do: an array made outside a linear function would be a residual
            args[i] = 0.0 if op.kind == "elementwise" else zeros_of(primals[i])
    return op(*args, **params)


def zeros_of(x: Any) -> Any:
    """Zeros of the (tangent) type of ``x``."""
    return full(x.shape, 0, x.dtype)


def _differentiable(ans: Any) -> bool:
    return any([carries_tangent(a) for a in (ans if isinstance(ans, tuple) else (ans,))])


def carries_tangent(aval: Aval | Any) -> bool:
    """Floating and complex values carry tangents; integers, booleans and keys don't."""
    return dtypes.issubdtype(aval.dtype, np.inexact)
