"""Legalisation: each thing the compiler can't do, or does wrong, is one small named rewrite with its reason beside it.

A guard can be deleted when its test passes without it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from xformlib.lowering.ir import ir
from xformlib.lowering.legalize import complex as complex_functions
from xformlib.lowering.legalize import dialect, functions, integers, memory, products, sorting
from xformlib.lowering.legalize.rewriter import Guard, LegalizationError, refusal, run

__all__ = ["GUARDS", "Guard", "LegalizationError", "legalize"]

# Order matters where one guard makes what another looks for: the dialect first, then functions built from arithmetic.
GUARDS = [
    *dialect.GUARDS,
    *memory.GUARDS,
    *sorting.GUARDS,
    *complex_functions.GUARDS,
    *functions.GUARDS,
    *products.GUARDS,
    *integers.GUARDS,
    *products.ROUNDING,
]


def legalize(module: Any, target: Any, *, without: Collection[str] = ()) -> None:
    """Rewrite a module of StableHLO, CHLO and xform ops in place into what the compiler takes.

    Args:
        module: an ``ir.Module`` of the process's context.
        target: what it will be compiled for.
        without: names of guards to leave out, to see the faults they guard against.

    Raises:
        LegalizationError: an operation without such a form, named with its source location.
    """
    run(module, [guard for guard in GUARDS if guard.name not in without])

    def check(operation: Any) -> Any:
        if operation.name.startswith("xform."):
            raise refusal(operation, "the compiler has no form of it")
        return ir.WalkResult.ADVANCE

    module.operation.walk(check)
