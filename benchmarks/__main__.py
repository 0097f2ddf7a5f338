"""Run the benchmarks and print a table: ``python -m benchmarks [name part] [--jax-python PATH]``.

JAX is imported where it is installed; ``--jax-python`` names the interpreter of another environment that has it.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

from benchmarks.cases import CASES
from benchmarks.timing import best_of, in_new_process, readable

ROOT = str(Path(__file__).resolve().parent.parent)

_IMPORT = "import time, numpy; t = time.perf_counter(); import {0}, {0}.numpy; print(time.perf_counter() - t)"
_COMPILE = """
import sys, time
sys.path.insert(0, {root!r})
import {name} as xf, {name}.numpy as jnp
from benchmarks.cases import digits_step
f = xf.jit(lambda x: x + 1.0)
f(jnp.ones(3))
t = time.perf_counter()
digits_step(xf, jnp)()
print(time.perf_counter() - t)
"""


def time_jax(python: str | None, wanted: str) -> dict[str, float]:
    """Times of all cases under JAX, in this interpreter or another; empty where there is none."""
    if python is None and importlib.util.find_spec("jax") is None:
        return {}
    script = (
        f"import sys, json; sys.path.insert(0, {ROOT!r}); import jax, jax.numpy as jnp; "
        "from benchmarks.cases import CASES; from benchmarks.timing import best_of; "
        f"print(json.dumps({{c.name: best_of(c.make(jax, jnp)) for c in CASES if {wanted!r} in c.name}}))"
    )
    done = subprocess.run([python or sys.executable, "-c", script], capture_output=True, text=True, check=True)
    times: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return times


def time_starts(python: str | None) -> list[tuple[str, float, float | None]]:
    """(name, xformlib, JAX) of importing, and of compiling the digits step with an empty and a filled cache."""
    has_jax = python is not None or importlib.util.find_spec("jax") is not None
    jax = python or sys.executable
    rows: list[tuple[str, float, float | None]] = []
    rows.append(
        (
            "import, beyond NumPy",
            in_new_process(f"import sys; sys.path.insert(0, {ROOT!r}); " + _IMPORT.format("xformlib")),
            in_new_process(_IMPORT.format("jax"), jax) if has_jax else None,
        )
    )
    compile_here = _COMPILE.format(root=ROOT, name="xformlib")
    no_cache = "import os, tempfile; os.environ['XFORMLIB_CACHE_DIR'] = tempfile.mkdtemp()\n" + compile_here
    jax_time = in_new_process(_COMPILE.format(root=ROOT, name="jax"), jax, rounds=2) if has_jax else None
    rows.append(("first digits step, empty cache", in_new_process(no_cache, rounds=2), jax_time))
    rows.append(("first digits step, in a later process", in_new_process(compile_here, rounds=2), jax_time))
    return rows


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?", default="", help="run only cases whose name contains this")
    parser.add_argument("--jax-python", help="interpreter of an environment that has JAX")
    args = parser.parse_args()
    import xformlib as xf
    import xformlib.numpy as jnp

    jax_times = time_jax(args.jax_python, args.name)
    print(f"{'':40}{'xformlib':>12}{'NumPy':>12}{'ratio':>8}{'JAX':>12}{'ratio':>8}")
    for case in CASES:
        if args.name not in case.name:
            continue
        ours = best_of(case.make(xf, jnp))
        numpy = best_of(case.numpy) if case.numpy else None
        _row(case.name, ours, numpy, jax_times.get(case.name))
    if not args.name:
        for name, ours, theirs in time_starts(args.jax_python):
            _row(name, ours, None, theirs)


def _row(name: str, ours: float, numpy: float | None, jax: float | None) -> None:
    ratios = [f"{ours / t:.2f}" if t else "-" for t in (numpy, jax)]
    print(f"{name:40}{readable(ours):>12}{readable(numpy):>12}{ratios[0]:>8}{readable(jax):>12}{ratios[1]:>8}")


if __name__ == "__main__":
    main()
