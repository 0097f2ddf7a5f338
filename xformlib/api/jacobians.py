"""Jacobians and Hessians, by vectorising jvp and vjp over a standard basis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xformlib import dtypes
from xformlib.api.arguments import check_callable, flatten_arrays, function_name
from xformlib.api.autodiff import _check_argnums, _check_inputs, _positions, _wraps, linearize, vjp
from xformlib.api.vectorize import vmap
from xformlib.array import ArrayImpl
from xformlib.errors import GradientError
from xformlib.ops.movement import reshape
from xformlib.tree_util import keystr, tree_flatten, tree_flatten_with_path, tree_leaves, tree_map, tree_unflatten

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


def _check_outputs(out: Any, name: str, holomorphic: bool, real: bool) -> None:
    """Outputs that a Jacobian describes: floating (with ``real`` not complex), or complex if ``holomorphic``."""
    for path, y in tree_flatten_with_path(out)[0]:
        is_complex = dtypes.issubdtype(y.dtype, np.complexfloating)
        if holomorphic and not is_complex:
            problem = "holomorphic=True needs complex outputs"
        elif not holomorphic and real and is_complex:
            problem = "reverse mode needs real ones; for complex-differentiable functions use holomorphic=True"
        elif not dtypes.issubdtype(y.dtype, np.inexact):
            problem = "it has no derivative. Return it as auxiliary data with has_aux=True"
        else:
            continue
        raise GradientError(f"jacobian of {name}: the output{keystr(path)} has dtype {y.dtype}: {problem}.")


def _check_real_inputs(chosen: Any, name: str, holomorphic: bool) -> None:
    if not holomorphic and any(dtypes.issubdtype(x.dtype, np.complexfloating) for x in tree_leaves(chosen)):
        raise GradientError(
            f"jacobian of {name}: forward mode needs real inputs, and one is complex. For complex-differentiable "
            "functions use holomorphic=True; for real functions of complex inputs use jacrev."
        )


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

    Raises:
        GradientError: inputs that are integers or, without ``holomorphic``, complex; integer outputs.

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

        _check_real_inputs(chosen, function_name(fun), holomorphic)
        out, push, *aux = linearize(partial, *chosen, has_aux=has_aux)
        _check_outputs(out, function_name(fun), holomorphic, real=False)
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

    Raises:
        GradientError: integer inputs without ``allow_int``; integer outputs; complex ones without ``holomorphic``.

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
        _check_outputs(out, function_name(fun), holomorphic, real=True)
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
        jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic),
        argnums,
        has_aux=has_aux,
        holomorphic=holomorphic,
    )
