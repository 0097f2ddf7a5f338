"""Operators and methods of :class:`xformlib.Array`: thin names for the functions of ``xformlib.numpy``.

The functions are looked up at first use, so that importing the array classes loads nothing. Once they are there,
:func:`install` puts the quick forms of operators and of indexing in place.
"""

from __future__ import annotations

import builtins
import copy
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from xformlib.errors import NotAnArrayError

if TYPE_CHECKING:
    from xformlib.numpy.indexing import Parts

__all__ = ["ArrayMethods", "install"]


@functools.cache
def _functions() -> Any:
    import xformlib.numpy

    return xformlib.numpy


def _binary(name: str, x: Any, y: Any, *, swapped: bool = False) -> Any:
    """A function of an array and the other operand of an operator, which may be something unknown."""
    from xformlib.convert import is_arraylike

    if isinstance(y, list | tuple):
        raise NotAnArrayError(
            f"an operator ({name}) was given an array and a {type(y).__name__}; "
            f"convert the {type(y).__name__} with xformlib.numpy.array(...) first."
        )
    if not is_arraylike(y):
        return NotImplemented
    f = getattr(_functions(), name)
    return f(y, x) if swapped else f(x, y)


def install() -> None:
    """Put quick forms of operators and of indexing in place; called when ``xformlib.numpy`` is complete."""
    from xformlib.array import Array, ArrayImpl
    from xformlib.numpy.indexing import Parts, getitem
    from xformlib.operators import METHODS

    for name, method in METHODS.items():
        setattr(ArrayImpl, name, method)
    setattr(Array, "__getitem__", getitem)  # noqa: B010 - a method of the same signature, without a call in between
    setattr(Array, "at", property(Parts, doc=ArrayMethods.at.__doc__))  # noqa: B010


