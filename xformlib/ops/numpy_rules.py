"""Helpers of NumPy rules: small floats and integers that NumPy (with ml_dtypes) widens, and the bits of integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xformlib.dtypes import itemsize_bits
from xformlib.dtypes.types import NARROW_SIGNED, NARROW_UNSIGNED

__all__ = ["in_float32", "keep1", "keep2", "unsigned_bits", "widened"]

Rule = Callable[..., Any]


def in_float32(f: Rule) -> Rule:
    """A rule of several steps that computes 16- and 8-bit floats in float32 and rounds once."""

    def rule(*xs: Any) -> Any:
        dtype = xs[0].dtype
        if dtype.itemsize > 2:
            return f(*xs)
        return f(*[x.astype(np.float32) for x in xs]).astype(dtype)

    return rule


def keep1(f: Rule) -> Rule:
    """A rule of one operand whose result NumPy gives as int8 or float16 for integers of 2 and 4 bits."""

    def rule(x: Any) -> Any:
        out = f(x)
        return out if out.dtype is x.dtype else out.astype(x.dtype)

    return rule


def keep2(f: Rule) -> Rule:
    """The same for two operands."""

    def rule(x: Any, y: Any) -> Any:
        out = f(x, y)
        return out if out.dtype is x.dtype else out.astype(x.dtype)

    return rule


def is_narrow_integer(dtype: Any) -> bool:
    """Whether a dtype is one of the integers of 2 and 4 bits."""
    return dtype.kind == "V" and dtype in NARROW_SIGNED + NARROW_UNSIGNED


def widened(f: Rule) -> Rule:
    """A rule that computes integers of 2 and 4 bits in int8; its result is taken modulo their range."""

    def rule(*xs: Any) -> Any:
        dtype = xs[0].dtype
        if dtype.kind != "V" or not is_narrow_integer(dtype):
            return f(*xs)
        return f(*[x.astype(np.int8) for x in xs]).astype(dtype)

    return rule


def unsigned_bits(x: Any) -> tuple[Any, int]:
    """The bits of integers as unsigned integers, and how many there are."""
    if x.dtype.kind != "V":
        return x.view(f"u{x.dtype.itemsize}"), 8 * x.dtype.itemsize
    width = itemsize_bits(x.dtype)
    return x.astype(np.int8).view(np.uint8) & np.uint8((1 << width) - 1), width
