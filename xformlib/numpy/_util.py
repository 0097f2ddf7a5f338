"""What the functions of this namespace share: conversion, promotion, broadcasting, axes, and the eager fast path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xformlib import dtypes
from xformlib.array import Array, ArrayImpl, Tracer
from xformlib.convert import is_arraylike, to_array
from xformlib.dtypes import canonicalize_dtype, promote, python_scalar_dtype
from xformlib.errors import AxisError, ConcretizationTypeError, DtypeError, NotAnArrayError, ShapeError
from xformlib.keys import with_weak_type
from xformlib.op import Op, evaluate, state
from xformlib.ops.conversion import convert
from xformlib.ops.movement import broadcast_in_dim

__all__: list[str] = []


def array(x: Any, name: str, position: int = 0) -> Any:
    """``x`` as an array; errors name the function and the argument.

    NumPy arrays are only looked at here, except under staging, where a program may outlive their contents.
    """
    if isinstance(x, Array):
        return x
    if not is_arraylike(x) and not hasattr(x, "__array__"):
        hint = " Convert it with xformlib.numpy.array(...)." if isinstance(x, list | tuple) else ""
        raise NotAnArrayError(
            f"{name}: argument {position} must be an array or a number; got {type(x).__name__} {x!r:.60}.{hint}"
        )
    return to_array(x, f"{name}: argument {position}")


def cast(x: Any, dtype: Any) -> Any:
    """``x`` with another dtype, not weak; itself where nothing changes."""
    if x.dtype == dtype:
        return with_weak_type(x, False) if x.weak_type else x
    return convert(x, dtype=dtype)


def as_dtype(x: Any, dtype: Any) -> Any:
    """``x`` with this dtype and its own weakness."""
    return x if x.dtype == dtype else with_weak_type(convert(x, dtype=dtype), x.weak_type)


def no_out(name: str, out: Any) -> None:
    """Arrays are immutable, so ``out=`` can't be served."""
    if out is not None:
        raise NotAnArrayError(f"{name}: out= is not supported, arrays are immutable; use the returned value.")


def shape_of(shape: Any, name: str) -> tuple[int, ...]:
    """A shape as a tuple of non-negative ints."""
    sizes = (shape,) if hasattr(shape, "__index__") else shape
    try:
        out = tuple([int(n.__index__()) for n in sizes])
    except ConcretizationTypeError:
        raise
    except (TypeError, AttributeError):
        raise ShapeError(f"{name}: a shape must be an int or a tuple of ints; got {shape!r:.60}.") from None
    if any(n < 0 for n in out):
        raise ShapeError(f"{name}: a shape must not have negative sizes; got {out}.")
    return out


def axis_of(axis: Any, ndim: int, name: str, what: str = "axis") -> int:
    """One axis, counted from the front."""
    try:
        i = int(axis.__index__())
    except (TypeError, AttributeError):
        raise AxisError(f"{name}: {what} must be an int; got {axis!r:.60}.") from None
    if not -ndim <= i < ndim:
        raise AxisError(f"{name}: {what} {i} is out of range for an array with {ndim} axes.")
    return i % ndim


def axes_of(axis: Any, ndim: int, name: str) -> tuple[int, ...]:
    """One or several axes (all for None), counted from the front."""
    if axis is None:
        return tuple(range(ndim))
    given = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
    out = tuple([axis_of(a, ndim, name) for a in given])
    if len(set(out)) != len(out):
        raise AxisError(f"{name}: axis {axis} names an axis twice.")
    return out


