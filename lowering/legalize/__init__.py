"""Legalisation: each thing the compiler can't do, or does wrong, is one small named rewrite with its reason beside it.

A guard can be deleted when its test passes without it.
"""

from __future__ import annotations

from typing import Any

from xformlib.lowering.ir import ir
from xformlib.lowering.legalize import complex as complex_functions
from xformlib.lowering.legalize import dialect, functions, integers, memory, products, sorting
from xformlib.lowering.legalize.rewriter import LegalizationError, run

__all__ = ["GUARDS", "LegalizationError", "legalize"]

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


def legalize(module: Any, target: Any) -> None:
    """Rewrite a module of StableHLO, CHLO and xform ops in place into what the compiler takes.

    Raises:
        LegalizationError: an operation without such a form, named with its source location.
    """
    run(module, GUARDS)

    def check(operation: Any) -> Any:
        if operation.name.startswith("xform."):
            raise LegalizationError(f"{operation.name} has no form the compiler takes, at {operation.location}")
        return ir.WalkResult.ADVANCE

    module.operation.walk(check)
