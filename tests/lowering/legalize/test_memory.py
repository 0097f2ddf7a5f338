"""Accesses by computed position: against the specification, one element at a time, on random dimension numbers."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings

from tests.lowering.legalize.harness import Case, check, text_of
from tests.ops import indexing_reference as reference

BODIES = {
    "set": ("", lambda old, new: new),
    "add": ("add", np.add),
    "mul": ("multiply", np.multiply),
    "min": ("minimum", np.minimum),
    "max": ("maximum", np.maximum),
}
INTEGERS = [np.dtype(f"{k}{n}") for k in ("int", "uint") for n in (8, 16, 32, 64)]
FLOATS = [np.dtype(d) for d in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)]
ALL = [np.dtype(bool), *INTEGERS, *FLOATS, np.dtype(np.complex64), np.dtype(np.complex128)]
I64 = np.iinfo(np.int64)


def drawn(count):
    """The same random dimension numbers every time."""
    found = []

    @settings(max_examples=count, derandomize=True, database=None, deadline=None)
    @given(reference.cases())
    def collect(case):
        found.append(case)

    collect()
    return found


def numbers(kind, dims):
    fields = [f"{k} = {list(v) if isinstance(v, tuple) else v}" for k, v in dims._asdict().items()]
    return f"#stablehlo.{kind}<{', '.join(fields)}>"


def values(rng, shape, dtype):
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    low = 0 if dtype.kind == "u" else -3
    return np.asarray(rng.integers(low, 4, shape)).astype(dtype)


def gather_case(name, x, indices, dims, sizes):
    want = reference.gather(x, indices, dims, sizes)
    body = (
        f'%r = "stablehlo.gather"(%0, %1) <{{dimension_numbers = {numbers("gather", dims)}, '
        f"slice_sizes = array<i64{':' if sizes else ''} {', '.join(map(str, sizes))}>}}> : ({{0}}, {{1}}) -> {{r}}"
    )
    return Case(name, body, [x, indices], want)


def scatter_case(name, x, indices, updates, dims, body):
    op, combine = BODIES[body]
    want = reference.scatter(x, indices, updates, dims, combine)
    scalar = text_of(np.zeros((), x.dtype))
    line, out = (f"%v = stablehlo.{op} %p, %q : {scalar}", "%v") if op else ("", "%q")
    text = (
        f'%r = "stablehlo.scatter"(%0, %1, %2) <{{scatter_dimension_numbers = {numbers("scatter", dims)}}}> ({{\n'
        f"^bb0(%p: {scalar}, %q: {scalar}):\n{line}\nstablehlo.return {out} : {scalar}\n"
        "}) : ({0}, {1}, {2}) -> {r}"
    )
    return Case(name, text, [x, indices, updates], want)


def test_gather():
    rng = np.random.default_rng(0)
    cases = []
    for i, c in enumerate(drawn(120)):
        x = values(rng, c.shape, ALL[i % len(ALL)])
        cases.append(gather_case(f"{i} {x.dtype} {c}", x, c.indices, c.gather, c.sizes))
    check(cases)


@pytest.mark.parametrize("body", BODIES)
def test_scatter(body):
    rng = np.random.default_rng(1)
    dtypes = [d for d in ALL if body in ("set", "add") or d.kind != "c"]
    cases = []
    for i, c in enumerate(drawn(60)):
        dtype = dtypes[i % len(dtypes)]
        if dtype == np.bool_ and body == "add":
            dtype = np.dtype(np.int32)
        x, updates = values(rng, c.shape, dtype), values(rng, c.result, dtype)
        cases.append(scatter_case(f"{i} {dtype} {c}", x, c.indices, updates, c.scatter, body))
    check(cases)


POSITIONS = {
    **{d: [0, 1, 2, 4, 5, 6, np.iinfo(d).max] for d in INTEGERS},
    **{d: [-9, -1, 0, 1, 2, 4, 5, 6, np.iinfo(d).min, np.iinfo(d).max] for d in INTEGERS if d.kind == "i"},
}


def slicing(kind):
    cases = []
    x = np.arange(35, dtype=np.int32).reshape(5, 7)
    update = -1 - np.arange(6, dtype=np.int32).reshape(2, 3)
    for dtype, positions in POSITIONS.items():
        for p in positions:
            start = [np.array(p, dtype), np.array(positions[3], dtype)]
            i, j = [min(max(int(s), 0), limit) for s, limit in zip(start, (3, 4), strict=True)]
            if kind == "slice":
                body = "%r = stablehlo.dynamic_slice %0, %1, %2, sizes = [2, 3] : ({0}, {1}, {2}) -> {r}"
                cases.append(Case(f"{dtype} {start}", body, [x, *start], x[i : i + 2, j : j + 3]))
            else:
                want = x.copy()
                want[i : i + 2, j : j + 3] = update
                body = "%r = stablehlo.dynamic_update_slice %0, %3, %1, %2 : ({0}, {3}, {1}, {2}) -> {r}"
                cases.append(Case(f"{dtype} {start}", body, [x, *start, update], want))
    return cases


@pytest.mark.parametrize("kind", ["slice", "update_slice"])
def test_dynamic_slices_clamp(kind):
    check(slicing(kind))
