"""Pytrees: structures, registration, key paths, prefixes and error messages."""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import pickle
import threading
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xformlib as xf
from xformlib import tree_util as tu
from xformlib.errors import TreeError


class Point(NamedTuple):
    x: Any
    y: Any


class SubPoint(Point):
    pass


class SubDict(dict):  # type: ignore[type-arg]
    pass


class SubTuple(tuple):  # type: ignore[type-arg]
    __slots__ = ()


@tu.register_pytree_node_class
class Custom:
    """A registered class without keys."""

    def __init__(self, *children: Any, aux: Any = None) -> None:
        self.children = children
        self.aux = aux

    def tree_flatten(self) -> tuple[Any, Any]:
        return self.children, self.aux

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> Custom:
        assert type(children) is tuple
        return cls(*children, aux=aux)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Custom) and (self.children, self.aux) == (other.children, other.aux)

    __hash__ = None  # type: ignore[assignment]


def structure(x: Any) -> tu.PyTreeDef:
    return tu.tree_structure(x)


# -- flatten, unflatten ------------------------------------------------------------------------------------------------

default = collections.defaultdict(list, {"b": 1, "a": 2})
ordered = collections.OrderedDict(b=1, a=2)


@pytest.mark.parametrize(
    ("tree", "leaves", "text"),
    [
        (1, [1], "*"),
        (None, [], "None"),
        ((), [], "()"),
        ((1,), [1], "(*,)"),
        ([1, (2, None)], [1, 2], "[*, (*, None)]"),
        ({"b": 1, "a": 2}, [2, 1], "{'a': *, 'b': *}"),
        ({"a": {}, "b": (), "c": []}, [], "{'a': {}, 'b': (), 'c': []}"),
        (ordered, [1, 2], "OrderedDict({'b': *, 'a': *})"),
        (default, [2, 1], "defaultdict(list, {'a': *, 'b': *})"),
        (Point(1, [2]), [1, 2], "Point(x=*, y=[*])"),
        (SubPoint(1, 2), [1, 2], "SubPoint(x=*, y=*)"),
        (Custom(1, 2, aux="q"), [1, 2], "Custom['q'](*, *)"),
        (SubDict(a=1), [SubDict(a=1)], "*"),
        (SubTuple((1, 2)), [(1, 2)], "*"),
        (collections.deque([1]), [collections.deque([1])], "*"),
        ("text", ["text"], "*"),
        (functools.partial(print, 1), None, "*"),
    ],
)
def test_flatten(tree: Any, leaves: Any, text: str) -> None:
    got, treedef = tu.tree_flatten(tree)
    assert leaves is None or got == leaves
    assert repr(treedef) == f"PyTreeDef({text})"
    assert treedef.num_leaves == len(got)
    back = tu.tree_unflatten(treedef, got)
    assert type(back) is type(tree)
    assert back == tree
    assert [x for _, x in tu.tree_leaves_with_path(tree)] == got
    assert tu.tree_flatten_with_path(tree)[1] == treedef
    assert copy.deepcopy(treedef) == treedef == pickle.loads(pickle.dumps(treedef))


def test_default_factory_and_order_survive() -> None:
    back = tu.tree_map(lambda x: x, default)
    assert back.default_factory is list
    assert list(tu.tree_map(lambda x: x, ordered)) == ["b", "a"]


def test_is_leaf() -> None:
    assert tu.tree_leaves((1, None), is_leaf=lambda x: x is None) == [1, None]
    assert tu.tree_leaves((1, [2, 3]), is_leaf=lambda x: isinstance(x, list)) == [1, [2, 3]]
    assert tu.tree_leaves((1, [2, 3]), is_leaf=lambda x: True) == [(1, [2, 3])]
    assert tu.tree_map(lambda x: 0, (1, None, {"a": [2]}), is_leaf=lambda x: isinstance(x, dict)) == (0, None, 0)


def test_deep_trees() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = (deep,)
    leaves, treedef = tu.tree_flatten(deep)
    assert leaves == [1]
    assert treedef.num_nodes == 5001
    back = treedef.unflatten([2])
    assert treedef.flatten_up_to(back) == [2]
    assert tu.tree_leaves_with_path(back)[0][1] == 2


