"""Options: process-wide values, environment variables, and overrides within a ``with`` block.

Names are JAX's, with or without the ``jax_`` prefix. Options are read on the hottest paths (every eager operation asks
whether 64-bit types are on), so all values stand together in one :class:`State`, and a context variable holds the one
in force: ``current().enable_x64`` costs two look-ups. A ``with`` block puts another State in place, for its thread or
task only.
"""

from __future__ import annotations

import contextlib
import contextvars
import difflib
import os
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from xformlib.errors import OptionError

__all__ = [
    "check_tracer_leaks",
    "checking_leaks",
    "config",
    "debug_infs",
    "debug_nans",
    "default_device",
    "default_matmul_precision",
    "disable_jit",
    "enable_x64",
    "explain_cache_misses",
    "log_compiles",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
]


# -- what there is to set ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Option:
    """What is known of an option.

    Attributes:
        name: its name, without prefix.
        accepts: whether it takes a value.
        expected: what it takes, in words.
        parse: the value a text (of an environment variable) stands for; may raise ValueError.
        compiled: whether compiled programs depend on it.
        doc: what it does.
    """

    name: str
    accepts: Callable[[Any], bool]
    expected: str
    parse: Callable[[str], Any]
    compiled: bool
    doc: str

    def check(self, value: Any) -> Any:
        """``value``, if the option takes it."""
        if not self.accepts(value):
            raise OptionError(f"option {self.name!r} takes {self.expected}; got {type(value).__name__} {value!r:.60}.")
        return value


# -- kinds of options --------------------------------------------------------------------------------------------------


def _parse_bool(text: str) -> bool:
    known = {
        "1": True,
        "true": True,
        "yes": True,
        "on": True,
        "0": False,
        "false": False,
        "no": False,
        "off": False,
        "": False,
    }
    if text.lower() not in known:
        raise ValueError("expected 0 or 1")
    return known[text.lower()]


def _switch(name: str, doc: str, compiled: bool = False) -> Option:
    return Option(name, lambda v: isinstance(v, bool), "a bool", _parse_bool, compiled, doc)


def _choice(name: str, values: tuple[str | None, ...], doc: str, compiled: bool = False) -> Option:
    expected = "one of " + ", ".join(map(repr, values))
    return Option(name, lambda v: v in values and isinstance(v, str | None), expected, _parse_text, compiled, doc)


def _parse_text(text: str) -> str | None:
    return text or None


def _text(name: str, doc: str, compiled: bool = False) -> Option:
    return Option(name, lambda v: v is None or isinstance(v, str), "a string or None", _parse_text, compiled, doc)


def _integer(name: str, doc: str) -> Option:
    return Option(name, lambda v: isinstance(v, int) and not isinstance(v, bool), "an int", int, False, doc)


def _is_device(value: Any) -> bool:
    return value is None or isinstance(value, str) or hasattr(value, "platform")


_PRECISIONS = (None, "default", "high", "highest", "bfloat16", "bfloat16_3x", "tensorfloat32", "float32")

OPTIONS: dict[str, Option] = {
    option.name: option
    for option in (
        _switch("enable_x64", "64-bit types exist; without it they become 32-bit ones", compiled=True),
        _switch("disable_jit", "jit runs functions as ordinary Python"),
        _switch("debug_nans", "an operation that makes a NaN is an error", compiled=True),
        _switch("debug_infs", "an operation that makes an infinity is an error", compiled=True),
        _switch("check_tracer_leaks", "a tracer that outlives its transformation is an error"),
        _switch("log_compiles", "every compilation is logged"),
        _switch("explain_cache_misses", "why a jitted function is traced anew is logged"),
        _choice(
            "numpy_dtype_promotion",
            ("standard", "strict"),
            "'strict': arrays of different dtypes are not promoted implicitly",
            compiled=True,
        ),
        _choice(
            "numpy_rank_promotion",
            ("allow", "warn", "raise"),
            "what happens when arrays of different ranks are broadcast",
            compiled=True,
        ),
        _choice("default_matmul_precision", _PRECISIONS, "precision of products that name none", compiled=True),
        Option(
            "default_device",
            _is_device,
            "a device (of xformlib.devices()), a platform's name, or None",
            _parse_text,
            True,
            "where new arrays live",
        ),
        _text(
            "platforms", "platforms to look for devices on, in order of preference, such as 'cuda,cpu'", compiled=True
        ),
        _integer("num_cpu_devices", "number of CPU devices; -1 for one"),
        _switch("enable_compilation_cache", "compiled programs are kept on disk"),
        _text("compilation_cache_dir", "where; None for the user's cache directory"),
        _integer("compilation_cache_max_size", "size in bytes at which old programs are removed; -1 for the default"),
    )
}

