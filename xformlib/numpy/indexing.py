"""``x[index]`` and ``x.at[index]`` with NumPy's grammar.

Negative indices count from the end. Out of range, reads take the nearest element and updates are dropped, unless
``mode`` says otherwise; memory outside the array is never touched.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from xformlib import dtypes
from xformlib.array import Array, ArrayImpl
from xformlib.convert import to_array
from xformlib.errors import DtypeError, IndexingError, ShapeError, user_frame
from xformlib.keys import KEY_WORDS, unwrap_key, wrap_key
from xformlib.numpy import index_lowering as lowered
from xformlib.numpy.index_grammar import Index, parse
from xformlib.numpy.index_lowering import Rules, Way
from xformlib.op import state
from xformlib.ops import elementwise as ew
from xformlib.ops.creation import full
from xformlib.ops.movement import broadcast_in_dim
from xformlib.ops.reduction import accumulator

__all__ = ["Part", "Parts", "getitem"]

_MODES = {
    **{name: name for name in ("clip", "drop", "wrap", "promise_in_bounds")},
    "fill": "drop",
    "fill_or_drop": "drop",
}


def _rules(mode: Any, default: str, indices_are_sorted: bool, unique_indices: bool, from_end: bool) -> Rules:
    if mode is None:
        found: str | None = default
    else:
        # An enum such as lax.GatherScatterMode is known by the names of its members.
        found = _MODES.get(str(getattr(mode, "name", mode)).lower())
    if found is None:
        raise IndexingError(
            f"mode is {mode!r:.40}, but must be 'clip', 'fill' or 'drop' (the same), 'wrap' or 'promise_in_bounds'."
        )
    return Rules(found, from_end, indices_are_sorted, unique_indices)


# -- reading --------------------------------------------------------------------------------------------------------

_READ = Rules("clip")


def getitem(x: Any, index: Any) -> Any:
    """``x[index]``.

    Raises:
        IndexingError: an index that NumPy's grammar does not allow.
        NonConcreteBooleanIndexError: a traced mask without known values.
    """
    if state.frame is None and type(x) is ArrayImpl:
        native = _native(index)
        if native is not None:
            data = x._load()
            try:
                return ArrayImpl(_released(data[native[0]], data), x.weak_type)
            except (IndexError, TypeError, ValueError):
                pass  # out of range, or wrong: the general way knows what to do
    return _read(x, parse(index, x.shape), _READ)


def _read(x: Any, index: Index, rules: Rules, fill_value: Any = None) -> Any:
    if x.is_key:
        if rules.mode == "drop":
            raise DtypeError("arrays of PRNG keys have no fill value; use mode='clip'.")
        return wrap_key(lowered.read(unwrap_key(x), index.with_whole_axis(KEY_WORDS), rules), x.dtype)
    if fill_value is not None:
        fill_value = ew.convert(to_array(fill_value, "fill_value"), dtype=x.dtype)
    return lowered.read(x, index, rules, fill_value)


_NATIVE = frozenset([int, slice, type(None), type(Ellipsis)])


def _native(index: Any) -> tuple[Any, bool] | None:
    """An index of concrete parts as NumPy takes it, and whether it takes no index arrays; None where NumPy's
    understanding may differ.
    """
    kind = type(index)
    if kind in _NATIVE:
        return index, True
    if kind is not tuple:
        array = _native_array(index)
        return None if array is None else (array, False)
    parts, basic = [], True
    for part in index:
        if type(part) not in _NATIVE:
            basic = False
            part = _native_array(part)
            if part is None:
                return None
        parts.append(part)
    return tuple(parts), basic


def _native_array(part: Any) -> Any:
    if type(part) is ArrayImpl:
        part = part._load()
    elif not isinstance(part, np.ndarray | np.generic):
        return None
    return part if part.dtype.kind in "iub" and part.dtype != np.uint64 else None


def _released(part: Any, whole: Any) -> Any:
    """A small view of a large array is copied, lest it keep the whole alive."""
    if whole.nbytes > 1 << 16 and part.nbytes * 8 < whole.nbytes:
        return part.copy()
    return part


# -- updating -------------------------------------------------------------------------------------------------------


def _values(x: Any, values: Any) -> Any:
    """What is to be written into ``x``, as an array of its dtype."""
    if not isinstance(values, Array):
        if isinstance(values, list | tuple):
            from xformlib.numpy import asarray

            values = asarray(values)
        else:
            values = to_array(values, "the new value")
    if values.dtype == x.dtype:
        return values
    if x.is_key or values.is_key:
        raise DtypeError(f"values of dtype {values.dtype} can't be put into an array of dtype {x.dtype}.")
    common = dtypes.promote(x.dtype, x.weak_type, values.dtype, values.weak_type)[0]
    if common != x.dtype:
        if common.kind == "c" and x.dtype.kind != "c":
            raise DtypeError(
                f"complex values can't be put into an array of dtype {x.dtype}; use x.astype(complex).at[...], "
                "or the values' .real."
            )
        _warn_of_cast(values.dtype, x.dtype)
    return ew.convert(values, dtype=x.dtype)


def _warn_of_cast(given: Any, dtype: Any) -> None:
    message = (
        f"values of dtype {given} are put into an array of dtype {dtype}, which can't hold all of them; convert one of "
        "them with .astype. This will be an error some day."
    )
    frame = user_frame()
    if frame is None:
        warnings.warn(message, FutureWarning, stacklevel=4)
    else:
        warnings.warn_explicit(message, FutureWarning, frame.f_code.co_filename, frame.f_lineno)


def _fits(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether an array of this shape broadcasts to the target."""
    if len(shape) > len(target):
        return False
    return all(n in (1, m) for n, m in zip(reversed(shape), reversed(target), strict=False))


