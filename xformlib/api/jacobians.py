"""Jacobians and Hessians, by vectorising jvp and vjp over a standard basis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xformlib.api.arguments import check_callable, flatten_arrays, function_name
from xformlib.api.autodiff import _check_argnums, _check_inputs, _positions, _wraps, linearize, vjp
from xformlib.api.vectorize import vmap
from xformlib.array import ArrayImpl
from xformlib.ops.movement import reshape
from xformlib.tree_util import tree_flatten, tree_map, tree_unflatten

__all__ = ["hessian", "jacfwd", "jacrev"]


def _partial(
    fun: Callable[..., Any], args: Sequence[Any], kwargs: Any, argnums: Any, holomorphic: bool, allow_int: bool
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """``fun`` as a function of the chosen arguments only, and those arguments as arrays."""
    name = function_name(fun)
    positions = _positions(argnums, len(args), name)
    chosen = tuple([args[i] for i in positions])
    leaves, tree = flatten_arrays((chosen, {}), f"jacobian of {name}: argument ")
    _check_inputs(chosen, leaves, positions, name, holomorphic, allow_int)
    arrays, _ = tree_unflatten(tree, leaves)

    def partial(*dynamic: Any) -> Any:
        full = list(args)
        for i, x in zip(positions, dynamic, strict=True):
            full[i] = x
        return fun(*full, **kwargs)

    return partial, arrays


def _basis(tree: Any) -> Any:
    """One direction per element of ``tree``, stacked along a new leading axis."""
    leaves, treedef = tree_flatten(tree)
    total = sum(x.size for x in leaves)
    out, offset = [], 0
    for x in leaves:
        block = np.zeros((total, x.size), x.dtype)
        block[np.arange(offset, offset + x.size), np.arange(x.size)] = 1
        out.append(ArrayImpl(block.reshape((total, *x.shape))))
        offset += x.size
    return tree_unflatten(treedef, out)


def _unstack(stacked: Any, like: Any, axis_of_shape: Callable[[Any, Any], Any]) -> Any:
    """Split the leading axis of ``stacked`` (one row per element of ``like``) into a tree like ``like``."""
    leaves, treedef = tree_flatten(like)
    parts, offset = [], 0
    for x in leaves:
        parts.append(axis_of_shape(stacked[offset : offset + x.size], x))
        offset += x.size
    return tree_unflatten(treedef, parts)


def _columns_last(rows: Any, x: Any) -> Any:
    from xformlib.ops.movement import move_axis

    out = move_axis(rows, 0, len(rows.shape) - 1)
    return reshape(out, shape=(*rows.shape[1:], *x.shape))


def _rows_first(rows: Any, y: Any) -> Any:
    return reshape(rows, shape=(*y.shape, *rows.shape[1:]))


def jacfwd(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., Any]:
    """Jacobian of ``fun`` by forward mode: one pass per input element. Best for tall Jacobians.

    Returns a function giving, for output shape ``o`` and input shape ``i``, an array of shape ``o + i`` (in the
    structure of the output, then of the input); with ``has_aux``, ``(jacobian, aux)``.

    >>> import xformlib as xf, xformlib.numpy as jnp
    >>> print(xf.jacfwd(lambda x: x * x)(jnp.array([1., 2.])))
    [[2. 0.]
     [0. 4.]]
    """
    check_callable(fun, "jacfwd")
    _check_argnums(argnums)

    @_wraps(fun)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        partial, chosen = _partial(fun, args, kwargs, argnums, holomorphic, False)

        _, push, *aux = linearize(partial, *chosen, has_aux=has_aux)
        columns = vmap(push)(*_basis(chosen))
        tree = tree_map(lambda c: _unstack(c, chosen, _columns_last), columns)
        tree = tree if not hasattr(argnums, "__index__") else _first(tree, columns)
        return (tree, *aux) if has_aux else tree

    return jacobian


def _first(tree: Any, like: Any) -> Any:
    """Drop the one-tuple of arguments under each output leaf."""
    leaves, treedef = tree_flatten(like)
    per_output = treedef.flatten_up_to(tree)
    assert len(per_output) == len(leaves)
    return tree_unflatten(treedef, [t[0] for t in per_output])


def jacrev(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """Jacobian of ``fun`` by reverse mode: one pass per output element. Best for wide Jacobians.

    Shapes and structure as for :func:`jacfwd`.

    >>> import xformlib as xf, xformlib.numpy as jnp
    >>> print(xf.jacrev(lambda x: x * x)(jnp.array([1., 2.])))
    [[2. 0.]
     [0. 4.]]
    """
    check_callable(fun, "jacrev")
    _check_argnums(argnums)

    @_wraps(fun)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        partial, chosen = _partial(fun, args, kwargs, argnums, holomorphic, allow_int)
        result = vjp(partial, *chosen, has_aux=has_aux)
        out, pull = result[0], result[1]
        rows = vmap(pull)(_basis(out))
        rows = rows[0] if hasattr(argnums, "__index__") else rows
        tree = _by_output(rows, out)
        return (tree, result[2]) if has_aux else tree

    return jacobian


def _by_output(rows: Any, out: Any) -> Any:
    """Rows stacked over all output elements, as a tree of the output whose leaves are trees of the input."""
    out_leaves, out_tree = tree_flatten(out)
    parts, offset = [], 0
    for y in out_leaves:
        lo, hi = offset, offset + y.size
        parts.append(tree_map(lambda r, lo=lo, hi=hi, y=y: _rows_first(r[lo:hi], y), rows))
        offset = hi
    return tree_unflatten(out_tree, parts)


def hessian(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., Any]:
    """Hessian of ``fun``: forward over reverse mode.

    For an input of shape ``i`` and output of shape ``o`` the result has shape ``o + i + i``.

    >>> import xformlib as xf, xformlib.numpy as jnp
    >>> print(xf.hessian(lambda x: x[0] * x[1] ** 2)(jnp.array([2., 3.])))
    [[0. 6.]
     [6. 4.]]
    """
    return jacfwd(
        jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic), argnums, has_aux=has_aux, holomorphic=holomorphic
    )
