"""Functions as operands: calls. Their derivative and batching rules work on whole programs (``transforms/calls.py``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xformlib.array import ArrayImpl
from xformlib.op import Op, state

__all__ = ["call", "call_op"]


def _run(*args: Any, program: Any) -> list[Any]:
    from xformlib.execution import execute

    return [a._load() for a in execute(program, [ArrayImpl(np.asarray(a)) for a in args])]


def _emit(frame: Any, operands: Sequence[Any], *, program: Any) -> Any:
    from xformlib.lowering.ir import ir

    frame.callees[program.name] = program
    results = [v.type for v in _returned(program)]
    symbol = ir.FlatSymbolRefAttr.get(program.name)
    return ir.Operation.create(
        "func.call", results=results, operands=[t._value for t in operands], attributes={"callee": symbol}
    )


def _returned(program: Any) -> list[Any]:
    from xformlib.staging import returned

    return returned(program)


call_op = Op(
    "func.call",
    numpy=_run,
    emit=_emit,
    multi=True,
    weak=False,
    doc="Call of a private function. The passes handle it in transforms/calls.py: each derives the callee once.",
)


def call(program: Any, operands: Sequence[Any]) -> list[Any]:
    """Call a program on all of its arguments (explicit ones, then captures): compiled at once, or staged.

    Values are physical: keys are given and returned as their words.
    """
    frame = state.frame
    while frame is not None and frame.linear and not frame.owns_any(operands):
        frame = frame.parent
    if frame is not None:
        return list(frame.emit(call_op, operands, {"program": program}))
    from xformlib.execution import execute

    return execute(program, operands)