def test_unflatten_counts_leaves() -> None:
    for leaves in ([1], [1, 2, 3], iter([])):
        with pytest.raises(ValueError, match=r"has 2 leaves; \d were given"):
            tu.tree_unflatten(structure((0, 0)), leaves)
    assert tu.tree_unflatten(structure((0, [0])), iter([1, 2])) == (1, [2])


def test_unflatten_does_not_alias_the_leaves() -> None:
    leaves = [1, 2]
    back = tu.tree_unflatten(structure([0, 0]), leaves)
    back.append(3)
    assert leaves == [1, 2]


def test_unsortable_keys_name_the_place() -> None:
    with pytest.raises(ValueError, match=r"at \[1\]\['a'\].*int, str.*OrderedDict"):
        tu.tree_flatten((1, {"a": {1: 0, "b": 0}}))
    assert tu.tree_leaves(collections.OrderedDict([(1, 5), ("b", 6)])) == [5, 6]


# -- equality and sharing ----------------------------------------------------------------------------------------------


def test_equal_structures_are_equal_and_hash_alike() -> None:
    trees = [lambda: (1, {"a": [2]}), lambda: Point(1, 2), lambda: Custom(1, aux=(1, "a")), lambda: Custom(1, aux=2.5)]
    for make in trees:
        assert structure(make()) == structure(make())
        assert hash(structure(make())) == hash(structure(make()))
    assert structure((1, 2)) is structure((3, 4))
    assert structure((1, 2)) != structure([1, 2])
    assert structure((1, 2)) != 3
    assert structure(Point(1, 2)) != structure((1, 2))


@pytest.mark.parametrize("values", [(1, 1.0, True), (0.0, -0.0), ((1,), (1.0,)), ("1", b"1")])
def test_metadata_and_keys_are_kept_by_type_and_value(values: Any) -> None:
    """Values that compare equal but are not the same must neither be exchanged nor share a compiled program."""
    for a in values:
        for b in values:
            for make in (lambda v: Custom(0, aux=v), lambda v: Custom(0, aux=[v]), lambda v: Custom(0, aux=(v, "x"))):
                back = tu.tree_map(lambda x: x, make(b))
                assert repr(back.aux) == repr(make(b).aux)
                assert (structure(make(a)) == structure(make(b))) == (a is b)
            (key,) = tu.tree_map(lambda x: x, {b: 0})
            assert repr(key) == repr(b)
            assert (structure({a: 0}) == structure({b: 0})) == (a is b)


def test_metadata_with_loose_equality_is_not_exchanged() -> None:
    """A wrapper that always compares equal, used to keep an object out of cache keys, must come back as itself."""

    class Hidden:
        def __init__(self, value: int) -> None:
            self.value = value

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Hidden)

        def __hash__(self) -> int:
            return 0

    trees = [Custom(0, aux=Hidden(i)) for i in range(3)]
    assert [tu.tree_map(lambda x: x, t).aux.value for t in trees] == [0, 1, 2]
    assert structure(trees[0]) == structure(trees[1])
    keyed = [{Hidden(i): 0} for i in range(3)]
    assert [next(iter(tu.tree_map(lambda x: x, t))).value for t in keyed] == [0, 1, 2]


def test_unhashable_and_incomparable_metadata() -> None:
    assert tu.tree_map(lambda x: x + 1, Custom(1, aux=[1])).aux == [1]
    with pytest.raises(TypeError, match="Custom must be hashable"):
        hash(structure(Custom(1, aux=[1])))
    arrays = [Custom(1, aux=np.ones(2)), Custom(1, aux=np.ones(2))]
    with pytest.raises(TreeError, match="Custom can't be compared"):
        tu.tree_map(lambda x, y: x, *arrays)
    with pytest.raises(TreeError, match="Custom can't be compared"):
        _ = structure(arrays[0]) == structure(arrays[1])


def test_sharing_is_bounded() -> None:
    from xformlib.pytree import nodes
    from xformlib.pytree import structure as module

    for i in range(2 * nodes.CACHE_SIZE):
        tree = ({f"k{i}": 1, "m": (1,) * (i % 7)}, Custom(1, aux=i))
        leaves, treedef = tu.tree_flatten(tree)
        assert treedef.unflatten(leaves) == tree
        assert treedef == structure(tree)
    assert len(module._shared) <= nodes.CACHE_SIZE
    assert len(module._by_tokens) <= nodes.CACHE_SIZE
    assert len(nodes.DICT.flats) <= nodes.CACHE_SIZE
    old = pickle.loads(pickle.dumps(structure(tree)))
    assert old == structure(tree)


