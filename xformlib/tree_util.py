"""Pytrees: nested containers of arrays, taken apart into leaves and put together again.

Containers are tuple, list, dict, OrderedDict, defaultdict, deque, namedtuple, None, and registered classes; all else is a leaf.
Structures are interned, so comparing the trees of two calls compares two pointers.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from xformlib.errors import TreeError

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "Partial",
    "PyTreeDef",
    "SequenceKey",
    "all_leaves",
    "broadcast_prefix",
    "build_tree",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "tree_all",
    "tree_broadcast",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_reduce_associative",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
]

_T = TypeVar("_T")
IsLeaf = Callable[[Any], bool] | None


# -- keys ---------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """Position in a tuple or list."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


@dataclasses.dataclass(frozen=True)
class DictKey:
    """Key of a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """Attribute of an object."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclasses.dataclass(frozen=True)
class FlattenedIndexKey:
    """Position among the children of a class registered without keys."""

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


KeyEntry = Any
KeyPath = tuple[KeyEntry, ...]


def keystr(path: Iterable[Any], *, simple: bool = False, separator: str = "") -> str:
    """A key path as text, as it would be written in Python; ``simple`` gives the bare names.

    >>> keystr((DictKey("a"), SequenceKey(0)))
    "['a'][0]"
    >>> keystr((DictKey("a"), SequenceKey(0)), simple=True, separator="/")
    'a/0'
    """
    return separator.join(_simple(k) if simple else str(k) for k in path)


def _simple(key: Any) -> str:
    for name in ("key", "idx", "name"):
        if hasattr(key, name):
            return str(getattr(key, name))
    return str(key)


# -- kinds of containers -------------------------------------------------------------------------------------------------


class _Node(NamedTuple):
    """How a container type is taken apart: ``flatten(x) -> (children, aux)`` and back; ``keys(x, aux)`` name the children."""

    flatten: Callable[[Any], tuple[Iterable[Any], Any]]
    unflatten: Callable[[Any, Any], Any]
    keys: Callable[[Any, Any], Iterable[Any]]


def _sequence_keys(x: Any, aux: Any) -> Iterable[Any]:
    return map(SequenceKey, range(len(x)))


def _flatten_dict(x: dict[Any, Any]) -> tuple[Iterable[Any], Any]:
    try:
        keys = tuple(sorted(x))
    except TypeError:
        raise TreeError(
            f"a dict in a pytree needs keys that can be sorted; got keys of types {sorted({type(k).__name__ for k in x})}. "
            "Use keys of one type, or collections.OrderedDict."
        ) from None
    return [x[k] for k in keys], keys


def _dict_keys(x: Any, aux: Any) -> Iterable[Any]:
    return map(DictKey, aux)


def _default_dict(aux: Any, children: Any) -> Any:
    return collections.defaultdict(aux[0], zip(aux[1], children, strict=True))


_NODES: dict[type, _Node] = {
    tuple: _Node(lambda x: (x, None), lambda aux, c: tuple(c), _sequence_keys),
    list: _Node(lambda x: (x, None), lambda aux, c: list(c), _sequence_keys),
    dict: _Node(_flatten_dict, lambda aux, c: dict(zip(aux, c, strict=True)), _dict_keys),
    type(None): _Node(lambda x: ((), None), lambda aux, c: None, lambda x, aux: ()),
    collections.OrderedDict: _Node(
        lambda x: (x.values(), tuple(x)), lambda aux, c: collections.OrderedDict(zip(aux, c, strict=True)), _dict_keys
    ),
    collections.defaultdict: _Node(
        lambda x: (_flatten_dict(x)[0], (x.default_factory, _flatten_dict(x)[1])),
        _default_dict,
        lambda x, aux: map(DictKey, aux[1]),
    ),
    collections.deque: _Node(
        lambda x: (x, x.maxlen), lambda aux, c: collections.deque(c, maxlen=aux), _sequence_keys
    ),
}
_NAMEDTUPLE = _Node(
    lambda x: (x, None), lambda aux, c: aux(*c), lambda x, aux: [GetAttrKey(f) for f in type(x)._fields]
)


