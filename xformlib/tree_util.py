"""Pytrees: nested containers of arrays, taken apart into leaves and put together again.

Containers are tuple, list, dict (by sorted keys), OrderedDict, defaultdict, namedtuple, None (which has no leaves), and
registered classes. Anything else is a leaf, including subclasses of these.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from xformlib.errors import TreeError
from xformlib.pytree.keys import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyEntry,
    KeyPath,
    SequenceKey,
    keystr,
)
from xformlib.pytree.mismatch import explain, mismatch, mismatches, shorten
from xformlib.pytree.nodes import KINDS, LEAF, LEAF_KIND, TUPLE, Kind, classify
from xformlib.pytree.register import (
    Partial,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
)
from xformlib.pytree.structure import IsLeaf, PyTreeDef, finish, tree_flatten, tree_flatten_with_path

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
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "is_tree_node",
    "keystr",
    "prefix_errors",
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

_NONE_GIVEN: Any = object()


# -- apart and together ------------------------------------------------------------------------------------------------


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of a structure with the given leaves.

    Raises:
        TreeError: too few or too many leaves.

    >>> tree_unflatten(tree_structure((0, [0])), [1, 2])
    (1, [2])
    """
    return treedef.unflatten(leaves)


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of a tree.

    >>> tree_leaves({"b": 1, "a": (2, 3)})
    [2, 3, 1]
    """
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> PyTreeDef:
    """The structure of a tree.

    >>> tree_structure({"b": 1, "a": (2, 3)})
    PyTreeDef({'a': (*, *), 'b': *})
    """
    return tree_flatten(tree, is_leaf)[1]


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """The leaves of a tree, each with its key path; see :func:`tree_flatten_with_path`."""
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


# -- mapping and reducing ----------------------------------------------------------------------------------------------


def _match_all(caller: str, treedef: PyTreeDef, rest: Sequence[Any]) -> list[list[Any]]:
    """The parts of each further tree that stand where ``treedef`` has leaves."""
    try:
        return [treedef.flatten_up_to(r) for r in rest]
    except TreeError:
        for i, r in enumerate(rest):
            if next(mismatches(treedef, r), None) is not None:
                what = f"{caller}: tree number {i + 2} differs in structure from the first"
                raise mismatch(treedef, r, what) from None
        raise


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """A tree of ``f(leaf, ...)`` over corresponding leaves.

    Args:
        f: function of as many arguments as there are trees.
        tree: the tree that gives the structure.
        rest: further trees of this structure. They may go deeper: ``f`` gets what stands at the place of a leaf.
        is_leaf: called with every container of ``tree``; True makes it a leaf.

    Raises:
        TreeError: structures differ; the message names the place and both structures.

    >>> tree_map(lambda x, y: x + y, {"a": 1}, {"a": 2})
    {'a': 3}
    """
    leaves, treedef = tree_flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten([f(x) for x in leaves])
    return treedef.unflatten([f(*xs) for xs in zip(leaves, *_match_all("tree_map", treedef, rest), strict=True)])


def tree_map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Like :func:`tree_map`, with the key path as the first argument of ``f``.

    >>> tree_map_with_path(lambda path, x: keystr(path), {"a": [1, 2]})
    {'a': ["['a'][0]", "['a'][1]"]}
    """
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = _match_all("tree_map_with_path", treedef, rest)
    return treedef.unflatten(
        [f(path, *xs) for (path, x), *ys in zip(pairs, *columns, strict=True) for xs in [(x, *ys)]]
    )


def tree_reduce(
    function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _NONE_GIVEN, is_leaf: IsLeaf = None
) -> Any:
    """Fold the leaves from the left.

    Args:
        function: of the value so far and a leaf.
        tree: the tree.
        initializer: value to start from; without it, the first leaf.
        is_leaf: see :func:`tree_flatten`.

    Raises:
        TypeError: no leaves and no ``initializer``.

    >>> tree_reduce(lambda x, y: x + y, (1, [2, 3]))
    6
    """
    leaves = tree_leaves(tree, is_leaf)
    if initializer is not _NONE_GIVEN:
        return functools.reduce(function, leaves, initializer)
    if not leaves:
        raise TreeError(f"tree_reduce: {shorten(tree_structure(tree))} has no leaves; give an initializer.")
    return functools.reduce(function, leaves)


def tree_reduce_associative(
    operation: Callable[[Any, Any], Any], tree: Any, *, identity: Any = _NONE_GIVEN, is_leaf: IsLeaf = None
) -> Any:
    """Combine the leaves in a balanced binary tree, in order; for associative operations.

    Args:
        operation: of two leaves or results.
        tree: the tree.
        identity: the result if there are no leaves.
        is_leaf: see :func:`tree_flatten`.

    Raises:
        TypeError: no leaves and no ``identity``.

    >>> tree_reduce_associative(lambda x, y: f"({x}{y})", list("abcd"))
    '((ab)(cd))'
    """
    leaves = tree_leaves(tree, is_leaf)
    if not leaves:
        if identity is _NONE_GIVEN:
            raise TreeError(
                f"tree_reduce_associative: {shorten(tree_structure(tree))} has no leaves; give an identity."
            )
        return identity

    def combine(lo: int, hi: int) -> Any:
        if hi - lo == 1:
            return leaves[lo]
        middle = (lo + hi) // 2
        return operation(combine(lo, middle), combine(middle, hi))

    return combine(0, len(leaves))


