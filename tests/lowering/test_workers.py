"""Workers and the programs that use them: scripts without a guard, forks, interrupts, sudden ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.lowering.modules import chain
from xformlib.lowering import compiler, targets

ROOT = Path(__file__).parents[2]
PROLOGUE = """
import os, sys
from tests.lowering.modules import chain, slow
from xformlib.lowering import compiler, targets, workers
HOST = targets.host_cpu()
"""


def start(tmp_path, text, **options):
    """A script (without ``if __name__ == "__main__"``) in a process with an empty cache."""
    script = tmp_path / "script.py"
    script.write_text(PROLOGUE + text)
    environment = {**os.environ, "XFORMLIB_CACHE_DIR": str(tmp_path / "cache"), **options.pop("environment", {})}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (environment.get("PYTHONPATH"), str(ROOT))))
    return subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        **options,
    )


def output(process):
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 0, text
    return text.split()


COUNT = "compiler.compile(chain('tanh'), HOST); print(compiler.statistics.compiled, compiler.statistics.found)"


def test_a_second_process_compiles_nothing(tmp_path):
    assert output(start(tmp_path, COUNT)) == ["1", "0"]
    assert output(start(tmp_path, COUNT)) == ["0", "1"]


def test_closed_input(tmp_path):
    assert output(start(tmp_path, COUNT, stdin=subprocess.DEVNULL)) == ["1", "0"]
    assert output(start(tmp_path, "os.close(0); compiler.statistics.found = 7; " + COUNT.replace("tanh", "sine"))) == [
        "1",
        "7",
    ]


def test_modules_of_the_user_shadow_nothing_in_the_worker(tmp_path):
    shadow = tmp_path / "user"
    shadow.mkdir()
    for name in ("shutil", "iree"):
        (shadow / f"{name}.py").write_text("raise SystemExit(1)")
    # The program has imported what it needs when its path changes.
    text = (
        f"sys.path.insert(0, {str(shadow)!r}); os.environ['PYTHONPATH'] = {str(shadow)!r}; os.chdir({str(shadow)!r})\n"
    )
    assert output(start(tmp_path, text + COUNT)) == ["1", "0"]


def test_a_forked_child_has_workers_of_its_own(tmp_path):
    text = """
waiting = compiler.compile_async(chain('tanh', 'sine'), HOST)
child = os.fork()
if child == 0:
    waiting.result()
    compiler.compile(chain('sine'), HOST)
    sys.exit(0)
status = os.waitpid(child, 0)[1]
waiting.result()
compiler.compile(chain('cosine'), HOST)
print(status)
"""
    assert output(start(tmp_path, text))[-1] == "0"


def test_an_interrupt_leaves_everything_usable(tmp_path):
    text = """
try:
    print('ready', flush=True)
    compiler.compile(slow(), HOST)
except KeyboardInterrupt:
    compiler.compile(chain('tanh'), HOST)
    print('works')
"""
    process = start(tmp_path, text, start_new_session=True)
    assert process.stdout.readline().strip() == "ready"
    time.sleep(0.7)
    begin = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    assert output(process) == ["works"]
    assert time.monotonic() - begin < 20  # the end of the program doesn't wait for the slow compile


def _gone(pid, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_workers_end_with_a_killed_parent(tmp_path):
    text = """
import threading
import time
compiler.compile_async(slow(), HOST)
while not workers.processes():
    time.sleep(0.01)
time.sleep(0.7)
print(workers.processes()[0], flush=True)
time.sleep(60)
"""
    process = start(tmp_path, text)
    worker = int(process.stdout.readline())
    process.kill()
    process.communicate()
    assert _gone(worker, 10)
    assert output(start(tmp_path, COUNT)) == ["1", "0"]


def test_several_compile_at_once_and_no_more_than_allowed(tmp_path, monkeypatch):
    from xformlib.lowering import workers

    monkeypatch.setenv("XFORMLIB_CACHE_DIR", str(tmp_path))
    futures = [compiler.compile_async(chain(*["tanh"] * (i + 1)), targets.host_cpu()) for i in range(6)]
    assert all(f.result().vmfb for f in futures)
    assert 1 <= len(workers.processes()) <= 2


def test_idle_workers_end(monkeypatch):
    from xformlib.lowering import workers

    monkeypatch.setattr(workers, "_IDLE_SECONDS", 0.2)
    pool = workers._Pool()
    pool.warm_up()
    end = time.monotonic() + 10
    states = []
    while time.monotonic() < end and states[-2:] != [1, 0]:
        states = [n for i, n in enumerate((*states, len(pool.workers))) if not i or n != states[i - 1]]
        time.sleep(0.01)
    assert states[-2:] == [1, 0]
    done = threading.Event()
    pool.submit(lambda compile: (compile(("--no-such-flag",), b"", 60.0), done.set()))
    assert done.wait(30)  # with a new worker
    pool.close()
