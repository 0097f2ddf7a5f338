"""vmap: a function of one example as a function of a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xformlib.api.arguments import Flat, aval_of, check_callable, flatten_arrays, function_name
from xformlib.api.autodiff import _wraps
from xformlib.array import Aval
from xformlib.errors import AxisError, VmapError
from xformlib.tree_util import PyTreeDef, broadcast_prefix, keystr, tree_flatten_with_path, tree_unflatten

__all__ = ["vmap"]


def vmap(
    fun: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, *, axis_size: int | None = None
) -> Callable[..., Any]:
    """Vectorise ``fun``: the result maps it over an axis of its arguments, in one vectorised pass.

    Args:
        fun: function of arrays or pytrees of arrays.
        in_axes: which axis of each argument to map over: an int, None (not mapped), or a pytree of these that is a prefix
            of the tuple of positional arguments. Keyword arguments are always mapped over axis 0.
        out_axes: where the mapped axis goes in each output: an int, None (only for outputs that do not depend on mapped
            inputs), or a prefix pytree of the output.
        axis_size: size of the mapped axis; needed only where no argument is mapped.

    Returns:
        The vectorised function.

    Raises:
        VmapError: mapped axes of different sizes, nothing mapped and no ``axis_size``, trees that do not fit.
        AxisError: an axis out of range.

    >>> import xformlib as xf, xformlib.numpy as jnp
    >>> xf.vmap(jnp.dot, in_axes=(0, None))(jnp.ones((4, 3)), jnp.ones(3)).shape
    (4,)
    """
    check_callable(fun, "vmap")
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    name = function_name(fun)

    @_wraps(fun)
    def vmapped(*args: Any, **kwargs: Any) -> Any:
        leaves, in_tree = flatten_arrays((args, kwargs), f"vmap of {name}: argument ")
        axes = _in_axes(in_axes, args, kwargs, name)
        axes = [_normalise(a, x, i, (args, kwargs), name) for i, (a, x) in enumerate(zip(axes, leaves, strict=True))]
        size = _axis_size(axes, leaves, (args, kwargs), axis_size, name)
        return _run(Flat(fun, in_tree, name=name), leaves, axes, size, out_axes)

    return vmapped


def _run(flat: Flat, leaves: Any, axes: Any, size: int, out_axes: Any) -> Any:
    from xformlib.ops.movement import broadcast_batch, move_axis
    from xformlib.staging import stage
    from xformlib.transforms.batch import batch

    avals = [_example(aval_of(x), a) for x, a in zip(leaves, axes, strict=True)]
    outer = [x if a is None else None for x, a in zip(leaves, axes, strict=True)]
    program = stage(flat, avals, kind=f"vmap of {flat.name}", outer=outer)
    args = [x if a is None else move_axis(x, a, 0) for x, a in zip(leaves, axes, strict=True)]
    batched = [a is not None for a in axes] + [False] * len(program.captures)
    outs, flags = batch(program, [*args, *program.captures], batched, size)
    result = []
    for i, (x, b, a) in enumerate(zip(outs, flags, _out_axes(out_axes, flat.out_tree, flat.name), strict=True)):
        if a is None:
            if b:
                raise VmapError(
                    f"vmap of {flat.name}: out_axes is None for output leaf {i}, but it depends on mapped inputs. "
                    "Give it an axis, or reduce the output over the mapped axis outside."
                )
            result.append(x)
            continue
        x = x if b else broadcast_batch(x, size)
        if not -len(x.shape) <= a < len(x.shape):
            raise AxisError(
                f"vmap of {flat.name}: out_axes {a} is out of range for output leaf {i} of shape {x.shape}."
            )
        result.append(move_axis(x, 0, a))
    return tree_unflatten(flat.out_tree, result)


def _example(aval: Aval, axis: int | None) -> Aval:
    if axis is None:
        return aval
    return Aval(aval.shape[:axis] + aval.shape[axis + 1 :], aval.dtype, aval.weak_type)


def _in_axes(in_axes: Any, args: tuple[Any, ...], kwargs: Any, name: str) -> list[Any]:
    if not isinstance(in_axes, tuple | int | type(None)) and not hasattr(in_axes, "__index__"):
        raise VmapError(
            f"vmap of {name}: in_axes must be an int, None or a tuple with one entry per positional argument; "
            f"got {type(in_axes).__name__} {in_axes!r:.60}. For one argument that is a dict write in_axes=({{...}},)."
        )
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise VmapError(
            f"vmap of {name}: in_axes has {len(in_axes)} entries for {len(args)} positional arguments; "
            "give one entry per positional argument (keyword arguments are mapped over axis 0)."
        )
    try:
        return broadcast_prefix((in_axes, 0), (args, kwargs), is_leaf=_is_none)
    except ValueError as e:
        raise VmapError(f"vmap of {name}: in_axes does not fit the arguments: {e}") from None


def _out_axes(out_axes: Any, out_tree: PyTreeDef, name: str) -> list[Any]:
    if isinstance(out_axes, list):
        out_axes = tuple(out_axes)
    try:
        return broadcast_prefix(out_axes, tree_unflatten(out_tree, [0] * out_tree.num_leaves), is_leaf=_is_none)
    except ValueError as e:
        raise VmapError(f"vmap of {name}: out_axes does not fit the output: {e}") from None


def _is_none(x: Any) -> bool:
    return x is None


def _where(i: int, tree: Any) -> str:
    path = tree_flatten_with_path(tree)[0][i][0]
    if path[0].idx == 1:
        return f"keyword argument {keystr(path[1:])}"
    return f"argument {path[1].idx}{keystr(path[2:])}"


def _normalise(axis: Any, x: Any, i: int, tree: Any, name: str) -> int | None:
    if axis is None:
        return None
    if not hasattr(axis, "__index__"):
        raise VmapError(f"vmap of {name}: an axis must be an int or None; got {axis!r:.60}.")
    n = len(x.shape)
    if not -n <= axis < n:
        hint = "A scalar has no axis to map over: use in_axes=None for it." if n == 0 else f"Axes are {-n}..{n - 1}."
        raise AxisError(
            f"vmap of {name}: in_axes asks for axis {axis} of {_where(i, tree)}, which has shape {x.shape}. {hint}"
        )
    return int(axis) % n


def _axis_size(axes: Any, leaves: Any, tree: Any, axis_size: int | None, name: str) -> int:
    sizes = {i: x.shape[a] for i, (a, x) in enumerate(zip(axes, leaves, strict=True)) if a is not None}
    asked = "" if axis_size is None else f", axis_size={axis_size}"
    if axis_size is not None:
        wrong = {i: n for i, n in sizes.items() if n != axis_size}
    elif not sizes:
        raise VmapError(
            f"vmap of {name}: no argument is mapped (in_axes has None everywhere, or there are no arguments). "
            "Map at least one, or give axis_size."
        )
    else:
        axis_size = next(iter(sizes.values()))
        wrong = {} if len(set(sizes.values())) == 1 else sizes
    if wrong:
        lines = [
            f"  - {_where(i, tree)}: shape {leaves[i].shape}, axis {axes[i]} has size {n}" for i, n in wrong.items()
        ]
        raise VmapError(f"vmap of {name}: mapped axes must all have one size{asked}:\n" + "\n".join(lines))
    return int(axis_size)