def test_equality_survives_emptied_caches() -> None:
    from xformlib.pytree import nodes
    from xformlib.pytree import structure as module

    tree = {"a": [1, {"b": 2}], "c": Custom(1, aux="x")}
    before = structure(tree)
    for cache in (module._shared, module._by_tokens, nodes.DICT.flats, nodes.TUPLE.flats):
        cache.clear()
    assert structure(tree) == before
    assert hash(structure(tree)) == hash(before)
    assert before.flatten_up_to(tree) == [1, 2, 1]


def test_threads() -> None:
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for i in range(300):
                tree = {f"t{(i * seed) % 50}": (i, [i] * (i % 5)), "z": None}
                leaves, treedef = tu.tree_flatten(tree)
                assert treedef.unflatten(leaves) == tree
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=work, args=(s,)) for s in (1, 3, 7, 11)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


# -- PyTreeDef ---------------------------------------------------------------------------------------------------------


def test_structure_methods() -> None:
    t = structure((1, None))
    assert (t.num_leaves, t.num_nodes) == (1, 3)
    assert repr(t.children()) == "[PyTreeDef(*), PyTreeDef(None)]"
    assert structure((1, 2)).compose(structure([1])) == structure(([1], [1]))
    assert structure(({"a": 1}, Point(2, ()))).children() == [structure({"a": 1}), structure(Point(2, ()))]


@pytest.mark.parametrize(
    ("tree", "data"),
    [
        ({}, (dict, [])),
        ({"b": 1, "a": 2}, (dict, ["a", "b"])),
        ((1,), (tuple, None)),
        ([1], (list, None)),
        (None, (type(None), None)),
        (1, None),
        (Point(1, 2), (Point, None)),
        (default, (collections.defaultdict, (list, ("a", "b")))),
        (ordered, (collections.OrderedDict, ("b", "a"))),
        (Custom(1, aux="q"), (Custom, "q")),
    ],
)
def test_node_data(tree: Any, data: Any) -> None:
    assert structure(tree).node_data() == data


def test_treedef_functions() -> None:
    assert tu.treedef_tuple([structure(1), structure([1])]) == structure((1, [1]))
    assert tu.treedef_tuple(()) == structure(())
    assert tu.treedef_children(structure((1, [2]))) == [structure(1), structure([1])]
    assert [tu.treedef_is_leaf(structure(x)) for x in (1, None, (), (1,))] == [True, True, True, False]
    assert [tu.all_leaves(x) for x in ([1, 2], [1, (2,)], [1, None], [])] == [True, False, False, True]


