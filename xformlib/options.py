"""Options: process-wide values, environment variables, and scoped (per-thread) overrides.

Names are JAX's, with or without the ``jax_`` prefix. ``config.x64`` and its like are read on the eager hot path, so the
values are plain attributes of a thread-local object.
"""

from __future__ import annotations

import difflib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

__all__ = ["config", "default_device", "disable_jit", "enable_x64", "numpy_dtype_promotion"]


@dataclass(frozen=True)
class _Option:
    """One option: attribute name, default, what it accepts, whether compiled code depends on it, and what it does."""

    attribute: str
    default: Any
    accepts: Callable[[Any], bool]
    expected: str
    in_key: bool
    doc: str


def _is_bool(v: Any) -> bool:
    return isinstance(v, bool)


def _one_of(*values: Any) -> Callable[[Any], bool]:
    return lambda v: v in values


_OPTIONS: dict[str, _Option] = {
    "enable_x64": _Option("x64", False, _is_bool, "a bool", True, "64-bit types are allowed"),
    "disable_jit": _Option("disable_jit", False, _is_bool, "a bool", False, "jit runs the function as it is"),
    "numpy_dtype_promotion": _Option(
        "promotion", "standard", _one_of("standard", "strict"), "'standard' or 'strict'", True, "implicit promotion"
    ),
    "default_matmul_precision": _Option(
        "matmul_precision",
        None,
        lambda v: v is None or isinstance(v, str),
        "None or a string",
        True,
        "precision of products; all are computed at full precision on the CPU",
    ),
    "default_device": _Option("default_device", None, lambda v: True, "a device or None", True, "where arrays live"),
    "platforms": _Option(
        "platforms", None, lambda v: v is None or isinstance(v, str), "None or a string", True, "platforms to look for"
    ),
}


class _Values(threading.local):
    """The options' values as this thread sees them. Class attributes are the process-wide values."""

    x64: bool = False
    disable_jit: bool = False
    promotion: str = "standard"
    matmul_precision: str | None = None
    default_device: Any = None
    platforms: str | None = None


class _Config:
    """The options of this process; see :data:`config`."""

    _values = _Values()

    def update(self, name: str, value: Any) -> None:
        """Set an option for the whole process.

        Args:
            name: the option, such as ``"enable_x64"`` (or ``"jax_enable_x64"``).
            value: its value.

        Raises:
            AttributeError: no such option; close matches are named.
            TypeError: a value the option does not take.

        >>> from xformlib import config
        >>> config.update("jax_enable_x64", False)
        """
        option = _find(name)
        setattr(_Values, option.attribute, _checked(name, option, value))

    def read(self, name: str) -> Any:
        """The current value of an option."""
        return getattr(self._values, _find(name).attribute)

    def key(self) -> tuple[Any, ...]:
        """Values of all options that compiled programs depend on."""
        v = self._values
        return v.x64, v.promotion, v.matmul_precision, v.default_device, v.platforms

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._values, _find(name).attribute)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"set options with config.update({name!r}, value)")

    @property
    def x64(self) -> bool:
        """Whether 64-bit types are allowed."""
        return self._values.x64

    @property
    def disable_jit(self) -> bool:
        """Whether ``jit`` runs functions as they are."""
        return self._values.disable_jit


def _find(name: str) -> _Option:
    bare = name.removeprefix("jax_").removeprefix("xformlib_")
    option = _OPTIONS.get(bare)
    if option is None:
        close = difflib.get_close_matches(bare, _OPTIONS, n=3)
        hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else f" Options: {sorted(_OPTIONS)}."
        raise AttributeError(f"there is no option {name!r}.{hint}")
    return option


def _checked(name: str, option: _Option, value: Any) -> Any:
    if not option.accepts(value):
        raise TypeError(f"option {name!r} takes {option.expected}; got {type(value).__name__} {value!r:.60}")
    return value


def _from_environment() -> None:
    for name, option in _OPTIONS.items():
        text = os.environ.get(f"XFORMLIB_{name.upper()}")
        if text is None:
            continue
        value: Any = text
        if isinstance(option.default, bool):
            if text.lower() not in ("0", "1", "true", "false", ""):
                raise ValueError(f"environment variable XFORMLIB_{name.upper()} must be 0 or 1; it is {text!r}")
            value = text.lower() in ("1", "true")
        setattr(_Values, option.attribute, _checked(name, option, value))


config = _Config()
_from_environment()


@contextmanager
def _scoped(name: str, value: Any) -> Iterator[None]:
    option = _find(name)
    values = vars(config._values)
    missing = object()
    saved = values.get(option.attribute, missing)
    setattr(config._values, option.attribute, _checked(name, option, value))
    try:
        yield
    finally:
        if saved is missing:
            delattr(config._values, option.attribute)
        else:
            setattr(config._values, option.attribute, saved)


def enable_x64(enabled: bool = True) -> Any:
    """Allow 64-bit types within a ``with`` block, in this thread.

    >>> import xformlib as xf, xformlib.numpy as jnp
    >>> with xf.enable_x64():
    ...     print(jnp.ones(2).dtype)
    float64
    """
    return _scoped("enable_x64", enabled)


def disable_jit(disable: bool = True) -> Any:
    """Run jitted functions as ordinary Python within a ``with`` block, for debugging.

    >>> import xformlib as xf
    >>> with xf.disable_jit():
    ...     xf.jit(lambda x: print(x))(1)
    1
    """
    return _scoped("disable_jit", disable)


def numpy_dtype_promotion(mode: str) -> Any:
    """``"strict"`` refuses implicit promotion of different dtypes within a ``with`` block."""
    return _scoped("numpy_dtype_promotion", mode)


def default_device(device: Any) -> Any:
    """The device that new arrays live on within a ``with`` block."""
    return _scoped("default_device", device)