def _broadcast(values: Any, shape: tuple[int, ...]) -> Any:
    if values.shape == shape:
        return values
    if not _fits(values.shape, shape):
        raise ShapeError(f"values of shape {values.shape} don't broadcast to shape {shape} of the part they go to.")
    dims = tuple(range(len(shape) - len(values.shape), len(shape)))
    return broadcast_in_dim(values, shape=shape, broadcast_dimensions=dims)


def _update(x: Any, index: Index, values: Any, way: Way, rules: Rules) -> Any:
    values = _broadcast(values, index.result_shape)
    if not x.is_key:
        return lowered.update(x, index, values, way, rules)
    if way is not lowered.SET:
        raise DtypeError("PRNG keys are no numbers: x.at[...] of an array of keys has set and get only.")
    index = index.with_whole_axis(KEY_WORDS)
    return wrap_key(lowered.update(unwrap_key(x), index, unwrap_key(values), way, rules), x.dtype)


# Elements up to which ufunc.at beats the scatter ops, which sort.
_FEW = 4096


def _update_directly(x: ArrayImpl, index: Any, values: Any, way: Way) -> ArrayImpl | None:
    """An update of concrete arrays by NumPy's assignment; None where it may mean something else."""
    native = _native(index)
    if native is None or type(values) is not ArrayImpl:
        return None
    place, basic = native
    new = values._load()
    out = np.array(x._load())
    try:
        if new.ndim or way.ufunc is not None:
            part = out[place]
            if not _fits(new.shape, part.shape):
                return None
            if way.ufunc is not None and not basic:
                if part.size > _FEW or accumulator(out.dtype) != out.dtype:
                    return None
                state.run(way.ufunc.at, out, place, new)
                return ArrayImpl(out, x.weak_type)
            new = new if way.combine is None else state.run(way.combine.numpy, part, new)
        out[place] = new
    except (IndexError, TypeError, ValueError):
        return None
    return ArrayImpl(out, x.weak_type)


# -- x.at -----------------------------------------------------------------------------------------------------------


class Parts:
    """``x.at``: index it to name the part of ``x`` that is to be read or updated."""

    __slots__ = ("_x",)

    def __init__(self, x: Any) -> None:
        self._x = x

    def __getitem__(self, index: Any) -> Part:
        return Part(self._x, index)

    def __repr__(self) -> str:
        return f"{self._x!r}.at"


