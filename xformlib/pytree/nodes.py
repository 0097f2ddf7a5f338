"""Kinds of containers, and nodes: one container of a structure, without its children.

A structure is a tuple of nodes, so nodes are shared wherever possible: comparing and hashing structures then compares
and hashes pointers. Two nodes may only be shared if nobody could tell them apart, which is why metadata is compared *by
type and value* (``1``, ``1.0`` and ``True`` are different), and metadata of classes this module does not know is never
shared at all: its ``==`` may ignore something.
"""

from __future__ import annotations

import collections
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from xformlib.errors import TreeError
from xformlib.pytree.keys import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey

CACHE_SIZE = 2048  # entries of each cache of shared objects; a full cache is emptied (sharing is only an optimisation)

_PLAIN = frozenset([str, int, bool, bytes, type(None)])


class UnsortableKeysError(Exception):
    """Raised inside a walk that knows no key paths; the caller walks again to name the place."""


class Node:
    """One container of a structure. ``build(children)`` makes the container; ``shared`` nodes may be reused."""

    __slots__ = ("arity", "aux", "build", "kind", "shared")

    def __init__(
        self, kind: Kind, aux: Any, arity: int, build: Callable[[list[Any]], Any], shared: bool = True
    ) -> None:
        self.kind = kind
        self.aux = aux
        self.arity = arity
        self.build = build
        self.shared = shared

    def match(self, x: Any) -> Sequence[Any] | None:
        """The children of ``x`` if it is a container like this one, else None."""
        return self.kind.match(self, x)


class Flat:
    """A container of leaves only: a token that stands for its node and its leaves while a tree is being flattened."""

    __slots__ = ("nodes",)

    def __init__(self, node: Node) -> None:
        self.nodes = (LEAF,) * node.arity + (node,)


class KeyedNode(Node):
    """A node that is known by its metadata rather than by identity."""

    __slots__ = ("_hash",)

    def __init__(
        self, kind: Kind, aux: Any, arity: int, build: Callable[[list[Any]], Any], shared: bool = True
    ) -> None:
        super().__init__(kind, aux, arity, build, shared)
        self._hash: int | None = None

    def __hash__(self) -> int:
        if self._hash is None:
            try:
                self._hash = hash((self.kind.type, self.aux, self.arity))
            except TypeError as e:
                raise TreeError(
                    f"the metadata of pytree class {self.kind.type.__name__} must be hashable ({e}): "
                    f"{self.aux!r:.100}. Make arrays children, and lists in metadata tuples."
                ) from None
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KeyedNode):
            return NotImplemented
        return self.kind is other.kind and self.arity == other.arity and self.kind.same_aux(self.aux, other.aux)


def same(a: Any, b: Any) -> bool:
    """Equality by type and value, also inside tuples, lists and dicts, and for floats also of zeros' signs and NaNs."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a), list(b)) and all(map(same, a.values(), b.values()))
    if isinstance(a, float):
        return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (a != a and b != b)
    return bool(a == b)


def plain_key(aux: Any) -> Any:
    """What a cache may know plain metadata by (types included); None for metadata that must not be shared."""
    if type(aux) is tuple:
        types = tuple(map(type, aux))
        return (aux, types) if _PLAIN.issuperset(types) else None
    return (type(aux), aux) if type(aux) in _PLAIN else None


class Kind:
    """How containers of one type are taken apart and put together."""

    def __init__(self, type: Any) -> None:
        self.type: Any = type

    def enter(self, x: Any) -> tuple[Node, Sequence[Any]]:
        """The node of ``x`` and its children."""
        raise NotImplementedError

    def enter_with_keys(self, x: Any) -> tuple[Node, Sequence[Any], Sequence[Any]]:
        """The node of ``x``, its children's keys, its children."""
        raise NotImplementedError

    def node(self, aux: Any, arity: int) -> Node:
        """The node with this metadata."""
        raise NotImplementedError

    def match(self, node: Node, x: Any) -> Sequence[Any] | None:
        """See :meth:`Node.match`."""
        if type(x) is not self.type:
            return None
        other, children = self.enter(x)
        return (
            children if other is node or (other.arity == node.arity and self.similar_aux(node.aux, other.aux)) else None
        )

    def same_aux(self, a: Any, b: Any) -> bool:
        """Whether structures with these metadata are equal."""
        return same(a, b)

    def similar_aux(self, a: Any, b: Any) -> bool:
        """Whether trees with these metadata may be combined leaf by leaf."""
        return bool(a == b)

    def data(self, node: Node) -> Any:
        """The metadata as the user sees it."""
        return node.aux

    def keys(self, node: Node) -> tuple[Any, ...] | None:
        """The keys of a container like a dict."""
        return None

    def text(self, node: Node, parts: list[str]) -> str:
        """The container as text, given its children's text."""
        return f"{self.type.__name__}({', '.join(parts)})"

    def describe(self, node: Node) -> str:
        """The container in an error message."""
        return str(self.type.__name__)