def _node_of(x: Any) -> _Node | None:
    node = _NODES.get(type(x))
    if node is None and isinstance(x, tuple) and hasattr(x, "_fields"):
        return _NAMEDTUPLE
    return node


# -- structures --------------------------------------------------------------------------------------------------------


class PyTreeDef:
    """The structure of a pytree: which containers, without the leaves. Hashable and comparable.

    >>> tree_structure((1, {"a": 2}))
    PyTreeDef((*, {'a': *}))
    """

    __slots__ = ("_aux", "_children", "_hash", "_type", "num_leaves", "num_nodes")

    def __init__(self, type: type | None, aux: Any, children: tuple[PyTreeDef, ...]) -> None:
        self._type = type
        self._aux = aux
        self._children = children
        self.num_leaves = sum([c.num_leaves for c in children]) if type is not None else 1
        self.num_nodes = 1 + sum([c.num_nodes for c in children])
        self._hash: int | None = None

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self._type, self._aux, self._children))
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, PyTreeDef):
            return NotImplemented
        return (
            self._type is other._type
            and self.num_leaves == other.num_leaves
            and bool(self._aux == other._aux)
            and self._children == other._children
        )

    def __repr__(self) -> str:
        return f"PyTreeDef({self._text()})"

    def _text(self) -> str:
        parts = [c._text() for c in self._children]
        if self._type is None:
            return "*"
        if self._type is tuple:
            return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        if self._type is list:
            return f"[{', '.join(parts)}]"
        if self._type is type(None):
            return "None"
        if self._type is dict:
            return "{" + ", ".join(f"{k!r}: {p}" for k, p in zip(self._aux, parts, strict=True)) + "}"
        aux = "" if self._aux is None or self._node() is _NAMEDTUPLE else f"[{self._aux!r}]"
        return f"{self._type.__name__}{aux}({', '.join(parts)})"

    def _node(self) -> _Node:
        assert self._type is not None
        return _NODES.get(self._type, _NAMEDTUPLE)

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree of this structure with these leaves."""
        return tree_unflatten(self, leaves)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The subtrees of ``tree`` where this structure has leaves."""
        out: list[Any] = []
        _flatten_up_to(self, tree, out, ())
        return out

    def children(self) -> list[PyTreeDef]:
        """Structures of the children of the root."""
        return list(self._children)

    def node_data(self) -> tuple[type, Any] | None:
        """Type and metadata of the root, None for a leaf."""
        return None if self._type is None else (self._type, self._aux)

    def compose(self, inner: PyTreeDef) -> PyTreeDef:
        """This structure with every leaf replaced by ``inner``."""
        if self._type is None:
            return inner
        return _make(self._type, self._aux, tuple([c.compose(inner) for c in self._children]))

    def __reduce__(self) -> Any:
        return (_leaf_def, ()) if self._type is None else (_make, (self._type, self._aux, self._children))


LEAF = PyTreeDef(None, None, ())
_interned: dict[Any, PyTreeDef] = {}


def _leaf_def() -> PyTreeDef:
    return LEAF


def _make(kind: type, aux: Any, children: tuple[PyTreeDef, ...]) -> PyTreeDef:
    key = (kind, aux, children)
    try:
        found = _interned.get(key)
    except TypeError:  # unhashable metadata of a registered class
        return PyTreeDef(kind, aux, children)
    if found is None:
        found = PyTreeDef(kind, aux, children)
        if kind in _BUILTIN:  # a class's metadata may compare equal while differing, or keep large objects alive
            _interned[key] = found
    return found


_BUILTIN = frozenset(_NODES)


