"""Eager = compiled: the samples of the records, many in one program, within the ulp each promises."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from tests.ops import harness
from tests.ops.harness import assert_ulps, wrap
from xformlib.errors import CompileError
from xformlib.execution import compiled
from xformlib.staging import Program, replay, stage

# A compile costs a quarter of a second, and little more for each function in it.
SIZE = 32


@functools.cache
def bundles():
    """Cases by family of ops, in groups for one compile each."""
    families = {}
    for case in harness.cases():
        families.setdefault(case.op.name.partition(".")[2].partition(":")[0], []).append(case)
    groups, group = [], []
    for family in families.values():
        for case in family:
            group.append(case)
            if len(group) == SIZE:
                groups.append(group)
                group = []
    return [*groups, group] if group else groups


def program_of(cases) -> Program:
    """One program: the operands of all cases, to the results of all."""

    def run(*operands):
        rest = iter(operands)
        return [y for c in cases for y in replay(c.program, [*[next(rest) for _ in c.operands], *c.program.captures])]

    return stage(run, harness.avals([x for c in cases for x in c.operands]), kind="bundle")


@functools.cache
def program(index: int) -> Program:
    return program_of(bundles()[index])


def results(cases, staged):
    """Results of all cases by one compiled program; by halves where it does not compile, to find the fault."""
    arguments = wrap([x for c in cases for x in c.operands])
    try:
        flat = iter([np.asarray(y._load()) for y in compiled(staged)([*arguments, *staged.captures])])
    except CompileError as e:
        if len(cases) == 1:
            return [(cases[0], e)]
        half = len(cases) // 2
        return [r for part in (cases[:half], cases[half:]) for r in results(part, program_of(part))]
    return [(c, [next(flat) for _ in c.results]) for c in cases]


def name(index):
    group = bundles()[index]
    return f"{index}-{group[0].op.name}..{group[-1].op.name}"


@pytest.mark.parametrize("index", range(len(bundles())), ids=name)
def test_eager_equals_compiled(index):
    if index + 1 < len(bundles()):
        compiled(program(index + 1))  # starts while this one is waited for
    wrong = []
    for case, outs in results(bundles()[index], program(index)):
        if isinstance(outs, Exception):
            wrong.append(f"{case}: {outs}")
            continue
        for i, (got, want) in enumerate(zip(outs, case.results, strict=True)):
            try:
                assert_ulps(got, want, case.sample.ulp, f"{case} result {i}")
            except AssertionError as e:
                wrong.append(str(e))
    assert not wrong, "\n".join(wrong)
