"""linearize: the jvp rules, with the tangent operations recorded in a separate linear function.

The linear function captures the primal values it needs (its residuals) like any inner function captures outer values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xformlib.array import Aval
from xformlib.staging import Frame, Program
from xformlib.transforms.jvp import jvp


@dataclass(frozen=True)
class Linear:
    """A linear function of the active inputs' tangents, giving the active outputs' tangents."""

    program: Program
    active_in: tuple[bool, ...]
    active_out: tuple[bool, ...]


def linearize(program: Program, primals: Sequence[Any], active: Sequence[bool]) -> tuple[list[Any], Linear]:
    """(outputs, linear function) at ``primals`` (explicit arguments and captures); ``active`` inputs carry tangents."""
    frame = Frame("a linear function", linear=True)
    with frame:
        tangents = [frame.argument(Aval(x.shape, x.dtype)) if a else None for x, a in zip(primals, active, strict=True)]
        outs, out_tangents = jvp(program, primals, tangents)
        linear = frame.finish([t for t in out_tangents if t is not None])
    return outs, Linear(linear, tuple(active), tuple([t is not None for t in out_tangents]))