# -- flatten and unflatten -----------------------------------------------------------------------------------------------


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """(leaves, structure) of a tree; ``is_leaf(x)`` may stop the descent at containers.

    >>> tree_flatten((1, [2, 3]))
    ([1, 2, 3], PyTreeDef((*, [*, *])))
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: Any, leaves: list[Any], is_leaf: IsLeaf) -> PyTreeDef:
    node = _NODES.get(type(tree))
    if node is None and isinstance(tree, tuple) and hasattr(tree, "_fields"):
        node = _NAMEDTUPLE
    if node is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return LEAF
    children, aux = node.flatten(tree)
    if node is _NAMEDTUPLE:
        aux = type(tree)
    return _make(type(tree), aux, tuple([_flatten(c, leaves, is_leaf) for c in children]))


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of a structure with the given leaves.

    Raises:
        TreeError: too few or too many leaves.
    """
    leaves = leaves if isinstance(leaves, list | tuple) else list(leaves)
    if len(leaves) != treedef.num_leaves:
        raise TreeError(f"tree_unflatten: structure {treedef} has {treedef.num_leaves} leaves; {len(leaves)} were given.")
    return _unflatten(treedef, iter(leaves))


def _unflatten(treedef: PyTreeDef, leaves: Iterator[Any]) -> Any:
    kind = treedef._type
    if kind is None:
        return next(leaves)
    children = [_unflatten(c, leaves) for c in treedef._children]
    if kind is tuple:
        return tuple(children)
    return treedef._node().unflatten(treedef._aux, children)


def _flatten_up_to(treedef: PyTreeDef, tree: Any, out: list[Any], path: KeyPath) -> None:
    if treedef._type is None:
        out.append(tree)
        return
    node = _node_of(tree)
    if node is None or type(tree) is not treedef._type:
        raise TreeError(
            f"trees differ in structure at {keystr(path) or 'the root'}: expected {treedef._type.__name__} "
            f"({treedef._text()}), got {type(tree).__name__}."
        )
    children, aux = node.flatten(tree)
    children = list(children)
    aux = type(tree) if node is _NAMEDTUPLE else aux
    if len(children) != len(treedef._children) or aux != treedef._aux:
        raise TreeError(
            f"trees differ in structure at {keystr(path) or 'the root'}: expected {treedef._text()}, "
            f"got {type(tree).__name__} with {len(children)} children"
            + (f" and keys {list(node.keys(tree, aux))}." if aux is not None else ".")
        )
    for key, sub, child in zip(node.keys(tree, aux), treedef._children, children, strict=True):
        _flatten_up_to(sub, child, out, (*path, key))


