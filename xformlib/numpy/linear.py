"""Products of vectors, matrices and higher arrays."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

import numpy as np

from xformlib import dtypes
from xformlib.array import Array
from xformlib.dims import DotDims
from xformlib.errors import NotAnArrayError, ShapeError
from xformlib.keys import with_weak_type
from xformlib.numpy._util import array, axes_of, broadcast_shape, broadcast_to_shape, promoted
from xformlib.numpy.manipulation import expand_dims, ravel, reshape, transpose
from xformlib.ops.contraction import dot_general
from xformlib.ops.reduction import reduce_sum

__all__ = [
    "cross",
    "diag",
    "diagonal",
    "dot",
    "einsum",
    "inner",
    "kron",
    "matmul",
    "outer",
    "tensordot",
    "trace",
    "vdot",
    "vecdot",
]


def _dot(
    x: Any,
    y: Any,
    contract: tuple[Sequence[int], Sequence[int]],
    batch: tuple[Sequence[int], Sequence[int]],
    weak: bool,
    dtype: Any,
) -> Any:
    dims = DotDims(tuple(batch[0]), tuple(batch[1]), tuple(contract[0]), tuple(contract[1]))
    wanted = x.dtype if dtype is None else dtypes.requested(dtype)
    return with_weak_type(dot_general(x, y, dot_dimension_numbers=dims, dtype=wanted), weak)


def matmul(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """Matrix product; leading axes broadcast, 1-d operands are a row or a column.

    Raises:
        ShapeError: inner sizes that differ, 0-d operands.

    >>> import xformlib.numpy as jnp
    >>> jnp.matmul(jnp.ones((2, 3)), jnp.ones((3, 4))).shape
    (2, 4)
    """
    (x, y), weak = promoted("matmul", a, b)
    if not x.shape or not y.shape or x.shape[-1] != y.shape[-2 if len(y.shape) > 1 else 0]:
        raise ShapeError(
            f"matmul: shapes {x.shape} and {y.shape} do not fit: the last axis of the first must have the size of the "
            "last but one of the second (of its only one, if it is 1-d)."
        )
    if len(x.shape) == 1 or len(y.shape) == 1:
        return _dot(x, y, ([len(x.shape) - 1], [max(len(y.shape) - 2, 0)]), ((), ()), weak, preferred_element_type)  # type: ignore[no-any-return]
    lead = broadcast_shape("matmul", x.shape[:-2], y.shape[:-2])
    if not lead or not y.shape[:-2]:
        return _dot(
            x,
            y,
            ([len(x.shape) - 1], [0 if len(y.shape) == 2 else len(y.shape) - 2]),
            ((), ()),
            weak,
            preferred_element_type,
        )  # type: ignore[no-any-return]
    x = broadcast_to_shape(x, (*lead, *x.shape[-2:]))
    y = broadcast_to_shape(y, (*lead, *y.shape[-2:]))
    n = len(lead)
    return _dot(x, y, ([n + 1], [n]), (range(n), range(n)), weak, preferred_element_type)  # type: ignore[no-any-return]


def dot(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """Sum product over the last axis of ``a`` and the last but one of ``b``; a plain product for scalars."""
    (x, y), weak = promoted("dot", a, b)
    if not x.shape or not y.shape:
        return x * y  # type: ignore[no-any-return]
    j = max(len(y.shape) - 2, 0)
    if x.shape[-1] != y.shape[j]:
        raise ShapeError(
            f"dot: shapes {x.shape} and {y.shape} do not fit: sizes {x.shape[-1]} and {y.shape[j]} must be equal."
        )
    return _dot(x, y, ([len(x.shape) - 1], [j]), ((), ()), weak, preferred_element_type)  # type: ignore[no-any-return]


def vdot(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """Product of the flattened arrays, the first conjugated."""
    from xformlib.numpy.ufuncs import conjugate

    return dot(conjugate(ravel(a)), ravel(b), preferred_element_type=preferred_element_type)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """Products of vectors along an axis, the first conjugated."""
    from xformlib.numpy.reductions import sum
    from xformlib.numpy.ufuncs import conjugate

    return sum(conjugate(x1) * array(x2, "vecdot", 1), axis=axis)  # type: ignore[operator]


def inner(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """Sum product over the last axes."""
    x, y = array(a, "inner"), array(b, "inner", 1)
    if not x.shape or not y.shape:
        return x * y  # type: ignore[no-any-return]
    return tensordot(x, y, ((-1,), (-1,)))


def outer(a: Any, b: Any, out: Any = None) -> Array:
    """Products of all pairs of elements."""
    return ravel(a)[:, None] * ravel(b)[None, :]  # type: ignore[index, no-any-return]


def tensordot(a: Any, b: Any, axes: Any = 2, *, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """Sum product over pairs of axes: the given ones, or the last of ``a`` with the first of ``b``."""
    (x, y), weak = promoted("tensordot", a, b)
    if hasattr(axes, "__index__"):
        n = int(axes)
        left, right = tuple(range(len(x.shape) - n, len(x.shape))), tuple(range(n))
    else:
        left, right = axes_of(axes[0], len(x.shape), "tensordot"), axes_of(axes[1], len(y.shape), "tensordot")
    if len(left) != len(right) or [x.shape[i] for i in left] != [y.shape[i] for i in right]:
        raise ShapeError(f"tensordot: axes {axes} of shapes {x.shape} and {y.shape} do not fit.")
    return _dot(x, y, (left, right), ((), ()), weak, preferred_element_type)  # type: ignore[no-any-return]


def kron(a: Any, b: Any) -> Array:
    """Kronecker product."""
    x, y = array(a, "kron"), array(b, "kron", 1)
    n = max(x.ndim, y.ndim)
    x, y = reshape(x, (1,) * (n - x.ndim) + x.shape), reshape(y, (1,) * (n - y.ndim) + y.shape)
    wide = expand_dims(x, tuple(range(1, 2 * n, 2))) * expand_dims(y, tuple(range(0, 2 * n, 2)))  # type: ignore[operator]
    return reshape(wide, tuple([i * j for i, j in zip(x.shape, y.shape, strict=True)]))


def cross(a: Any, b: Any) -> Array:
    """Cross product of 3-vectors along the last axis."""
    from xformlib.numpy.manipulation import stack

    x, y = array(a, "cross"), array(b, "cross", 1)
    if x.shape[-1:] != (3,) or y.shape[-1:] != (3,):
        raise ShapeError(f"cross takes arrays whose last axis has size 3; got shapes {x.shape} and {y.shape}.")
    parts = [x[..., i] * y[..., j] - x[..., j] * y[..., i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return stack(parts, axis=-1)


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonal of the plane of two axes, as last axis."""
    from xformlib.numpy.manipulation import moveaxis

    x = moveaxis(a, (axis1, axis2), (-2, -1))
    rows, columns = x.shape[-2:]
    n = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    i = np.arange(n)
    return x[..., i - min(offset, 0), i + max(offset, 0)]  # type: ignore[index, no-any-return]