@pytest.mark.parametrize(
    ("pattern", "tree", "message"),
    [
        ((1, 2), [3, 4], "expected tuple of length 2, got list of length 2"),
        ((1, 2), (3,), "expected tuple of length 2, got tuple of length 1"),
        ((1, 2), Point(3, 4), "expected tuple of length 2, got Point"),
        (Point(1, 2), (3, 4), "expected Point, got tuple of length 2"),
        ({"a": 1}, {"b": 1}, r"at the root: .*missing: 'a'; unexpected: 'b'"),
        ({"a": 1}, collections.OrderedDict(a=1), "expected dict with keys"),
        (default, {"a": 1, "b": 2}, "expected defaultdict"),
        ({"a": 1, "b": 2}, default, "got defaultdict"),
        (ordered, collections.OrderedDict(a=2, b=1), r"keys \['b', 'a'\], got OrderedDict with keys \['a', 'b'\]"),
        (None, 3, "expected None, got a leaf of type int: 3"),
        (
            (1, {"a": [1]}),
            (1, {"a": np.ones((2, 3))}),
            r"at \[1\]\['a'\]: .*got a leaf of type ndarray and shape \(2, 3\)",
        ),
        (Custom(1, aux=1), Custom(1, aux=2), "expected Custom with metadata 1"),
        (Custom(1), Custom(1, 2), "got Custom with metadata None and 2 children"),
    ],
)
def test_mismatches(pattern: Any, tree: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as e:
        structure(pattern).flatten_up_to(tree)
    assert repr(structure(pattern)) in str(e.value)
    assert repr(structure(tree)) in str(e.value)


def test_mismatch_names_the_first_place_and_the_tree() -> None:
    with pytest.raises(
        ValueError, match=r"tree_map: tree number 3 differs in structure from the first at \[0\]\['a'\]"
    ):
        tu.tree_map(lambda *x: x, ({"a": ()}, [1]), ({"a": ()}, [1]), ({"a": 1}, 2))


def test_leaves_match_anything() -> None:
    assert structure(3).flatten_up_to(None) == [None]
    assert tu.tree_map(lambda a, b: (a, b), (1, 2), (1, [2, 3])) == ((1, 1), (2, [2, 3]))
    assert tu.tree_map(lambda a, b: (a, b), (1, None), (1, None)) == ((1, 1), None)
    assert structure({1: 0}).flatten_up_to({1.0: 5}) == [5]


# -- maps and reductions -----------------------------------------------------------------------------------------------


def test_map() -> None:
    assert tu.tree_map(lambda x: None, (1, 2)) == (None, None)
    assert tu.tree_map(lambda x, y: x + y, {"a": (1, 2)}, {"a": (10, 20)}) == {"a": (11, 22)}
    assert tu.tree_map_with_path(lambda p, x, y: (tu.keystr(p), x, y), {"a": 1}, {"a": 2}) == {"a": ("['a']", 1, 2)}


def test_reduce() -> None:
    assert tu.tree_reduce(lambda a, b: a + b, (1, [2, 3])) == 6
    assert tu.tree_reduce(lambda a, b: a + b, (), 5) == 5
    assert tu.tree_reduce(lambda a, b: [a, b], (1,), None) == [None, 1]
    with pytest.raises(TypeError, match="no leaves; give an initializer"):
        tu.tree_reduce(lambda a, b: a + b, (None, ()))


def test_reduce_associative() -> None:
    pair = "({}+{})".format
    assert tu.tree_reduce_associative(pair, list("abcde")) == "((a+b)+(c+(d+e)))"
    assert tu.tree_reduce_associative(pair, list("abc"), identity="0") == "(a+(b+c))"
    assert tu.tree_reduce_associative(pair, [], identity=0) == 0
    with pytest.raises(TypeError, match="give an identity"):
        tu.tree_reduce_associative(pair, [])


def test_all() -> None:
    assert tu.tree_all((1, [True, {"a": "x"}]))
    assert not tu.tree_all((1, 0))
    assert tu.tree_all((1, None))
    assert not tu.tree_all((1, None), is_leaf=lambda x: x is None)


def test_transpose() -> None:
    outer, inner = structure({"a": 1, "b": 2}), structure((1, 2))
    tree = {"a": (1, 2), "b": (3, 4)}
    assert tu.tree_transpose(outer, inner, tree) == ({"a": 1, "b": 3}, {"a": 2, "b": 4})
    assert tu.tree_transpose(outer, None, tree) == ({"a": 1, "b": 3}, {"a": 2, "b": 4})
    assert tu.tree_transpose(structure(1), inner, (1, 2)) == (1, 2)
    assert tu.tree_transpose(structure([]), inner, []) == ([], [])
    with pytest.raises(TypeError, match="expected tuple of length 2, got tuple of length 3"):
        tu.tree_transpose(outer, inner, {"a": (1, 2), "b": (3, 4, 5)})
    with pytest.raises(ValueError, match="inner_treedef must be given"):
        tu.tree_transpose(structure([]), None, [])


def test_prefixes() -> None:
    assert tu.broadcast_prefix((1, 2), ((0, [0]), {"a": 0, "b": ()})) == [1, 1, 2]
    assert tu.broadcast_prefix(1, (0, 0)) == [1, 1]
    assert tu.broadcast_prefix((None, 1), (5, 5), is_leaf=lambda x: x is None) == [None, 1]
    assert tu.broadcast_prefix((0, 1), (None, 5)) == [1]
    assert tu.tree_broadcast((1, 2), ((3, 4), 5)) == ((1, 1), 2)
    assert tu.tree_broadcast((1, None), ((3, 4), None)) == ((1, 1), None)
    with pytest.raises(ValueError, match="expected tuple of length 2, got tuple of length 3"):
        tu.tree_broadcast((1, 2), (3, 4, 5))


def test_prefix_errors() -> None:
    assert tu.prefix_errors((1, 2), ((1, 5), 2)) == []
    errors = tu.prefix_errors((1, (2,), [3]), (1, 2, [3, 4]))
    assert [str(e("in_axes")).splitlines()[0] for e in errors] == [
        "in_axes is not a prefix at [1]: expected tuple of length 1, got a leaf of type int: 2.",
        "in_axes is not a prefix at [2]: expected list of length 1, got list of length 2.",
    ]
    assert isinstance(errors[0]("x"), ValueError)


def test_build_tree() -> None:
    assert tu.build_tree(structure({"a": 0, "b": [0, 0]}), [1, [(2, 3), 4]]) == {"a": 1, "b": [(2, 3), 4]}


# -- keys --------------------------------------------------------------------------------------------------------------


def test_key_paths() -> None:
    paths = [p for p, _ in tu.tree_leaves_with_path({"a": (1, Point(2, Custom(3))), "b": None})]
    assert [tu.keystr(p) for p in paths] == ["['a'][0]", "['a'][1].x", "['a'][1].y[<flat index 0>]"]
    assert tu.keystr(paths[2], simple=True, separator="/") == "a/1/y/0"
    assert tu.keystr(paths[1], separator="/") == "['a']/[1]/.x"
    assert tu.keystr(()) == ""


def test_key_entries() -> None:
    entries = [tu.DictKey("a"), tu.SequenceKey(1), tu.GetAttrKey("a"), tu.FlattenedIndexKey(1)]
    assert list(map(str, entries)) == ["['a']", "[1]", ".a", "[<flat index 1>]"]
    assert [repr(e) for e in entries] == [
        "DictKey(key='a')",
        "SequenceKey(idx=1)",
        "GetAttrKey(name='a')",
        "FlattenedIndexKey(key=1)",
    ]
    assert tu.DictKey("a") == tu.DictKey("a")
    assert len({*entries, *entries}) == 4


def test_is_leaf_takes_path() -> None:
    got, treedef = tu.tree_flatten_with_path((1, [2]), lambda path, x: len(path) == 1, is_leaf_takes_path=True)
    assert got == [((tu.SequenceKey(0),), 1), ((tu.SequenceKey(1),), [2])]
    assert treedef == structure((0, 0))


def test_one_level() -> None:
    assert tuple(tu.flatten_one_level({"b": 1, "a": [2]})[0]) == ([2], 1)
    assert tu.flatten_one_level_with_keys(Point(1, 2))[0] == [(tu.GetAttrKey("x"), 1), (tu.GetAttrKey("y"), 2)]
    with pytest.raises(ValueError, match="int is a leaf"):
        tu.flatten_one_level(1)
    assert [tu.is_tree_node(t) for t in (tuple, Point, Custom, float, SubDict)] == [True, True, True, False, False]


# -- registration ------------------------------------------------------------------------------------------------------


def test_register_dataclass() -> None:
    @tu.register_dataclass
    @dataclasses.dataclass
    class A:
        x: Any
        name: str = xf.tree.static(default="q")
        y: Any = 0.0

    a = A(1, "n", [2, 3])
    assert tu.tree_leaves(a) == [1, 2, 3]
    assert [tu.keystr(p) for p, _ in tu.tree_leaves_with_path(a)] == [".x", ".y[0]", ".y[1]"]
    assert tu.tree_map(lambda x: 2 * x, a) == A(2, "n", [4, 6])
    assert structure(a) != structure(A(1, "m", [2, 3]))
    assert pickle.loads(pickle.dumps(structure((1, 2)))) == structure((1, 2))


def test_register_dataclass_call_forms() -> None:
    @tu.register_dataclass(data_fields=["x"], meta_fields=["n"])
    @dataclasses.dataclass
    class A:
        n: int
        x: Any

    @functools.partial(tu.register_dataclass, data_fields=("x",), meta_fields=(), drop_fields=("cache",))
    @dataclasses.dataclass
    class B:
        x: Any
        cache: Any = None

    class Plain:
        def __init__(self, x: Any, n: int) -> None:
            self.x, self.n = x, n

    assert tu.register_dataclass(Plain, ["x"], ["n"]) is Plain
    assert tu.tree_leaves((A(1, 2), B(3, 4), Plain(5, 6))) == [2, 3, 5]
    assert tu.tree_map(lambda x: x, B(3, 4)) == B(3, None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"data_fields": ["x"]}, "without meta_fields; give both"),
        ({"data_fields": ["x"], "meta_fields": []}, r"fields \['y'\] of B are in neither"),
        ({"data_fields": ["x", "y"], "meta_fields": ["y"]}, r"\['y'\] of B are given more than once"),
        ({"data_fields": ["x", "q"], "meta_fields": ["y"]}, r"\['q'\] are not fields"),
        ({"data_fields": ["x", "z"], "meta_fields": ["y"]}, r"\['z'\] are not fields.*init=False"),
        ({}, r"\['z'\] are not fields.*init=False"),
    ],
)
def test_register_dataclass_errors(arguments: Any, message: str) -> None:
    @dataclasses.dataclass
    class B:
        x: int
        y: int
        z: int = dataclasses.field(init=False, default=3)

    with pytest.raises(ValueError, match=message):
        tu.register_dataclass(B, **arguments)
    assert not tu.is_tree_node(B)


