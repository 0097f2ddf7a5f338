"""Every error class xformlib raises for bad input.

Each message says what was given, what was expected and what to do next, and ends with the user's own line
(the innermost frame outside the library). Classes also derive from the built-in exception a NumPy or JAX user
would expect, so existing ``except`` clauses keep working.
"""

from __future__ import annotations

import os
import sys
from types import FrameType

__all__ = [
    "AxisError",
    "CompileError",
    "ConcretizationTypeError",
    "DeletedArrayError",
    "DtypeError",
    "GradientError",
    "ImmutableArrayError",
    "IndexingError",
    "NonConcreteBooleanIndexError",
    "NotAnArrayError",
    "OptionError",
    "RuleError",
    "ShapeError",
    "StaticArgumentError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerConversionError",
    "TracerIntegerConversionError",
    "TreeError",
    "TypePromotionError",
    "UnexpectedTracerError",
    "UnhashableArrayError",
    "VmapError",
    "XformError",
    "user_frame",
]

_LIBRARY = os.path.dirname(os.path.abspath(__file__)) + os.sep
_OTHER_LIBRARY_DIRS = tuple(
    os.path.join(os.path.dirname(os.path.dirname(_LIBRARY)), d) + os.sep for d in ("lowering", "runtime")
)


def is_library_file(filename: str) -> bool:
    """Whether a source file belongs to xformlib itself (or is a generated frame such as ``<string>`` of a dataclass)."""
    return filename.startswith((_LIBRARY, *_OTHER_LIBRARY_DIRS)) or filename.startswith("<frozen")


def user_frame() -> FrameType | None:
    """The innermost Python frame outside the library, or None."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_library_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


class XformError(Exception):
    """Base of all errors about how xformlib was used. ``user_location`` is ``(file, line, function)`` or None."""

    def __init__(self, message: str) -> None:
        frame = user_frame()
        self.user_location: tuple[str, int, str] | None = None
        if frame is not None:
            self.user_location = (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
            message += '\n  at File "{}", line {}, in {}'.format(*self.user_location)
        super().__init__(message)


class ShapeError(XformError, ValueError, TypeError):
    """Shapes that do not fit together, or an invalid shape."""


class DtypeError(XformError, TypeError, ValueError):
    """A dtype the operation does not take, or dtypes that do not fit together."""


class TypePromotionError(DtypeError):
    """Dtypes with no common type by implicit promotion."""


class AxisError(XformError, ValueError, IndexError):
    """An axis out of range, repeated, or otherwise invalid."""


class IndexingError(XformError, IndexError, TypeError, ValueError):
    """An index NumPy's grammar does not allow, or one that needs a concrete value."""


class NotAnArrayError(XformError, TypeError):
    """A value that is not an array, NumPy array or Python scalar was given where one is needed."""


class ImmutableArrayError(XformError, TypeError):
    """``x[i] = v`` on an immutable array; use ``x = x.at[i].set(v)``."""


class UnhashableArrayError(XformError, TypeError):
    """``hash(x)`` of an array or tracer."""


class DeletedArrayError(XformError, RuntimeError):
    """An array whose buffer was donated to a compiled function was used again."""


class CompileError(XformError, RuntimeError):
    """The compiler could not compile a program; the message has its diagnostics and the line they are about."""


class TreeError(XformError, ValueError, TypeError):
    """Pytrees whose structures had to match and do not."""


class GradientError(XformError, TypeError):
    """``grad`` and friends: non-scalar output, integer input, wrong tangents or cotangents."""


class VmapError(XformError, ValueError):
    """``vmap``: axis sizes that differ, an axis out of range, or nothing to map over."""


class StaticArgumentError(XformError, ValueError, TypeError):
    """``jit``: unhashable static arguments, argument numbers or names that do not exist."""


class OptionError(XformError, ValueError, TypeError):
    """A value that an option (of ``config``, or an environment variable) does not take."""


class RuleError(XformError, NotImplementedError):
    """An operation has no rule for the transformation applied to it (a declared, documented refusal)."""


class UnexpectedTracerError(XformError):
    """A tracer was used after the transformation that made it had ended."""


class ConcretizationTypeError(XformError, TypeError):
    """A concrete value was needed and the tracer has none."""


class TracerConversionError(ConcretizationTypeError):
    """Common base of the conversions of a tracer to a Python or NumPy value."""


class TracerArrayConversionError(TracerConversionError):
    """A tracer was given to NumPy."""


class TracerBoolConversionError(TracerConversionError):
    """``bool(tracer)``: ``if``, ``while``, ``and`` or ``assert`` on a traced value."""


class TracerIntegerConversionError(TracerConversionError):
    """``int(tracer)`` or a tracer used as a Python index, length or static shape."""


class NonConcreteBooleanIndexError(ConcretizationTypeError, IndexError):
    """A traced boolean mask used as an index: the size of the result would depend on its values."""