def tree_all(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves are true.

    >>> tree_all((True, [False])), tree_all(())
    (False, True)
    """
    return all(tree_leaves(tree, is_leaf))


# -- prefixes ----------------------------------------------------------------------------------------------------------


def broadcast_prefix(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """For every leaf of ``full_tree``, the leaf of ``prefix_tree`` above it.

    Args:
        prefix_tree: a tree that is like the upper part of ``full_tree``.
        full_tree: the tree that is broadcast to.
        is_leaf: what counts as a leaf of ``prefix_tree`` (None, for one).

    Raises:
        TreeError: ``prefix_tree`` is not a prefix of ``full_tree``.

    >>> broadcast_prefix((1, 2), ([0, 0], {"a": 0}))
    [1, 1, 2]
    """
    leaves, treedef = tree_flatten(prefix_tree, is_leaf)
    out: list[Any] = []
    for x, part in zip(leaves, treedef.flatten_up_to(full_tree), strict=True):
        out += [x] * tree_structure(part).num_leaves
    return out


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> Any:
    """A tree of the structure of ``full_tree`` with the leaves of ``prefix_tree``; see :func:`broadcast_prefix`.

    >>> tree_broadcast((1, 2), ([0, 0], {"a": 0}))
    ([1, 1], {'a': 2})
    """
    return tree_structure(full_tree).unflatten(broadcast_prefix(prefix_tree, full_tree, is_leaf))


def prefix_errors(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> list[Callable[[str], ValueError]]:
    """What keeps ``prefix_tree`` from being a prefix of ``full_tree``.

    Returns:
        For each difference a function from the prefix's name to the error to raise; an empty list if there is none.

    >>> print(prefix_errors((1, 2), (1, 2, 3))[0]("in_axes").args[0].splitlines()[0])
    in_axes is not a prefix at the root: expected tuple of length 2, got tuple of length 3.
    """

    def error(m: Any) -> Callable[[str], ValueError]:
        return lambda name: TreeError(f"{name} is not a prefix {explain(m)}")

    return [error(m) for m in mismatches(tree_structure(prefix_tree, is_leaf), full_tree)]


# -- structures --------------------------------------------------------------------------------------------------------


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any) -> Any:
    """Exchange two levels of a tree.

    Args:
        outer_treedef: structure of the upper level.
        inner_treedef: structure of the trees at its leaves; None to take that of the first.
        pytree_to_transpose: a tree of structure ``outer_treedef.compose(inner_treedef)``, whose leaves may be trees.

    Returns:
        The tree of structure ``inner_treedef.compose(outer_treedef)``.

    Raises:
        TreeError: the tree does not have that structure.

    >>> tree_transpose(tree_structure([0, 0]), tree_structure({"a": 0, "b": 0}), [{"a": 1, "b": 2}, {"a": 3, "b": 4}])
    {'a': [1, 3], 'b': [2, 4]}
    """
    parts = outer_treedef.flatten_up_to(pytree_to_transpose)
    if inner_treedef is None:
        if not parts:
            raise TreeError("tree_transpose: with no leaves in outer_treedef, inner_treedef must be given.")
        inner_treedef = tree_structure(parts[0])
    rows = _match_all("tree_transpose (parts of the outer structure)", inner_treedef, parts)
    columns = zip(*rows, strict=True) if rows else [()] * inner_treedef.num_leaves
    return inner_treedef.unflatten([outer_treedef.unflatten(c) for c in columns])


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple of trees.

    >>> treedef_tuple([tree_structure(0), tree_structure([0])])
    PyTreeDef((*, [*]))
    """
    parts = [t._nodes for t in treedefs]
    return finish((*[n for p in parts for n in p], TUPLE.node(None, len(parts))))


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """Structures of the children of the root."""
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether the structure is one node: a leaf, None, or an empty container."""
    return treedef.num_nodes == 1


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Whether every item is a leaf.

    >>> all_leaves([1, 2]), all_leaves([1, (2,)])
    (True, False)
    """
    return all(tree_structure(x, is_leaf)._nodes == (LEAF,) for x in iterable)


def build_tree(treedef: PyTreeDef, xs: Any) -> Any:
    """The tree of a structure whose parts are nested iterables instead of containers.

    >>> build_tree(tree_structure({"a": 0, "b": [0, 0]}), [1, [2, 3]])
    {'a': 1, 'b': [2, 3]}
    """
    return treedef.unflatten(_leaves_of(treedef, xs))


def _leaves_of(treedef: PyTreeDef, xs: Any) -> list[Any]:
    if treedef._nodes == (LEAF,):
        return [xs]
    return [x for sub, part in zip(treedef.children(), xs, strict=True) for x in _leaves_of(sub, part)]


# -- one level ---------------------------------------------------------------------------------------------------------


def _container_kind(tree: Any) -> Kind:
    kind = KINDS.get(type(tree)) or classify(type(tree))
    if kind is LEAF_KIND:
        raise TreeError(f"a {type(tree).__name__} is a leaf, not a container: it can't be flattened.")
    return kind


def flatten_one_level(tree: Any) -> tuple[Sequence[Any], Any]:
    """The children of a container, and its metadata.

    Raises:
        TreeError: it is a leaf.

    >>> flatten_one_level({"b": 1, "a": [2]})
    ([[2], 1], ('a', 'b'))
    """
    node, children = _container_kind(tree).enter(tree)
    return children, node.aux


def flatten_one_level_with_keys(tree: Any) -> tuple[list[tuple[KeyEntry, Any]], Any]:
    """The children of a container with their keys, and its metadata.

    >>> flatten_one_level_with_keys([5])
    ([(SequenceKey(idx=0), 5)], None)
    """
    node, keys, children = _container_kind(tree).enter_with_keys(tree)
    return list(zip(keys, children, strict=True)), node.aux


def is_tree_node(typ: type) -> bool:
    """Whether instances of a class are containers.

    >>> is_tree_node(tuple), is_tree_node(float)
    (True, False)
    """
    return (KINDS.get(typ) or classify(typ)) is not LEAF_KIND
