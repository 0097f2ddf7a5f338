"""Operations of the ``xform`` dialect, in StableHLO's terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xformlib.lowering.legalize.rewriter import Builder, Guard, dtype_of

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def _strong_multiply(operation: Any, b: Builder) -> Sequence[Any]:
    t, c = operation.operands
    zero = b.or_(b.compare("EQ", t, 0), b.compare("EQ", c, 0))
    return [b.select(zero, b.const(t, 0), b.mul(t, c))]


def _strong_divide(operation: Any, b: Builder) -> Sequence[Any]:
    t, c = operation.operands
    return [b.select(b.compare("EQ", t, 0), b.const(t, 0), b.div(t, c))]


def _threefry(operation: Any, b: Builder) -> Sequence[Any]:
    """Threefry-2x32, 20 rounds (Salmon et al. 2011)."""
    k0, k1, x0, x1 = operation.operands
    assert dtype_of(k0) == np.uint32
    keys = [k0, k1, b.xor(b.xor(k0, k1), _PARITY)]
    x0, x1 = b.add(x0, k0), b.add(x1, k1)
    for i in range(5):
        for r in _ROTATIONS[i % 2]:
            x0 = b.add(x0, x1)
            turned = b.or_(b.binary("shift_left", x1, r), b.binary("shift_right_logical", x1, 32 - r))
            x1 = b.xor(x0, turned)
        x0 = b.add(x0, keys[(i + 1) % 3])
        x1 = b.add(x1, b.add(keys[(i + 2) % 3], i + 1))
    return [x0, x1]


GUARDS = [
    Guard(
        "stop_gradient", ("xform.stop_gradient",), "an identity that only derivatives see", lambda o, b: [o.operands[0]]
    ),
    Guard("strong_multiply", ("xform.strong_multiply",), "not an operation of StableHLO", _strong_multiply),
    Guard("strong_divide", ("xform.strong_divide",), "not an operation of StableHLO", _strong_divide),
    Guard("threefry", ("xform.threefry2x32",), "IREE's own generator differs in the order of its words", _threefry),
]
