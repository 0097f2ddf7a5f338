"""What the compiler says about a module it can't compile, as data and as an error."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["CompilationError", "Diagnostic", "parse_diagnostics"]


@dataclass(frozen=True)
class Diagnostic:
    """One message of the compiler.

    ``file``, ``line`` and ``column`` are the place in the user's program it is about (None where unknown), ``callers``
    the places it was called from, innermost first.
    """

    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    callers: tuple[tuple[str, int], ...] = ()


class CompilationError(RuntimeError):
    """A module could not be compiled. ``reason`` says what the compiler did, ``diagnostics`` what it said."""

    def __init__(self, reason: str, diagnostics: list[Diagnostic]) -> None:
        self.reason = reason
        self.diagnostics = diagnostics
        lines = [f"the program could not be compiled: {reason}"]
        lines += [f"  {d.message}" for d in diagnostics[:3]]
        located = next((d for d in diagnostics if d.file), None)
        if located is not None:
            lines.append(f'  at File "{located.file}", line {located.line}')
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[type[CompilationError], tuple[str, list[Diagnostic]]]:
        return type(self), (self.reason, self.diagnostics)


_LINE = re.compile(
    r"^(?:(?P<file>[^\n]+?):(?P<line>\d+):(?P<column>\d+)|[\w.-]+): (?P<kind>error|note): (?P<message>.*)$",
    re.MULTILINE,
)
_CALLED = "called from"
_LONGEST = 300


def parse_diagnostics(text: str) -> list[Diagnostic]:
    """The errors in the compiler's output, in order, each once."""
    found: list[Diagnostic] = []
    for m in _LINE.finditer(text):
        known = m["file"] not in (None, "-")  # "-" is a module without places
        if m["kind"] == "error":
            place = (m["file"], int(m["line"]), int(m["column"])) if known else (None, None, None)
            found.append(Diagnostic(m["message"][:_LONGEST], *place))
        elif m["message"] == _CALLED and known and found:
            last = found[-1]
            callers = (*last.callers, (m["file"], int(m["line"])))
            found[-1] = Diagnostic(last.message, last.file, last.line, last.column, callers)
    return list(dict.fromkeys(found))