def test_register_dataclass_needs_a_dataclass_or_fields() -> None:
    class NotOne:
        pass

    with pytest.raises(TypeError, match="is not a dataclass"):
        tu.register_dataclass(NotOne)


def test_register_static() -> None:
    @tu.register_static
    @dataclasses.dataclass(frozen=True)
    class Mode:
        name: str

    assert tu.tree_leaves((Mode("a"), 1)) == [1]
    assert tu.tree_map(lambda x: x, [Mode("a")]) == [Mode("a")]
    assert structure(Mode("a")) == structure(Mode("a")) != structure(Mode("b"))


def test_register_with_keys() -> None:
    @tu.register_pytree_with_keys_class
    class Keyed:
        def __init__(self, a: Any, b: Any) -> None:
            self.a, self.b = a, b

        def tree_flatten_with_keys(self) -> Any:
            return ((tu.GetAttrKey("a"), self.a), (tu.DictKey("b"), self.b)), None

        @classmethod
        def tree_unflatten(cls, aux: Any, children: Any) -> Any:
            return cls(*children)

    pairs, treedef = tu.tree_flatten_with_path(Keyed(1, [2]))
    assert [tu.keystr(p) for p, _ in pairs] == [".a", "['b'][0]"]
    assert treedef == structure(Keyed(1, [2]))
    with pytest.raises(ValueError, match=r"at \.a: "):
        tu.tree_map(lambda x, y: x, Keyed((1,), 2), Keyed([1], 2))


