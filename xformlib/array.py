"""Array types: the public ``Array``, its concrete form, PRNG-key arrays, and the tracer.

Nothing here imports MLIR or the runtime. Operators and NumPy-like methods stand in ``array_methods.py``.
"""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from xformlib.array_methods import ArrayMethods
from xformlib.dtypes import KeyDType
from xformlib.errors import (
    DeletedArrayError,
    ImmutableArrayError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerConversionError,
    TracerIntegerConversionError,
    UnhashableArrayError,
)

if TYPE_CHECKING:
    from xformlib.staging import Frame

__all__ = ["Array", "ArrayImpl", "Aval", "KeyArray", "Tracer"]


class Aval(NamedTuple):
    """What is known of an array while staging: logical shape, dtype (also a key dtype), weak type."""

    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool = False

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]" + ("*" if self.weak_type else "")


class Array(ArrayMethods):
    """An immutable n-dimensional array, concrete or traced: the class for ``isinstance`` and annotations.

    Create one with :mod:`xformlib.numpy`. It behaves like a NumPy array, except that it is never modified:
    ``x.at[i].set(v)`` gives the modified copy.
    """

    __slots__ = ("__weakref__",)

    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool

    def __init__(self, *_: Any, **__: Any) -> None:
        raise TypeError("xformlib.Array is abstract; create arrays with xformlib.numpy.asarray")

    @property
    def aval(self) -> Aval:
        """Shape, dtype and weak type."""
        return Aval(self.shape, self.dtype, self.weak_type)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return int(self.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize

    @property
    def is_key(self) -> bool:
        """Whether the elements are PRNG keys."""
        return isinstance(self.dtype, KeyDType)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an unsized (0-d) array")
        return self.shape[0]

    def __hash__(self) -> int:
        raise UnhashableArrayError(
            f"{type(self).__name__} of shape {self.shape} is not hashable: it can't be a dict key, a set member or a "
            "static argument of jit. Use id(x), or tuple(x.tolist()) for a concrete array."
        )

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise ImmutableArrayError(
            "xformlib arrays are immutable, x[i] = v is not supported. "
            "Use x = x.at[i].set(v); also .add(v), .multiply(v), .min(v), .max(v), .apply(f)."
        )

    __array_priority__ = 100


def _refuse_shape(value: Any) -> NoReturn:
    raise ImmutableArrayError(
        f"xformlib arrays are immutable, x.shape = {value} is not supported. Use x.reshape({value})."
    )


class ArrayImpl(Array):
    """A concrete array: a NumPy array, or a device buffer that becomes one when looked at."""

    __slots__ = ("_np", "_view", "dtype", "weak_type")

    def __init__(self, data: Any, weak_type: bool = False) -> None:
        self._np = data
        self._view = None
        self.dtype = data.dtype
        self.weak_type = weak_type

    @classmethod
    def from_view(cls, view: Any, dtype: np.dtype[Any], weak_type: bool) -> ArrayImpl:
        """Wrap a device buffer view; it is copied or mapped to the host only when its values are asked for."""
        self = cls.__new__(cls)
        self._np = None
        self._view = view
        self.dtype = dtype
        self.weak_type = weak_type
        return self

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        data = self._np
        return data.shape if data is not None else tuple(self._view_or_raise().shape)

    @shape.setter
    def shape(self, value: Any) -> None:
        _refuse_shape(value)

    def _view_or_raise(self) -> Any:
        if self._view is None:
            raise DeletedArrayError(
                "This array was donated to a compiled function (donate_argnums) and its buffer is gone. "
                "Use the function's result, or don't donate the argument."
            )
        return self._view

    def _load(self) -> np.ndarray:
        """The values as a (read-only) NumPy array."""
        if self._np is None:
            from xformlib.runtime.buffers import to_numpy

            self._np = to_numpy(self._view_or_raise(), self.dtype)
        return self._np

    def delete(self) -> None:
        """Release the buffer now; using the array afterwards raises :class:`DeletedArrayError`."""
        self._np = self._view = None

    def is_deleted(self) -> bool:
        """Whether the buffer was deleted or donated."""
        return self._np is None and self._view is None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        # np.array makes the copy a caller may write to; what we hand out ourselves is read-only.
        if copy:
            return np.array(self._load(), dtype=dtype)
        out = np.asarray(np.asarray(self._load()), dtype=dtype, copy=copy)
        if out.flags.writeable and out is self._np:
            out = out.view()
            out.flags.writeable = False
        elif out.flags.writeable and dtype is None:
            out.flags.writeable = False
        return out

    def item(self, *index: int) -> Any:
        """The only element (or the element at ``index``) as a Python scalar."""
        return np.asarray(self._load()).item(*index)

    def tolist(self) -> Any:
        """Nested Python lists of Python scalars."""
        return np.asarray(self._load()).tolist()

    def _scalar(self, kind: str) -> Any:
        data = self._load()
        if data.size != 1 or (kind != "bool" and data.ndim):
            raise TypeError(f"only 0-d arrays (for bool: arrays of size 1) convert to {kind}; got shape {self.shape}")
        return data.item()

    def __bool__(self) -> bool:
        return bool(self._scalar("bool"))

    def __int__(self) -> int:
        return int(self._scalar("int"))

    def __float__(self) -> float:
        return float(self._scalar("float"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        if not np.issubdtype(self.dtype, np.integer):
            raise TypeError(f"only integer arrays can be used as an index or a length; got dtype {self.dtype}")
        return int(self._scalar("index"))

    def __format__(self, spec: str) -> str:
        return format(self.item() if not self.shape else self, spec) if spec else str(self)

    def __repr__(self) -> str:
        if self.is_deleted():
            return "Array(<deleted>)"
        text = np.array2string(np.asarray(self._load()), separator=", ", prefix="Array(", threshold=1000)
        size = f", shape={self.shape}" if self.size == 0 else ""
        return f"Array({text}{size}, dtype={self.dtype}{', weak_type=True' if self.weak_type else ''})"

    def __str__(self) -> str:
        return str(np.asarray(self._load()))

    def __reduce__(self) -> Any:
        return _rebuild, (np.asarray(self._load()), self.weak_type)

    def __copy__(self) -> ArrayImpl:
        return self

    def __deepcopy__(self, memo: Any) -> ArrayImpl:
        return ArrayImpl(np.array(self._load()), self.weak_type)


def _rebuild(data: np.ndarray, weak_type: bool) -> ArrayImpl:
    return ArrayImpl(data, weak_type)


class KeyArray(Array):
    """A concrete array of PRNG keys: uint32 words with the key's own words as trailing axis."""

    __slots__ = ("_base", "dtype", "weak_type")

    def __init__(self, base: ArrayImpl, dtype: KeyDType) -> None:
        self._base = base
        self.dtype = dtype
        self.weak_type = False

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self._base.shape[:-1]

    @shape.setter
    def shape(self, value: Any) -> None:
        _refuse_shape(value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise TypeError("PRNG keys don't convert to NumPy; use xformlib.random.key_data(key) for the raw words")

    def __repr__(self) -> str:
        return f"Array({self.shape}, dtype={self.dtype}) overlaying:\n{self._base._load()}"

    def __reduce__(self) -> Any:
        return KeyArray, (self._base, self.dtype)

    def __copy__(self) -> KeyArray:
        return self

    def __deepcopy__(self, memo: Any) -> KeyArray:
        return KeyArray(copy.deepcopy(self._base, memo), self.dtype)


class Tracer(Array):
    """A StableHLO value, and what its MLIR type can't say: weak type, key dtype, and the function it belongs to."""

    __slots__ = ("_frame", "_value", "dtype", "shape", "weak_type")

    def __init__(self, value: Any, frame: Frame, shape: tuple[int, ...], dtype: Any, weak_type: bool) -> None:
        self._value = value
        self._frame = frame
        self.shape = shape
        self.dtype = dtype
        self.weak_type = weak_type

    def _concrete(self, wanted: str, error: type[TracerConversionError]) -> np.ndarray:
        return self._frame.concrete(self, wanted, error)

    def _scalar(self, kind: str, error: type[TracerConversionError] = TracerConversionError) -> Any:
        if self.size != 1 or (kind != "bool" and self.shape):
            raise TypeError(f"only 0-d arrays (for bool: arrays of size 1) convert to {kind}; got shape {self.shape}")
        return self._concrete(kind, error).item()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise self._frame.conversion_error(self, "a NumPy array", TracerArrayConversionError)

    def __bool__(self) -> bool:
        return bool(self._scalar("bool", TracerBoolConversionError))

    def __int__(self) -> int:
        return int(self._scalar("int", TracerIntegerConversionError))

    def __float__(self) -> float:
        return float(self._scalar("float"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        if not np.issubdtype(self.dtype, np.integer):
            raise TypeError(f"only integer arrays can be used as an index or a length; got dtype {self.dtype}")
        return int(self._scalar("index", TracerIntegerConversionError))

    def item(self, *index: int) -> Any:
        """The only element (or the element at ``index``) as a Python scalar, where a concrete value is known."""
        return self._concrete("a Python scalar", TracerConversionError).item(*index)

    def tolist(self) -> Any:
        """Nested lists, where a concrete value is known."""
        return self._concrete("a list", TracerConversionError).tolist()

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __repr__(self) -> str:
        kind = self._frame.kind
        return f"Traced<{self.aval}> in {kind}"

    def __copy__(self) -> Tracer:
        return self

    def __deepcopy__(self, memo: Any) -> Tracer:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a traced array can't be pickled; return it from the transformed function first")
