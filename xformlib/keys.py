"""PRNG keys as a dtype of their own, carried by uint32 words along a trailing axis; and re-flagging of values.

Ops that move elements take keys without rules of their own: the trailing axis is treated as a batch axis, so the
op's ``batch`` rule does the work. Arithmetic on keys is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xformlib.array import Array, ArrayImpl, Aval, KeyArray, Tracer
from xformlib.dtypes import KeyDType
from xformlib.errors import DtypeError

KEY_WORDS = 2
UI32 = np.dtype(np.uint32)


def wrap_key(base: Any, dtype: KeyDType) -> Any:
    """uint32 words (trailing axis 2) as an array of keys."""
    if isinstance(base, Tracer):
        return Tracer(base._value, base._frame, base.shape[:-1], dtype, False)
    return KeyArray(base, dtype)


def unwrap_key(x: Any) -> Any:
    """The uint32 words of an array of keys (trailing axis 2)."""
    if isinstance(x, Tracer):
        return Tracer(x._value, x._frame, (*x.shape, KEY_WORDS), UI32, False)
    return x._base


def physical_value(x: Any) -> Any:
    """Keys as their words; everything else as it is."""
    return unwrap_key(x) if x.is_key else x


def with_weak_type(x: Any, weak_type: bool) -> Any:
    """The same array or tracer, with this weak-type flag."""
    if x.weak_type == weak_type:
        return x
    if isinstance(x, Tracer):
        return Tracer(x._value, x._frame, x.shape, x.dtype, weak_type)
    out = ArrayImpl.from_view(x._view, x.dtype, weak_type)
    out._np = x._np
    return out


def restamp(x: Any, aval: Aval) -> Any:
    """``x`` with the weak type and key dtype of ``aval`` (walking a program sees only MLIR's types)."""
    if isinstance(aval.dtype, KeyDType):
        return x if x.is_key else wrap_key(x, aval.dtype)
    return with_weak_type(x, aval.weak_type)


def bind_keys(op: Any, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
    """Apply an op that moves elements to operands some of which are keys."""
    from xformlib.ops.movement import move_axis
    from xformlib.transforms.batch import batch_rule

    batched = tuple([isinstance(x, Array) and x.is_key for x in operands])
    dtype = next(x.dtype for x in operands if isinstance(x, Array) and x.is_key)
    if not moves_elements(op):
        raise DtypeError(
            f"{op.name} does not take PRNG keys (dtype {dtype}); draw numbers with xformlib.random, "
            "or use random.key_data(key) for the raw words."
        )
    words = [move_axis(unwrap_key(x), -1, 0) if b else x for x, b in zip(operands, batched, strict=True)]
    return wrap_key(move_axis(batch_rule(op, KEY_WORDS, words, batched, params), 0, -1), dtype)


def moves_elements(op: Any) -> bool:
    """Whether results consist of unchanged elements of the operands."""
    return op.kind == "movement" or op.name == "stablehlo.select"