def diag(v: Any, k: int = 0) -> Array:
    """The matrix with a given diagonal, or the diagonal of a matrix."""
    from xformlib.numpy.creation import zeros

    x = array(v, "diag")
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ShapeError(f"diag takes 1-d or 2-d arrays; got shape {x.shape}.")
    n = x.shape[0] + abs(k)
    i = np.arange(x.shape[0])
    return zeros((n, n), x.dtype).at[i + max(-k, 0), i + max(k, 0)].set(x)  # type: ignore[attr-defined, no-any-return]


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Array:
    """Sum of the diagonal."""
    from xformlib.numpy.reductions import sum

    return sum(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


# -- einsum -------------------------------------------------------------------------------------------------------------


def einsum(
    subscripts: str, /, *operands: Any, optimize: Any = True, precision: Any = None, preferred_element_type: Any = None
) -> Array:
    """Sums of products, by Einstein's convention: ``einsum("bij,bjk->bik", x, y)``.

    Pairs are contracted in the order NumPy's greedy search finds.

    Raises:
        ShapeError: sizes or subscripts that do not fit.

    >>> import xformlib.numpy as jnp
    >>> jnp.einsum("ij,jk->ik", jnp.ones((2, 3)), jnp.ones((3, 4))).shape
    (2, 4)
    """
    if not isinstance(subscripts, str):
        raise NotAnArrayError("einsum: the first argument must be the subscripts, a string.")
    xs = [array(x, "einsum", i) for i, x in enumerate(operands)]
    inputs, output = _parse(subscripts, [x.shape for x in xs])
    _check_sizes(subscripts, inputs, xs)
    xs, weak = promoted("einsum", *xs)
    terms = [_diagonals(x, s) for x, s in zip(xs, inputs, strict=True)]
    for pair in _order(inputs, output, [x.shape for x in xs]):
        chosen = [terms.pop(i) for i in sorted(pair, reverse=True)]
        needed = set(output).union(*[s for _, s in terms])
        terms.append(_contract(chosen, needed) if len(chosen) == 2 else _summed(*chosen[0], needed))
    x, names = _summed(*terms[0], set(output))
    out = transpose(x, [names.index(c) for c in output])
    return with_weak_type(out, weak)  # type: ignore[no-any-return]


def _parse(subscripts: str, shapes: Sequence[tuple[int, ...]]) -> tuple[list[str], str]:
    """Subscripts per operand and of the result, the ellipsis spelled out."""
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(shapes):
        raise ShapeError(f"einsum: {subscripts!r} has {len(inputs)} terms for {len(shapes)} operands.")
    free = [c for c in string.ascii_letters if c not in text]
    most = max(
        [len(s) - len(t.replace("...", "")) for t, s in zip(inputs, shapes, strict=True) if "..." in t], default=0
    )
    extra = "".join(free[:most])

    def spell(term: str, rank: int) -> str:
        n = rank - len(term.replace("...", ""))
        return term.replace("...", extra[len(extra) - n :] if n > 0 else "")

    full = [spell(t, len(s)) for t, s in zip(inputs, shapes, strict=True)]
    if arrow:
        return full, right.replace("...", extra)
    letters = "".join(full)
    return full, extra + "".join(sorted(c for c in set(letters) if letters.count(c) == 1 and c not in extra))


def _check_sizes(subscripts: str, inputs: Sequence[str], xs: Sequence[Any]) -> None:
    sizes: dict[str, int] = {}
    for term, x in zip(inputs, xs, strict=True):
        if len(term) != len(x.shape):
            raise ShapeError(f"einsum: {subscripts!r}: term {term!r} does not fit an operand of shape {x.shape}.")
        for c, n in zip(term, x.shape, strict=True):
            if sizes.setdefault(c, n) != n:
                raise ShapeError(f"einsum: {subscripts!r}: index {c!r} has sizes {sizes[c]} and {n}.")


def _order(inputs: Sequence[str], output: str, shapes: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    if len(inputs) <= 2:
        return [tuple(range(len(inputs)))]
    path, _ = np.einsum_path(
        f"{','.join(inputs)}->{output}", *[np.empty(s, np.bool_) for s in shapes], optimize="greedy"
    )
    steps: list[tuple[int, ...]] = []
    count = len(inputs)
    for step in path[1:]:
        # NumPy may contract more than two at once: take them pairwise.
        chosen = sorted(step)
        while len(chosen) > 2:
            steps.append((chosen[-2], chosen[-1]))
            chosen, count = [*chosen[:-2], count - 2], count - 1
        steps.append(tuple(chosen))
        count -= len(chosen) - 1
    return steps


def _diagonals(x: Any, names: str) -> tuple[Any, str]:
    """Repeated indices of one operand take its diagonal."""
    for c in dict.fromkeys(names):
        while names.count(c) > 1:
            i = names.index(c)
            j = names.index(c, i + 1)
            x = diagonal(x, 0, i, j)
            names = names[:i] + names[i + 1 : j] + names[j + 1 :] + c
    return x, names


def _summed(x: Any, names: str, needed: set[str]) -> tuple[Any, str]:
    """Sum over the indices nothing else needs."""
    dims = tuple([i for i, c in enumerate(names) if c not in needed])
    return (reduce_sum(x, dimensions=dims) if dims else x), "".join(c for c in names if c in needed)


def _contract(terms: Sequence[tuple[Any, str]], needed: set[str]) -> tuple[Any, str]:
    (x, a), (y, b) = terms[1], terms[0]
    x, a = _summed(x, a, needed | set(b))
    y, b = _summed(y, b, needed | set(a))
    batch = [c for c in a if c in b and c in needed]
    inner_ = [c for c in a if c in b and c not in needed]
    out = _dot(
        x,
        y,
        ([a.index(c) for c in inner_], [b.index(c) for c in inner_]),
        ([a.index(c) for c in batch], [b.index(c) for c in batch]),
        False,
        None,
    )
    free = [c for c in a if c not in b] + [c for c in b if c not in a]
    return out, "".join(batch + free)
