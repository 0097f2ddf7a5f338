"""The compile worker: a process that may crash, hang or be killed without harm to the program that asked.

Run as a script with the parent's process id and the directory that holds the ``iree`` package. It reads requests from
standard input and answers on standard output, both as length-prefixed messages: a request is the flags (NUL-separated),
then the module; an answer is ``b"+" + vmfb`` or ``b"-" + message``. Diagnostics go to standard error, a file that the
parent reads. It imports the compiler only, and ends when its input ends or the parent is gone.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
import sys
import threading
import time
from typing import Any, BinaryIO, NoReturn

_LENGTH = struct.Struct("<Q")
_PARENT_CHECK_SECONDS = 1.0


def read_message(stream: BinaryIO) -> bytes | None:
    """The next message, or None at the end of the stream."""
    header = stream.read(_LENGTH.size)
    if len(header) < _LENGTH.size:
        return None
    (size,) = _LENGTH.unpack(header)
    body = stream.read(size)
    return body if len(body) == size else None


def write_message(stream: BinaryIO, body: bytes) -> None:
    """Send one message."""
    stream.write(_LENGTH.pack(len(body)))
    stream.write(body)
    stream.flush()


def _compile(api: Any, flags: list[str], module: bytes) -> bytes:
    os.lseek(2, 0, os.SEEK_SET)
    os.ftruncate(2, 0)
    session = api.Session()
    try:
        session.set_flags(*flags)
        invocation = session.invocation()
        invocation.enable_console_diagnostics()
        source = api.Source.wrap_buffer(session, module)
        if not invocation.parse_source(source) or not invocation.execute():
            return b"-"
        output = api.Output.open_membuffer()
        invocation.output_vm_bytecode(output)
        return b"+" + bytes(output.map_memory())
    except (ValueError, RuntimeError) as e:
        return b"-" + str(e).encode()
    finally:
        session.close()


def _end_with(parent: int) -> None:
    """End this process soon after its parent, even in the middle of a compile."""
    while os.getppid() == parent:
        time.sleep(_PARENT_CHECK_SECONDS)
    _end()


def _end() -> NoReturn:
    shutil.rmtree(os.environ["TMPDIR"], ignore_errors=True)
    os._exit(0)


def _no_core_dumps() -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    """Serve requests until the input ends."""
    threading.Thread(target=_end_with, args=(int(sys.argv[1]),), daemon=True).start()
    sys.path.append(sys.argv[2])
    _no_core_dumps()
    requests = sys.stdin.buffer
    # Whatever the compiler prints must not get into the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    from iree.compiler import api

    # Saves 15-20 % of the CPU time: modules are too small for threads to pay, and several workers run at once.
    api._initializeGlobalCL("iree", "--mlir-disable-threading")
    while (flags := read_message(requests)) is not None and (module := read_message(requests)) is not None:
        write_message(answers, _compile(api, flags.decode().split("\0"), module))
    _end()


if __name__ == "__main__":
    main()
