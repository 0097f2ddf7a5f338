"""Compiling: artifacts, errors at the user's line, crashes, time limits, the flag ladder."""

from __future__ import annotations

import io
import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest

from tests.lowering.modules import chain, crashing, refused, slow
from xformlib.lowering import compiler, targets, workers
from xformlib.lowering.compiler import CompilationError
from xformlib.lowering.targets import Plan
from xformlib.runtime.buffers import to_numpy
from xformlib.runtime.devices import default_device
from xformlib.runtime.executable import Executable

pytestmark = pytest.mark.usefixtures("empty_cache")
HOST = targets.host_cpu()


def run(artifact, *args):
    executable = Executable(artifact.vmfb, device=default_device(), mode=artifact.mode)
    return [to_numpy(v) for v in executable("main", args)]


def works_again():
    x = np.arange(5, dtype=np.float32)
    (y,) = run(compiler.compile(chain("add", n=5), HOST), x)
    np.testing.assert_array_equal(y, x + x)


def test_a_module_is_compiled_and_runs():
    works_again()


def test_bytecode_in_place_of_a_module(compiled):
    module = chain("add", n=5)
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    from_bytes = compiler.compile(buffer.getvalue(), HOST)
    assert from_bytes == compiler.compile(module, HOST)
    assert compiled() == 1


def test_moving_a_line_does_not_compile_again(compiled):
    first = compiler.compile(chain("add", "tanh", places=True, first_line=3), HOST)
    assert compiler.compile(chain("add", "tanh", places=True, first_line=30), HOST) == first
    assert compiler.compile(chain("add", "tanh"), HOST) == first
    assert compiled() == 1


def test_different_programs_have_different_artifacts(compiled):
    assert compiler.compile(chain("add"), HOST) != compiler.compile(chain("multiply"), HOST)
    assert compiled() == 2


def test_equal_modules_compile_once_at_a_time(compiled):
    futures = [compiler.compile_async(chain("tanh", "add"), HOST) for _ in range(5)]
    assert len({f.result() for f in futures}) == 1
    assert compiled() == 1


def test_errors_are_at_the_line_of_the_user():
    place = 'callsite("inner"("/home/a dir/model.py":12:5) at "outer"("/home/train.py":30:9))'
    with pytest.raises(CompilationError, match=r'File "/home/a dir/model.py", line 12') as e:
        compiler.compile(refused(place), HOST)
    (d,) = e.value.diagnostics
    assert (d.file, d.line, d.column, d.callers) == ("/home/a dir/model.py", 12, 5, (("/home/train.py", 30),))
    assert "stablehlo.custom_call" in d.message
    assert str(pickle.loads(pickle.dumps(e.value))) == str(e.value)


def test_a_crash_of_the_compiler_is_an_error_and_no_more():
    with pytest.raises(CompilationError, match="crashed with signal"):
        compiler.compile(crashing(), HOST)
    works_again()


def test_the_time_limit_ends_a_compile(compiled):
    start = time.monotonic()
    with pytest.raises(CompilationError, match="time limit"):
        compiler.compile(slow(), HOST, timeout=0.5)
    assert time.monotonic() - start < 10
    assert compiled() == 1  # other flags would take as long
    works_again()


def test_failed_flags_fall_back_to_the_next(monkeypatch, compiled):
    monkeypatch.setattr(
        compiler, "plan", lambda *_: Plan((("--no-such-flag",), ("--iree-opt-level=O2",)), "local-sync")
    )
    works_again()
    assert compiled() == 2


def test_a_bad_flag_is_reported(monkeypatch):
    monkeypatch.setattr(compiler, "plan", lambda *_: Plan((("--no-such-flag",),), "local-sync"))
    with pytest.raises(CompilationError):
        compiler.compile(chain("add"), HOST)


def test_workers_killed_in_the_middle(empty_cache):
    future = compiler.compile_async(slow(), HOST)
    killed = set()
    while not future.done():
        for pid in workers.processes():
            if pid not in killed:
                time.sleep(0.3)  # well into the compile
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
        time.sleep(0.02)
    with pytest.raises(CompilationError, match="signal 9"):
        future.result()
    assert not list(empty_cache.glob("*/*"))
    works_again()


def test_what_a_kill_from_outside_left_is_not_kept(monkeypatch, empty_cache):
    answers = [workers.Answer(None, "killed", killed=True), workers.Answer(b"by lesser flags")]
    monkeypatch.setattr(workers, "submit", lambda job: job(lambda *_: answers.pop(0)))
    assert compiler.compile(chain("add"), HOST).vmfb == b"by lesser flags"
    assert not list(empty_cache.glob("*/*"))


def test_threads_compile_and_call_at_once():
    x, failures = np.arange(4, dtype=np.float32), []

    def work(i):
        try:
            op = ("add", "multiply")[i % 2]
            executable = Executable(
                compiler.compile(chain(*[op] * (i // 2 + 1), n=4), HOST).vmfb, device=default_device()
            )
            want = x * (i // 2 + 2) if op == "add" else x ** (i // 2 + 2)
            for _ in range(200):
                np.testing.assert_array_equal(to_numpy(executable("main", [x])[0]), want)
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
