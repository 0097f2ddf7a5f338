"""Differentiation: jvp, vjp, linearize, grad and what is built on them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xformlib import dtypes
from xformlib.api.arguments import Flat, aval_of, check_callable, flatten_arrays, function_name
from xformlib.array import ArrayImpl
from xformlib.convert import to_array
from xformlib.errors import GradientError, TreeError
from xformlib.keys import with_weak_type
from xformlib.tree_util import PyTreeDef, keystr, tree_flatten, tree_flatten_with_path, tree_unflatten

__all__ = ["grad", "jvp", "linearize", "value_and_grad", "vjp"]


def _staged(flat: Flat, leaves: Sequence[Any], kind: str) -> Any:
    from xformlib.staging import stage

    return stage(flat, [aval_of(x) for x in leaves], kind=f"{kind} of {flat.name}", outer=leaves)


def _is_differentiable(x: Any) -> bool:
    return dtypes.issubdtype(x.dtype, np.inexact)


def _tangent_dtype(x: Any) -> Any:
    return x.dtype if _is_differentiable(x) else dtypes.float0


def _zeros(aval: Any) -> Any:
    from xformlib.ops.creation import full

    if not _is_differentiable(aval):
        return np.zeros(aval.shape, dtypes.float0)
    return with_weak_type(full(aval.shape, 0, aval.dtype), aval.weak_type)


def _tangent_of(t: Any, aval: Any) -> Any:
    """A tangent (None: zero) with the type that those of a value have: its own, weak where it is weak."""
    return _zeros(aval) if t is None else with_weak_type(t, aval.weak_type)


# -- forward mode -----------------------------------------------------------------------------------------------------


def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple[Any, ...]:
    """Value and directional derivative of ``fun`` (forward mode).

    Args:
        fun: function of arrays or pytrees of arrays.
        primals: tuple of the positional arguments at which to differentiate.
        tangents: tuple of the directions, of the same structure, shapes and dtypes.
        has_aux: ``fun`` returns a pair, whose second part is passed through undifferentiated.

    Returns:
        ``(fun(*primals), tangent)``, with ``aux`` as a third item if ``has_aux``.

    Raises:
        TreeError: primals and tangents differ in structure.
        GradientError: a tangent differs from its primal in shape or dtype.

    >>> import xformlib as xf, xformlib.numpy as jnp
    >>> y, t = xf.jvp(jnp.sin, (0.0,), (2.0,))
    >>> print(y, t)
    0.0 2.0
    """
    check_callable(fun, "jvp")
    _check_sequence("primals", primals)
    _check_sequence("tangents", tangents)
    leaves, in_tree = flatten_arrays((tuple(primals), {}), "jvp's primals")
    directions = _tangent_leaves(tuple(primals), tuple(tangents), leaves)
    flat = Flat(fun, in_tree, has_aux=has_aux)
    from xformlib.transforms import jvp as forward

    program = _staged(flat, leaves, "jvp")
    nothing = [None] * len(program.captures)
    outs, out_tangents = forward.jvp(program, [*leaves, *program.captures], [*directions, *nothing])
    n = flat.n_out if has_aux else len(outs)
    ts = [_tangent_of(t, o) for o, t in zip(outs[:n], out_tangents[:n], strict=True)]
    result = tree_unflatten(flat.out_tree, outs[:n]), tree_unflatten(flat.out_tree, ts)
    return (*result, flat.unflatten_aux(outs[n:])) if has_aux else result


def _check_sequence(name: str, value: Any) -> None:
    if not isinstance(value, tuple | list):
        raise TreeError(
            f"{name} must be a tuple of the function's arguments; got {type(value).__name__}. Write ({name},)."
        )


def _tangent_leaves(primals: Any, tangents: Any, leaves: Sequence[Any]) -> list[Any]:
    """Tangents as arrays, None for those of values that carry none."""
    p_paths, p_tree = tree_flatten_with_path(primals)
    t_leaves, t_tree = tree_flatten(tangents)
    if p_tree != t_tree:
        raise TreeError(f"primals and tangents differ in structure: {p_tree} and {t_tree}.")
    out: list[Any] = []
    for (path, _), x, t in zip(p_paths, leaves, t_leaves, strict=True):
        if not _is_differentiable(x):
            if getattr(t, "dtype", None) != dtypes.float0:
                raise GradientError(
                    f"primals{keystr(path)} has dtype {x.dtype}, which carries no derivative: its tangent must be "
                    "np.zeros(shape, xformlib.float0). Convert the argument to a floating dtype, or close over it."
                )
            out.append(None)
            continue
        t = to_array(t, f"tangents{keystr(path)}")
        if t.weak_type and t.dtype != x.dtype and not t.shape:
            t = _cast(t, x.dtype)
        if t.shape != x.shape or t.dtype != x.dtype:
            raise GradientError(
                f"tangents{keystr(path)} has shape {t.shape} and dtype {t.dtype}; its primal has shape {x.shape} and "
                f"dtype {x.dtype}. They must be equal."
            )
        out.append(t)
    return out


def _cast(x: Any, dtype: Any) -> Any:
    from xformlib.ops.elementwise import convert

    return x if x.dtype == dtype else convert(x, dtype=dtype)


def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Value of ``fun`` at ``primals``, and its derivative there as a linear function of tangents.

    Cheaper than ``jvp`` for several directions: the primal work is done once.

    Returns:
        ``(fun(*primals), f_jvp)``, with ``aux`` as a third item if ``has_aux``.

    >>> import xformlib as xf, xformlib.numpy as jnp
    >>> y, f_jvp = xf.linearize(lambda x: x * x, 3.0)
    >>> print(y, f_jvp(1.0), f_jvp(2.0))
    9.0 6.0 12.0
    """
    check_callable(fun, "linearize")
    leaves, in_tree = flatten_arrays((primals, {}), "linearize's arguments")
    flat = Flat(fun, in_tree, has_aux=has_aux)
    outs, linear = _linearize(flat, leaves, [_is_differentiable(x) for x in leaves], "linearize")
    n = flat.n_out if has_aux else len(outs)
    out_avals = [aval_of(o) for o in outs[:n]]

    def f_jvp(*tangents: Any) -> Any:
        from xformlib.staging import replay

        ts = [t for t in _tangent_leaves(primals, tangents, leaves) if t is not None]
        results = iter(replay(linear.program, [*ts, *linear.program.captures]))
        active = linear.active_out[:n]
        values = [_tangent_of(next(results) if a else None, v) for a, v in zip(active, out_avals, strict=True)]
        return tree_unflatten(flat.out_tree, values)

    result = tree_unflatten(flat.out_tree, outs[:n]), f_jvp
    return (*result, flat.unflatten_aux(outs[n:])) if has_aux else result


