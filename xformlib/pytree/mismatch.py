"""Saying where and how two pytrees differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from xformlib.errors import TreeError
from xformlib.pytree.keys import KeyPath, keystr
from xformlib.pytree.nodes import KINDS, LEAF, LEAF_KIND, Node, classify

if TYPE_CHECKING:
    from xformlib.pytree.structure import PyTreeDef


class Mismatch(NamedTuple):
    """A place where a tree is not what a structure asks for."""

    path: KeyPath
    expected: Node
    found: Any


def mismatches(treedef: PyTreeDef, tree: Any, path: KeyPath = ()) -> Iterator[Mismatch]:
    """All places where ``tree`` departs from ``treedef``, from the left."""
    root = treedef._nodes[-1]
    if root is LEAF:
        return
    if root.match(tree) is None:
        yield Mismatch(path, root, tree)
        return
    _, keys, children = root.kind.enter_with_keys(tree)
    for key, sub, child in zip(keys, treedef.children(), children, strict=True):
        yield from mismatches(sub, child, (*path, key))


def mismatch(treedef: PyTreeDef, tree: Any, what: str = "trees differ in structure") -> TreeError:
    """The error for a tree that departs from a structure, naming the first place and both structures."""
    from xformlib.pytree.structure import tree_flatten

    first = next(mismatches(treedef, tree))
    found = shorten(tree_flatten(tree)[1])
    return TreeError(
        f"{what} {explain(first)}\n  expected structure: {shorten(treedef)}\n  got structure:      {found}"
    )


def explain(m: Mismatch) -> str:
    """One difference, in words."""
    return f"at {place(m.path)}: expected {m.expected.kind.describe(m.expected)}, got {_describe(m.found)}{_keys(m)}."


def _describe(x: Any) -> str:
    kind = KINDS.get(type(x)) or classify(type(x))
    if kind is not LEAF_KIND:
        node, _ = kind.enter(x)
        return kind.describe(node)
    shape = getattr(x, "shape", None)
    return f"a leaf of type {type(x).__name__}" + (
        f" and shape {shape}" if isinstance(shape, tuple) else f": {x!r:.60}"
    )


def _keys(m: Mismatch) -> str:
    """Which keys of a dict are missing, and which are too many."""
    keys = m.expected.kind.keys(m.expected)
    if keys is None or type(m.found) is not m.expected.kind.type:
        return ""
    parts = {"missing": [k for k in keys if k not in m.found], "unexpected": [k for k in m.found if k not in keys]}
    text = "; ".join(f"{name}: {', '.join(map(repr, ks))}" for name, ks in parts.items() if ks)
    return f" ({text})" if text else ""


def place(path: KeyPath) -> str:
    """A key path in an error message."""
    return keystr(path) if path else "the root"


def shorten(treedef: PyTreeDef) -> str:
    """A structure in an error message."""
    text = repr(treedef)
    return text if len(text) <= 400 else f"{text[:300]} … {text[-90:]} ({treedef.num_leaves} leaves)"
