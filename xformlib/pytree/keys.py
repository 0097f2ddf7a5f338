"""Key paths: where a leaf stands in its tree."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

__all__ = ["DictKey", "FlattenedIndexKey", "GetAttrKey", "KeyEntry", "KeyPath", "SequenceKey", "keystr"]


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """Position in a tuple or list: ``[0]``."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


@dataclasses.dataclass(frozen=True)
class DictKey:
    """Key of a dict: ``['w']``."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """Attribute of an object: ``.w``."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclasses.dataclass(frozen=True)
class FlattenedIndexKey:
    """Position among the children of a class registered without keys: ``[<flat index 0>]``."""

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


KeyEntry = Any  # a class registered with keys may use entries of its own
KeyPath = tuple[KeyEntry, ...]


def keystr(keys: Iterable[Any], *, simple: bool = False, separator: str = "") -> str:
    """A key path as text, as it would be written in Python.

    Args:
        keys: the key path.
        simple: give bare names and numbers, without brackets, quotes and dots.
        separator: what stands between entries.

    >>> keystr((DictKey("a"), SequenceKey(0), GetAttrKey("w")))
    "['a'][0].w"
    >>> keystr((DictKey("a"), SequenceKey(0), GetAttrKey("w")), simple=True, separator="/")
    'a/0/w'
    """
    return separator.join([_bare(k) if simple else str(k) for k in keys])


def _bare(key: Any) -> str:
    for name in ("key", "idx", "name"):
        if hasattr(key, name):
            return str(getattr(key, name))
    return str(key)
