"""Short names for working with pytrees; the same functions as in :mod:`xformlib.tree_util`.

>>> import xformlib as xf
>>> xf.tree.map(lambda x: 2 * x, {"a": 1, "b": [2, 3]})
{'a': 2, 'b': [4, 6]}
"""

from xformlib.pytree.register import static
from xformlib.tree_util import tree_all as all
from xformlib.tree_util import tree_broadcast as broadcast
from xformlib.tree_util import tree_flatten as flatten
from xformlib.tree_util import tree_flatten_with_path as flatten_with_path
from xformlib.tree_util import tree_leaves as leaves
from xformlib.tree_util import tree_leaves_with_path as leaves_with_path
from xformlib.tree_util import tree_map as map
from xformlib.tree_util import tree_map_with_path as map_with_path
from xformlib.tree_util import tree_reduce as reduce
from xformlib.tree_util import tree_reduce_associative as reduce_associative
from xformlib.tree_util import tree_structure as structure
from xformlib.tree_util import tree_transpose as transpose
from xformlib.tree_util import tree_unflatten as unflatten

__all__ = [
    "all",
    "broadcast",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "reduce_associative",
    "static",
    "structure",
    "transpose",
    "unflatten",
]
