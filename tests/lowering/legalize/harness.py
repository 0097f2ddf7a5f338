"""Small functions of StableHLO, many to a module: legalised, compiled, run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np

from xformlib.lowering.compiler import Artifact, CompilationError, compile_async
from xformlib.lowering.ir import context, ir, tensor_type
from xformlib.lowering.legalize import legalize
from xformlib.lowering.targets import host_cpu
from xformlib.runtime.buffers import to_numpy
from xformlib.runtime.devices import default_device
from xformlib.runtime.executable import Executable

# A compile costs a quarter of a second, and little more for each function in it.
PER_MODULE = 24


@dataclass
class Case:
    """A function: its arguments are ``%0``, ``%1``, ... of the given arrays; ``body`` ends by returning ``%r``.

    Args:
        id: names the case where it fails.
        body: lines of MLIR; ``{0}``, ``{1}``, ... are the arguments' types and ``{r}`` the type of the result.
        args: arrays, also what it is run on.
        want: the right result; its shape and dtype are the function's.
    """

    id: str
    body: str
    args: Sequence[np.ndarray]
    want: np.ndarray

    def text(self, name: str) -> str:
        types = [text_of(x) for x in self.args]
        result = text_of(self.want)
        body = self.body
        for i, t in enumerate(types):
            body = body.replace(f"{{{i}}}", t)
        body = body.replace("{r}", result)
        head = ", ".join(f"%{i}: {t}" for i, t in enumerate(types))
        return f"func.func public @{name}({head}) -> {result} {{\n{body}\nreturn %r : {result}\n}}"


def text_of(x: Any) -> str:
    """The MLIR type of an array."""
    return str(tensor_type(x.shape, x.dtype))


def module_of(cases: Sequence[Case], without: Collection[str] = ()) -> Any:
    """One legalised module with a function ``f0``, ``f1``, ... for each case."""
    text = "\n".join(case.text(f"f{i}") for i, case in enumerate(cases))
    module = ir.Module.parse(f"module {{\n{text}\n}}", context)
    legalize(module, host_cpu(), without=without)
    assert module.operation.verify()
    return module


def run(cases: Sequence[Case]) -> list[np.ndarray | CompilationError]:
    """The result of each case."""
    groups = [cases[i : i + PER_MODULE] for i in range(0, len(cases), PER_MODULE)]
    pending = [compile_async(module_of(group), host_cpu()) for group in groups]
    return [x for group, future in zip(groups, pending, strict=True) for x in _results(group, future)]


def _results(cases: Sequence[Case], future: Future[Artifact]) -> list[np.ndarray | CompilationError]:
    """Where a module does not compile, its halves are tried, to find the fault."""
    try:
        vmfb = future.result().vmfb
    except CompilationError as e:
        if len(cases) == 1:
            return [e]
        half = len(cases) // 2
        return [*run(cases[:half]), *run(cases[half:])]
    executable = Executable(vmfb, device=default_device())
    return [np.array(to_numpy(executable(f"f{i}", case.args)[0])) for i, case in enumerate(cases)]


def check(cases: Sequence[Case], ulp: float = 0) -> None:
    """Every case gives what is wanted: NaN for NaN, the sign of zeros too, and at most ``ulp`` away."""
    wrong = [text for case, got in zip(cases, run(cases), strict=True) if (text := difference(case, got, ulp))]
    assert not wrong, f"{len(wrong)} of {len(cases)} wrong\n" + "\n".join(wrong[:12])


def difference(case: Case, got: np.ndarray | CompilationError, ulp: float) -> str:
    """What is wrong with a result, or nothing."""
    want = case.want
    if isinstance(got, CompilationError):
        return f"{case.id}: {got}"
    if got.shape != want.shape:
        return f"{case.id}: shape {got.shape}, expected {want.shape}"
    if want.dtype.kind == "c":
        parts = [("real", got.real, want.real), ("imag", got.imag, want.imag)]
        return "; ".join(t for p, g, w in parts if (t := _difference(f"{case.id}.{p}", case, g, w, ulp)))
    return _difference(case.id, case, got.astype(want.dtype), want, ulp)


def _difference(name: str, case: Case, got: np.ndarray, want: np.ndarray, ulp: float) -> str:
    bad = ulps(got, want) > ulp
    if not bad.any():
        return ""
    at = np.flatnonzero(bad.ravel())
    sample = at[:6]
    same = [x for x in case.args if x.shape == want.shape]
    given = " given " + ", ".join(str(x.ravel()[sample]) for x in same) if same else ""
    worst = np.max(ulps(got, want)[bad])
    return (
        f"{name}: {len(at)} of {want.size} wrong (worst {worst:.3g} ulp): {got.ravel()[sample]}, "
        f"expected {want.ravel()[sample]}{given}"
    )


def ulps(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Distance in units of the last place of ``want``; infinite where one is NaN, infinite or zero and the other not."""
    if want.dtype.kind not in "fV":
        return np.where(got == want, 0.0, np.inf)
    g, w = got.astype(np.longdouble), want.astype(np.longdouble)
    with np.errstate(all="ignore"):
        import ml_dtypes

        info = ml_dtypes.finfo(want.dtype)
        exponent = np.maximum(np.frexp(np.abs(w))[1] - 1, int(info.minexp))
        unit = np.ldexp(np.longdouble(1), exponent - int(info.nmant))
        distance = np.abs(g - w) / unit
    both_nan = np.isnan(g) & np.isnan(w)
    same = (g == w) & (np.signbit(g) == np.signbit(w))
    special = ~np.isfinite(g) | ~np.isfinite(w) | (w == 0)
    return np.where(both_nan | same, 0.0, np.where(special, np.inf, distance)).astype(float)
