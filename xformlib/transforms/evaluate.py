"""evaluate: the concrete value of a traced array, from the slice of operations it depends on.

This is what lets Python ``if``, ``while`` and recursion work under un-jitted ``grad``, ``jvp`` and ``vjp``. Values are
remembered per frame, so a loop that looks at its state in every round stays linear.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xformlib.array import Tracer
from xformlib.keys import physical_value
from xformlib.lowering.ir import ir
from xformlib.op import state
from xformlib.staging import Frame, decode


def evaluate_slice(x: Tracer) -> np.ndarray | None:
    """The value of ``x``, or None if it depends on an argument without a concrete value outside."""
    frame, known = x._frame, x._frame.known
    if not frame.open:
        return None
    stack = [x._value]
    while stack:
        value = stack[-1]
        if value in known:
            stack.pop()
            continue
        owner = value.owner
        if isinstance(owner, ir.Block):
            outer = _outer_value(frame, value)
            if outer is None:
                return None
            known[value] = outer
            continue
        op, params = decode(owner, frame)  # type: ignore[arg-type]
        operands = list(owner.operands)[: op.arity]
        missing = [v for v in operands if v not in known]
        if missing:
            stack.extend(missing)
            continue
        result = state.run(op.numpy, *[known[v] for v in operands], **params)
        known.update(zip(owner.results, result if op.multi else [result], strict=True))
    return np.asarray(known[x._value])


def _outer_value(frame: Frame, argument: Any) -> np.ndarray | None:
    outer = frame.outer.get(argument)
    if outer is None:
        return None
    outer = physical_value(outer)
    return evaluate_slice(outer) if isinstance(outer, Tracer) else outer._load()
