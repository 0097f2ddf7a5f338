"""Worker processes, and the threads of this process that wait for them."""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import os
import queue
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Answer", "Job", "submit", "warm_up"]

_LIMIT = max(1, min(2, os.cpu_count() or 1))
_SCRIPT = Path(__file__).with_name("worker.py")
_IDLE_SECONDS = 60.0
_MOST_DIAGNOSTICS = 1 << 20


@dataclass(frozen=True)
class Answer:
    """What became of one compile: the artifact, or the reason why there is none and the compiler's output.

    ``final``: other flags would fare no better. ``killed``: from outside, which says nothing about the module.
    """

    vmfb: bytes | None
    reason: str = ""
    output: str = ""
    final: bool = False
    killed: bool = False


class Worker:
    """One worker process. Only one thread may use it."""

    def __init__(self) -> None:
        self.directory = tempfile.mkdtemp(prefix="xformlib-worker-")
        # A file and not a pipe: what a compiler that crashed has said is still there.
        self._output = os.open(os.path.join(self.directory, "output"), os.O_RDWR | os.O_CREAT)
        # -I -S: nothing of the user's (PYTHONPATH, working directory, site hooks) can shadow or slow what it imports.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_SCRIPT), str(os.getpid()), _compiler_directory()],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._output,
            env={**os.environ, "TMPDIR": self.directory},
            start_new_session=True,  # Ctrl-C is for the user's program
        )
        self._timed_out = False

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def alive(self) -> bool:
        """Whether it can take another compile."""
        return self._process.poll() is None

    def compile(self, flags: tuple[str, ...], module: bytes, timeout: float) -> Answer:
        """Compile a module; the worker is dead afterwards if it crashed or reached the time limit."""
        limit = threading.Timer(timeout, self._reach_limit)
        limit.daemon = True
        limit.start()
        try:
            for body in ("\0".join(flags).encode(), module):
                self._write(struct.pack("<Q", len(body)) + body)
            (size,) = struct.unpack("<Q", self._read(8))
            answer = self._read(size)
        except (EOFError, OSError):
            return self._died()
        finally:
            limit.cancel()
        if answer[:1] == b"+":
            return Answer(answer[1:])
        return Answer(None, "the compiler reported errors", answer[1:].decode(errors="replace") + "\n" + self._said())

    def stop(self) -> None:
        """End the process; a compile that is under way fails. Any thread may do that."""
        self._process.kill()

    def _reach_limit(self) -> None:
        self._timed_out = True
        self.stop()

    def _write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        rest = memoryview(data)
        while rest:
            rest = rest[self._process.stdin.write(rest) :]

    def _read(self, size: int) -> bytes:
        assert self._process.stdout is not None
        parts: list[bytes] = []
        while size:
            part = self._process.stdout.read(min(size, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _said(self) -> str:
        return os.pread(self._output, _MOST_DIAGNOSTICS, 0).decode(errors="replace")

    def _died(self) -> Answer:
        code = self._process.wait()
        if self._timed_out:
            return Answer(None, "it took longer than the time limit", self._said(), final=True)
        fate = f"crashed with signal {-code}" if code < 0 else f"exited with status {code}"
        return Answer(None, f"the compiler {fate}", self._said(), killed=-code in (signal.SIGKILL, signal.SIGTERM))

    def close(self) -> None:
        """End the process and remove what it left."""
        self._process.kill()
        self._process.wait()
        self.release()
        shutil.rmtree(self.directory, ignore_errors=True)

    def release(self) -> None:
        """Close this process's ends of the pipes."""
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
        os.close(self._output)


def _compiler_directory() -> str:
    """The directory on ``sys.path`` that the compiler is imported from."""
    spec = importlib.util.find_spec("iree.compiler")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("compiling needs the MLIR compiler: pip install 'xformlib[compiler]'")
    return str(Path(next(iter(spec.submodule_search_locations))).parent.parent)


# Called with a function that compiles on a worker: (flags, module, seconds) -> Answer.
Job = Callable[[Callable[[tuple[str, ...], bytes, float], Answer]], None]


class _Pool:
    """Threads with a worker each, started when there are more jobs than threads.

    Threads are daemons, so that a long compile never holds up the end of the program.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self.unfinished = 0
        self.threads = 0
        self.workers: list[Worker] = []
        self.closed = False

    def submit(self, job: Job) -> None:
        with self.lock:
            self.unfinished += 1
            if self.unfinished > self.threads:
                self._start_thread()
        self.jobs.put(job)

    def warm_up(self) -> None:
        with self.lock:
            if self.threads == 0:
                self._start_thread()

    def _start_thread(self) -> None:
        if self.threads < _LIMIT:
            self.threads += 1
            threading.Thread(target=self._serve, name="xformlib-compile", daemon=True).start()

    def _serve(self) -> None:
        worker: Worker | None = None

        def ready() -> Worker:
            nonlocal worker
            if worker is None or not worker.alive():
                self._discard(worker)
                worker = None
                worker = self._new_worker()
            return worker

        def compile(flags: tuple[str, ...], module: bytes, timeout: float) -> Answer:
            return ready().compile(flags, module, timeout)

        while not self.closed:
            with contextlib.suppress(OSError, ImportError):  # then the job reports it
                ready()
            try:
                job = self.jobs.get(timeout=_IDLE_SECONDS)
            except queue.Empty:  # an idle worker holds 160 MB
                self._discard(worker)
                worker = None
                job = self.jobs.get()
            job(compile)
            with self.lock:
                self.unfinished -= 1

    def _new_worker(self) -> Worker:
        with self.lock:
            if self.closed:
                raise OSError("the program is ending")
            worker = Worker()
            self.workers.append(worker)
        return worker

    def _discard(self, worker: Worker | None) -> None:
        if worker is not None:
            with self.lock:
                self.workers.remove(worker)
            worker.close()

    def close(self) -> None:
        with self.lock:
            self.closed = True
            for worker in self.workers:
                worker.stop()
                shutil.rmtree(worker.directory, ignore_errors=True)


_pool = _Pool()
_inherited: list[_Pool] = []


def submit(job: Job) -> None:
    """Run a job on a thread of the pool. It must not raise."""
    _pool.submit(job)


def warm_up() -> None:
    """Start a worker in the background if there is none: 0.15 s that what comes before a compile can cover."""
    _pool.warm_up()


def processes() -> list[int]:
    """The process ids of the workers."""
    return [w.pid for w in _pool.workers if w.alive()]


def _close() -> None:
    _pool.close()


def _after_fork() -> None:
    """A forked child lets go of the workers, so that they end with the parent, and starts its own."""
    global _pool
    for worker in _pool.workers:
        worker.release()
    _inherited.append(_pool)
    _pool = _Pool()


atexit.register(_close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
