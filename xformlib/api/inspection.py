"""Looking at programs without running them: shapes of results, the module at every stage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xformlib import dtypes
from xformlib.api.arguments import Flat, aval_of, check_callable, function_name
from xformlib.array import Array, Aval
from xformlib.convert import to_array
from xformlib.errors import StaticArgumentError
from xformlib.tree_util import PyTreeDef, tree_flatten, tree_unflatten

__all__ = ["ShapeDtypeStruct", "eval_shape", "make_mlir", "typeof"]

STAGES = ("staged", "legalized")


class ShapeDtypeStruct:
    """Shape and dtype of an array that need not exist.

    >>> import xformlib as xf, numpy as np
    >>> xf.ShapeDtypeStruct((2, 3), np.float32)
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    __slots__ = ("dtype", "shape", "weak_type")

    def __init__(self, shape: Any, dtype: Any, weak_type: bool = False) -> None:
        self.shape = tuple([int(n) for n in shape])
        self.dtype = dtype if isinstance(dtype, dtypes.KeyDType) else np.dtype(dtype)
        self.weak_type = weak_type

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return Aval(self.shape, self.dtype).size

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype}{weak})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self.shape, self.dtype, self.weak_type


def flatten_avals(tree: Any, what: str) -> tuple[list[Aval], PyTreeDef]:
    """Leaves (arrays, numbers, or anything with shape and dtype) as avals."""
    leaves, treedef = tree_flatten(tree)
    return [_aval(x, what) for x in leaves], treedef


def _aval(x: Any, what: str) -> Aval:
    if not isinstance(x, Array | np.ndarray | np.generic) and hasattr(x, "shape") and hasattr(x, "dtype"):
        dtype = x.dtype if isinstance(x.dtype, dtypes.KeyDType) else dtypes.canonicalize_dtype(x.dtype)
        return Aval(tuple(x.shape), dtype, bool(getattr(x, "weak_type", False)))
    return aval_of(to_array(x, what, alias=True))


def _stage(fun: Callable[..., Any], args: Any, kwargs: Any, kind: str) -> tuple[Any, Flat]:
    from xformlib.staging import stage

    avals, in_tree = flatten_avals((args, kwargs), f"{kind} of {function_name(fun)}: argument ")
    flat = Flat(fun, in_tree)
    return stage(flat, avals, kind=f"{kind} of {flat.name}"), flat


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Shapes and dtypes of ``fun(*args, **kwargs)``, without computing it.

    Args:
        fun: function of arrays or pytrees.
        args, kwargs: arrays, numbers, or :class:`ShapeDtypeStruct`.

    Returns:
        The output's tree with ShapeDtypeStructs as leaves.

    >>> import xformlib as xf, xformlib.numpy as jnp
    >>> xf.eval_shape(jnp.dot, xf.ShapeDtypeStruct((2, 3), jnp.float32), jnp.ones(3))
    ShapeDtypeStruct(shape=(2,), dtype=float32)
    """
    check_callable(fun, "eval_shape")
    program, flat = _stage(fun, args, kwargs, "eval_shape")
    return tree_unflatten(flat.out_tree, [ShapeDtypeStruct(*a) for a in program.out_avals])


def typeof(x: Any) -> Aval:
    """Shape, dtype and weak type of an array, number or tracer.

    >>> import xformlib as xf, xformlib.numpy as jnp
    >>> print(xf.typeof(jnp.zeros((2, 3))))
    float32[2,3]
    """
    return aval_of(to_array(x, "typeof's argument", alias=True))


def make_mlir(fun: Callable[..., Any], *, stage: str = "staged") -> Callable[..., str]:
    """A function that shows the StableHLO module recorded for ``fun`` at its arguments.

    Args:
        fun: any function, transformed or not.
        stage: ``"staged"`` (StableHLO as recorded), or ``"legalized"`` (what the compiler gets).

    Returns:
        A function of the same arguments, giving the module's text.

    >>> import xformlib as xf, xformlib.numpy as jnp
    >>> print(xf.make_mlir(jnp.sin)(1.0))
    module {
      func.func @main(%arg0: tensor<f32>) -> tensor<f32> {
        %0 = stablehlo.sine %arg0 : tensor<f32>
        return %0 : tensor<f32>
      }
    }
    <BLANKLINE>
    """
    check_callable(fun, "make_mlir")
    if stage not in STAGES:
        raise StaticArgumentError(f"make_mlir: stage must be one of {STAGES}; got {stage!r}.")

    def show(*args: Any, **kwargs: Any) -> str:
        from xformlib.link import link

        program, _ = _stage(fun, args, kwargs, "make_mlir")
        module = link(program)
        if stage == "legalized":
            from xformlib.lowering.legalize import legalize
            from xformlib.lowering.targets import host_cpu

            legalize(module, host_cpu())
        return str(module)

    return show