# JAX's options with one value here: the value, and why.
_FIXED: dict[str, tuple[Any, str]] = {
    "threefry_partitionable": (True, "random bits never depend on how an array is sharded"),
    "default_prng_impl": ("threefry2x32", "it is the only generator"),
    "use_shardy_partitioner": (True, "sharding is propagated the Shardy way"),
    "use_direct_linearize": (True, "linearize is direct"),
    "persistent_cache_min_compile_time_secs": (0, "every compiled program is kept"),
    "persistent_cache_min_entry_size_bytes": (0, "every compiled program is kept"),
}
_ANY_VALUE = (
    "persistent_cache_min_compile_time_secs",
    "persistent_cache_min_entry_size_bytes",
)  # only hints to a cache


def _bare(name: Any) -> str:
    if not isinstance(name, str):
        raise OptionError(f"the name of an option is a string; got {type(name).__name__} {name!r:.60}.")
    return name.removeprefix("jax_").removeprefix("xformlib_")


def find(name: str) -> Option:
    """The option of this name, with or without prefix.

    Raises:
        AttributeError: there is none; similar names are given.
    """
    bare = _bare(name)
    if bare == "platform_name":  # JAX's older name
        bare = "platforms"
    option = OPTIONS.get(bare)
    if option is None:
        raise AttributeError(_unknown(name))
    return option


def _unknown(name: str) -> str:
    close = difflib.get_close_matches(_bare(name), [*OPTIONS, *_FIXED], n=3)
    if close:
        return f"there is no option {name!r}. Did you mean {' or '.join(map(repr, close))}?"
    return f"there is no option {name!r}. The options are {', '.join(sorted(OPTIONS))}."


def _check_fixed(name: str, bare: str, value: Any) -> None:
    only, why = _FIXED[bare]
    if value != only and bare not in _ANY_VALUE:
        raise OptionError(f"option {name!r} can only be {only!r}, because {why}; got {value!r:.60}.")


# -- values ------------------------------------------------------------------------------------------------------------


class State:
    """The values of all options, as a thread or task sees them."""

    enable_x64: bool = False
    disable_jit: bool = False
    debug_nans: bool = False
    debug_infs: bool = False
    check_tracer_leaks: bool = False
    log_compiles: bool = False
    explain_cache_misses: bool = False
    numpy_dtype_promotion: str = "standard"
    numpy_rank_promotion: str = "allow"
    default_matmul_precision: str | None = None
    default_device: Any = None
    platforms: str | None = None
    num_cpu_devices: int = -1
    enable_compilation_cache: bool = True
    compilation_cache_dir: str | None = None
    compilation_cache_max_size: int = -1

    #: Values of the options that compiled programs depend on.
    key: tuple[Any, ...]
    #: Whether eager operations need no look at their results, nor at the ranks of their operands.
    plain: bool
    #: Results of :mod:`xformlib.dtypes` under these values.
    promoted: dict[Any, Any]
    canonical: dict[Any, Any]

    def __init__(self, outer: State | None, overrides: Mapping[str, Any]) -> None:
        self.overridden: frozenset[str] = frozenset(overrides)
        if outer is not None:
            vars(self).update({name: getattr(outer, name) for name in OPTIONS})
            self.overridden |= outer.overridden
        self.set(overrides)

    def set(self, values: Mapping[str, Any]) -> None:
        """Set options, and all that follows from their values."""
        vars(self).update(values)
        self.key = tuple([getattr(self, name) for name, option in OPTIONS.items() if option.compiled])
        self.plain = not (self.debug_nans or self.debug_infs) and self.numpy_rank_promotion == "allow"
        rules = self.enable_x64, self.numpy_dtype_promotion
        self.promoted, self.canonical = _memos.setdefault(rules, ({}, {}))


_memos: dict[Any, tuple[dict[Any, Any], dict[Any, Any]]] = {}
_process = State(None, {})
_blocks: weakref.WeakSet[State] = weakref.WeakSet()  # states of with blocks, for update to reach
_state = contextvars.ContextVar("xformlib options", default=_process)

#: The options in force here: ``current().enable_x64``.
current: Callable[[], State] = _state.get


class Config:
    """The options of this process; see :data:`config`."""

    def update(self, name: str, value: Any) -> None:
        """Set an option for the whole process. A ``with`` block that overrides it keeps its value.

        Args:
            name: the option, such as ``"jax_enable_x64"`` or ``"enable_x64"``.
            value: its value.

        Raises:
            AttributeError: no such option; similar names are given.
            OptionError: a value the option does not take (a ``TypeError`` and ``ValueError``).

        >>> config.update("jax_debug_nans", False)
        """
        bare = _bare(name)
        if bare in _FIXED:
            _check_fixed(name, bare, value)
            return
        option = find(name)
        value = option.check(value)
        for state in (_process, *_blocks):
            if option.name not in state.overridden:
                state.set({option.name: value})

    def read(self, name: str) -> Any:
        """The value of an option here.

        >>> config.read("jax_numpy_rank_promotion")
        'allow'
        """
        bare = _bare(name)
        return _FIXED[bare][0] if bare in _FIXED else getattr(current(), find(name).name)

    @property
    def values(self) -> dict[str, Any]:
        """All options and their values here."""
        return {name: getattr(current(), name) for name in OPTIONS}

    @property
    def enable_x64(self) -> bool:
        """Whether 64-bit types are on."""
        return current().enable_x64

    @property
    def x64_enabled(self) -> bool:
        """Whether 64-bit types are on; JAX's other name for ``enable_x64``."""
        return current().enable_x64

    @property
    def disable_jit(self) -> bool:
        """Whether ``jit`` runs functions as they are."""
        return current().disable_jit

    def key(self) -> tuple[Any, ...]:
        """The values of all options that compiled programs depend on; part of every compile cache's key."""
        return current().key

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.read(name)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"options are set with config.update({name!r}, value), or within a with block such as enable_x64()."
        )


