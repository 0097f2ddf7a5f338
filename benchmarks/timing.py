"""How things are timed: the best of several rounds, each long enough for the clock."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any


def best_of(run: Callable[[], Any], *, seconds: float = 0.4, rounds: int = 5) -> float:
    """Seconds per call of ``run``: the best of ``rounds`` rounds that last ``seconds`` together."""
    run()
    start = time.perf_counter()
    run()
    once = max(time.perf_counter() - start, 1e-7)
    count = max(1, int(seconds / rounds / once))
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(count):
            run()
        best = min(best, (time.perf_counter() - start) / count)
    return best


def once(run: Callable[[], Any]) -> float:
    """Seconds of a single call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def in_new_process(code: str, python: str = sys.executable, *, rounds: int = 5) -> float:
    """The best time a fresh interpreter reports for ``code``, which must print seconds."""
    results = []
    for _ in range(rounds):
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
        results.append(float(done.stdout.split()[-1]))
    return min(results)


def readable(seconds: float | None) -> str:
    """Seconds with a fitting unit."""
    if seconds is None:
        return "-"
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1 or unit == "us":
            return f"{seconds * scale:.3g} {unit}"
    raise AssertionError
