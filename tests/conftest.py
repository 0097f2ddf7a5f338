"""Shared set-up: one compile cache for all test workers, kept between runs; nothing of the user's is touched."""

from __future__ import annotations

import contextvars
import os
import tempfile
from collections import Counter
from pathlib import Path

import pytest

# Before xformlib starts: compiled artifacts are content-addressed, so sharing them between workers and runs is safe.
os.environ.setdefault("XFORMLIB_CACHE_DIR", str(Path(tempfile.gettempdir()) / f"xformlib-tests-{os.getuid()}"))


@pytest.fixture
def x64():
    """64-bit types on for one test."""
    import xformlib as xf

    with xf.enable_x64():
        yield


def interpret(program, args):
    """Run a program on the NumPy rules, as the compiled program would: whatever is open, or running, around it."""
    from xformlib.keys import physical_value
    from xformlib.op import state
    from xformlib.staging import replay

    frame, run = state.frame, state.run
    state.frame, state.run = None, contextvars.copy_context().run
    try:
        return [physical_value(x) for x in replay(program, args)]
    finally:
        state.frame, state.run = frame, run


@pytest.fixture
def interpreted(monkeypatch):
    """Compiled functions run on the NumPy rules: for tests of all that happens before the compiler."""
    monkeypatch.setattr("xformlib.execution.execute", interpret)


@pytest.fixture
def evaluations():
    """How often each op's evaluation rule has run: a Counter by op name."""
    import xformlib.ops  # noqa: F401 - registers the ops
    from xformlib.op import registry

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
    from xformlib.op import Op, registry

    made = []

    def make(*args, **kwargs):
        made.append(Op(*args, **kwargs))
        return made[-1]

    yield make
    for op in made:
        del registry[op.name]