def tree_flatten_with_path(
    tree: Any, is_leaf: IsLeaf = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Like :func:`tree_flatten`, each leaf with its key path."""
    out: list[tuple[KeyPath, Any]] = []

    def stop(path: KeyPath, x: Any) -> bool:
        if is_leaf is None:
            return False
        return is_leaf(path, x) if is_leaf_takes_path else is_leaf(x)  # type: ignore[call-arg]

    def walk(path: KeyPath, x: Any) -> PyTreeDef:
        node = _node_of(x)
        if node is None or stop(path, x):
            out.append((path, x))
            return LEAF
        children, aux = node.flatten(x)
        aux = type(x) if node is _NAMEDTUPLE else aux
        children = list(children)
        keys = node.keys(x, aux)
        return _make(type(x), aux, tuple([walk((*path, k), c) for k, c in zip(keys, children, strict=True)]))

    treedef = walk((), tree)
    return out, treedef


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of a tree."""
    return tree_flatten(tree, is_leaf)[0]


def tree_leaves_with_path(tree: Any, is_leaf: IsLeaf = None, is_leaf_takes_path: bool = False) -> list[tuple[KeyPath, Any]]:
    """The leaves of a tree, each with its key path."""
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> PyTreeDef:
    """The structure of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Apply ``f`` to corresponding leaves of trees of one structure (``rest`` may go deeper).

    Raises:
        TreeError: the structures differ; the message names the place.

    >>> tree_map(lambda x, y: x + y, {"a": 1}, {"a": 2})
    {'a': 3}
    """
    leaves, treedef = tree_flatten(tree, is_leaf)
    columns = [leaves, *[treedef.flatten_up_to(r) for r in rest]]
    return tree_unflatten(treedef, [f(*xs) for xs in zip(*columns, strict=True)])


def tree_map_with_path(
    f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None, is_leaf_takes_path: bool = False
) -> Any:
    """Like :func:`tree_map`; ``f`` gets the key path first."""
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = [treedef.flatten_up_to(r) for r in rest]
    return tree_unflatten(treedef, [f(p, x, *ys) for (p, x), *ys in zip(pairs, *columns, strict=True)])


_NO_INITIAL = object()


def tree_reduce(f: Callable[[Any, Any], Any], tree: Any, initializer: Any = _NO_INITIAL, is_leaf: IsLeaf = None) -> Any:
    """Fold ``f`` over the leaves, from the left."""
    leaves = tree_leaves(tree, is_leaf)
    return functools.reduce(f, leaves) if initializer is _NO_INITIAL else functools.reduce(f, leaves, initializer)


def tree_reduce_associative(
    f: Callable[[Any, Any], Any], tree: Any, *, identity: Any = _NO_INITIAL, is_leaf: IsLeaf = None
) -> Any:
    """Combine the leaves pairwise with an associative ``f``."""
    leaves = tree_leaves(tree, is_leaf)
    if not leaves:
        if identity is _NO_INITIAL:
            raise TreeError("tree_reduce_associative: the tree has no leaves and no identity was given.")
        return identity
    while len(leaves) > 1:
        pairs = [f(a, b) for a, b in zip(leaves[::2], leaves[1::2], strict=False)]
        leaves = pairs + leaves[len(pairs) * 2 :]
    return leaves[0]


def tree_all(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves are true."""
    return all(tree_leaves(tree, is_leaf))


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any) -> Any:
    """A tree of trees with the two levels exchanged.

    >>> tree_transpose(tree_structure((0, 0)), tree_structure({"a": 0}), ({"a": 1}, {"a": 2}))
    {'a': (1, 2)}
    """
    subtrees = outer_treedef.flatten_up_to(pytree_to_transpose)
    inner = tree_structure(subtrees[0]) if inner_treedef is None else inner_treedef
    rows = [inner.flatten_up_to(s) for s in subtrees]
    return tree_unflatten(inner, [tree_unflatten(outer_treedef, column) for column in zip(*rows, strict=True)])


def broadcast_prefix(prefix: Any, full: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """For every leaf of ``full``, the leaf of ``prefix`` above it.

    Raises:
        TreeError: ``prefix`` is no prefix of ``full``.
    """
    out: list[Any] = []
    leaves, treedef = tree_flatten(prefix, is_leaf)
    for x, sub in zip(leaves, treedef.flatten_up_to(full), strict=True):
        out.extend([x] * tree_structure(sub).num_leaves)
    return out


def tree_broadcast(prefix: Any, full: Any, is_leaf: IsLeaf = None) -> Any:
    """A tree of the structure of ``full`` whose leaves come from ``prefix``."""
    return tree_unflatten(tree_structure(full), broadcast_prefix(prefix, full, is_leaf))


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Whether every item is a leaf."""
    return all(tree_structure(x, is_leaf)._type is None for x in iterable)


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether the structure is a single leaf."""
    return treedef._type is None


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """Structures of the children of the root."""
    return treedef.children()


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple of trees."""
    return _make(tuple, None, tuple(treedefs))


def build_tree(treedef: PyTreeDef, xs: Any) -> Any:
    """The tree of a structure whose leaves are those of ``xs``, in order."""
    return tree_unflatten(treedef, tree_leaves(xs))


# -- registration ---------------------------------------------------------------------------------------------------------


def _register(nodetype: type, node: _Node) -> None:
    if nodetype in _NODES:
        raise ValueError(f"{nodetype.__name__} is already registered as a pytree")
    _NODES[nodetype] = node


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Hashable]] | None = None,
) -> None:
    """Make a class a container: ``flatten_func(x) -> (children, metadata)``, ``unflatten_func(metadata, children)``."""

    def keys(x: Any, aux: Any) -> Iterable[Any]:
        if flatten_with_keys_func is not None:
            return [k for k, _ in flatten_with_keys_func(x)[0]]
        return map(FlattenedIndexKey, range(len(list(flatten_func(x)[0]))))

    _register(nodetype, _Node(flatten_func, unflatten_func, keys))


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]] | None = None,
) -> None:
    """Make a class a container whose children have keys: ``flatten_with_keys(x) -> ((key, child), ...), metadata``."""

    def plain(x: Any) -> tuple[Iterable[Any], Hashable]:
        pairs, aux = flatten_with_keys(x)
        return [c for _, c in pairs], aux

    register_pytree_node(nodetype, flatten_func or plain, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls: type[_T]) -> type[_T]:
    """Class decorator: the class has methods ``tree_flatten()`` and classmethod ``tree_unflatten(metadata, children)``."""
    register_pytree_node(cls, lambda x: x.tree_flatten(), cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


def register_pytree_with_keys_class(cls: type[_T]) -> type[_T]:
    """Class decorator: the class has ``tree_flatten_with_keys()`` and classmethod ``tree_unflatten``."""
    flatten = (lambda x: x.tree_flatten()) if hasattr(cls, "tree_flatten") else None
    register_pytree_with_keys(
        cls,
        lambda x: x.tree_flatten_with_keys(),
        cls.tree_unflatten,  # type: ignore[attr-defined]
        flatten,
    )
    return cls


def register_static(cls: type[_T]) -> type[_T]:
    """Class decorator: instances are metadata without leaves; they must be hashable and comparable."""
    register_pytree_node(cls, lambda x: ((), x), lambda x, _: x)
    return cls


def register_dataclass(
    nodetype: Any = None, data_fields: Iterable[str] | None = None, meta_fields: Iterable[str] | None = None, drop_fields: Iterable[str] = ()
) -> Any:
    """Make a dataclass a container: ``data_fields`` are children, ``meta_fields`` metadata.

    Without them, fields with ``metadata=dict(static=True)`` are metadata and the others children.

    Raises:
        TreeError: field names that do not match the dataclass.

    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Point:
    ...     x: float
    ...     name: str = dataclasses.field(metadata=dict(static=True), default="p")
    >>> tree_leaves(Point(1.0))
    [1.0]
    """
    if nodetype is None:
        return functools.partial(register_dataclass, data_fields=data_fields, meta_fields=meta_fields)
    data, meta = _dataclass_fields(nodetype, data_fields, meta_fields, frozenset(drop_fields))

    def flatten(x: Any) -> tuple[list[Any], Any]:
        return [getattr(x, f) for f in data], tuple([getattr(x, f) for f in meta])

    def unflatten(aux: Any, children: Any) -> Any:
        return nodetype(**dict(zip(meta, aux, strict=True)), **dict(zip(data, children, strict=True)))

    _register(nodetype, _Node(flatten, unflatten, lambda x, aux: map(GetAttrKey, data)))
    return nodetype


def _dataclass_fields(nodetype: Any, data: Any, meta: Any, dropped: frozenset[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if (data is None) != (meta is None):
        raise TreeError("register_dataclass: give both data_fields and meta_fields, or neither.")
    if not dataclasses.is_dataclass(nodetype):
        if data is None:
            raise TreeError(f"register_dataclass: {nodetype.__name__} is not a dataclass; name data_fields and meta_fields.")
        return tuple(data), tuple(meta)
    fields = [f for f in dataclasses.fields(nodetype) if f.init]
    if data is None:
        meta = [f.name for f in fields if f.metadata.get("static", False)]
        data = [f.name for f in fields if f.name not in meta]
    data, meta = tuple(data), tuple(meta)
    names = {f.name for f in fields} - dropped
    if set(data) | set(meta) != names:
        raise TreeError(
            f"register_dataclass: data_fields {list(data)} and meta_fields {list(meta)} must be the fields of "
            f"{nodetype.__name__}: {sorted(names)}."
        )
    return data, meta


class Partial(functools.partial):  # type: ignore[type-arg]
    """``functools.partial`` as a container: the function is metadata, the bound arguments are children.

    >>> tree_leaves(Partial(pow, 2))
    [2]
    """


register_pytree_node(
    Partial,
    lambda p: ((p.args, p.keywords), p.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
    lambda p: (((GetAttrKey("args"), p.args), (GetAttrKey("keywords"), p.keywords)), p.func),
)