class SequenceKind(Kind):
    """tuple and list."""

    def __init__(self, type: Any, brackets: str) -> None:
        super().__init__(type)
        self.brackets = brackets
        self.nodes: dict[int, Node] = {}
        self.flats: dict[tuple[type, ...], tuple[Node, Flat | None]] = {}  # by the children's types

    def node(self, aux: Any, arity: int) -> Node:
        return self.nodes.get(arity) or self.nodes.setdefault(arity, Node(self, None, arity, self.type))

    def flat(self, types: tuple[type, ...]) -> tuple[Node, Flat | None]:
        """The node of a container with children of these types, and its token if they are all leaves; remembered."""
        node = self.node(None, len(types))
        out = node, Flat(node) if are_leaves(types) else None
        remember(self.flats, types, out)
        return out

    def enter(self, x: Any) -> tuple[Node, Sequence[Any]]:
        return self.node(None, len(x)), x

    def enter_with_keys(self, x: Any) -> tuple[Node, Sequence[Any], Sequence[Any]]:
        return self.node(None, len(x)), [SequenceKey(i) for i in range(len(x))], x

    def match(self, node: Node, x: Any) -> Sequence[Any] | None:
        return x if type(x) is self.type and len(x) == node.arity else None

    def text(self, node: Node, parts: list[str]) -> str:
        comma = "," if self.type is tuple and len(parts) == 1 else ""
        return f"{self.brackets[0]}{', '.join(parts)}{comma}{self.brackets[1]}"

    def describe(self, node: Node) -> str:
        return f"{self.type.__name__} of length {node.arity}"


class NoneKind(Kind):
    """None: a container without children."""

    def __init__(self) -> None:
        super().__init__(type(None))
        self.only = Node(self, None, 0, lambda children: None)

    def node(self, aux: Any, arity: int) -> Node:
        return self.only

    def enter(self, x: Any) -> tuple[Node, Sequence[Any]]:
        return self.only, ()

    def enter_with_keys(self, x: Any) -> tuple[Node, Sequence[Any], Sequence[Any]]:
        return self.only, (), ()

    def text(self, node: Node, parts: list[str]) -> str:
        return "None"

    def describe(self, node: Node) -> str:
        return "None"


class NamedTupleKind(Kind):
    """One namedtuple class."""

    def __init__(self, type: Any) -> None:
        super().__init__(type)
        self.fields: tuple[str, ...] = type._fields
        self.only = Node(self, None, len(self.fields), lambda children: type(*children))

    def node(self, aux: Any, arity: int) -> Node:
        return self.only

    def enter(self, x: Any) -> tuple[Node, Sequence[Any]]:
        return self.only, x

    def enter_with_keys(self, x: Any) -> tuple[Node, Sequence[Any], Sequence[Any]]:
        return self.only, [GetAttrKey(f) for f in self.fields], x

    def text(self, node: Node, parts: list[str]) -> str:
        return f"{self.type.__name__}({', '.join(f'{f}={p}' for f, p in zip(self.fields, parts, strict=True))})"


