"""Quick forms of operators between concrete arrays.

Where no function is being traced and promotion has nothing to do, an operator is one call of the op's NumPy rule. All
else goes the way of ``array_methods.py``; the results are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from xformlib import dtypes
from xformlib.array import ArrayImpl
from xformlib.array_methods import ArrayMethods
from xformlib.op import Op, state
from xformlib.ops import elementwise as ew
from xformlib.ops.comparison import compare_type
from xformlib.options import current

__all__ = ["METHODS"]

Method = Callable[..., Any]

_BOOL = frozenset([dtypes.dtype(bool)])
_INTS = frozenset([np.dtype(f"{kind}{n}") for kind in ("int", "uint") for n in (8, 16, 32, 64)])
_FLOATS = frozenset(map(np.dtype, ("float16", "float32", "float64")))
_COMPLEX = frozenset(map(np.dtype, ("complex64", "complex128")))
# Exist only while 64-bit types are on: what is left of them afterwards is narrowed by promotion.
_WIDE = frozenset(map(np.dtype, ("int64", "uint64", "float64", "complex128")))
# What a Python scalar becomes: a weak array of another dtype widens when combined with a scalar.
_DEFAULTS = {x64: frozenset(map(np.dtype, (f"int{n}", f"float{n}"))) for x64, n in ((False, 32), (True, 64))}
# Floats that a Python float is rounded to once: not by way of the default dtype.
_SCALAR_FLOATS = frozenset(map(np.dtype, ("float32", "float64")))


def _scalar(x: Any, dtype: Any) -> Any:
    """A Python scalar that promotion would give ``dtype``, in it; None for others."""
    kind = type(x)
    if kind is float:
        return dtype.type(x) if dtype in _SCALAR_FLOATS else None
    # Small ints are exact in every dtype.
    if kind is int and -129 < x < 128 and (x >= 0 or dtype.kind != "u") and dtype.kind in "iuf":
        return dtype.type(x)
    return None


def _binary(name: str, op: Op, rules: Mapping[Any, tuple[Any, ...]], *, swapped: bool = False) -> Method:
    """The quick form of a binary operator; ``rules`` gives, for each dtype, further arguments of the op's rule."""
    general: Method = getattr(ArrayMethods, name)
    weak_result = op.weak

    def method(self: ArrayImpl, other: Any) -> Any:
        dtype, weak, options = self.dtype, self.weak_type, current()
        arguments = rules.get(dtype)
        if arguments is None or state.frame is not None or not options.plain:
            return general(self, other)
        x = self._np
        if x is None:
            x = self._load()
        if type(other) is ArrayImpl:
            if other.dtype is not dtype:
                return general(self, other)
            weak = weak and other.weak_type
            y = other._np
            if y is None:
                y = other._load()
        else:
            y = _scalar(other, dtype)
            if y is None:
                return general(self, other)
        x64 = options.enable_x64
        if (not x64 and dtype in _WIDE) or (weak and dtype not in _DEFAULTS[x64]):
            return general(self, other)
        if swapped:
            x, y = y, x
        try:
            return ArrayImpl(state.run(op.numpy, x, y, *arguments), weak and weak_result)
        except ValueError:  # shapes that do not broadcast
            return general(self, other)

    return _named(method, name)


def _unary(name: str, op: Op, known: frozenset[Any]) -> Method:
    general: Method = getattr(ArrayMethods, name)

    def method(self: ArrayImpl) -> Any:
        dtype, options = self.dtype, current()
        wide = dtype in _WIDE and not options.enable_x64
        if dtype not in known or wide or self.weak_type or state.frame is not None or not options.plain:
            return general(self)
        return ArrayImpl(state.run(op.numpy, self._load()))

    return _named(method, name)


def _named(method: Method, name: str) -> Method:
    method.__name__ = name
    method.__qualname__ = f"Array.{name}"
    return method


def _power(self: ArrayImpl, other: Any) -> Any:
    if type(other) is int and other == 2 and self.dtype in _SQUARED and not self.weak_type:
        return self * self
    return ArrayMethods.__pow__(self, other)


def _plain(*families: frozenset[Any]) -> dict[Any, tuple[Any, ...]]:
    return {dtype: () for family in families for dtype in family}


def _comparison(name: str, direction: str, *families: frozenset[Any]) -> Method:
    rules = {dtype: (direction, compare_type(dtype)) for family in families for dtype in family}
    return _binary(name, ew.compare, rules)


_SQUARED = _INTS | _FLOATS
_ARITHMETIC = _plain(_INTS, _FLOATS, _COMPLEX)
_DIVISION = _plain(_FLOATS)
_BITS = _plain(_INTS, _BOOL)

#: By name; they replace those of :class:`ArrayMethods` in :class:`ArrayImpl`.
METHODS: dict[str, Method] = {
    "__add__": _binary("__add__", ew.add, _ARITHMETIC),
    "__radd__": _binary("__radd__", ew.add, _ARITHMETIC, swapped=True),
    "__sub__": _binary("__sub__", ew.sub, _ARITHMETIC),
    "__rsub__": _binary("__rsub__", ew.sub, _ARITHMETIC, swapped=True),
    "__mul__": _binary("__mul__", ew.mul, _ARITHMETIC),
    "__rmul__": _binary("__rmul__", ew.mul, _ARITHMETIC, swapped=True),
    "__truediv__": _binary("__truediv__", ew.div, _DIVISION),
    "__rtruediv__": _binary("__rtruediv__", ew.div, _DIVISION, swapped=True),
    "__pow__": _power,
    "__and__": _binary("__and__", ew.bitwise_and, _BITS),
    "__or__": _binary("__or__", ew.bitwise_or, _BITS),
    "__xor__": _binary("__xor__", ew.bitwise_xor, _BITS),
    "__eq__": _comparison("__eq__", "EQ", _INTS, _FLOATS, _COMPLEX, _BOOL),
    "__ne__": _comparison("__ne__", "NE", _INTS, _FLOATS, _COMPLEX, _BOOL),
    "__lt__": _comparison("__lt__", "LT", _INTS, _FLOATS),
    "__le__": _comparison("__le__", "LE", _INTS, _FLOATS),
    "__gt__": _comparison("__gt__", "GT", _INTS, _FLOATS),
    "__ge__": _comparison("__ge__", "GE", _INTS, _FLOATS),
    "__neg__": _unary("__neg__", ew.neg, _INTS | _FLOATS | _COMPLEX),
}
