"""Structures of pytrees, and taking trees apart.

A structure is the tuple of its nodes in post-order (children before their container). Flattening walks iteratively, so
trees may be deeper than Python's recursion limit, and looks the finished tuple up among the structures met before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from xformlib.errors import TreeError
from xformlib.pytree.keys import KeyPath
from xformlib.pytree.mismatch import mismatch, place, shorten
from xformlib.pytree.nodes import (
    DICT,
    EMPTY_DICT,
    KINDS,
    LEAF,
    LEAF_KIND,
    LIST,
    TUPLE,
    Flat,
    Node,
    UnsortableKeysError,
    classify,
    remember,
)

IsLeaf = Callable[[Any], bool] | None

_LARGEST_SHARED = 1024  # nodes: looking larger structures up gains nothing


class PyTreeDef:
    """The structure of a pytree: its containers, without the leaves. Hashable and comparable.

    Equal structures of built-in containers are usually one object, so comparing them is quick.

    Attributes:
        num_leaves: number of leaves.
        num_nodes: number of containers and leaves.

    >>> from xformlib.tree_util import tree_structure
    >>> tree_structure((1, {"a": 2}))
    PyTreeDef((*, {'a': *}))
    """

    __slots__ = ("_hash", "_nodes", "_steps", "num_leaves")

    def __init__(self, nodes: tuple[Node, ...], num_leaves: int) -> None:
        self._nodes = nodes
        self.num_leaves = num_leaves
        self._hash: int | None = None
        self._steps: list[_Step] | None = None

    @property
    def num_nodes(self) -> int:
        return len(self._nodes)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self._nodes)
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return self._nodes == other._nodes if isinstance(other, PyTreeDef) else NotImplemented

    def __repr__(self) -> str:
        return f"PyTreeDef({self._text()})"

    def _text(self) -> str:
        stack: list[str] = []
        for node in self._nodes:
            parts = stack[len(stack) - node.arity :]
            del stack[len(stack) - node.arity :]
            stack.append(node.kind.text(node, parts))
        return stack[0]

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree of this structure with these leaves.

        Raises:
            TreeError: too few or too many leaves.
        """
        if type(leaves) is not list:
            leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise TreeError(f"tree_unflatten: {shorten(self)} has {self.num_leaves} leaves; {len(leaves)} were given.")
        if self._steps is None:
            self._steps = _steps(self._nodes)
        stack: list[Any] = []
        done = 0
        for build, arity, of_leaves in self._steps:
            if of_leaves:
                until = done + arity
                stack.append(build(leaves[done:until]))
                done = until
            else:
                start = len(stack) - arity
                children = stack[start:]
                del stack[start:]
                stack.append(build(children))
        return stack[0]

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The subtrees of ``tree`` where this structure has leaves.

        Raises:
            TreeError: ``tree`` does not have this structure above the leaves; the message names the place.

        >>> from xformlib.tree_util import tree_structure
        >>> tree_structure((0, 0)).flatten_up_to((1, [2, 3]))
        [1, [2, 3]]
        """
        out: list[Any] = []
        agenda = [tree]
        for node in reversed(self._nodes):
            x = agenda.pop()
            if node is LEAF:
                out.append(x)
                continue
            children = node.match(x)
            if children is None:
                raise mismatch(self, tree)
            agenda.extend(children)
        out.reverse()
        return out

    def children(self) -> list[PyTreeDef]:
        """Structures of the children of the root."""
        out = []
        end = len(self._nodes) - 1
        for _ in range(self._nodes[-1].arity):
            start = self._start(end)
            out.append(finish(self._nodes[start:end]))
            end = start
        return out[::-1]

    def _start(self, end: int) -> int:
        """Where the subtree begins whose last node is before ``end``."""
        missing = 1
        while missing:
            end -= 1
            missing += self._nodes[end].arity - 1
        return end

    def node_data(self) -> tuple[type, Any] | None:
        """Type and metadata of the root, None for a leaf."""
        root = self._nodes[-1]
        return None if root is LEAF else (root.kind.type, root.kind.data(root))

    def compose(self, inner: PyTreeDef) -> PyTreeDef:
        """This structure with every leaf replaced by ``inner``."""
        out: list[Node] = []
        for node in self._nodes:
            out.extend(inner._nodes if node is LEAF else (node,))
        return finish(tuple(out))

    def __reduce__(self) -> Any:
        return _rebuild, ([None if n is LEAF else (n.kind.type, n.aux, n.arity) for n in self._nodes],)


_Step = tuple[Callable[[list[Any]], Any], int, bool]


def _steps(nodes: tuple[Node, ...]) -> list[_Step]:
    """How to build a tree: (function, number of arguments, whether these are the next leaves or built last)."""
    out: list[_Step] = []
    leaves = 0  # in a row, not yet taken
    for node in nodes:
        if node is LEAF:
            leaves += 1
        elif leaves >= node.arity:
            out += [_LEAF_STEP] * (leaves - node.arity)
            out.append((node.build, node.arity, True))
            leaves = 0
        else:
            out += [_LEAF_STEP] * leaves
            out.append((node.build, node.arity, False))
            leaves = 0
    return out + [_LEAF_STEP] * leaves


def _only(leaves: list[Any]) -> Any:
    return leaves[0]


_LEAF_STEP: _Step = (_only, 1, True)


def _rebuild(specs: Sequence[tuple[type, Any, int] | None]) -> PyTreeDef:
    nodes = []
    for spec in specs:
        if spec is None:
            nodes.append(LEAF)
            continue
        kind = KINDS.get(spec[0]) or classify(spec[0])
        if kind is LEAF_KIND:
            raise TreeError(
                f"a pickled tree structure holds {spec[0].__name__}, which is not registered as a pytree here."
            )
        nodes.append(kind.node(*spec[1:]))
    return finish(tuple(nodes))


_shared: dict[tuple[Node, ...], PyTreeDef] = {}
_by_tokens: dict[tuple[Node | Flat, ...], PyTreeDef] = {}


def finish(nodes: tuple[Node, ...]) -> PyTreeDef:
    """The structure with these nodes, shared if all its nodes are."""
    num_leaves = sum([n is LEAF for n in nodes])
    if len(nodes) > _LARGEST_SHARED or not all(n.shared for n in nodes):
        return PyTreeDef(nodes, num_leaves)
    found = _shared.get(nodes)
    if found is None:
        found = PyTreeDef(nodes, num_leaves)
        remember(_shared, nodes, found)
    return found


def _finish_tokens(tokens: tuple[Node | Flat, ...], shared: bool) -> PyTreeDef:
    nodes: list[Node] = []
    for t in tokens:
        if isinstance(t, Flat):
            nodes += t.nodes
        else:
            nodes.append(t)
    found = finish(tuple(nodes))
    if shared and len(nodes) <= _LARGEST_SHARED:
        remember(_by_tokens, tokens, found)
    return found


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves of a tree, from left to right, and its structure.

    Args:
        tree: the tree.
        is_leaf: called with every container met; True makes it a leaf.

    Raises:
        TreeError: a dict whose keys can't be sorted, a registered class whose functions return nonsense.

    >>> tree_flatten((1, [2, None]))
    ([1, 2], PyTreeDef((*, [*, None])))
    >>> tree_flatten((1, None), is_leaf=lambda x: x is None)
    ([1, None], PyTreeDef((*, *)))
    """
    leaves: list[Any] = []
    tokens: list[Node | Flat] = []
    try:
        shared = _walk(tree, leaves, tokens, is_leaf)
    except UnsortableKeysError:
        tree_flatten_with_path(tree, is_leaf)  # fails at the same place, and can name it
        raise
    key = tuple(tokens)
    return leaves, (shared and _by_tokens.get(key)) or _finish_tokens(key, shared)