config = Config()


def read_environment(environment: Mapping[str, str] = os.environ) -> None:
    """Set the options that environment variables such as ``XFORMLIB_ENABLE_X64=1`` name.

    Raises:
        OptionError: a value the option does not take.
    """
    for name, option in OPTIONS.items():
        variable = f"XFORMLIB_{name.upper()}"
        text = environment.get(variable)
        if text is None:
            continue
        try:
            value = option.check(option.parse(text))
        except ValueError:
            raise OptionError(f"environment variable {variable}={text!r}: expected {option.expected}.") from None
        config.update(name, value)


read_environment()


# -- with blocks -------------------------------------------------------------------------------------------------------


class Override(contextlib.ContextDecorator):
    """A value of an option within a ``with`` block or a decorated function, in this thread or task."""

    def __init__(self, name: str, value: Any) -> None:
        self._name = name
        self._value = find(name).check(value)
        self._outer: list[State] = []

    def _recreate_cm(self) -> Override:
        return Override(self._name, self._value)

    def __enter__(self) -> None:
        outer = current()
        state = State(outer, {self._name: self._value})
        _blocks.add(state)
        self._outer.append(outer)
        _state.set(state)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # Not a token's reset, which refuses to work where a framework runs set-up and tear-down in different contexts.
        _state.set(self._outer.pop())


def enable_x64(enabled: bool = True) -> Override:
    """Whether 64-bit types exist, within a ``with`` block (or decorated function), in this thread.

    >>> from xformlib import dtypes
    >>> with enable_x64():
    ...     print(dtypes.canonicalize_dtype(float))
    float64
    """
    return Override("enable_x64", enabled)


def disable_jit(disable: bool = True) -> Override:
    """Whether jitted functions run as ordinary Python, within a ``with`` block; for debugging with ``pdb``.

    >>> with disable_jit():
    ...     print(config.disable_jit)
    True
    """
    return Override("disable_jit", disable)


def debug_nans(enabled: bool = True) -> Override:
    """Whether a NaN in a result is an error, within a ``with`` block."""
    return Override("debug_nans", enabled)


def debug_infs(enabled: bool = True) -> Override:
    """Whether an infinity in a result is an error, within a ``with`` block."""
    return Override("debug_infs", enabled)


def check_tracer_leaks(enabled: bool = True) -> Override:
    """Whether a tracer that outlives its transformation is an error, within a ``with`` block."""
    return Override("check_tracer_leaks", enabled)


def checking_leaks() -> Override:
    """A ``with`` block in which a tracer that outlives its transformation is an error."""
    return Override("check_tracer_leaks", True)


def log_compiles(enabled: bool = True) -> Override:
    """Whether compilations are logged, within a ``with`` block."""
    return Override("log_compiles", enabled)


def explain_cache_misses(enabled: bool = True) -> Override:
    """Whether it is logged why functions are traced anew, within a ``with`` block."""
    return Override("explain_cache_misses", enabled)


def numpy_dtype_promotion(mode: str) -> Override:
    """How arrays of different dtypes combine within a ``with`` block.

    Args:
        mode: ``"standard"``, or ``"strict"``: only Python scalars (and other weakly typed values) adapt.

    >>> from xformlib import dtypes
    >>> with numpy_dtype_promotion("strict"):
    ...     print(dtypes.result_type("int8", 2))
    int8
    """
    return Override("numpy_dtype_promotion", mode)


def numpy_rank_promotion(mode: str) -> Override:
    """What happens when arrays of different ranks are broadcast, within a ``with`` block.

    Args:
        mode: ``"allow"``, ``"warn"`` or ``"raise"``.
    """
    return Override("numpy_rank_promotion", mode)


def default_matmul_precision(precision: str | None) -> Override:
    """The precision of products that name none, within a ``with`` block.

    Args:
        precision: ``"default"``, ``"high"``, ``"highest"``, ``"bfloat16"``, ``"bfloat16_3x"``, ``"tensorfloat32"``,
            ``"float32"`` or None.
    """
    return Override("default_matmul_precision", precision)


def default_device(device: Any) -> Override:
    """Where new arrays live within a ``with`` block.

    Args:
        device: a device, a platform's name such as ``"cpu"``, or None.

    >>> with default_device("cpu"):
    ...     print(config.default_device)
    cpu
    """
    return Override("default_device", device)