class DictKind(Kind):
    """dict (children in the order of the sorted keys) and OrderedDict (in insertion order)."""

    def __init__(self, type: Any, ordered: bool) -> None:
        super().__init__(type)
        self.ordered = ordered
        self.flats: dict[Any, tuple[Node, Flat | None, Callable[[Any], Sequence[Any]]]] = {}

    def flat(
        self, keys: tuple[Any, ...], key_types: tuple[type, ...], types: tuple[type, ...]
    ) -> tuple[Node, Flat | None, Callable[[Any], Sequence[Any]]]:
        """For a dict with these keys (in any order) and children of these types: its node, its token if the children
        are all leaves, and a function from the dict to its children. Remembered, unless the keys must not be shared."""
        node = self.node(keys if self.ordered else sort_keys(keys), len(keys))
        out = node, Flat(node) if node.shared and are_leaves(types) else None, _getter(node.aux)
        if node.shared:
            remember(self.flats, (keys, key_types, types), out)
        return out

    def node(self, aux: Any, arity: int) -> Node:
        make = self.type
        shared = _PLAIN.issuperset(map(type, aux))
        # As many children as keys come from every caller, and asking zip to check takes half the time again.
        return KeyedNode(self, aux, arity, lambda children: make(zip(aux, children)), shared)  # noqa: B905

    def enter(self, x: Any) -> tuple[Node, Sequence[Any]]:
        keys = tuple(x)
        node = self.node(keys if self.ordered else sort_keys(keys), len(keys))
        return node, [x[k] for k in node.aux]

    def enter_with_keys(self, x: Any) -> tuple[Node, Sequence[Any], Sequence[Any]]:
        node, children = self.enter(x)
        return node, [DictKey(k) for k in node.aux], children

    def match(self, node: Node, x: Any) -> Sequence[Any] | None:
        if type(x) is not self.type or len(x) != node.arity or (self.ordered and tuple(x) != node.aux):
            return None
        try:
            return [x[k] for k in node.aux]
        except KeyError:
            return None

    def data(self, node: Node) -> Any:
        return node.aux if self.ordered else list(node.aux)

    def keys(self, node: Node) -> tuple[Any, ...] | None:
        keys: tuple[Any, ...] = node.aux
        return keys

    def text(self, node: Node, parts: list[str]) -> str:
        items = "{" + ", ".join(f"{k!r}: {p}" for k, p in zip(node.aux, parts, strict=True)) + "}"
        return f"OrderedDict({items})" if self.ordered else items

    def describe(self, node: Node) -> str:
        return f"{self.type.__name__} with keys {list(node.aux)!r:.200}"


class DefaultDictKind(Kind):
    """defaultdict: metadata is its factory and the sorted keys."""

    def node(self, aux: Any, arity: int) -> Node:
        factory, keys = aux
        # Never shared: the factory may be any callable, whose == is not known.
        return KeyedNode(
            self, aux, arity, lambda children: collections.defaultdict(factory, zip(keys, children, strict=True)), False
        )

    def enter(self, x: Any) -> tuple[Node, Sequence[Any]]:
        keys = sort_keys(tuple(x))
        return self.node((x.default_factory, keys), len(keys)), [x[k] for k in keys]

    def enter_with_keys(self, x: Any) -> tuple[Node, Sequence[Any], Sequence[Any]]:
        node, children = self.enter(x)
        return node, [DictKey(k) for k in node.aux[1]], children

    def keys(self, node: Node) -> tuple[Any, ...] | None:
        keys: tuple[Any, ...] = node.aux[1]
        return keys

    def text(self, node: Node, parts: list[str]) -> str:
        factory, keys = node.aux
        items = ", ".join(f"{k!r}: {p}" for k, p in zip(keys, parts, strict=True))
        return f"defaultdict({getattr(factory, '__name__', factory)}, {{{items}}})"

    def describe(self, node: Node) -> str:
        return f"defaultdict({node.aux[0]!r}) with keys {list(node.aux[1])!r:.200}"


