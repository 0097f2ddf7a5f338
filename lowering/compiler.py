"""Compiling: module in, ``.vmfb`` out, through the cache on disk and the worker processes."""

from __future__ import annotations

import functools
import io
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from xformlib.lowering import cache, workers
from xformlib.lowering.diagnostics import CompilationError, Diagnostic, parse_diagnostics
from xformlib.lowering.targets import Plan, Target, plan
from xformlib.lowering.workers import warm_up

__all__ = ["Artifact", "CompilationError", "Diagnostic", "compile", "compile_async", "statistics", "warm_up"]

DEFAULT_TIMEOUT = 300.0


@dataclass(frozen=True)
class Artifact:
    """A compiled module, and for the CPU the mode to run it in (``"local-sync"`` or ``"local-task"``)."""

    vmfb: bytes
    mode: str


@dataclass
class Statistics:
    """What happened in this process: compiles by workers (each attempt counts), and artifacts found on disk."""

    compiled: int = 0
    found: int = 0


@dataclass(frozen=True)
class _Task:
    """One compile that is under way."""

    key: str
    module: bytes
    target: Target
    plan: Plan
    timeout: float
    future: Future[Artifact]


statistics = Statistics()
_lock = threading.Lock()
_under_way: dict[str, _Task] = {}


def compile(module: Any, target: Target, *, timeout: float = DEFAULT_TIMEOUT) -> Artifact:
    """The artifact of a legalised module, from the cache on disk or a worker.

    Args:
        module: an ``ir.Module`` of the process's context, or its bytecode.
        target: what to compile for.
        timeout: seconds of compiling after which it is given up.

    Raises:
        CompilationError: the compiler failed with every set of flags, crashed, or took too long. Its diagnostics name
        the
            places that the module's locations give.
    """
    return compile_async(module, target, timeout=timeout).result()


def compile_async(module: Any, target: Target, *, timeout: float = DEFAULT_TIMEOUT) -> Future[Artifact]:
    """Like :func:`compile`, as a future. Equal modules that are being compiled share one; don't cancel it."""
    module = _parsed(module)
    chosen = plan(module, target)
    key = cache.key(_bytecode_without_places(module), target, chosen.ladder)
    found = cache.read(key)
    with _lock:
        if found is not None:
            statistics.found += 1
            done: Future[Artifact] = Future()
            done.set_result(Artifact(found, chosen.mode))
            return done
        if key in _under_way:
            return _under_way[key].future
        task = _under_way[key] = _Task(key, _bytecode(module), target, chosen, timeout, Future())
    workers.submit(functools.partial(_run, task))
    return task.future


def _parsed(module: Any) -> Any:
    from xformlib.lowering.ir import context, ir

    return ir.Module.parse(bytes(module), context) if isinstance(module, (bytes, bytearray, memoryview)) else module


def _bytecode(operation: Any) -> bytes:
    buffer = io.BytesIO()
    operation.operation.write_bytecode(buffer)
    return buffer.getvalue()


def _bytecode_without_places(module: Any) -> bytes:
    """What identifies a module: moving a line of the user's program must not compile it again."""
    clone = module.operation.clone()
    _strip_places().run(clone)
    return _bytecode(clone)


@functools.cache
def _strip_places() -> Any:
    from iree.compiler.passmanager import PassManager

    from xformlib.lowering.ir import context

    return PassManager.parse("builtin.module(strip-debuginfo)", context)


Compile = Callable[[tuple[str, ...], bytes, float], workers.Answer]


def _run(task: _Task, compile: Compile) -> None:
    """Settle a task's future; runs on a thread of the pool."""
    try:
        vmfb, best = _climb(task, compile)
        if best:
            cache.write(task.key, vmfb)
        settle = functools.partial(task.future.set_result, Artifact(vmfb, task.plan.mode))
    except BaseException as e:  # whoever waits must hear of it, whatever it is
        settle = functools.partial(task.future.set_exception, e)
    with _lock:
        _under_way.pop(task.key, None)
    settle()


def _climb(task: _Task, compile: Compile) -> tuple[bytes, bool]:
    """The artifact by the first rung of the flag ladder that works; whether the rungs before it would fail again."""
    deadline = time.monotonic() + task.timeout
    reason, output, best = "", "", True
    for rung in task.plan.ladder:
        with _lock:
            statistics.compiled += 1
        answer = compile((*task.target.flags, *rung), task.module, max(0.0, deadline - time.monotonic()))
        if answer.vmfb is not None:
            return answer.vmfb, best
        reason, output = answer.reason, answer.output
        best = best and not answer.killed
        if answer.final:
            break
    raise CompilationError(reason, parse_diagnostics(output))


def _after_fork() -> None:
    """A forked child, which may wait for what the parent's threads were compiling, compiles it itself."""
    global _lock
    _lock = threading.Lock()
    for task in _under_way.values():
        workers.submit(functools.partial(_run, task))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
