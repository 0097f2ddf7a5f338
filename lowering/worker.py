"""The compile worker: a process that may crash, hang or be killed without harm to the program that asked.

Run as a script. It reads requests from standard input and answers on standard output, both as length-prefixed messages:
a request is the flags (NUL-separated), then the module's bytecode; an answer is ``b"+" + vmfb`` or ``b"-" + diagnostics``.
It imports the compiler only, and ends when its input ends.
"""

from __future__ import annotations

import os
import struct
import sys
import tempfile
from typing import BinaryIO

_LENGTH = struct.Struct("<Q")


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


def _compile(flags: list[str], module: bytes, diagnostics: BinaryIO) -> bytes:
    from iree.compiler import api

    diagnostics.seek(0)
    diagnostics.truncate()
    session = api.Session()
    try:
        session.set_flags(*flags)
        invocation = session.invocation()
        invocation.enable_console_diagnostics()
        source = api.Source.wrap_buffer(session, module)
        output = api.Output.open_membuffer()
        if not invocation.parse_source(source) or not invocation.execute():
            raise ValueError("")
        invocation.output_vm_bytecode(output)
        return b"+" + bytes(output.map_memory())
    except (ValueError, RuntimeError) as e:
        os.fsync(2)
        diagnostics.seek(0)
        return b"-" + (str(e).encode() + b"\n" + diagnostics.read()).strip()


def main() -> None:
    """Serve requests until the input ends."""
    requests = sys.stdin.buffer
    answers = os.fdopen(os.dup(1), "wb")
    # The compiler prints diagnostics to the C stderr; nothing else may write to the answer channel.
    diagnostics = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
    os.dup2(diagnostics.fileno(), 2)
    os.dup2(2, 1)
    from iree.compiler import api

    api._initializeGlobalCL("iree", "--mlir-disable-threading")
    while (flags := read_message(requests)) is not None and (module := read_message(requests)) is not None:
        write_message(answers, _compile(flags.decode().split("\0"), module, diagnostics))


if __name__ == "__main__":
    main()
