"""Eager = compiled: samples of the records, their gradients and batched forms, many in one program."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import xformlib as xf
from tests.ops import harness
from tests.ops.harness import assert_same_type, assert_ulps, is_inexact, unwrap, wrap
from xformlib import dtypes
from xformlib.errors import CompileError
from xformlib.execution import compiled
from xformlib.staging import Program, replay, stage

# A compile costs a quarter of a second, and little more for each function in it.
SIZE = 32
# Which of the zeros 0.0 and -0.0 is larger is left open, as by NumPy and by C's fmax.
EXTREMA = ("maximum", "minimum", "clamp", "max", "min", "cummax", "cummin")


@dataclass(frozen=True)
class Item:
    """A small program, its operands, and what it gives evaluated at once."""

    id: str
    program: Program
    operands: Any
    results: Any
    ulp: float  # for each element; of the largest element where ``overall``
    overall: bool = False

    def check(self, outs: Any) -> None:
        for i, (got, want) in enumerate(zip(outs, self.results, strict=True)):
            what = f"{self.id} result {i}"
            if self.id.partition("-")[0].rpartition(":")[2] in EXTREMA:
                got, want = positive_zeros(got), positive_zeros(want)
            if not self.overall or not is_inexact(want):
                assert_ulps(got, want, self.ulp, what)
                continue
            assert_same_type(got, want, what)
            limit = self.ulp * float(dtypes.finfo(want.dtype).eps) * np.max(abs(want), initial=0)
            difference = np.max(abs(got - want), initial=0)
            assert difference <= limit, f"{what}: differs by {difference}, allowed {limit}\n{got}\nexpected\n{want}"


def positive_zeros(x: Any) -> Any:
    return np.where(x == 0, np.zeros((), x.dtype), x)


def item(name, program, operands, results, ulp, overall=False):
    return Item(name, program, [*operands, *unwrap(program.captures)], results, ulp, overall)


def samples():
    return [item(c.id, c.program, c.operands, c.results, c.sample.ulp) for c in harness.cases()]


def first_smooth(case):
    return case is next((c for c in harness.cases() if c.op is case.op and c.differentiable), None)


def gradients():
    """J(x)^T w of one smooth sample of each op: the forms that derivative rules write."""
    made = []
    for case in filter(first_smooth, harness.cases()):
        g = case.gradient
        made.append(item(f"{case.id}-gradient", g.program, g.primals, g(*g.primals), 64 * case.sample.ulp, True))
    return made


def batched():
    """vmap of one sample of each op over all operands: the forms that batching rules write."""
    made = []
    for case in harness.cases():
        if case.sample is not case.op.samples[0] or not case.operands:
            continue
        operands = [np.stack([x, x]) for x in case.operands]
        program = stage(lambda *xs, c=case: xf.vmap(c.apply)(*xs), harness.avals(operands), kind="batched")
        results = unwrap(replay(program, [*wrap(operands), *program.captures]))
        made.append(item(f"{case.id}-batched", program, operands, results, case.sample.ulp))
    return made


@functools.cache
def bundles():
    """Groups of items, for one compile each."""
    items = [*samples(), *gradients(), *batched()]
    return [items[i : i + SIZE] for i in range(0, len(items), SIZE)]


def program_of(items) -> Program:
    """One program: the operands of all items, to the results of all."""

    def run(*operands):
        rest = iter(operands)
        return [y for i in items for y in replay(i.program, [next(rest) for _ in i.operands])]

    return stage(run, harness.avals([x for i in items for x in i.operands]), kind="bundle")


@functools.cache
def program(index: int) -> Program:
    return program_of(bundles()[index])


def results(items, staged):
    """Results of all items by one compiled program; by halves where it does not compile, to find the fault."""
    arguments = wrap([x for i in items for x in i.operands])
    try:
        flat = iter([np.asarray(y._load()) for y in compiled(staged)([*arguments, *staged.captures])])
    except CompileError as e:
        if len(items) == 1:
            return [(items[0], e)]
        half = len(items) // 2
        return [r for part in (items[:half], items[half:]) for r in results(part, program_of(part))]
    return [(i, [next(flat) for _ in i.results]) for i in items]


# What compiled code is declared not to do yet (docs/conventions.md, "Limits of compiled code"), by op and kind of sample. A declared
# gap that has closed is a failure too: delete its line.
GAPS = {
    **{
        (op, dtype): "angles beyond 2^30 give NaN: the reduction has too few digits"
        for op in ("sine", "cosine", "tan")
        for dtype in ("float32", "bfloat16", "float64")
    },
    ("remainder", "float64"): "NaN where the quotient has more than 53 bits",
    ("power", "float64"): "up to a few hundred ulp for large exponents",
}


def declared(item):
    """Whether a sample of special values falls into a declared gap."""
    op, _, rest = item.id.partition("-")
    dtype = rest.partition("-")[2].partition("[")[0]
    return item.id.endswith("special values") and (op, dtype) in GAPS


def name(index):
    group = bundles()[index]
    return f"{index}-{group[0].id}..{group[-1].id}"


def fault_of(item, outs):
    """What is wrong with the results, or nothing."""
    try:
        item.check(outs)
    except AssertionError as e:
        return str(e)
    return ""


@pytest.mark.parametrize("index", range(len(bundles())), ids=name)
def test_eager_equals_compiled(index):
    if index + 1 < len(bundles()):
        compiled(program(index + 1))  # starts while this one is waited for
    wrong = []
    for item, outs in results(bundles()[index], program(index)):
        fault = str(outs) if isinstance(outs, Exception) else fault_of(item, outs)
        if declared(item) != bool(fault):
            wrong.append(f"{item.id}: {fault or 'a declared gap has closed'}")
    assert not wrong, "\n".join(wrong)