def test_registering_twice_or_wrongly() -> None:
    with pytest.raises(ValueError, match="registered as a pytree already"):
        tu.register_pytree_node(Custom, lambda x: ((), None), lambda a, c: None)
    with pytest.raises(ValueError, match="dict is registered"):
        tu.register_pytree_node(dict, lambda x: ((), None), lambda a, c: {})
    with pytest.raises(TypeError, match="flatten_func must be callable"):
        tu.register_pytree_node(SubDict, None, None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must be a class"):
        tu.register_pytree_node(3, lambda x: ((), None), lambda a, c: None)  # type: ignore[arg-type]


def test_a_class_may_be_registered_after_use_as_a_leaf() -> None:
    class Late:
        def __init__(self, x: Any) -> None:
            self.x = x

    class LatePoint(NamedTuple):
        x: Any

    assert structure((Late(1), {"a": Late(2)})) == structure((1, {"a": 2}))
    assert tu.tree_leaves(LatePoint(5)) == [5]
    tu.register_pytree_node(Late, lambda t: ((t.x,), None), lambda _, c: Late(*c))
    tu.register_pytree_node(LatePoint, lambda t: ((), t.x), lambda x, _: LatePoint(x))
    assert tu.tree_leaves((Late(1), {"a": Late(2)}, [Late(3)])) == [1, 2, 3]
    assert tu.tree_leaves(LatePoint(5)) == []


def test_bad_flatten_functions() -> None:
    class Bad:
        pass

    tu.register_pytree_node(Bad, lambda x: (1, 2, 3), lambda a, c: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(ValueError, match="pytree class Bad must return a pair"):
        tu.tree_flatten(Bad())


def test_pickled_structures_of_unknown_classes() -> None:
    from xformlib.pytree.structure import _rebuild

    with pytest.raises(ValueError, match="SubDict, which is not registered"):
        _rebuild([(SubDict, None, 0)])
    assert pickle.loads(pickle.dumps(structure(Custom(1, aux=(1, 2))))) == structure(Custom(1, aux=(1, 2)))


# -- Partial -----------------------------------------------------------------------------------------------------------


def join(*args: Any, **kw: Any) -> Any:
    return args, kw


def test_partial() -> None:
    p = tu.Partial(join, 1, a=2)
    assert tu.tree_leaves(p) == [1, 2]
    assert tu.tree_map(lambda x: 10 * x, p)(5, b=6) == ((10, 5), {"a": 20, "b": 6})
    assert [tu.keystr(path) for path, _ in tu.tree_leaves_with_path(p)] == [".args[0]", ".keywords['a']"]
    assert structure(p) == structure(tu.Partial(join, 3, a=4))
    assert repr(structure(tu.Partial(join))).startswith("PyTreeDef(Partial[<function join")


@pytest.mark.parametrize("inner", [tu.Partial, functools.partial])
def test_partial_of_partial(inner: Any) -> None:
    p = tu.Partial(inner(join, 1), 2)
    assert tu.tree_leaves(p) == [2]
    assert tu.tree_map(lambda x: 10 * x, p)(3) == ((1, 20, 3), {})


# -- Hypothesis --------------------------------------------------------------------------------------------------------

keys = st.one_of(st.text(max_size=3), st.integers(-3, 3))


def _containers(inner: Any) -> Any:
    return st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.text(max_size=3), inner, max_size=4),
        st.dictionaries(st.integers(-3, 3), inner, max_size=3),
        st.lists(st.tuples(keys, inner), max_size=3).map(collections.OrderedDict),
        st.dictionaries(st.text(max_size=2), inner, max_size=3).map(lambda d: collections.defaultdict(int, d)),
        st.builds(Point, inner, inner),
        st.builds(lambda c, a: Custom(*c, aux=a), st.lists(inner, max_size=3), keys),
    )