class ArrayMethods:
    """What every array has. ``x.f(...)`` is ``xformlib.numpy.f(x, ...)`` where not said otherwise."""

    __slots__ = ()

    # -- operators ----------------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        return _binary("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return _binary("add", self, other, swapped=True)

    def __sub__(self, other: Any) -> Any:
        return _binary("subtract", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _binary("subtract", self, other, swapped=True)

    def __mul__(self, other: Any) -> Any:
        return _binary("multiply", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _binary("multiply", self, other, swapped=True)

    def __truediv__(self, other: Any) -> Any:
        return _binary("true_divide", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _binary("true_divide", self, other, swapped=True)

    def __floordiv__(self, other: Any) -> Any:
        return _binary("floor_divide", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _binary("floor_divide", self, other, swapped=True)

    def __mod__(self, other: Any) -> Any:
        return _binary("remainder", self, other)

    def __rmod__(self, other: Any) -> Any:
        return _binary("remainder", self, other, swapped=True)

    def __divmod__(self, other: Any) -> Any:
        return _binary("divmod", self, other)

    def __rdivmod__(self, other: Any) -> Any:
        return _binary("divmod", self, other, swapped=True)

    def __pow__(self, other: Any) -> Any:
        return _binary("power", self, other)

    def __rpow__(self, other: Any) -> Any:
        return _binary("power", self, other, swapped=True)

    def __matmul__(self, other: Any) -> Any:
        return _binary("matmul", self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _binary("matmul", self, other, swapped=True)

    def __and__(self, other: Any) -> Any:
        return _binary("bitwise_and", self, other)

    def __rand__(self, other: Any) -> Any:
        return _binary("bitwise_and", self, other, swapped=True)

    def __or__(self, other: Any) -> Any:
        return _binary("bitwise_or", self, other)

    def __ror__(self, other: Any) -> Any:
        return _binary("bitwise_or", self, other, swapped=True)

    def __xor__(self, other: Any) -> Any:
        return _binary("bitwise_xor", self, other)

    def __rxor__(self, other: Any) -> Any:
        return _binary("bitwise_xor", self, other, swapped=True)

    def __lshift__(self, other: Any) -> Any:
        return _binary("left_shift", self, other)

    def __rlshift__(self, other: Any) -> Any:
        return _binary("left_shift", self, other, swapped=True)

    def __rshift__(self, other: Any) -> Any:
        return _binary("right_shift", self, other)

    def __rrshift__(self, other: Any) -> Any:
        return _binary("right_shift", self, other, swapped=True)

    def __eq__(self, other: Any) -> Any:
        return _binary("equal", self, other)

    def __ne__(self, other: Any) -> Any:
        return _binary("not_equal", self, other)

    def __lt__(self, other: Any) -> Any:
        return _binary("less", self, other)

    def __le__(self, other: Any) -> Any:
        return _binary("less_equal", self, other)

    def __gt__(self, other: Any) -> Any:
        return _binary("greater", self, other)

    def __ge__(self, other: Any) -> Any:
        return _binary("greater_equal", self, other)

    def __neg__(self) -> Any:
        return _functions().negative(self)

    def __pos__(self) -> Any:
        return _functions().positive(self)

    def __abs__(self) -> Any:
        return _functions().abs(self)

    def __invert__(self) -> Any:
        return _functions().invert(self)

    def __round__(self, ndigits: int | None = None) -> Any:
        """``round(x)`` gives integers, ``round(x, n)`` the array's dtype, as for Python's numbers."""
        if ndigits is None:
            return _functions().round(self).astype(int)
        return _functions().round(self, ndigits)

    # -- containers ---------------------------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Any:
        from xformlib.numpy.indexing import getitem

        return getitem(self, index)

    @property
    def at(self) -> Parts:
        """``x.at[index]`` names a part of ``x``, of which ``.set(v)``, ``.add(v)``, ``.get()`` and others give copies.

        >>> import xformlib.numpy as jnp
        >>> jnp.zeros(3).at[1:].set(2.0)
        Array([0., 2., 2.], dtype=float32)
        """
        from xformlib.numpy.indexing import Parts

        return Parts(self)

    def __iter__(self) -> Iterator[Any]:
        from xformlib.array_protocols import rows

        return rows(self)

    def __contains__(self, value: Any) -> bool:
        found = self == value
        return bool(found.any()) if hasattr(found, "any") else False

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return _functions()

    # -- shapes -------------------------------------------------------------------------------------------------------

    @property
    def T(self) -> Any:
        """Axes in reverse order."""
        return _functions().transpose(self)

    @property
    def mT(self) -> Any:
        """The last two axes swapped."""
        return _functions().matrix_transpose(self)

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Any:
        """The same elements in another shape, given as a tuple or as numbers; one of them may be -1."""
        return _functions().reshape(self, shape[0] if len(shape) == 1 else shape, order=order)

    def ravel(self, order: str = "C") -> Any:
        """One axis of all elements."""
        return _functions().ravel(self, order=order)

    def flatten(self, order: str = "C") -> Any:
        """One axis of all elements."""
        return _functions().ravel(self, order=order)

    def transpose(self, *axes: Any) -> Any:
        """Axes in another order, given as a tuple or as numbers; by default reversed."""
        order = axes[0] if len(axes) == 1 and (axes[0] is None or not isinstance(axes[0], int)) else axes or None
        return _functions().transpose(self, order)

    def swapaxes(self, axis1: int, axis2: int) -> Any:
        """Two axes swapped."""
        return _functions().swapaxes(self, axis1, axis2)

    def squeeze(self, axis: Any = None) -> Any:
        """Without axes of size 1 (all of them, or those given)."""
        return _functions().squeeze(self, axis)

    def repeat(self, repeats: Any, axis: int | None = None, *, total_repeat_length: int | None = None) -> Any:
        """Elements repeated."""
        return _functions().repeat(self, repeats, axis, total_repeat_length=total_repeat_length)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
        """Diagonals of two axes."""
        return _functions().diagonal(self, offset, axis1, axis2)

    def copy(self) -> Any:
        """The same values in memory of their own."""
        return copy.deepcopy(self)

    # -- elementwise --------------------------------------------------------------------------------------------------

    @property
    def real(self) -> Any:
        """The real part."""
        return _functions().real(self)

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        return _functions().imag(self)

    def astype(self, dtype: Any, copy: bool | None = None, device: Any = None) -> Any:
        """Converted to another dtype: floats to integers towards zero, out of range the nearest."""
        from xformlib.array_protocols import cast

        return cast(self, dtype)

    def view(self, dtype: Any = None) -> Any:
        """The same bytes as another dtype; the last axis changes its size with the width of the elements."""
        from xformlib.array_protocols import reinterpret

        return reinterpret(self, dtype)

    def clip(self, min: Any = None, max: Any = None) -> Any:
        """Limited to an interval."""
        return _functions().clip(self, min, max)

    def round(self, decimals: int = 0, out: None = None) -> Any:
        """Rounded to decimals, ties to even."""
        return _functions().round(self, decimals, out)

    def conj(self) -> Any:
        """The complex conjugate."""
        return _functions().conj(self)

    def conjugate(self) -> Any:
        """The complex conjugate."""
        return _functions().conj(self)

    # -- reductions ---------------------------------------------------------------------------------------------------

    def sum(self, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, **options: Any) -> Any:
        """Sum over axes."""
        return _functions().sum(self, axis=axis, dtype=dtype, out=out, keepdims=keepdims, **options)

    def prod(
        self, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, **options: Any
    ) -> Any:
        """Product over axes."""
        return _functions().prod(self, axis=axis, dtype=dtype, out=out, keepdims=keepdims, **options)

    def mean(
        self, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, **options: Any
    ) -> Any:
        """Mean over axes."""
        return _functions().mean(self, axis=axis, dtype=dtype, out=out, keepdims=keepdims, **options)

    def var(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        ddof: int = 0,
        keepdims: bool = False,
        **options: Any,
    ) -> Any:
        """Variance over axes."""
        return _functions().var(self, axis=axis, dtype=dtype, out=out, ddof=ddof, keepdims=keepdims, **options)

    def std(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        ddof: int = 0,
        keepdims: bool = False,
        **options: Any,
    ) -> Any:
        """Standard deviation over axes."""
        return _functions().std(self, axis=axis, dtype=dtype, out=out, ddof=ddof, keepdims=keepdims, **options)

    def min(self, axis: Any = None, out: None = None, keepdims: bool = False, **options: Any) -> Any:
        """Minimum over axes."""
        return _functions().min(self, axis=axis, out=out, keepdims=keepdims, **options)

    def max(self, axis: Any = None, out: None = None, keepdims: bool = False, **options: Any) -> Any:
        """Maximum over axes."""
        return _functions().max(self, axis=axis, out=out, keepdims=keepdims, **options)

    def ptp(self, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
        """Maximum less minimum over axes."""
        return _functions().ptp(self, axis=axis, out=out, keepdims=keepdims)

    def any(self, axis: Any = None, out: None = None, keepdims: bool = False, **options: Any) -> Any:
        """Whether any element is true, over axes."""
        return _functions().any(self, axis=axis, out=out, keepdims=keepdims, **options)

    def all(self, axis: Any = None, out: None = None, keepdims: bool = False, **options: Any) -> Any:
        """Whether all elements are true, over axes."""
        return _functions().all(self, axis=axis, out=out, keepdims=keepdims, **options)

    def argmax(self, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Any:
        """Position of the first maximum."""
        return _functions().argmax(self, axis=axis, out=out, keepdims=keepdims)

    def argmin(self, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Any:
        """Position of the first minimum."""
        return _functions().argmin(self, axis=axis, out=out, keepdims=keepdims)

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: None = None) -> Any:
        """Sum of the diagonal."""
        return _functions().trace(self, offset, axis1, axis2, dtype, out)

    # -- along an axis ------------------------------------------------------------------------------------------------

    def cumsum(self, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
        """Running sum."""
        return _functions().cumsum(self, axis=axis, dtype=dtype, out=out)

    def cumprod(self, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
        """Running product."""
        return _functions().cumprod(self, axis=axis, dtype=dtype, out=out)

    def sort(self, axis: int | None = -1, **options: Any) -> Any:
        """Sorted; the array itself stays as it is."""
        return _functions().sort(self, axis=axis, **options)

    def argsort(self, axis: int | None = -1, **options: Any) -> Any:
        """Positions that sort."""
        return _functions().argsort(self, axis=axis, **options)

    def take(self, indices: Any, axis: int | None = None, out: None = None, mode: str | None = None, **kw: Any) -> Any:
        """Elements at positions along an axis."""
        return _functions().take(self, indices, axis=axis, out=out, mode=mode, **kw)

    def nonzero(self, *, size: int | None = None, fill_value: Any = None) -> Any:
        """Positions of elements that are not 0, an array per axis."""
        return _functions().nonzero(self, size=size, fill_value=fill_value)

    def searchsorted(self, v: Any, side: str = "left", sorter: Any = None, **options: Any) -> Any:
        """Where values belong in this sorted array."""
        return _functions().searchsorted(self, v, side=side, sorter=sorter, **options)

    def dot(self, b: Any, **options: Any) -> Any:
        """NumPy's ``dot``."""
        return _functions().dot(self, b, **options)

    # -- values -------------------------------------------------------------------------------------------------------

    def item(self, *index: int) -> Any:
        """The only element (or the element at ``index``) as a Python scalar."""
        return np.asarray(self).item(*index)

    def tolist(self) -> Any:
        """Nested lists of Python scalars."""
        return np.asarray(self).tolist()

    # -- memory and devices -------------------------------------------------------------------------------------------

    def tobytes(self, order: Any = "C") -> bytes:
        """The elements' bytes."""
        return np.asarray(self).tobytes(order)

    def block_until_ready(self) -> Any:
        """Wait until the values are there; returns the array."""
        from xformlib.placement import block_until_ready

        return block_until_ready(self)

    def is_ready(self) -> bool:
        """Whether the values are there; programs run to their end before they return, so they are."""
        return True

    def copy_to_host_async(self) -> None:
        """Start copying to the host: nothing to be done, since values are looked at in place."""

    @property
    def device(self) -> Any:
        """The device the array lives on."""
        from xformlib.array_protocols import device_of

        return device_of(self)

    def devices(self) -> builtins.set[Any]:
        """The devices the array lives on."""
        return {self.device}

    def to_device(self, device: Any, *, stream: None = None) -> Any:
        """The array on a device."""
        from xformlib.placement import device_put

        return device_put(self, device)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process holds all of the array."""
        return True

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device of the array holds all of it."""
        return True

    def addressable_data(self, index: int) -> Any:
        """The part on the ``index``-th device of this process: all of it."""
        if index:
            raise IndexError(f"addressable_data({index}): the array lives on one device.")
        return self

    def on_device_size_in_bytes(self) -> int:
        """Bytes of memory the elements take."""
        from xformlib.array_protocols import host_memory

        return host_memory(self).nbytes

    def unsafe_buffer_pointer(self) -> int:
        """Address of the elements in memory, valid while the array lives. They must not be written to."""
        from xformlib.array_protocols import host_memory

        return int(host_memory(self).ctypes.data)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        from xformlib.array_protocols import to_dlpack

        return to_dlpack(self, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        from xformlib.array_protocols import host_memory

        return host_memory(self).__dlpack_device__()
