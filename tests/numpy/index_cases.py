"""Index expressions for tests: strategies over NumPy's grammar, and ways of evaluating what they do."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from xformlib.array import Array, ArrayImpl, Aval
from xformlib.numpy import index_lowering as lowered
from xformlib.numpy.index_grammar import parse
from xformlib.staging import replay, stage

# -- index expressions ------------------------------------------------------------------------------------------------


def shapes(min_rank=0):
    return st.lists(st.integers(0, 4), min_size=min_rank, max_size=4).map(tuple)


def slices(size):
    bounds = st.none() | st.integers(-size - 2, size + 2)
    return st.builds(slice, bounds, bounds, st.none() | st.integers(-3, 3).filter(bool))


@st.composite
def indexed(draw, arrays=True):
    """A shape and an index of it, with all ints in range."""
    shape = draw(shapes())
    points = draw(st.sampled_from([(), (1,), (2,), (3,), (0,), (2, 1), (2, 3)])) if arrays else None
    parts, axis = [], 0
    while axis < len(shape):
        kinds = ["slice", "slice", "end"]
        if shape[axis]:
            kinds += ["int"] + (["array", "array"] if arrays else [])
        if arrays:
            kinds += ["mask"]
        kind = draw(st.sampled_from(kinds))
        if kind == "end":
            break
        if kind == "slice":
            parts.append(draw(slices(shape[axis])))
        elif kind == "int":
            parts.append(draw(st.integers(-shape[axis], shape[axis] - 1)))
        elif kind == "array":
            parts.append(draw(_positions(shape[axis], points)))
        else:
            rank = draw(st.integers(1, min(2, len(shape) - axis)))
            parts.append(_mask(draw, shape[axis : axis + rank], points))
            axis += rank - 1
        axis += 1
    if axis == len(shape) or draw(st.booleans()):
        place = len(parts)
        if draw(st.booleans()):
            place = draw(st.integers(0, len(parts))) if axis == len(shape) else place
            parts.insert(place, Ellipsis)
    for _ in range(draw(st.integers(0, 2))):
        parts.insert(draw(st.integers(0, len(parts))), None)
    return shape, tuple(parts) if len(parts) != 1 or draw(st.booleans()) else parts[0]


@st.composite
def _positions(draw, size, points):
    shape = points[draw(st.integers(0, len(points))) :]
    count = int(np.prod(shape))
    values = draw(st.lists(st.integers(-size, size - 1), min_size=count, max_size=count))
    dtype = draw(st.sampled_from(["int8", "int32", "int64"]))
    return np.array(values, dtype).reshape(shape)


def _mask(draw, shape, points):
    """A mask with as many true elements as the index arrays beside it have points along the last axis, or one."""
    size = int(np.prod(shape))
    wanted = draw(st.sampled_from([points[-1] if points else 1, 1]))
    mask = np.zeros(size, bool)
    mask[draw(st.permutations(range(size)))[: min(wanted, size)] if size else []] = True
    return mask.reshape(shape)


def fits(shape, index):
    """Whether NumPy takes the index (masks drawn at random may not broadcast with arrays)."""
    try:
        np.empty(shape)[index]
    except IndexError:
        return False
    return True


# -- evaluation -------------------------------------------------------------------------------------------------------


def array(values):
    return ArrayImpl(np.asarray(values))


def staged(f, *args):
    """``f`` of arrays, recorded and run on NumPy rules."""
    args = [a if isinstance(a, Array) else array(a) for a in args]
    program = stage(lambda *xs: [f(*xs)], [Aval(a.shape, a.dtype, a.weak_type) for a in args], kind="a test")
    (out,) = replay(program, [*args, *program.captures])
    return out


def by_records(x, index):
    """A read of concrete arrays by ops, not by NumPy's own indexing."""
    return lowered.read(x, parse(index, x.shape), lowered.Rules("clip"))


def with_traced_positions(f, x, index, *others):
    """``f(x, index, *others)`` staged with ints and index arrays traced."""
    parts = list(index) if isinstance(index, tuple) else [index]
    places = [i for i, p in enumerate(parts) if type(p) is int or (isinstance(p, np.ndarray) and p.dtype.kind == "i")]

    def traced(x, *rest):
        found = list(parts)
        for place, value in zip(places, rest, strict=False):
            found[place] = value
        return f(x, tuple(found), *rest[len(places) :])

    return staged(traced, x, *[np.asarray(parts[i], np.result_type(parts[i], np.int8)) for i in places], *others)
