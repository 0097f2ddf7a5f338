"""Fixtures: programs without the compiler, and counters of what runs."""

from __future__ import annotations

import contextvars
from collections import Counter

import pytest

from xformlib.keys import physical_value
from xformlib.op import registry, state
from xformlib.staging import replay


def interpret(program, args):
    """Run a program on the NumPy rules, as the compiled program would: whatever is open, or running, around it."""
    frame, run = state.frame, state.run
    state.frame, state.run = None, contextvars.copy_context().run
    try:
        return [physical_value(x) for x in replay(program, args)]
    finally:
        state.frame, state.run = frame, run


@pytest.fixture
def interpreted(monkeypatch):
    """Calls of programs run on the NumPy rules: the passes are what is tested here, and the compiler is not needed."""
    monkeypatch.setattr("xformlib.execution.execute", interpret)


@pytest.fixture
def evaluations():
    """How often each op's evaluation rule has run: a Counter by op name."""
    counter: Counter[str] = Counter()
    original = {op: op.numpy for op in registry.values()}

    def counting(name, rule):
        def run(*operands, **params):
            counter[name] += 1
            return rule(*operands, **params)

        return run

    for op, rule in original.items():
        object.__setattr__(op, "numpy", counting(op.name, rule))
    yield counter
    for op, rule in original.items():
        object.__setattr__(op, "numpy", rule)


@pytest.fixture
def temporary_op():
    """Register ops for one test."""
    from xformlib.op import Op

    made = []

    def make(*args, **kwargs):
        made.append(Op(*args, **kwargs))
        return made[-1]

    yield make
    for op in made:
        del registry[op.name]
