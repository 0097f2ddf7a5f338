"""Exchanging arrays with other libraries by DLPack.

An :class:`xformlib.Array` exports itself, as in ``numpy.from_dlpack(x)``: in place to consumers that know of read-only
memory, else as a copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xformlib import dtypes
from xformlib.array import Array, ArrayImpl
from xformlib.convert import to_array
from xformlib.errors import NotAnArrayError

__all__ = ["from_dlpack"]


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Array:
    """An array in the memory of another library's.

    The memory is shared unless ``copy`` is true: the owner must not write to it while the array is in use. 64-bit
    elements are copied (and narrowed) unless 64-bit types are on.

    Args:
        external_array: an object with ``__dlpack__`` and ``__dlpack_device__``, in memory of the CPU.
        device: where the array is to be: None, the default device.
        copy: whether to copy: True, False (raises BufferError where needed), or None: where needed.

    Raises:
        NotAnArrayError: an object without these methods.
        BufferError: memory that the CPU can't address, or a dtype that NumPy lacks.

    >>> import numpy as np
    >>> from_dlpack(np.arange(3, dtype="int8"))
    Array([0, 1, 2], dtype=int8)
    """
    if not hasattr(external_array, "__dlpack__"):
        raise NotAnArrayError(
            f"from_dlpack: {type(external_array).__name__} has no __dlpack__ (capsules alone are not taken); "
            "give the array itself, or use xformlib.numpy.asarray."
        )
    try:
        data = np.from_dlpack(external_array, copy=copy)
    except (RuntimeError, TypeError) as e:
        raise BufferError(f"from_dlpack: {e}; move the array to the CPU, or convert it to a dtype NumPy has.") from e
    if dtypes.canonicalize_dtype(data.dtype) != data.dtype:
        if copy is False:
            raise BufferError(f"from_dlpack: {data.dtype} needs a copy, since 64-bit types are off.")
        return to_array(data)  # type: ignore[no-any-return]
    return ArrayImpl(data)