class Part:
    """``x.at[index]``. Its methods return an array; ``x`` stays as it is.

    All take these keyword arguments:

    - ``mode``: what indices out of range mean. ``"clip"``: the nearest element (default of ``get``); ``"drop"`` or
      ``"fill"``: no update (default of updates), or ``fill_value``; ``"wrap"``: modulo the size;
      ``"promise_in_bounds"``: there are none (they are still harmless).
    - ``wrap_negative_indices``: whether negative indices count from the end.
    - ``indices_are_sorted``, ``unique_indices``: promises that may save time. If they are broken, the result may be
      wrong.

    Values broadcast to the part's shape and are converted to the array's dtype, with a ``FutureWarning`` where that may
    lose some. All raise :class:`IndexingError` for a wrong index, :class:`ShapeError` for values that do not broadcast,
    and :class:`DtypeError` for complex values beside a real array.

    >>> import xformlib.numpy as jnp
    >>> x = jnp.zeros(3)
    >>> x.at[0].set(5.0)
    Array([5., 0., 0.], dtype=float32)
    >>> x.at[jnp.array([1, 1, 9])].add(1.0)
    Array([0., 2., 0.], dtype=float32)
    """

    __slots__ = ("_index", "_x")

    def __init__(self, x: Any, index: Any) -> None:
        self._x = x
        self._index = index

    def __repr__(self) -> str:
        return f"{self._x!r}.at[{self._index!r}]"

    def get(
        self,
        *,
        mode: Any = None,
        fill_value: Any = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """The part itself; like ``x[index]``, with a choice of what indices out of range give.

        Args:
            fill_value: for elements out of range under ``mode="fill"``: by default NaN, the smallest signed integer,
                the largest unsigned one, or True.

        >>> import xformlib.numpy as jnp
        >>> jnp.arange(3).at[jnp.array([2, 3])].get(mode="fill", fill_value=-1)
        Array([ 2, -1], dtype=int32)
        """
        if mode is None and wrap_negative_indices:
            return getitem(self._x, self._index)
        rules = _rules(mode, "clip", indices_are_sorted, unique_indices, wrap_negative_indices)
        return _read(self._x, parse(self._index, self._x.shape), rules, fill_value)

    def _combined(self, way: Way, values: Any, options: dict[str, Any]) -> Any:
        x = self._x
        values = _values(x, values)
        if not options and state.frame is None and type(x) is ArrayImpl:
            out = _update_directly(x, self._index, values, way)
            if out is not None:
                return out
        return _update(x, parse(self._index, x.shape), values, way, _update_rules(**options))

    def set(self, values: Any, **options: Any) -> Any:
        """``x`` with the part replaced. Of repeated indices, the last one counts."""
        return self._combined(lowered.SET, values, options)

    def add(self, values: Any, **options: Any) -> Any:
        """``x`` with values added to the part; to an element that is indexed repeatedly, all of them."""
        return self._combined(lowered.ADD, values, options)

    def subtract(self, values: Any, **options: Any) -> Any:
        """``x`` with values subtracted from the part; from an element that is indexed repeatedly, all of them."""
        if self._x.dtype == np.bool_:
            raise DtypeError("x.at[...].subtract does not take arrays of dtype bool; use set, with logical operations.")
        return self._combined(lowered.SUB, values, options)

    def multiply(self, values: Any, **options: Any) -> Any:
        """``x`` with the part multiplied by values; an element that is indexed repeatedly by all of them."""
        return self._combined(lowered.MUL, values, options)

    mul = multiply

    def min(self, values: Any, **options: Any) -> Any:
        """``x`` with the part lowered to values where these are smaller."""
        return self._combined(lowered.MIN, values, options)

    def max(self, values: Any, **options: Any) -> Any:
        """``x`` with the part raised to values where these are larger."""
        return self._combined(lowered.MAX, values, options)

    def divide(self, values: Any, **options: Any) -> Any:
        """``x`` with the part divided by values (by all of them where indices repeat); integers become floats.

        >>> import xformlib.numpy as jnp
        >>> jnp.array([1, 2]).at[0].divide(2)
        Array([0.5, 2. ], dtype=float32)
        """
        from xformlib.numpy.ufuncs import true_divide

        x = self._x
        if not dtypes.issubdtype(x.dtype, np.inexact):
            x = ew.convert(x, dtype=dtypes.to_inexact_dtype(x.dtype))
        return Part(x, self._index)._by_product(true_divide, _values(x, values), options)

    def power(self, values: Any, **options: Any) -> Any:
        """``x`` with the part raised to the power of values; where indices repeat, to the powers of all of them."""
        from xformlib.numpy.ufuncs import power

        return self._by_product(power, values, options)

    def _by_product(self, f: Callable[[Any, Any], Any], values: Any, options: dict[str, Any]) -> Any:
        """``x`` with ``f(part, values)`` for the part; where indices repeat, all values are multiplied first."""
        x, rules = self._x, _update_rules(**options)
        index = parse(self._index, x.shape)
        if lowered.repetitions(x, index, rules)[0] is not None:
            values = to_array(values, "the new value")
            values = _broadcast(values, index.result_shape)
            board = full(x.shape, 1, values.dtype)
            values = _read(_update(board, index, values, lowered.MUL, rules), index, _reading(rules))
        new = f(_read(x, index, _reading(rules)), values)
        return _update(x, index, _values(x, new), lowered.SET, rules)

    def apply(self, func: Callable[[Any], Any], **options: Any) -> Any:
        """``x`` with an elementwise function applied to the part; as many times as an element is indexed.

        >>> import xformlib.numpy as jnp
        >>> jnp.arange(3.0).at[jnp.array([1, 1, 2])].apply(lambda v: 10 * v)
        Array([  0., 100.,  20.], dtype=float32)
        """
        x, rules = self._x, _update_rules(**options)
        index = parse(self._index, x.shape)
        counts, most = lowered.repetitions(x, index, rules)

        def applied(x: Any, round_: Any) -> Any:
            old = _read(x, index, _reading(rules))
            new = _values(x, func(old))
            if counts is not None:  # repeated elements are read, and written, with equal values
                new = ew.select(ew.gt(counts, round_), _broadcast(new, old.shape), old)
            return _update(x, index, new, lowered.SET, rules)

        if most <= _UNROLLED or state.frame is None:
            for i in range(most):
                x = applied(x, i)
            return x
        raise IndexingError(
            f"x.at[...].apply: up to {most} of the traced indices may be equal, and each repetition applies the function "
            f"again; {_UNROLLED} rounds are staged at most. Where no index repeats say so with unique_indices=True."
        )


_UNROLLED = 8  # rounds of apply that are staged one by one


def _update_rules(
    mode: Any = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    wrap_negative_indices: bool = True,
) -> Rules:
    return _rules(mode, "drop", indices_are_sorted, unique_indices, wrap_negative_indices)


def _reading(rules: Rules) -> Rules:
    """The rules of an update for reading the same elements: what is not updated may be read as anything."""
    return replace(rules, mode="clip") if rules.mode == "drop" else rules
