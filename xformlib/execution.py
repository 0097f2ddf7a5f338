"""Running programs: link, legalise, compile (once per program), call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xformlib.array import ArrayImpl
from xformlib.errors import XformError

__all__ = ["compiled", "execute"]


class CompiledProgram:
    """A program's executable; calling it takes and gives physical arrays (keys as words)."""

    __slots__ = ("_entry", "_outs", "artifact", "module_text")

    def __init__(self, program: Any) -> None:
        from xformlib.link import link
        from xformlib.lowering import compiler, targets
        from xformlib.lowering.legalize import legalize
        from xformlib.runtime.devices import default_device
        from xformlib.runtime.executable import Executable
        from xformlib.staging import physical

        target = targets.host_cpu()
        module = link(program)
        legalize(module, target)
        self.artifact = compiler.compile(module, target)
        executable = Executable(self.artifact.vmfb, device=default_device(), mode=self.artifact.mode)
        self._entry: Callable[[Sequence[Any]], list[Any]] = executable.entry("main")
        self._outs = [(physical(a)[1], a.weak_type) for a in program.out_avals]

    def __call__(self, args: Sequence[ArrayImpl]) -> list[ArrayImpl]:
        views = self._entry([a._view if a._view is not None else a._load() for a in args])
        return [ArrayImpl.from_view(v, *out) for v, out in zip(views, self._outs, strict=True)]


def compiled(program: Any) -> CompiledProgram:
    """The program's executable, compiled at the first request."""
    found = program.memo.get("compiled")
    if found is None:
        found = program.memo["compiled"] = CompiledProgram(program)
    return found  # type: ignore[no-any-return]


def execute(program: Any, args: Sequence[Any]) -> list[Any]:
    """Run a closed program on concrete physical arrays (explicit arguments, then captures)."""
    if not program.out_avals:
        return []
    return compiled(program)([_concrete(a) for a in args])


def _concrete(x: Any) -> ArrayImpl:
    if type(x) is ArrayImpl:
        return x
    raise XformError(f"a compiled function was given {type(x).__name__}, which is not a concrete array")