def _walk(tree: Any, leaves: list[Any], tokens: list[Node | Flat], is_leaf: IsLeaf) -> bool:
    """Append leaves and, in post-order, nodes; True if all nodes are shared.

    This is on the path of every call of a jitted function: the common kinds stand inline, and a container of leaves
    only, known from the types of its children, is taken in one step (a :class:`Flat`).
    """
    shared = True
    kinds = KINDS.get
    stack: list[tuple[Iterator[Any], Node]] = []
    todo: Iterator[Any] = iter((tree,))
    parent: Node = LEAF
    while True:
        for x in todo:
            kind = kinds(type(x)) or classify(type(x))
            if kind is LEAF_KIND or (is_leaf is not None and is_leaf(x)):
                leaves.append(x)
                tokens.append(LEAF)
                continue
            children: Sequence[Any]
            flat: Flat | None
            if kind is TUPLE or kind is LIST:
                children = x
                node, flat = kind.flats.get(types := (*map(type, x),)) or kind.flat(types)  # type: ignore[attr-defined]
            elif kind is DICT:
                if not x:  # the keyword arguments of most calls
                    tokens.append(EMPTY_DICT)
                    continue
                keys = tuple(x)
                signature = keys, (*map(type, keys),), (*map(type, x.values()),)
                node, flat, take = DICT.flats.get(signature) or DICT.flat(*signature)
                children = take(x)
                shared = shared and node.shared
            else:
                node, children = kind.enter(x)
                shared = shared and node.shared
                flat = None
            if flat is not None and is_leaf is None:
                leaves += children
                tokens.append(flat)
                continue
            stack.append((todo, parent))
            todo, parent = iter(children), node
            break
        else:
            if not stack:
                return shared
            tokens.append(parent)
            todo, parent = stack.pop()


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Like :func:`tree_flatten`, with each leaf's key path beside it.

    Args:
        tree: the tree.
        is_leaf: called with every node met; True makes it a leaf.
        is_leaf_takes_path: call ``is_leaf(key_path, x)``.

    >>> tree_flatten_with_path({"a": [1]})
    ([((DictKey(key='a'), SequenceKey(idx=0)), 1)], PyTreeDef({'a': [*]}))
    """
    out: list[tuple[KeyPath, Any]] = []
    nodes: list[Node] = []
    # Containers come back from the stack a second time, as their node alone, once their children are done.
    stack: list[tuple[KeyPath, Any, Node | None]] = [((), tree, None)]
    while stack:
        path, x, node = stack.pop()
        if node is not None:
            nodes.append(node)
            continue
        kind = KINDS.get(type(x)) or classify(type(x))
        stop = is_leaf is not None and (is_leaf(path, x) if is_leaf_takes_path else is_leaf(x))
        if kind is LEAF_KIND or stop:
            out.append((path, x))
            nodes.append(LEAF)
            continue
        try:
            node, keys, children = kind.enter_with_keys(x)
        except UnsortableKeysError:
            raise _unsortable(path, x) from None
        stack.append((path, None, node))
        stack.extend([((*path, k), c, None) for k, c in zip(keys, children, strict=True)][::-1])
    return out, finish(tuple(nodes))


def _unsortable(path: KeyPath, x: Any) -> TreeError:
    types = sorted({type(k).__name__ for k in x})
    return TreeError(
        f"the dict at {place(path)} has keys that can't be sorted (of types {', '.join(types)}), and a pytree's leaves "
        "need an order. Use keys of one sortable type, or collections.OrderedDict."
    )
