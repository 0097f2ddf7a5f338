"""Compiling: module in, ``.vmfb`` out, through the cache on disk and a pool of worker processes."""

from __future__ import annotations

import atexit
import io
import os
import queue
import re
import select
import struct
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xformlib.lowering import cache
from xformlib.lowering.targets import Target, plan

__all__ = ["Artifact", "CompilationError", "Diagnostic", "compile", "compile_async", "statistics"]

DEFAULT_TIMEOUT = 300.0
_WORKERS = max(1, min(2, os.cpu_count() or 1))
_WORKER_FILE = Path(__file__).with_name("worker.py")


@dataclass(frozen=True)
class Diagnostic:
    """One message of the compiler, and the user's source line it is about (None where unknown)."""

    message: str
    file: str | None = None
    line: int | None = None


class CompilationError(RuntimeError):
    """A module could not be compiled. ``diagnostics`` are the compiler's messages."""

    def __init__(self, reason: str, diagnostics: list[Diagnostic]) -> None:
        self.reason = reason
        self.diagnostics = diagnostics
        located = next((d for d in diagnostics if d.file), None)
        lines = [f"the program could not be compiled: {reason}"]
        lines += [f"  {d.message}" for d in diagnostics[:3]]
        if located is not None:
            lines.append(f'  at File "{located.file}", line {located.line}')
        super().__init__("\n".join(lines))


@dataclass(frozen=True)
class Artifact:
    """A compiled module, and the CPU device it should run on."""

    vmfb: bytes
    mode: str


@dataclass
class Statistics:
    """What happened in this process: compiles by workers, and artifacts found on disk."""

    compiled: int = 0
    found: int = 0


statistics = Statistics()


# -- workers ------------------------------------------------------------------------------------------------------------


class _WorkerDied(Exception):
    """The worker ended, or was killed at the time limit, in the middle of a compile."""


class _Worker:
    """One worker process."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        self.process = subprocess.Popen(
            [sys.executable, "-P", str(_WORKER_FILE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the user's program
        )

    def compile(self, flags: tuple[str, ...], module: bytes, timeout: float) -> bytes:
        assert self.process.stdin is not None
        try:
            for body in ("\0".join(flags).encode(), module):
                self.process.stdin.write(struct.pack("<Q", len(body)) + body)
            self.process.stdin.flush()
        except OSError:
            raise _WorkerDied(self._fate()) from None
        deadline = time.monotonic() + timeout
        (size,) = struct.unpack("<Q", self._read(8, deadline))
        return self._read(size, deadline)

    def _read(self, size: int, deadline: float) -> bytes:
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        parts: list[bytes] = []
        while size:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                self.kill()
                raise _WorkerDied("it took longer than the time limit")
            part = os.read(descriptor, min(size, 1 << 20))
            if not part:
                raise _WorkerDied(self._fate())
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _fate(self) -> str:
        code = self.process.wait()
        return f"the compiler crashed with signal {-code}" if code < 0 else f"the compiler exited with status {code}"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class _Pool:
    """Idle workers, and threads that wait for busy ones."""

    def __init__(self) -> None:
        self.idle: queue.LifoQueue[_Worker] = queue.LifoQueue()
        self.threads = ThreadPoolExecutor(_WORKERS, thread_name_prefix="xformlib-compile")
        self.all: list[_Worker] = []

    def start(self) -> None:
        """Start a worker ahead of need: the compiler takes half a second to load."""
        self.idle.put(self._new())

    def _new(self) -> _Worker:
        worker = _Worker()
        self.all = [w for w in self.all if w.process.poll() is None] + [worker]
        return worker

    def run(self, flags: tuple[str, ...], module: bytes, timeout: float) -> bytes:
        """Compile on an idle worker, or a new one. A worker that dies is replaced at the next request."""
        try:
            worker = self.idle.get_nowait()
        except queue.Empty:
            worker = self._new()
        if worker.process.poll() is not None:  # killed while idle
            worker = self._new()
        answer = worker.compile(flags, module, timeout)
        self.idle.put(worker)
        return answer

    def close(self) -> None:
        for worker in self.all:
            worker.process.kill()


_pool: _Pool | None = None
_pool_lock = threading.Lock()


def _the_pool() -> _Pool:
    global _pool
    with _pool_lock:
        if _pool is None:
            _pool = _Pool()
            atexit.register(_pool.close)
        return _pool


def _forget_pool() -> None:
    """In a forked child: the workers belong to the parent."""
    global _pool, _pool_lock
    _pool, _pool_lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget_pool)


def warm_up() -> None:
    """Start a worker in the background, if none runs yet."""
    pool = _the_pool()
    if not pool.all:
        pool.start()


# -- compiling ----------------------------------------------------------------------------------------------------------


def compile(module: Any, target: Target, *, timeout: float = DEFAULT_TIMEOUT) -> Artifact:
    """The artifact of a legalised module, from the cache on disk or a worker.

    Raises:
        CompilationError: every rung of the flag ladder failed; its diagnostics name the user's line where known.
    """
    return compile_async(module, target, timeout=timeout).result()


def compile_async(module: Any, target: Target, *, timeout: float = DEFAULT_TIMEOUT) -> Future[Artifact]:
    """Like :func:`compile`, as a future."""
    chosen = plan(module)
    key = cache.key(module.operation.get_asm(enable_debug_info=False), target, chosen.ladder)
    found = cache.read(key)
    if found is not None:
        statistics.found += 1
        done: Future[Artifact] = Future()
        done.set_result(Artifact(found, chosen.mode))
        return done
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return _the_pool().threads.submit(_compile, key, buffer.getvalue(), target, chosen.ladder, chosen.mode, timeout)


def _compile(
    key: str, module: bytes, target: Target, ladder: tuple[tuple[str, ...], ...], mode: str, timeout: float
) -> Artifact:
    reason, diagnostics = "", b""
    for rung in ladder:
        statistics.compiled += 1
        try:
            answer = _the_pool().run((*target.flags, *rung), module, timeout)
        except _WorkerDied as e:
            reason = str(e)
            continue
        if answer[:1] == b"+":
            cache.write(key, answer[1:])
            return Artifact(answer[1:], mode)
        reason, diagnostics = "the compiler reported errors", answer[1:]
    raise CompilationError(reason, parse_diagnostics(diagnostics.decode(errors="replace")))


# file:line:col: error: message, also inside names such as "f"("file.py":3:0)
_LINE = re.compile(r"^(?P<where>.*?): error: (?P<message>.*)$", re.MULTILINE)
_PLACE = re.compile(r'"?(?P<file>[^"()<>]+?)"?:(?P<line>\d+):\d+')


def parse_diagnostics(text: str) -> list[Diagnostic]:
    """The compiler's error messages with their places."""
    found = []
    for match in _LINE.finditer(text):
        place = _PLACE.search(match["where"])
        if place and not place["file"].endswith(".mlir"):
            found.append(Diagnostic(match["message"], place["file"], int(place["line"])))
        else:
            found.append(Diagnostic(match["message"]))
    if not found and text.strip():
        found.append(Diagnostic(text.strip()[:500]))
    return found