def broadcast_shape(name: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape.

    Raises:
        ShapeError: the shapes do not fit together.
    """
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ShapeError(
            f"{name}: shapes {', '.join(map(str, shapes))} do not broadcast together: from the last axis back, sizes must be "
            "equal or 1."
        ) from None


def broadcast_to_shape(x: Any, shape: tuple[int, ...]) -> Any:
    """``x`` repeated to a larger shape it broadcasts to."""
    if x.shape == shape:
        return x
    offset = len(shape) - len(x.shape)
    return broadcast_in_dim(x, shape=shape, broadcast_dimensions=tuple(range(offset, len(shape))))


def promoted(name: str, *xs: Any) -> tuple[list[Any], bool]:
    """Arrays converted to their common dtype, and whether the result is weakly typed."""
    arrays = [array(x, name, i) for i, x in enumerate(xs)]
    dtype, weak = arrays[0].dtype, arrays[0].weak_type
    if len(arrays) == 2:
        dtype, weak = promote(dtype, weak, arrays[1].dtype, arrays[1].weak_type)
    elif len(arrays) > 2:
        dtype, weak = dtypes.result_type(*arrays, return_weak_type_flag=True)
    return [x if x.dtype == dtype else convert(x, dtype=dtype) for x in arrays], weak


def apply(op: Callable[..., Any], name: str, *xs: Any) -> Any:
    """An elementwise op on arrays of one dtype, broadcast to one shape."""
    shapes = {x.shape for x in xs if x.shape}
    if len(shapes) > 1:
        shape = broadcast_shape(name, *[x.shape for x in xs])
        if state.frame is None and isinstance(op, Op) and not any(isinstance(x, Tracer) for x in xs):
            return evaluate(op, xs, {})  # NumPy broadcasts without a copy
        xs = tuple([broadcast_to_shape(x, shape) if x.shape else x for x in xs])
    return op(*xs)


def inexact(x: Any) -> Any:
    """Integers and booleans as the float type of functions such as ``sin``."""
    return as_dtype(x, dtypes.to_inexact_dtype(x.dtype)) if x.dtype.kind in "iub" or x.dtype.name in _SMALL else x


_SMALL = frozenset({"int2", "int4", "uint2", "uint4"})


def refuse(name: str, x: Any, kinds: str, what: str) -> None:
    """Raise for operands of the kinds of dtype that a function does not take."""
    if x.is_key or x.dtype.kind in kinds:
        raise DtypeError(f"{name} does not take {x.dtype} arrays; {what}.")


def unary(
    name: str, op: Op, doc: str, *, float_only: bool = False, no_complex: bool = False, no_bool: bool = False
) -> Any:
    """An elementwise function of one array.

    ``float_only``: integers are converted to floats first.
    """

    def f(x: Any, /) -> Any:
        if type(x) is ArrayImpl and state.frame is None and x._np is not None and x.dtype.kind == "f":
            return ArrayImpl(state.run(op.numpy, x._np), x.weak_type)
        x = array(x, name)
        refuse(name, x, ("c" if no_complex else "") + ("b" if no_bool else ""), "convert them with .astype(...)")
        x = inexact(x) if float_only else x
        return with_weak_type(op(x), x.weak_type)

    return documented(f, name, doc, "x: array or number.")


def binary(
    name: str,
    op: Op,
    doc: str,
    *,
    float_only: bool = False,
    comparison: bool = False,
    no_complex: bool = False,
    no_bool: bool = False,
    integers: bool = False,
) -> Any:
    """An elementwise function of two arrays, with promotion and broadcasting."""
    ufunc = op.numpy

    def f(x: Any, y: Any, /) -> Any:
        if (
            state.frame is None
            and type(x) is ArrayImpl
            and type(y) is ArrayImpl
            and x.dtype is y.dtype
            and x.dtype.kind == "f"
        ):
            a, b = x._np, y._np
            if a is not None and b is not None and a.shape == b.shape and not integers:
                return ArrayImpl(state.run(ufunc, a, b), x.weak_type and y.weak_type and not comparison)
        (x, y), weak = promoted(name, x, y)
        refuse(
            name,
            x,
            ("c" if no_complex else "") + ("b" if no_bool else "") + ("fcV" if integers else ""),
            "it takes integers and booleans only" if integers else "convert them with .astype(...)",
        )
        if float_only:
            x, y = inexact(x), inexact(y)
        out = apply(op, name, x, y)
        return out if comparison else with_weak_type(out, weak)

    return documented(f, name, doc, "x, y: arrays or numbers that broadcast together.")


def documented(f: Any, name: str, doc: str, arguments: str) -> Any:
    """Give a made function its name and docstring."""
    f.__name__ = f.__qualname__ = name
    f.__module__ = "xformlib.numpy"
    f.__doc__ = (
        f"{doc}\n\n    Args:\n        {arguments} Scalars are weakly typed.\n\n    Raises:\n        NotAnArrayError, DtypeError, "
        "ShapeError: arguments that are no arrays, of dtypes it does not take, or that do not broadcast.\n"
    )
    return f


def default_int() -> Any:
    """The dtype of indices and counts."""
    return python_scalar_dtype(int)


def default_float() -> Any:
    """The dtype of new floating arrays."""
    return python_scalar_dtype(float)


def requested(dtype: Any, default: Any) -> Any:
    """The dtype asked for, or a default."""
    return canonicalize_dtype(default) if dtype is None else dtypes.requested(dtype)


def sequence(xs: Any, name: str) -> list[Any]:
    """A sequence of arrays, as arrays."""
    if isinstance(xs, Array | np.ndarray):
        if not xs.shape:
            raise NotAnArrayError(f"{name} takes a sequence of arrays; got a 0-d array.")
        return [xs[i] if isinstance(xs, Array) else to_array(xs[i]) for i in range(xs.shape[0])]
    if not isinstance(xs, Sequence) or isinstance(xs, str):
        raise NotAnArrayError(f"{name} takes a sequence of arrays; got {type(xs).__name__}.")
    return [array(x, name, i) for i, x in enumerate(xs)]