def _linearize(flat: Flat, leaves: Sequence[Any], active: Sequence[bool], kind: str) -> tuple[list[Any], Any]:
    from xformlib.transforms import linearize as passes

    program = _staged(flat, leaves, kind)
    inactive = [False] * len(program.captures)
    return passes.linearize(program, [*leaves, *program.captures], [*active, *inactive])


# -- reverse mode -----------------------------------------------------------------------------------------------------


class _Pullback:
    """The derivative of a function at a point, transposed: cotangents of outputs to cotangents of inputs."""

    def __init__(
        self, linear: Any, leaves: Sequence[Any], outs: Sequence[Any], in_tree: PyTreeDef, out_tree: Any
    ) -> None:
        self.linear = linear
        self.in_avals = [aval_of(x) for x in leaves]
        self.out_avals = [aval_of(x) for x in outs]
        self.in_tree = in_tree
        self.out_tree = out_tree

    def __call__(self, *cotangents: Any) -> Any:
        if len(cotangents) != 1:
            raise TreeError(
                f"a vjp function takes one argument, the cotangent of the function's output, and was given {len(cotangents)}. "
                "For an output that is a tuple give one tuple."
            )
        leaves, tree = tree_flatten(cotangents[0])
        if tree != self.out_tree:
            raise TreeError(
                f"the cotangent given to a vjp function has structure {tree}; the function's output has {self.out_tree}."
            )
        args, _ = tree_unflatten(
            self.in_tree, self.leaf_cotangents([self._checked(i, c) for i, c in enumerate(leaves)])
        )
        return args

    def _checked(self, i: int, c: Any) -> Any:
        aval = self.out_avals[i]
        if not _is_differentiable(aval):
            return None
        c = to_array(c, "the cotangent")
        if c.weak_type and not c.shape:
            c = _cast(c, aval.dtype)
        if c.shape != aval.shape or c.dtype != aval.dtype:
            raise GradientError(
                f"a cotangent (output leaf {i}) has shape {c.shape} and dtype {c.dtype}; "
                f"the output has shape {aval.shape} and dtype {aval.dtype}. They must be equal."
            )
        return c

    def leaf_cotangents(self, cts: Sequence[Any]) -> list[Any]:
        """Cotangents of all input leaves; zeros where none arrives, float0 for what carries none."""
        from xformlib.transforms.transpose import transpose

        linear = self.linear
        program = linear.program
        n, captures = len(program.in_avals), program.captures
        active = linear.active_out
        given = [c for c, a in zip([*cts, *[None] * (len(active) - len(cts))], active, strict=True) if a]
        wanted = [True] * n + [False] * len(captures)
        results = iter(transpose(program, [None] * n + list(captures), wanted, given)[:n])
        found = [next(results) if a else None for a in linear.active_in[: len(self.in_avals)]]
        return [_tangent_of(c, v) for c, v in zip(found, self.in_avals, strict=True)]


