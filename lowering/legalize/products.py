"""Products and sums: empty ones, and low precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xformlib.lowering.legalize.rewriter import Builder, Guard, dtype_of, shape_of


def _low(dtype: Any) -> bool:
    return bool(dtype.kind in "fV" and dtype.itemsize == 2)


def _dot(operation: Any, b: Builder) -> Sequence[Any] | None:
    x, y = operation.operands
    result = operation.results[0]
    if 0 in shape_of(x) or 0 in shape_of(y) or 0 in shape_of(result):
        return [b.const(result, 0)]
    wanted, given = dtype_of(result), dtype_of(x)
    numbers = operation.attributes["dot_dimension_numbers"]
    wide = np.dtype(np.float32) if _low(wanted) else np.dtype(np.int32) if given == np.bool_ else wanted
    if wide == wanted and given == dtype_of(y) == wanted:
        return None
    if given.kind != wide.kind or given == np.bool_ or not _low(given):
        x, y = b.convert(x, wide), b.convert(y, wide)
    out = b.op("stablehlo.dot_general", [(shape_of(result), wide)], [x, y], dot_dimension_numbers=numbers).result
    if wanted == np.bool_:
        return [b.compare("NE", out, 0)]
    return [b.convert(out, wanted)]


GUARDS = [
    Guard(
        "dot_general",
        ("stablehlo.dot_general",),
        "an empty contraction traps; 16-bit floats accumulate in 16 bits, booleans do not compile",
        _dot,
    ),
]
