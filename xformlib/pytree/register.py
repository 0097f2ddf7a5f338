"""Making classes containers of pytrees."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from xformlib.errors import TreeError
from xformlib.pytree.keys import GetAttrKey
from xformlib.pytree.nodes import KINDS, LEAF_KIND, CustomKind, NamedTupleKind, add_kind

_T = TypeVar("_T")
Children = Iterable[Any]
KeyedChildren = Iterable[tuple[Any, Any]]


def register_pytree_node(
    nodetype: type[_T],
    flatten_func: Callable[[_T], tuple[Children, Any]],
    unflatten_func: Callable[[Any, Any], _T],
    flatten_with_keys_func: Callable[[_T], tuple[KeyedChildren, Any]] | None = None,
) -> None:
    """Make a class a container of pytrees.

    Args:
        nodetype: the class; subclasses are not included.
        flatten_func: ``x -> (children, metadata)``; the metadata must be hashable and comparable.
        unflatten_func: ``(metadata, children) -> x``, with the children as a tuple. Children need not be arrays:
            anything may stand there while a tree is being handled.
        flatten_with_keys_func: ``x -> ((key, child), ...), metadata``, for key paths.

    Raises:
        TypeError: ``nodetype`` is no class, or a function is not callable.
        ValueError: the class is a container already.

    >>> class Pair:
    ...     def __init__(self, a, b): self.a, self.b = a, b
    >>> register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda _, c: Pair(*c))
    >>> from xformlib.tree_util import tree_flatten
    >>> tree_flatten(Pair(1, 2))
    ([1, 2], PyTreeDef(Pair(*, *)))
    """
    for name, f in (("flatten_func", flatten_func), ("unflatten_func", unflatten_func)):
        if not callable(f):
            raise TypeError(f"register_pytree_node: {name} must be callable; got {f!r:.60}.")
    if not isinstance(nodetype, type):
        raise TypeError(f"register_pytree_node: nodetype must be a class; got {nodetype!r:.60}.")
    known = KINDS.get(nodetype)
    if known is not None and known is not LEAF_KIND and not isinstance(known, NamedTupleKind):
        raise ValueError(f"{nodetype.__name__} is registered as a pytree already; a class can be registered once.")
    add_kind(CustomKind(nodetype, flatten_func, unflatten_func, flatten_with_keys_func))


def register_pytree_with_keys(
    nodetype: type[_T],
    flatten_with_keys: Callable[[_T], tuple[KeyedChildren, Any]],
    unflatten_func: Callable[[Any, Any], _T],
    flatten_func: Callable[[_T], tuple[Children, Any]] | None = None,
) -> None:
    """Make a class a container whose children have names in key paths.

    Args:
        nodetype: the class.
        flatten_with_keys: ``x -> ((key, child), ...), metadata``.
        unflatten_func: ``(metadata, children) -> x``.
        flatten_func: the same as ``flatten_with_keys`` without keys, if there is a faster way.

    >>> class Box:
    ...     def __init__(self, item): self.item = item
    >>> register_pytree_with_keys(Box, lambda b: (((GetAttrKey("item"), b.item),), None), lambda _, c: Box(*c))
    >>> from xformlib.tree_util import tree_leaves_with_path
    >>> tree_leaves_with_path(Box(1))
    [((GetAttrKey(name='item'),), 1)]
    """

    def without_keys(x: _T) -> tuple[Children, Any]:
        pairs, aux = flatten_with_keys(x)
        return [c for _, c in pairs], aux

    register_pytree_node(nodetype, flatten_func or without_keys, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls: type[_T]) -> type[_T]:
    """Class decorator; the class has ``tree_flatten()`` and a classmethod ``tree_unflatten(metadata, children)``.

    >>> @register_pytree_node_class
    ... class Scaled:
    ...     def __init__(self, x): self.x = x
    ...     def tree_flatten(self): return (self.x,), None
    ...     @classmethod
    ...     def tree_unflatten(cls, metadata, children): return cls(*children)
    >>> from xformlib.tree_util import tree_leaves
    >>> tree_leaves(Scaled(2))
    [2]
    """
    methods: Any = cls
    register_pytree_node(cls, lambda x: x.tree_flatten(), methods.tree_unflatten)  # type: ignore[attr-defined]
    return cls


def register_pytree_with_keys_class(cls: type[_T]) -> type[_T]:
    """Class decorator; the class has ``tree_flatten_with_keys()`` and a classmethod ``tree_unflatten``.

    If it also has ``tree_flatten()``, that is used where keys are not needed.

    >>> @register_pytree_with_keys_class
    ... class Named:
    ...     def __init__(self, x): self.x = x
    ...     def tree_flatten_with_keys(self): return ((GetAttrKey("x"), self.x),), None
    ...     @classmethod
    ...     def tree_unflatten(cls, metadata, children): return cls(*children)
    >>> from xformlib.tree_util import keystr, tree_leaves_with_path
    >>> [keystr(path) for path, _ in tree_leaves_with_path([Named(1)])]
    ['[0].x']
    """
    methods: Any = cls
    flatten = methods.tree_flatten if hasattr(cls, "tree_flatten") else None
    register_pytree_with_keys(cls, methods.tree_flatten_with_keys, methods.tree_unflatten, flatten)
    return cls


def register_static(cls: type[_T]) -> type[_T]:
    """Class decorator: instances are metadata, without leaves. They must be hashable and comparable.

    >>> @register_static
    ... class Mode(str): pass
    >>> from xformlib.tree_util import tree_leaves
    >>> tree_leaves((Mode("fast"), 1))
    [1]
    """
    register_pytree_node(cls, lambda x: ((), x), lambda x, _: x, lambda x: ((), x))
    return cls


def register_dataclass(
    nodetype: Any = None,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Any:
    """Make a dataclass a container: ``@register_dataclass``, or ``@register_dataclass(data_fields=...)``.

    Args:
        nodetype: the class. It need not be a dataclass if the fields are given: its constructor must take them by name.
        data_fields: names of the fields that are children.
        meta_fields: names of the fields that are metadata: hashable, comparable, static under ``jit``. If neither is
            given, fields with ``metadata=dict(static=True)`` are metadata and the others are children.
        drop_fields: fields that are neither; they need defaults.

    Returns:
        The class.

    Raises:
        ValueError, TypeError: names that are not the class's fields, given twice, or missing.

    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Point:
    ...     x: float
    ...     name: str = dataclasses.field(metadata=dict(static=True), default="p")
    >>> from xformlib.tree_util import tree_flatten
    >>> tree_flatten(Point(1.0))
    ([1.0], PyTreeDef(Point[('p',)](*)))
    """
    if nodetype is None:
        return functools.partial(
            register_dataclass, data_fields=data_fields, meta_fields=meta_fields, drop_fields=drop_fields
        )
    data, meta = _fields(nodetype, data_fields, meta_fields, frozenset(drop_fields))

    def flatten(x: Any) -> tuple[list[Any], tuple[Any, ...]]:
        return [getattr(x, f) for f in data], tuple([getattr(x, f) for f in meta])

    def flatten_with_keys(x: Any) -> tuple[list[Any], tuple[Any, ...]]:
        return [(GetAttrKey(f), getattr(x, f)) for f in data], tuple([getattr(x, f) for f in meta])

    def unflatten(aux: tuple[Any, ...], children: tuple[Any, ...]) -> Any:
        return nodetype(**dict(zip(meta, aux, strict=True)), **dict(zip(data, children, strict=True)))

    register_pytree_node(nodetype, flatten, unflatten, flatten_with_keys)
    return nodetype


def _fields(nodetype: Any, data: Any, meta: Any, dropped: frozenset[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if (data is None) != (meta is None):
        given, missing = ("meta_fields", "data_fields") if data is None else ("data_fields", "meta_fields")
        raise TreeError(f"register_dataclass: {given} was given without {missing}; give both, or neither.")
    is_dataclass = dataclasses.is_dataclass(nodetype)
    if data is None:
        if not is_dataclass:
            raise TreeError(
                f"register_dataclass: {nodetype!r:.60} is not a dataclass; decorate it with @dataclasses.dataclass "
                "first, or give data_fields and meta_fields."
            )
        fields = [f for f in dataclasses.fields(nodetype) if f.name not in dropped]
        meta = [f.name for f in fields if f.metadata.get("static", False)]
        data = [f.name for f in fields if not f.metadata.get("static", False)]
    data, meta = tuple(data), tuple(meta)
    twice = sorted({f for f in (*data, *meta) if (*data, *meta).count(f) > 1})
    if twice:
        raise TreeError(f"register_dataclass: fields {twice} of {nodetype.__name__} are given more than once.")
    if is_dataclass:
        _check_names(nodetype, {*data, *meta}, dropped)
    return data, meta


def _check_names(nodetype: Any, given: set[str], dropped: frozenset[str]) -> None:
    """Every field the constructor takes must be given or dropped, and no others."""
    init = {f.name for f in dataclasses.fields(nodetype) if f.init}
    missing, unexpected = sorted(init - given - dropped), sorted(given - init)
    if missing:
        raise TreeError(
            f"register_dataclass: fields {missing} of {nodetype.__name__} are in neither data_fields nor meta_fields. "
            "Add them there, or to drop_fields if they have defaults that will do."
        )
    if unexpected:
        raise TreeError(
            f"register_dataclass: {unexpected} are not fields that the constructor of {nodetype.__name__} takes. A "
            "field with init=False can't be restored from a tree; name it in drop_fields if __post_init__ computes it."
        )


def static(**kwargs: Any) -> Any:
    """A dataclass field that :func:`register_dataclass` takes as metadata; arguments as of ``dataclasses.field``.

    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     weight: float
    ...     size: int = static(default=8)
    >>> from xformlib.tree_util import tree_leaves
    >>> tree_leaves(Layer(1.0))
    [1.0]
    """
    return dataclasses.field(metadata={**kwargs.pop("metadata", {}), "static": True}, **kwargs)


class _Function:
    """Hides a ``functools.partial`` from ``functools.partial``, which would merge the bound arguments of both."""

    __slots__ = ("function",)

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Function) and bool(self.function == other.function)

    def __hash__(self) -> int:
        return hash(self.function)

    def __repr__(self) -> str:
        return repr(self.function)


class Partial(functools.partial):  # type: ignore[type-arg]
    """``functools.partial`` as a container: the function is metadata, the bound arguments are children.

    So a function together with arrays it uses can be passed through ``jit``, ``vmap`` or ``scan``. A
    ``functools.partial`` given as the function stays whole, its arguments static.

    >>> from xformlib.tree_util import tree_leaves, tree_map
    >>> double = Partial(pow, 2)
    >>> tree_leaves(double), double(3)
    ([2], 8)
    >>> tree_map(lambda x: x + 1, double)(3)
    27
    """

    def __new__(cls, func: Callable[..., Any], /, *args: Any, **kw: Any) -> Partial:
        return super().__new__(cls, _Function(func) if isinstance(func, functools.partial) else func, *args, **kw)


def _unflatten_partial(func: Hashable, children: tuple[Any, ...]) -> Partial:
    args, kw = children
    return Partial(func, *args, **kw)  # type: ignore[arg-type]


register_pytree_node(
    Partial,
    lambda p: ((p.args, p.keywords), p.func),
    _unflatten_partial,
    lambda p: (((GetAttrKey("args"), p.args), (GetAttrKey("keywords"), p.keywords)), p.func),
)
