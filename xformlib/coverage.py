"""What each op record has: its rules, the defaults that stand in for them, and what it declares not to have.

``python -m xformlib ops`` prints the table; the tests fail for every cell that is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from xformlib import dtypes
from xformlib.op import Op, Refusal, registry

__all__ = ["ASPECTS", "MISSING", "coverage", "inactive", "missing", "table"]

ASPECTS = ("numpy", "types", "jvp", "transpose", "batch", "factors", "samples", "doc")
MISSING = "MISSING"


@dataclass(frozen=True)
class Coverage:
    """One op's row: aspect -> ``rule``, ``default``, ``inactive``, ``refused: why``, ``not linear``, or ``MISSING``."""

    op: Op
    cells: Mapping[str, str]

    @property
    def missing(self) -> tuple[str, ...]:
        """Aspects that the record should have and has not."""
        return tuple([a for a, cell in self.cells.items() if cell == MISSING])


def coverage() -> list[Coverage]:
    """A row for every registered op, in alphabetical order."""
    import xformlib.ops  # noqa: F401 - registers them

    return [Coverage(op, _cells(op)) for _, op in sorted(registry.items())]


def missing() -> Iterator[tuple[str, str]]:
    """(op name, aspect) of all that records lack."""
    for row in coverage():
        for aspect in row.missing:
            yield row.op.name, aspect


def _cells(op: Op) -> dict[str, str]:
    if op.name == "func.call":  # the passes work on the called program: see transforms/calls.py
        return {
            a: "by program" if a in ("jvp", "transpose", "batch", "factors", "samples") else "rule" for a in ASPECTS
        }
    return {
        "numpy": "rule",
        "types": "rule" if op.types is not None else "default",
        "jvp": _jvp(op),
        "transpose": _transpose(op),
        "batch": _given(op.batch) or ("default" if op.kind in ("elementwise", "inactive") else MISSING),
        # Without a mapping every dimension is one that the op must see whole.
        "factors": _given(op.factors) or "default",
        "samples": str(len(op.samples)) if op.samples else MISSING,
        "doc": "rule" if op.doc else MISSING,
    }


def _given(rule: Any) -> str | None:
    if isinstance(rule, Refusal):
        return f"refused: {rule.why}"
    return None if rule is None else "rule"


def _jvp(op: Op) -> str:
    if op.jvp is None and op.linear:
        return "default"
    if isinstance(op.jvp, tuple) and all(rule is None for rule in op.jvp):
        return "inactive"
    return _given(op.jvp) or ("inactive" if inactive(op) else MISSING)


def _transpose(op: Op) -> str:
    if op.transpose is not None:
        return _given(op.transpose) or MISSING
    if op.linear:
        return MISSING
    return "inactive" if inactive(op) else "not linear"


def inactive(op: Op) -> bool:
    """Whether no result carries a tangent: by kind, or because all results of its samples are integers or booleans."""
    if op.kind == "inactive":
        return True
    return bool(op.samples) and not any(_differentiable(r) for s in op.samples for r in results(op, s))


def results(op: Op, sample: Any) -> tuple[Any, ...]:
    """What the evaluation rule gives for a sample."""
    with np.errstate(all="ignore"):
        out = op.numpy(*sample.make(np.random.default_rng(0)), **sample.params)
    return tuple(out) if op.multi else (out,)


def _differentiable(x: Any) -> bool:
    return dtypes.issubdtype(x.dtype, np.inexact)


def table(rows: list[Coverage], width: int = 40) -> str:
    """The rows as aligned text; texts longer than ``width`` are cut."""
    lines = [("op", *ASPECTS), *[(r.op.name, *[r.cells[a] for a in ASPECTS]) for r in rows]]
    cut = [[cell if len(cell) <= width else cell[: width - 1] + "…" for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*cut, strict=True)]
    return "\n".join(["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in cut])
