"""Flat functions: how the transformations turn a call on pytrees into one on a list of arrays, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xformlib.array import Array, Aval
from xformlib.convert import is_arraylike, to_array
from xformlib.errors import NotAnArrayError
from xformlib.keys import restamp
from xformlib.tree_util import PyTreeDef, keystr, tree_flatten, tree_flatten_with_path, tree_unflatten

__all__ = ["Flat", "aval_of", "flatten_arrays", "function_name"]


def function_name(fun: Callable[..., Any]) -> str:
    """How messages name a function."""
    return getattr(fun, "__name__", None) or type(fun).__name__


def check_callable(fun: Any, transformation: str) -> None:
    """Raise if ``fun`` can't be called."""
    if not callable(fun):
        raise NotAnArrayError(f"{transformation} takes a function, and got {type(fun).__name__} {fun!r:.60}.")


def flatten_arrays(tree: Any, what: str, *, alias: bool = False) -> tuple[list[Any], PyTreeDef]:
    """Leaves of ``tree`` as arrays or tracers; ``what`` names it in errors."""
    leaves, treedef = tree_flatten(tree)
    for i, x in enumerate(leaves):
        if not isinstance(x, Array):
            if not is_arraylike(x) and not hasattr(x, "__array__"):
                raise _bad_leaf(tree, i, what)
            leaves[i] = to_array(x, what, alias=alias)
    return leaves, treedef


def _bad_leaf(tree: Any, index: int, what: str) -> NotAnArrayError:
    path, leaf = tree_flatten_with_path(tree)[0][index]
    return NotAnArrayError(
        f"{what}{keystr(path)} is {type(leaf).__name__} {leaf!r:.60}, which is not an array or a number. "
        "Pass such values as static arguments of jit (static_argnums, static_argnames), bind them with "
        "functools.partial, or close over them."
    )


def aval_of(x: Any) -> Aval:
    """Shape, dtype and weak type."""
    return Aval(x.shape, x.dtype, x.weak_type)


class Flat:
    """``fun(*args, **kwargs)`` as a function from a list of arrays to a list of arrays.

    ``in_tree`` is the structure of ``(args, kwargs)``. After the call ``out_tree`` is known. With ``has_aux`` the function
    returns a pair, whose second part may hold leaves that are no arrays; they are kept aside.
    """

    def __init__(
        self, fun: Callable[..., Any], in_tree: PyTreeDef, *, has_aux: bool = False, name: str = "", what: str = ""
    ) -> None:
        self.fun = fun
        self.in_tree = in_tree
        self.has_aux = has_aux
        self.name = name or function_name(fun)
        self.what = what

    def __call__(self, *leaves: Any) -> list[Any]:
        args, kwargs = tree_unflatten(self.in_tree, leaves)
        out = self.fun(*args, **kwargs)
        if not self.has_aux:
            flat, self.out_tree = self._outputs(out, f"the result of {self.name}")
            return flat
        if not isinstance(out, tuple) or len(out) != 2:
            raise NotAnArrayError(
                f"with has_aux=True {self.name} must return a pair (output, auxiliary data), "
                f"and returned {type(out).__name__}."
            )
        flat, self.out_tree = self._outputs(out[0], f"the output of {self.name}")
        self.n_out = len(flat)
        aux, self.aux_tree = tree_flatten(out[1])
        self.aux_static = {i: x for i, x in enumerate(aux) if not is_arraylike(x)}
        return flat + [to_array(x) for i, x in enumerate(aux) if i not in self.aux_static]

    def _outputs(self, out: Any, what: str) -> tuple[list[Any], PyTreeDef]:
        leaves, tree = tree_flatten(out)
        for i, x in enumerate(leaves):
            if not isinstance(x, Array):
                if not is_arraylike(x):
                    path, leaf = tree_flatten_with_path(out)[0][i]
                    raise NotAnArrayError(
                        f"{what}{keystr(path)} is {type(leaf).__name__} {leaf!r:.60}: "
                        "transformed functions return arrays, numbers, None and pytrees of them only."
                    )
                leaves[i] = to_array(x)
        return leaves, tree

    def unflatten_aux(self, leaves: Sequence[Any]) -> Any:
        """The auxiliary output from its array leaves."""
        rest = iter(leaves)
        n = len(leaves) + len(self.aux_static)
        return tree_unflatten(
            self.aux_tree, [self.aux_static[i] if i in self.aux_static else next(rest) for i in range(n)]
        )


def restamp_all(values: Sequence[Any], avals: Sequence[Aval]) -> list[Any]:
    """Values with the weak types and key dtypes of ``avals``."""
    return [restamp(v, a) for v, a in zip(values, avals, strict=True)]
