"""NumPy's grammar of ``x[index]``: what each part addresses, and the axes of the result.

:func:`parse` looks at shapes and at what is static only; ``indexing.py`` turns its result into operations.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, field
from types import EllipsisType
from typing import Any, NamedTuple

import numpy as np

from xformlib.array import Array, ArrayImpl, Tracer
from xformlib.dtypes import issubdtype
from xformlib.errors import (
    IndexingError,
    NonConcreteBooleanIndexError,
    ShapeError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
)

__all__ = ["POINTS", "Index", "Span", "parse"]

#: Where the axes of the index arrays stand in :attr:`Index.layout`.
POINTS = "points"


class Span(NamedTuple):
    """A slice of an axis: ``size`` elements from ``start`` upwards, ``step`` apart; ``reverse``: in falling order."""

    start: int
    size: int
    step: int
    reverse: bool


@dataclass(frozen=True)
class Index:
    """A parsed index.

    shape: of the array.
    axes: per axis of the array, a :class:`Span`, an int (as given: it may be negative or out of range), a traced
        integer of rank 0, or an integer array (a NumPy array unless it is traced).
    layout: the axes of the result: numbers of spanned axes, None for new ones, :data:`POINTS` for all those of the
        index arrays.
    points: the shape that the index arrays (and with them the ints) broadcast to; None if there are none.
    unique: whether the points differ from each other, whatever the values of index arrays are.
    """

    shape: tuple[int, ...]
    axes: tuple[Any, ...]
    layout: tuple[int | str | None, ...]
    points: tuple[int, ...] | None
    unique: bool

    @property
    def result_shape(self) -> tuple[int, ...]:
        """The shape of ``x[index]``."""
        out: list[int] = []
        for item in self.layout:
            if item == POINTS:
                out += self.points or ()
            else:
                out.append(1 if item is None else self.axes[item].size)  # type: ignore[index]
        return tuple(out)

    def with_whole_axis(self, size: int) -> Index:
        """The same for an array with one more, trailing axis, which is taken whole."""
        rank = len(self.shape)
        return Index(
            (*self.shape, size),
            (*self.axes, Span(0, size, 1, False)),
            (*self.layout, rank),
            self.points,
            self.unique,
        )


def parse(index: Any, shape: tuple[int, ...]) -> Index:
    """Read an index of an array of the given shape.

    Raises:
        IndexingError: something that is no index, too many parts, a mask that does not fit, several ellipses, an int
            on an axis of size 0.
        NonConcreteBooleanIndexError: a traced mask whose values are not known.
        ShapeError: index arrays that do not broadcast together.
    """
    entries = [_entry(e) for e in (index if isinstance(index, tuple) else (_not_a_sequence(index),))]
    return _Reader(shape, entries).read()


# -- the parts ------------------------------------------------------------------------------------------------------


class _Mask(NamedTuple):
    """A boolean array; of rank 0, it adds an axis of size 0 or 1."""

    values: np.ndarray


def _not_a_sequence(index: Any) -> Any:
    if isinstance(index, list | range | bytes):
        raise IndexingError(
            f"x[{index!r:.40}]: a {type(index).__name__} is not an index. "
            "For an array of positions write x[jnp.array(...)], for one index per axis x[tuple(...)]."
        )
    return index


def _entry(e: Any) -> Any:
    """One part of an index: None, Ellipsis, a slice, an int, a mask or an integer array."""
    if e is None or e is Ellipsis or type(e) is int or isinstance(e, slice):
        return e
    if isinstance(e, bool | np.bool_):
        return _Mask(np.asarray(e))
    if isinstance(e, list | tuple):
        e = _array(e)
    if not isinstance(e, Array | np.ndarray | np.generic):
        return _other(e)
    if e.dtype == np.bool_:
        return _Mask(_mask_values(e))
    if not issubdtype(e.dtype, np.integer):
        raise IndexingError(
            f"an index array has dtype {e.dtype}, but positions are integers and masks are bool; "
            "convert it with .astype(int)."
        )
    if isinstance(e, Tracer):
        return e
    values = np.asarray(e._load() if isinstance(e, ArrayImpl) else e)
    return values if values.shape else int(values)


def _array(e: Any) -> Any:
    from xformlib.numpy import asarray

    found = asarray(e)
    return np.zeros(found.shape, np.int32) if not found.size else found


def _other(e: Any) -> Any:
    if isinstance(e, str | bytes):
        raise IndexingError(f"x[{e!r:.40}]: arrays have no named fields; index them by integers, slices and arrays.")
    convert = getattr(e, "__jax_array__", None) or getattr(e, "__xformlib_array__", None)
    if convert is not None:
        return _entry(convert())
    if isinstance(e, float | complex) or not hasattr(type(e), "__index__"):
        raise IndexingError(
            f"x[{e!r:.40}]: {type(e).__name__} is not an index. Indices are integers, slices, ..., None, and integer "
            "or boolean arrays."
        )
    return operator.index(e)


def _mask_values(mask: Any) -> np.ndarray:
    if isinstance(mask, Tracer):
        try:
            return mask._concrete("a boolean index", TracerBoolConversionError)
        except TracerBoolConversionError:
            raise NonConcreteBooleanIndexError(
                f"A traced mask ({mask.aval}, in {mask._frame.kind}) was used as an index, but the size of the result "
                "would depend on its values, which are not known. Use\n"
                "  - xformlib.numpy.where(mask, new, x) in place of x.at[mask].set(new);\n"
                "  - xformlib.numpy.sum(x, where=mask) and the like, or where(mask, x, 0), in place of x[mask];\n"
                "  - x[xformlib.numpy.nonzero(mask, size=n, fill_value=...)], with n known, for a fixed number of them."
            ) from None
    return mask._load() if isinstance(mask, ArrayImpl) else np.asarray(mask)


def span(s: slice, size: int) -> Span:
    """A slice of an axis of ``size`` elements."""
    try:
        start, stop, step = s.indices(size)
    except TracerIntegerConversionError:
        raise IndexingError(
            "the bounds of a slice must be static, since they give the shape of the result; one of them is traced. Use "
            "xformlib.lax.dynamic_slice_in_dim(x, start, size) for a slice of fixed size, or where(mask, x, 0)."
        ) from None
    except ValueError as e:
        raise IndexingError(f"x[{s}]: {e}; give a step other than 0.") from None
    except TypeError as e:
        raise IndexingError(f"x[{s}]: {e}; the bounds of a slice are integers or None.") from None
    count = len(range(start, stop, step))
    if count == 0:
        return Span(0, 0, 1, False)
    first = start if step > 0 else start + (count - 1) * step
    return Span(first, count, abs(step) if count > 1 else 1, step < 0 and count > 1)


# -- reading --------------------------------------------------------------------------------------------------------


@dataclass
class _Reader:
    """Reads the parts of an index from left to right."""

    shape: tuple[int, ...]
    entries: list[Any]
    axes: list[Any] = field(default_factory=list)
    layout: list[int | str | None] = field(default_factory=list)
    shapes: list[tuple[int, ...]] = field(default_factory=list)  # of the index arrays
    unique: bool = True

    def read(self) -> Index:
        self._expand_ellipsis()
        has_points = any(isinstance(e, _Mask) or (_is_array(e) and e.shape) for e in self.entries)
        together = self._points_together(has_points)
        if has_points and not together:
            self.layout.append(POINTS)
        for e in self.entries:
            if isinstance(e, slice):
                self.layout.append(len(self.axes))
                self.axes.append(span(e, self.shape[len(self.axes)]))
            elif e is None:
                self.layout.append(None)
            elif e is not Ellipsis:
                if has_points and POINTS not in self.layout:
                    self.layout.append(POINTS)
                self._add_position(e)
        points = self._points_shape() if has_points else None
        masks = sum(isinstance(e, _Mask) for e in self.entries)
        arrays = sum(_is_array(e) and bool(e.shape) for e in self.entries)
        unique = points is None or math.prod(points) <= 1 or (masks == 1 and not arrays)
        return Index(self.shape, tuple(self.axes), tuple(self.layout), points, unique)

    def _expand_ellipsis(self) -> None:
        """Slices for the axes that an ellipsis, or nothing, stands for. The ellipsis itself stays, as a separator."""
        places = [i for i, e in enumerate(self.entries) if e is Ellipsis]
        if len(places) > 1:
            raise IndexingError("an index can have one ellipsis (...) only; write slices (:) for the other axes.")
        used = sum(_consumed(e) for e in self.entries)
        left = len(self.shape) - used
        if left < 0:
            raise IndexingError(
                f"too many indices: the array has {len(self.shape)} axes (shape {self.shape}), but {used} were indexed."
            )
        place = places[0] + 1 if places else len(self.entries)
        self.entries[place:place] = [slice(None)] * left

    def _points_together(self, has_points: bool) -> bool:
        """Whether the index arrays (ints count as such beside them) stand next to each other."""
        places = [i for i, e in enumerate(self.entries) if has_points and _is_position(e)]
        return not places or places[-1] - places[0] == len(places) - 1

    def _add_position(self, e: Any) -> None:
        axis = len(self.axes)
        if isinstance(e, _Mask):
            self._check_mask(e.values, axis)
            if e.values.ndim:
                positions = np.nonzero(e.values)
                self.shapes.append(positions[0].shape)
                self.axes += positions
            else:
                self.shapes.append((int(e.values),))
        elif not _is_array(e) or not e.shape:
            if not self.shape[axis]:
                raise IndexingError(f"index {e} is out of range: axis {axis} of shape {self.shape} has size 0.")
            self.axes.append(e)
        else:
            self.shapes.append(e.shape)
            self.axes.append(e)

    def _check_mask(self, mask: np.ndarray, axis: int) -> None:
        part = self.shape[axis : axis + mask.ndim]
        if mask.shape != part:
            raise IndexingError(
                f"a mask of shape {mask.shape} does not fit: it indexes axes {axis} to {axis + mask.ndim - 1} of "
                f"shape {self.shape}, whose sizes are {part}."
            )

    def _points_shape(self) -> tuple[int, ...]:
        try:
            return np.broadcast_shapes(*self.shapes)
        except ValueError:
            raise ShapeError(
                f"index arrays of shapes {', '.join(map(str, self.shapes))} do not broadcast together; "
                "for all combinations of rows and columns use x[xformlib.numpy.ix_(rows, columns)]."
            ) from None


def _is_array(e: Any) -> bool:
    return isinstance(e, Tracer | np.ndarray)


def _is_position(e: Any) -> bool:
    """Whether a part picks positions: not a slice, a new axis or an ellipsis."""
    return e is not None and not isinstance(e, slice | EllipsisType)


def _consumed(e: Any) -> int:
    """How many axes of the array a part stands for."""
    if isinstance(e, _Mask):
        return e.values.ndim
    return 0 if e is None or e is Ellipsis else 1
