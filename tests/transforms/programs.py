"""Small programs for the tests of the passes."""

from __future__ import annotations

import numpy as np

from xformlib.array import ArrayImpl, Aval
from xformlib.staging import stage


def array(value, dtype=np.float64):
    return ArrayImpl(np.asarray(value, dtype))


def program(f, *examples):
    """``f`` (arrays to a list of arrays) staged for arrays like the examples."""
    return stage(f, [Aval(x.shape, x.dtype, x.weak_type) for x in examples], kind="test")


def names(program):
    """Names of its operations, in order."""
    return [op.name for op in program.block.operations if op.name != "func.return"]
