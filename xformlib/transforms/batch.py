"""batch: a program over one example becomes a program over all of them. Batched values carry their batch axis first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xformlib.errors import RuleError
from xformlib.keys import physical_value, restamp
from xformlib.op import Op, Refusal
from xformlib.ops.movement import broadcast_batch
from xformlib.staging import Program, returned, steps


def batch(program: Program, args: Sequence[Any], batched: Sequence[bool], size: int) -> tuple[list[Any], list[bool]]:
    """(outputs, which are batched) in whatever is open now; ``args`` include the captures."""
    arguments = list(program.block.arguments)
    env = dict(zip(arguments, map(physical_value, args), strict=True))
    over = {v for v, b in zip(arguments, batched, strict=True) if b}
    for step in steps(program):
        operands = [env[v] for v in step.operands]
        flags = tuple([v in over for v in step.operands])
        if step.op.name == "func.call" and any(flags):
            from xformlib.transforms.calls import batch_call

            result = batch_call(step.params["program"], operands, flags, size)
        elif any(flags):
            result = batch_rule(step.op, size, operands, flags, step.params)
        else:
            result = step.op(*operands, **step.params)
        env.update(zip(step.results, result if step.op.multi else (result,), strict=True))
        if any(flags):
            over.update(step.results)
    outs = returned(program)
    values = [restamp(env[v], a) for v, a in zip(outs, program.out_avals, strict=True)]
    return values, [v in over for v in outs]


def batch_rule(op: Op, size: int, operands: Sequence[Any], batched: Sequence[bool], params: Mapping[str, Any]) -> Any:
    """The result(s) of one op on batched operands, all batched along axis 0."""
    rule = op.batch
    if isinstance(rule, Refusal):
        raise RuleError(f"{op.name} can't be vectorised by vmap: {rule.why}")
    if rule is not None:
        return rule(size, operands, batched, **params)
    if op.kind in ("elementwise", "inactive"):
        return op(*_broadcast_all(size, operands, batched), **params)
    raise RuleError(f"{op.name} has no batching rule in its record.")


def _broadcast_all(size: int, operands: Sequence[Any], batched: Sequence[bool]) -> list[Any]:
    return [x if b else broadcast_batch(x, size) for x, b in zip(operands, batched, strict=True)]