class CustomKind(Kind):
    """A registered class."""

    def __init__(
        self,
        type: Any,
        flatten: Callable[[Any], tuple[Iterable[Any], Any]],
        unflatten: Callable[[Any, tuple[Any, ...]], Any],
        flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None,
    ) -> None:
        super().__init__(type)
        self.flatten = flatten
        self.unflatten = unflatten
        self.flatten_with_keys = flatten_with_keys
        self.nodes: dict[Any, Node] = {}

    def node(self, aux: Any, arity: int) -> Node:
        key = plain_key(aux)
        found = None if key is None else self.nodes.get((key, arity))
        if found is None:
            unflatten = self.unflatten
            found = KeyedNode(self, aux, arity, lambda children: unflatten(aux, tuple(children)), key is not None)
            if key is not None:
                remember(self.nodes, (key, arity), found)
        return found

    def enter(self, x: Any) -> tuple[Node, Sequence[Any]]:
        children, aux = self._pair(self.flatten(x), "flatten function")
        children = tuple(children)
        return self.node(aux, len(children)), children

    def enter_with_keys(self, x: Any) -> tuple[Node, Sequence[Any], Sequence[Any]]:
        if self.flatten_with_keys is None:
            node, children = self.enter(x)
            return node, [FlattenedIndexKey(i) for i in range(len(children))], children
        pairs, aux = self._pair(self.flatten_with_keys(x), "flatten_with_keys function")
        pairs = tuple(pairs)
        return self.node(aux, len(pairs)), [k for k, _ in pairs], [c for _, c in pairs]

    def _pair(self, result: Any, what: str) -> Any:
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise TreeError(
                f"the {what} of pytree class {self.type.__name__} must return a pair (children, metadata); "
                f"it returned {result!r:.100}."
            )
        return result

    def similar_aux(self, a: Any, b: Any) -> bool:
        try:
            return a is b or bool(a == b)
        except (ValueError, TypeError) as e:
            raise TreeError(
                f"the metadata of pytree class {self.type.__name__} can't be compared ({e}). "
                "Make arrays children, not metadata."
            ) from None

    def same_aux(self, a: Any, b: Any) -> bool:
        try:
            return same(a, b)
        except (ValueError, TypeError):
            return self.similar_aux(a, b)  # fails likewise, and says why

    def text(self, node: Node, parts: list[str]) -> str:
        aux = "" if node.aux is None or (type(node.aux) is tuple and not node.aux) else f"[{node.aux!r}]"
        return f"{self.type.__name__}{aux}({', '.join(parts)})"

    def describe(self, node: Node) -> str:
        return f"{self.type.__name__} with metadata {node.aux!r:.200} and {node.arity} children"


def _getter(keys: tuple[Any, ...]) -> Callable[[Any], Sequence[Any]]:
    """A function from a dict to the values of these keys."""
    if len(keys) > 1:
        return operator.itemgetter(*keys)
    return lambda x: [x[k] for k in keys]


def remember(cache: dict[Any, Any], key: Any, value: Any) -> None:
    """Add to a cache of bounded size."""
    if len(cache) >= CACHE_SIZE:
        cache.clear()
    cache[key] = value


def sort_keys(keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """Sorted dict keys."""
    try:
        return tuple(sorted(keys))
    except TypeError:
        raise UnsortableKeysError from None


class _LeafKind(Kind):
    """What is not a container."""

    def text(self, node: Node, parts: list[str]) -> str:
        return "*"

    def describe(self, node: Node) -> str:
        return "a leaf"


TUPLE = SequenceKind(tuple, "()")
LIST = SequenceKind(list, "[]")
DICT = DictKind(dict, ordered=False)
EMPTY_DICT = DICT.node((), 0)
NONE = NoneKind()
LEAF_KIND = _LeafKind(object)
LEAF = Node(LEAF_KIND, None, 0, lambda children: None)

# Every type met so far; types that are not containers map to LEAF_KIND.
KINDS: dict[type, Kind] = {
    tuple: TUPLE,
    list: LIST,
    dict: DICT,
    type(None): NONE,
    collections.OrderedDict: DictKind(collections.OrderedDict, ordered=True),
    collections.defaultdict: DefaultDictKind(collections.defaultdict),
}


def classify(t: type) -> Kind:
    """The kind of a type that is not in :data:`KINDS` yet."""
    kind = NamedTupleKind(t) if issubclass(t, tuple) and hasattr(t, "_fields") else LEAF_KIND
    return KINDS.setdefault(t, kind)


def are_leaves(types: tuple[type, ...]) -> bool:
    """Whether instances of all of these types are leaves."""
    return all((KINDS.get(t) or classify(t)) is LEAF_KIND for t in types)


def add_kind(kind: Kind) -> None:
    """Let a class be a container from now on."""
    KINDS[kind.type] = kind
    for caching in (TUPLE, LIST, DICT):
        caching.flats.clear()
