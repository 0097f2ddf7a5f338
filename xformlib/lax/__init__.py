"""The operations themselves: strict about shapes and dtypes, where :mod:`xformlib.numpy` promotes and broadcasts."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as _np

from xformlib import dtypes as _dtypes
from xformlib.array import Array
from xformlib.errors import DtypeError, ShapeError
from xformlib.keys import with_weak_type as _with_weak_type
from xformlib.numpy import asarray as _asarray
from xformlib.numpy._util import array as _array
from xformlib.numpy._util import broadcast_to_shape, shape_of
from xformlib.op import Op as _Op
from xformlib.ops import elementwise as _ew
from xformlib.ops import movement as _movement
from xformlib.ops import reduction as _reduction
from xformlib.ops.creation import full as _full
from xformlib.ops.creation import iota as _iota
from xformlib.ops.gradient import stop_gradient


def _is_scalar(x: Any) -> bool:
    return isinstance(x, bool | int | float | builtins.complex) and not isinstance(x, _np.generic)


def _strict(name: str, op: Any, *, kinds: str = "", result: str = "") -> Any:
    """An op on arrays of one shape and dtype; Python scalars take the dtype of the arrays."""

    def f(*operands: Any) -> Any:
        arrays = [_array(x, f"lax.{name}", i) for i, x in enumerate(operands)]
        sized = [a for a, x in zip(arrays, operands, strict=True) if not _is_scalar(x)] or arrays[:1]
        dtype, shape = sized[0].dtype, next((a.shape for a in sized if a.shape), ())
        for a in sized:
            if a.dtype != dtype:
                raise DtypeError(
                    f"lax.{name}: dtypes {', '.join(str(v.dtype) for v in sized)} must be equal; "
                    "convert with .astype(...), or use xformlib.numpy, which promotes."
                )
            if a.shape not in ((), shape):
                raise ShapeError(
                    f"lax.{name}: shapes {', '.join(str(v.shape) for v in sized)} must be equal (or scalars); "
                    "xformlib.numpy broadcasts."
                )
        if dtype.kind in kinds:
            raise DtypeError(f"lax.{name} does not take {dtype} arrays.")
        weak = all(a.weak_type for a in arrays)
        cast = [a if a.dtype == dtype else _ew.convert(a, dtype=dtype) for a in arrays]
        out = op(*cast)
        return out if result == "bool" else _with_weak_type(out, weak)

    f.__name__ = f.__qualname__ = name
    doc = op.doc if isinstance(op, _Op) else (op.__doc__ or name)
    f.__doc__ = f"{doc}\n\n    Operands have one shape and dtype.\n\n    Raises:\n        DtypeError, ShapeError: they do not.\n"
    return f


add, sub, mul, div = (_strict(n, getattr(_ew, n)) for n in ("add", "sub", "mul", "div"))
rem, max, min, pow, atan2 = (_strict(n, getattr(_ew, n)) for n in ("rem", "max", "min", "pow", "atan2"))
nextafter = _strict("nextafter", _ew.nextafter, kinds="iubc")
neg, abs, sign = (_strict(n, getattr(_ew, n)) for n in ("neg", "abs", "sign"))
exp, expm1, log, log1p, logistic = (
    _strict(n, getattr(_ew, n), kinds="iub") for n in ("exp", "expm1", "log", "log1p", "logistic")
)
exp2 = _strict("exp2", _ew.exp2, kinds="iub")
sqrt, rsqrt, cbrt = (_strict(n, getattr(_ew, n), kinds="iub") for n in ("sqrt", "rsqrt", "cbrt"))
sin, cos, tan, tanh = (_strict(n, getattr(_ew, n), kinds="iub") for n in ("sin", "cos", "tan", "tanh"))
asin, acos, atan, sinh, cosh = (
    _strict(n, getattr(_ew, n), kinds="iub") for n in ("asin", "acos", "atan", "sinh", "cosh")
)
asinh, acosh, atanh = (_strict(n, getattr(_ew, n), kinds="iub") for n in ("asinh", "acosh", "atanh"))
erf, erfc, erf_inv = (_strict(n, getattr(_ew, n), kinds="iubc") for n in ("erf", "erfc", "erf_inv"))
floor, ceil = (_strict(n, getattr(_ew, n), kinds="iubc") for n in ("floor", "ceil"))
is_finite = _strict("is_finite", _ew.is_finite, kinds="iub", result="bool")
eq, ne, lt, le, gt, ge = (_strict(n, getattr(_ew, n), result="bool") for n in ("eq", "ne", "lt", "le", "gt", "ge"))
bitwise_and, bitwise_or, bitwise_xor = (
    _strict(n, getattr(_ew, n), kinds="fcV") for n in ("bitwise_and", "bitwise_or", "bitwise_xor")
)
bitwise_not = _strict("bitwise_not", _ew.bitwise_not, kinds="fcV")
shift_left = _strict("shift_left", _ew.shift_left, kinds="bfcV")
shift_right_logical = _strict("shift_right_logical", _ew.shift_right_logical, kinds="bfcV")
shift_right_arithmetic = _strict("shift_right_arithmetic", _ew.shift_right_arithmetic, kinds="bfcV")
population_count = _strict("population_count", _ew.population_count, kinds="bfcV")
clz = _strict("clz", _ew.count_leading_zeros, kinds="bfcV")
real, imag = _strict("real", _ew.real, kinds="iubfV"), _strict("imag", _ew.imag, kinds="iubfV")
complex = _strict("complex", _ew.complex, kinds="iubc")
conj = _strict("conj", _ew.conj, kinds="iubfV")


def square(x: Any) -> Array:
    """The square."""
    return mul(x, x)  # type: ignore[no-any-return]


def reciprocal(x: Any) -> Array:
    """1/x."""
    return div(1, x)  # type: ignore[no-any-return]


def integer_pow(x: Any, y: int) -> Array:
    """A static integer power, by multiplication."""
    return _ew.integer_pow(_array(x, "lax.integer_pow"), int(y))  # type: ignore[no-any-return]


def convert_element_type(operand: Any, new_dtype: Any) -> Array:
    """Elements as another dtype; floating to integer saturates, NaN becomes 0."""
    x = _array(operand, "lax.convert_element_type")
    return _ew.convert(x, dtype=_dtypes.requested(new_dtype))  # type: ignore[no-any-return]


def bitcast_convert_type(operand: Any, new_dtype: Any) -> Array:
    """The same bits as another dtype."""
    return _ew.bitcast_convert(_array(operand, "lax.bitcast_convert_type"), dtype=_dtypes.requested(new_dtype))  # type: ignore[no-any-return]


def select(pred: Any, on_true: Any, on_false: Any) -> Array:
    """Elements of ``on_true`` where ``pred`` is true, else of ``on_false``."""
    p, x, y = (_array(v, "lax.select", i) for i, v in enumerate((pred, on_true, on_false)))
    if x.shape != y.shape or x.dtype != y.dtype or p.shape not in ((), x.shape):
        raise ShapeError(
            f"lax.select: cases {x.aval} and {y.aval} must be equal, and the predicate {p.aval} of their shape."
        )
    return _ew.select(p, x, y)  # type: ignore[no-any-return]


def clamp(min: Any, x: Any, max: Any) -> Array:
    """``x`` limited to the interval."""
    return _strict("clamp", _ew.clamp)(min, x, max)  # type: ignore[no-any-return]


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Array:
    """An array of one repeated value."""
    from xformlib import numpy as jnp

    return jnp.full(shape, fill_value, dtype)


def full_like(x: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Array:
    """An array of one repeated value, like another."""
    from xformlib import numpy as jnp

    return jnp.full_like(x, fill_value, dtype, shape)


def iota(dtype: Any, size: int) -> Array:
    """0, 1, 2, …"""
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype: Any, shape: Any, dimension: int) -> Array:
    """The position along one axis."""
    return _iota(shape=shape_of(shape, "lax.iota"), dtype=_dtypes.requested(dtype), iota_dimension=dimension)  # type: ignore[no-any-return]


def broadcast(operand: Any, sizes: Sequence[int]) -> Array:
    """New leading axes of the given sizes."""
    x = _array(operand, "lax.broadcast")
    return broadcast_to_shape(x, (*shape_of(sizes, "lax.broadcast"), *x.shape))  # type: ignore[no-any-return]


def broadcast_in_dim(operand: Any, shape: Any, broadcast_dimensions: Sequence[int]) -> Array:
    """An array placed in a larger shape: its axis ``i`` becomes axis ``broadcast_dimensions[i]``."""
    x = _array(operand, "lax.broadcast_in_dim")
    dims, wanted = tuple(broadcast_dimensions), shape_of(shape, "lax.broadcast_in_dim")
    if len(dims) != x.ndim or any(x.shape[i] not in (1, wanted[d]) for i, d in enumerate(dims)):
        raise ShapeError(f"lax.broadcast_in_dim: shape {x.shape} does not fit {wanted} at axes {dims}.")
    return _movement.broadcast_in_dim(x, shape=wanted, broadcast_dimensions=dims)  # type: ignore[no-any-return]


def reshape(operand: Any, new_sizes: Any, dimensions: Any = None) -> Array:
    """The same elements with another shape."""
    from xformlib import numpy as jnp

    return jnp.reshape(operand if dimensions is None else jnp.transpose(operand, dimensions), new_sizes)


def transpose(operand: Any, permutation: Sequence[int]) -> Array:
    """Axes permuted."""
    from xformlib import numpy as jnp

    return jnp.transpose(operand, permutation)


def rev(operand: Any, dimensions: Sequence[int]) -> Array:
    """Elements in reverse order along axes."""
    from xformlib import numpy as jnp

    return jnp.flip(operand, tuple(dimensions))


def slice(
    operand: Any, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> Array:
    """A static slice."""
    x = _array(operand, "lax.slice")
    start, limit = tuple(start_indices), tuple(limit_indices)
    step = (1,) * x.ndim if strides is None else tuple(strides)
    if any(not 0 <= a <= b <= n or s < 1 for a, b, s, n in zip(start, limit, step, x.shape, strict=True)):
        raise ShapeError(f"lax.slice: {start} to {limit} by {step} does not lie within shape {x.shape}.")
    return _movement.slice(x, start_indices=start, limit_indices=limit, strides=step)  # type: ignore[no-any-return]


def slice_in_dim(
    operand: Any, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Array:
    """A static slice along one axis."""
    x = _array(operand, "lax.slice_in_dim")
    index = [builtins.slice(None)] * x.ndim
    index[axis] = builtins.slice(start_index, limit_index, stride)
    return x[tuple(index)]  # type: ignore[no-any-return]


def _starts(x: Any, starts: Any) -> list[Any]:
    values = [starts[i] for i in range(x.ndim)] if isinstance(starts, Array | _np.ndarray) else list(starts)
    arrays = [_array(v, "lax.dynamic_slice", 1) for v in values]
    dtype = _dtypes.result_type(*arrays) if arrays else _np.dtype(_np.int32)
    out = []
    for v, n in zip(arrays, x.shape, strict=True):
        v = v if v.dtype == dtype else _ew.convert(v, dtype=dtype)
        out.append(_ew.select(_ew.lt(v, 0), _ew.add(v, n), v) if dtype.kind == "i" else v)
    return out


def dynamic_slice(operand: Any, start_indices: Any, slice_sizes: Any) -> Array:
    """A slice of static size at traced positions, moved inside where it would stick out."""
    from xformlib.ops.indexing import dynamic_slice as op

    x = _array(operand, "lax.dynamic_slice")
    sizes = shape_of(slice_sizes, "lax.dynamic_slice")
    if len(sizes) != x.ndim or any(s > n for s, n in zip(sizes, x.shape, strict=True)):
        raise ShapeError(f"lax.dynamic_slice: sizes {sizes} do not fit shape {x.shape}.")
    return op(x, *_starts(x, start_indices), slice_sizes=sizes)  # type: ignore[no-any-return]


def dynamic_update_slice(operand: Any, update: Any, start_indices: Any) -> Array:
    """A slice replaced at traced positions, moved inside where it would stick out."""
    from xformlib.ops.indexing import dynamic_update_slice as op

    x, new = _array(operand, "lax.dynamic_update_slice"), _array(update, "lax.dynamic_update_slice", 1)
    if new.ndim != x.ndim or new.dtype != x.dtype or any(s > n for s, n in zip(new.shape, x.shape, strict=True)):
        raise ShapeError(f"lax.dynamic_update_slice: an update {new.aval} does not fit into {x.aval}.")
    return op(x, new, *_starts(x, start_indices))  # type: ignore[no-any-return]


def concatenate(operands: Sequence[Any], dimension: int) -> Array:
    """Arrays joined along an axis."""
    from xformlib import numpy as jnp

    return jnp.concatenate(operands, dimension)


def pad(operand: Any, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]) -> Array:
    """Padding before, after (negative: cropping) and between elements, per axis."""
    x = _array(operand, "lax.pad")
    value = _ew.convert(_array(padding_value, "lax.pad", 1), dtype=x.dtype)
    low, high, inner = (tuple([c[i] for c in padding_config]) for i in range(3))
    if len(low) != x.ndim:
        raise ShapeError(f"lax.pad: padding_config has {len(low)} entries for shape {x.shape}.")
    return _movement.pad(x, value, edge_padding_low=low, edge_padding_high=high, interior_padding=inner)  # type: ignore[no-any-return]


def expand_dims(array: Any, dimensions: Sequence[int]) -> Array:
    """New axes of size 1."""
    from xformlib import numpy as jnp

    return jnp.expand_dims(array, tuple(dimensions))


def squeeze(array: Any, dimensions: Sequence[int]) -> Array:
    """Axes of size 1 removed."""
    from xformlib import numpy as jnp

    return jnp.squeeze(array, tuple(dimensions))


def _reducing(name: str) -> Any:
    op = getattr(_reduction, name)

    def f(operand: Any, axes: Sequence[int]) -> Any:
        from xformlib.numpy._util import axes_of

        x = _array(operand, f"lax.{name}")
        return op(x, dimensions=axes_of(tuple(axes), x.ndim, f"lax.{name}"))

    f.__name__ = f.__qualname__ = name
    f.__doc__ = op.doc
    return f


reduce_sum, reduce_prod, reduce_max = (_reducing(n) for n in ("reduce_sum", "reduce_prod", "reduce_max"))
reduce_min, reduce_and, reduce_or = (_reducing(n) for n in ("reduce_min", "reduce_and", "reduce_or"))


def argmax(operand: Any, axis: int, index_dtype: Any) -> Array:
    """Position of the first largest element (or NaN)."""
    return _reduction.argmax(_asarray(operand), axis=axis, index_dtype=_dtypes.requested(index_dtype))  # type: ignore[no-any-return]


def argmin(operand: Any, axis: int, index_dtype: Any) -> Array:
    """Position of the first smallest element (or NaN)."""
    return _reduction.argmin(_asarray(operand), axis=axis, index_dtype=_dtypes.requested(index_dtype))  # type: ignore[no-any-return]


def dot(lhs: Any, rhs: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """Product of vectors and matrices."""
    from xformlib import numpy as jnp

    return jnp.dot(lhs, rhs, preferred_element_type=preferred_element_type)


def dot_general(
    lhs: Any, rhs: Any, dimension_numbers: Any, precision: Any = None, preferred_element_type: Any = None
) -> Array:
    """Product over contracting axes, for each index of the batch axes: ``((lhs, rhs) contracting, (lhs, rhs) batch)``."""
    from xformlib.dims import DotDims
    from xformlib.ops.contraction import dot_general as op

    x, y = _array(lhs, "lax.dot_general"), _array(rhs, "lax.dot_general", 1)
    (lc, rc), (lb, rb) = dimension_numbers
    if [x.shape[i] for i in (*lc, *lb)] != [y.shape[i] for i in (*rc, *rb)]:
        raise ShapeError(f"lax.dot_general: axes {dimension_numbers} of shapes {x.shape} and {y.shape} do not fit.")
    if x.dtype != y.dtype and preferred_element_type is None:
        raise DtypeError(f"lax.dot_general: dtypes {x.dtype} and {y.dtype} must be equal.")
    wanted = x.dtype if preferred_element_type is None else _dtypes.requested(preferred_element_type)
    return op(x, y, dot_dimension_numbers=DotDims(tuple(lb), tuple(rb), tuple(lc), tuple(rc)), dtype=wanted)  # type: ignore[no-any-return]


def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """Arrays sorted along an axis by the first ``num_keys`` of them."""
    from xformlib.ops.sorting import sort as op

    several = isinstance(operand, tuple | list)
    xs = [_asarray(x) for x in (operand if several else [operand])]
    out = op(*xs, dimension=dimension % xs[0].ndim, is_stable=is_stable, num_keys=num_keys)
    return tuple(out) if several else out[0]


def zeros_like_array(x: Any) -> Array:
    """Zeros like another array."""
    a = _array(x, "lax.zeros_like_array")
    return _full(a.shape, 0, a.dtype)  # type: ignore[no-any-return]


__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "argmax",
    "argmin",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitcast_convert_type",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "broadcast",
    "broadcast_in_dim",
    "broadcasted_iota",
    "cbrt",
    "ceil",
    "clamp",
    "clz",
    "complex",
    "concatenate",
    "conj",
    "convert_element_type",
    "cos",
    "cosh",
    "div",
    "dot",
    "dot_general",
    "dynamic_slice",
    "dynamic_update_slice",
    "eq",
    "erf",
    "erf_inv",
    "erfc",
    "exp",
    "exp2",
    "expand_dims",
    "expm1",
    "floor",
    "full",
    "full_like",
    "ge",
    "gt",
    "imag",
    "integer_pow",
    "iota",
    "is_finite",
    "le",
    "log",
    "log1p",
    "logistic",
    "lt",
    "max",
    "min",
    "mul",
    "ne",
    "neg",
    "nextafter",
    "pad",
    "population_count",
    "pow",
    "real",
    "reciprocal",
    "reduce_and",
    "reduce_max",
    "reduce_min",
    "reduce_or",
    "reduce_prod",
    "reduce_sum",
    "rem",
    "reshape",
    "rev",
    "rsqrt",
    "select",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "sign",
    "sin",
    "sinh",
    "slice",
    "slice_in_dim",
    "sort",
    "sqrt",
    "square",
    "squeeze",
    "stop_gradient",
    "sub",
    "tan",
    "tanh",
    "transpose",
    "zeros_like_array",
]
