"""Running programs: link, legalise, compile (once per program), call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xformlib.array import ArrayImpl
from xformlib.errors import CompileError, XformError

__all__ = ["compiled", "execute"]

# Arrays up to this many bytes keep their host copy beside the device buffer; larger ones are mapped again when looked at.
_HOLD_BOTH = 1 << 16


class CompiledProgram:
    """A program's executable; calling it takes and gives physical arrays (keys as words).

    Compiling happens in a worker process and starts at once; the first call waits for it.
    """

    __slots__ = ("_entry", "_future", "_outs")

    def __init__(self, program: Any) -> None:
        from xformlib.link import link
        from xformlib.lowering import compiler, targets
        from xformlib.lowering.legalize import LegalizationError, legalize
        from xformlib.staging import physical

        target = targets.host_cpu()
        module = link(program)
        try:
            legalize(module, target)
        except LegalizationError as e:
            raise CompileError(str(e)) from e
        self._future = compiler.compile_async(module, target)
        self._entry: Callable[[Sequence[Any]], list[Any]] | None = None
        self._outs = [(physical(a)[1], a.weak_type) for a in program.out_avals]

    def wait(self) -> Callable[[Sequence[Any]], list[Any]]:
        """The loaded entry point.

        Raises:
            CompileError: the program could not be compiled; names the user's line where known.
        """
        from xformlib.lowering.compiler import CompilationError
        from xformlib.runtime.devices import default_device
        from xformlib.runtime.executable import Executable

        try:
            artifact = self._future.result()
        except CompilationError as e:
            raise CompileError(str(e)) from e
        self._entry = Executable(artifact.vmfb, device=default_device(), mode=artifact.mode).entry("main")
        return self._entry

    def __call__(self, args: Sequence[ArrayImpl]) -> list[ArrayImpl]:
        views = (self._entry or self.wait())([_view(a) for a in args])
        from_view = ArrayImpl.from_view
        return [from_view(v, dtype, weak) for v, (dtype, weak) in zip(views, self._outs, strict=True)]


def _view(x: ArrayImpl) -> Any:
    """The device buffer of an array; made at the first request and kept, so that the next call copies nothing."""
    if x._view is None:
        from xformlib.runtime.buffers import from_numpy

        view: Any = from_numpy(np.asarray(x._load()))
        x._view = view
        if view.byte_length > _HOLD_BOTH:
            x._np = None
    return x._view


_compiling = threading.Lock()


def compiled(program: Any) -> CompiledProgram:
    """The program's executable, whose compilation starts at the first request, once for all threads."""
    found = program.memo.get("compiled")
    if found is None:
        with _compiling:
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