def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Value of ``fun`` at ``primals``, and the function that pulls cotangents back (reverse mode).

    Args:
        fun: function of arrays or pytrees of arrays.
        primals: arguments at which to differentiate.
        has_aux: ``fun`` returns a pair, whose second part is passed through undifferentiated.

    Returns:
        ``(fun(*primals), vjp_fun)``, with ``aux`` as a third item if ``has_aux``. ``vjp_fun`` takes a cotangent of the
        output's structure and returns a tuple of cotangents, one per primal; integer inputs get ``float0`` zeros.

    Raises:
        TreeError, GradientError: from ``vjp_fun``, for a cotangent of another structure, shape or dtype.

    >>> import xformlib as xf, xformlib.numpy as jnp
    >>> y, pull = xf.vjp(lambda x, y: x * y, 3.0, 4.0)
    >>> print(y, *pull(1.0))
    12.0 4.0 3.0
    """
    check_callable(fun, "vjp")
    leaves, in_tree = flatten_arrays((primals, {}), "vjp's arguments")
    flat = Flat(fun, in_tree, has_aux=has_aux)
    outs, linear = _linearize(flat, leaves, [_is_differentiable(x) for x in leaves], "vjp")
    n = flat.n_out if has_aux else len(outs)
    pullback = _Pullback(linear, leaves, outs[:n], in_tree, flat.out_tree)
    result = tree_unflatten(flat.out_tree, outs[:n]), pullback
    return (*result, flat.unflatten_aux(outs[n:])) if has_aux else result


def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """A function that gives both the value of scalar ``fun`` and its gradient.

    Args:
        fun: function whose output is a real scalar (complex with ``holomorphic``); a pair with ``has_aux``.
        argnums: the positional argument or arguments to differentiate.
        has_aux: ``fun`` returns ``(scalar, aux)``; the value becomes ``(scalar, aux)``.
        holomorphic: ``fun`` is complex-differentiable; inputs and output are complex.
        allow_int: integer inputs are allowed and get ``float0`` zeros.

    Returns:
        A function of the same arguments returning ``(value, gradient)``; a tuple of gradients for several argnums.

    Raises:
        GradientError: integer inputs, a non-scalar or non-real output, argument numbers out of range.

    >>> import xformlib as xf, xformlib.numpy as jnp
    >>> value, gradient = xf.value_and_grad(lambda x: jnp.sum(x ** 2))(jnp.array([1., 2.]))
    >>> print(value, gradient)
    5.0 [2. 4.]
    """
    check_callable(fun, "grad")
    _check_argnums(argnums)
    name = function_name(fun)

    @_wraps(fun)
    def value_and_grad_fun(*args: Any, **kwargs: Any) -> Any:
        positions = _positions(argnums, len(args), name)
        chosen = tuple([args[i] for i in positions])
        leaves, in_tree = flatten_arrays((chosen, {}), f"grad of {name}: argument ")
        _check_inputs(chosen, leaves, positions, name, holomorphic, allow_int)

        def partial(*dynamic: Any) -> Any:
            full = list(args)
            for i, x in zip(positions, dynamic, strict=True):
                full[i] = x
            return fun(*full, **kwargs)

        flat = Flat(partial, in_tree, has_aux=has_aux, name=name)
        outs, linear = _linearize(flat, leaves, [_is_differentiable(x) for x in leaves], "grad")
        n = flat.n_out if has_aux else len(outs)
        _check_output(outs[:n], flat, name, holomorphic)
        pullback = _Pullback(linear, leaves, outs[:n], in_tree, flat.out_tree)
        one = _one(outs[0])
        gradients, _ = tree_unflatten(in_tree, pullback.leaf_cotangents([one]))
        gradient = gradients[0] if isinstance(argnums, int) or hasattr(argnums, "__index__") else gradients
        value = tree_unflatten(flat.out_tree, outs[:n])
        return ((value, flat.unflatten_aux(outs[n:])), gradient) if has_aux else (value, gradient)

    return value_and_grad_fun


def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """The gradient of scalar ``fun``: a function of the same arguments.

    See :func:`value_and_grad` for the arguments and errors. With ``has_aux`` it returns ``(gradient, aux)``.

    >>> import xformlib as xf, xformlib.numpy as jnp
    >>> print(xf.grad(jnp.tanh)(1.0))
    0.4199743
    """
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int)

    @_wraps(fun)
    def grad_fun(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return grad_fun


def _one(x: Any) -> Any:
    return ArrayImpl(np.ones((), x.dtype))


def _wraps(fun: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    # functools.wraps copies __dict__, which callables such as jitted functions use for themselves.
    return functools.wraps(fun, updated=())


def _check_argnums(argnums: Any) -> None:
    ok = hasattr(argnums, "__index__") or (
        isinstance(argnums, tuple | list) and all(hasattr(i, "__index__") for i in argnums)
    )
    if not ok:
        raise GradientError(f"argnums must be an int or a tuple of ints; got {argnums!r:.60}.")


def _positions(argnums: Any, n: int, name: str) -> tuple[int, ...]:
    numbers = (argnums,) if hasattr(argnums, "__index__") else tuple(argnums)
    for i in numbers:
        if not -n <= i < n:
            raise GradientError(
                f"grad of {name}: argnums={argnums} asks for positional argument {i}, but {n} were given. "
                "Arguments given by keyword are not differentiated; pass them by position."
            )
    return tuple([i % n for i in numbers])


def _check_inputs(
    chosen: Any, leaves: Sequence[Any], positions: Sequence[int], name: str, holomorphic: bool, allow_int: bool
) -> None:
    for i, x in enumerate(leaves):
        is_complex = not isinstance(x.dtype, dtypes.KeyDType) and dtypes.issubdtype(x.dtype, np.complexfloating)
        if holomorphic and not is_complex:
            problem = f"has dtype {x.dtype}, but holomorphic=True needs complex inputs"
        elif not holomorphic and not _is_differentiable(x) and not allow_int:
            problem = (
                f"has dtype {x.dtype}, which has no derivative. Pass a float (for example 1.0 in place of 1), "
                "choose other argnums, or allow_int=True for float0 zeros"
            )
        else:
            continue
        path = tree_flatten_with_path(chosen)[0][i][0]
        where = f"argument {positions[path[0].idx]}{keystr(path[1:])}"
        raise GradientError(f"grad of {name}: {where} {problem}.")


def _check_output(outs: Sequence[Any], flat: Flat, name: str, holomorphic: bool) -> None:
    if len(outs) != 1 or flat.out_tree.num_nodes != 1:
        raise GradientError(
            f"grad of {name}: the function must return one scalar, and returned a pytree {flat.out_tree}. "
            "Return extra values as auxiliary data with has_aux=True."
        )
    (out,) = outs
    if out.shape:
        raise GradientError(
            f"grad of {name}: the function must return a scalar, and returned an array of shape {out.shape}. "
            "Reduce it (for example with .sum()), or use jacrev or jacfwd for the Jacobian."
        )
    wanted, word = (np.complexfloating, "complex") if holomorphic else (np.floating, "real floating-point")
    if not dtypes.issubdtype(out.dtype, wanted):
        raise GradientError(
            f"grad of {name}: the output must be {word}, and has dtype {out.dtype}."
            + (" For complex-differentiable functions use holomorphic=True." if not holomorphic else "")
        )