trees = st.recursive(st.one_of(st.integers(), st.none(), st.text(max_size=2)), _containers, max_leaves=25)


@given(trees)
def test_round_trip(tree: Any) -> None:
    leaves, treedef = tu.tree_flatten(tree)
    assert treedef.unflatten(leaves) == tree
    assert treedef.flatten_up_to(tree) == leaves
    assert [x for _, x in tu.tree_leaves_with_path(tree)] == leaves
    assert tu.tree_flatten_with_path(tree)[1] == treedef
    assert pickle.loads(pickle.dumps(treedef)) == treedef
    assert treedef.compose(structure(0)) == treedef
    assert tu.treedef_tuple([treedef]).children() == [treedef]
    assert treedef.num_nodes == 1 + sum(c.num_nodes for c in treedef.children())
    assert tu.tree_broadcast(0, tree) == tu.tree_map(lambda _: 0, tree)


@given(trees, trees)
def test_equality_means_interchangeable(a: Any, b: Any) -> None:
    if structure(a) == structure(b):
        assert hash(structure(a)) == hash(structure(b))
        assert structure(a).flatten_up_to(b) == tu.tree_leaves(b)
        assert repr(structure(a)) == repr(structure(b))


@given(trees, st.booleans())
def test_is_leaf_round_trip(tree: Any, none: bool) -> None:
    def is_leaf(x: Any) -> bool:
        return x is None if none else isinstance(x, dict)

    leaves, treedef = tu.tree_flatten(tree, is_leaf)
    assert treedef.unflatten(leaves) == tree
    assert [x for _, x in tu.tree_leaves_with_path(tree, is_leaf)] == leaves


# -- names -------------------------------------------------------------------------------------------------------------


def test_short_names() -> None:
    for name in xf.tree.__all__:
        if name != "static":
            assert getattr(xf.tree, name) is getattr(tu, f"tree_{name}")
