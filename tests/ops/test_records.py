"""The tests that every op record generates: its samples, under every transformation, against independent answers."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import xformlib as xf
from tests.ops import harness
from tests.ops.harness import (
    assert_derivative,
    assert_same_bits,
    assert_same_type,
    assert_ulps,
    finite_differences,
    is_inexact,
    pull_back,
    push_forward,
    random_like,
    real_dot,
    shuffled,
    unwrap,
    wrap,
)
from xformlib import dtypes
from xformlib.array import ArrayImpl, KeyArray
from xformlib.coverage import coverage
from xformlib.dtypes import types
from xformlib.link import link
from xformlib.op import Refusal, registry
from xformlib.staging import replay
from xformlib.transforms.transpose import transpose

CASES = harness.cases()
SMOOTH = [c for c in CASES if c.differentiable]
# One sample per op and kind of operands is enough where a property does not depend on values.
BATCHED = [c for c in CASES if c.operands and not isinstance(c.op.batch, Refusal)]


def each(cases):
    return pytest.mark.parametrize("case", cases, ids=[c.id for c in cases])


@pytest.mark.parametrize("row", coverage(), ids=lambda row: row.op.name)
def test_record_is_complete(row):
    assert not row.missing, f"{row.op.name} lacks {', '.join(row.missing)}"


# -- staging ----------------------------------------------------------------------------------------------------------


@each(CASES)
def test_staged_is_eager(case):
    """What is recorded is valid MLIR of the right types, and evaluates to the same bits."""
    program = case.program
    link(program).operation.verify()
    outs = replay(program, [*wrap(case.operands), *program.captures])
    for i, (aval, out, want) in enumerate(zip(program.out_avals, unwrap(outs), case.results, strict=True)):
        assert_same_type(aval, want, f"staged type of result {i}")
        assert_same_bits(out, want, f"result {i}")


@each(CASES)
def test_rule_does_not_write_to_its_operands(case):
    operands = [np.array(x) for x in case.operands]
    for x in operands:
        x.flags.writeable = False
    case.apply(*wrap(operands))


@each([c for c in CASES if any(x.ndim > 1 for x in c.operands)])
def test_rule_takes_any_memory_layout(case):
    strided = [np.array(x, order="F") for x in case.operands]
    for got, want in zip(unwrap(case.apply(*wrap(strided))), case.results, strict=True):
        assert_ulps(got, want, 8 if is_inexact(want) else 0, "Fortran order")


# -- derivatives ------------------------------------------------------------------------------------------------------


def subsets(active):
    """Each operand alone, and all of them together."""
    return [[i] for i in active] + ([list(active)] if len(active) > 1 else [])


def evaluate(case):
    def f(*operands):
        with np.errstate(all="ignore"):
            out = case.op.numpy(*operands, **case.params)
        return [y for y in (out if case.op.multi else (out,)) if is_inexact(y)]

    return f


@each(SMOOTH)
def test_jvp_is_finite_differences(case):
    wide, rng = case.wide, case.rng
    f = evaluate(wide)
    for which in subsets(case.active):
        v = wide.directions(rng, which)
        want, error = finite_differences(f, wide.operands, v)
        outs, tangents = push_forward(
            wide.program, wrap(wide.operands), [None if t is None else ArrayImpl(t) for t in v]
        )
        for out, t in zip(outs, tangents, strict=True):
            assert_same_type(t, out, "tangent")
        got = [np.asarray(t) for t in tangents if is_inexact(t)]
        assert_derivative(got, want, error, f(*wide.operands), f"in operands {which}")


@each(SMOOTH)
def test_transpose_keeps_the_dot_product(case):
    """Re<J v, w> = Re<v, J^T w>, without conjugation; for all operands together and each alone."""
    wide, rng = case.wide, case.rng
    for which in subsets(case.active):
        v = wide.directions(rng, which)
        w = [random_like(rng, y) if is_inexact(y) else None for y in wide.results]
        _, tangents = push_forward(wide.program, wrap(wide.operands), [None if t is None else ArrayImpl(t) for t in v])
        cts = pull_back(wide.program, wrap(wide.operands), which, [None if c is None else ArrayImpl(c) for c in w])
        present = [i for i, c in zip(which, cts, strict=True) if c is not None]
        for i, c in zip(which, cts, strict=True):
            if c is not None:
                assert_same_type(c, wide.operands[i], f"cotangent of operand {i}")
        forward, size = real_dot(
            [t for t, c in zip(tangents, w, strict=True) if c is not None], [c for c in w if c is not None]
        )
        backward, other = real_dot([v[i] for i in present], [c for c in cts if c is not None])
        assert abs(forward - backward) <= 1e-11 * max(size, other), (
            f"<Jv,w> = {forward}, <v,JTw> = {backward} in {which}"
        )


def linear_in(op):
    """Sets of operands in which the op itself is linear."""
    if op.linear:
        return [range(9) if op.linear == "all" else op.linear]
    return [[i] for i, rule in enumerate(op.transpose) if rule is not None] if isinstance(op.transpose, tuple) else []


@each([c for c in SMOOTH if c.op.transpose is not None and not isinstance(c.op.transpose, Refusal)])
def test_transpose_rule(case):
    """The rule itself, also where the op's own derivative is not what uses it: <op(v), w> = <v, rule(w)>."""
    wide, rng = case.wide, case.rng
    for which in linear_in(case.op):
        linear = [i for i in which if i in case.active]
        v = [random_like(rng, x) if i in linear else x for i, x in enumerate(wide.operands)]
        # The difference to zero: in one operand a sum or a choice is linear up to a constant.
        nothing = [np.zeros_like(x) if i in linear else x for i, x in enumerate(wide.operands)]
        images = zip(unwrap(wide.apply(*wrap(v))), unwrap(wide.apply(*wrap(nothing))), strict=True)
        forward = [a - b for a, b in images]
        w = [random_like(rng, y) for y in forward]
        wanted = [i in linear for i in range(len(v))]
        args = [None if b else ArrayImpl(x) for x, b in zip(wide.operands, wanted, strict=True)]
        program = wide.program
        unwanted = [False] * len(program.captures)
        cts = transpose(program, [*args, *program.captures], wanted + unwanted, wrap(w))
        pairs = [(v[i], cts[i]) for i in linear if cts[i] is not None]
        left, size = real_dot(forward, w)
        right, other = real_dot([a for a, _ in pairs], [c for _, c in pairs])
        assert abs(left - right) <= 1e-11 * max(size, other), f"<op(v),w> = {left}, <v,rule(w)> = {right} in {linear}"


@each(SMOOTH)
def test_derivatives_in_the_samples_own_dtype(case):
    """Tangents and cotangents have the types of their values, and agree roughly with double precision."""
    rng = case.rng
    v = case.directions(rng, case.active)
    w = [random_like(rng, y) if is_inexact(y) else None for y in case.results]
    outs, tangents = push_forward(case.program, wrap(case.operands), [None if t is None else ArrayImpl(t) for t in v])
    for out, t in zip(outs, tangents, strict=True):
        assert_same_type(t, out, "tangent")
    cts = pull_back(case.program, wrap(case.operands), case.active, [None if c is None else ArrayImpl(c) for c in w])
    for i, c in zip(case.active, cts, strict=True):
        if c is not None:
            assert_same_type(c, case.operands[i], f"cotangent of operand {i}")
    wide = case.wide
    wide_v = [None if t is None else ArrayImpl(t.astype(harness.wide_dtype(t.dtype))) for t in v]
    _, exact = push_forward(wide.program, wrap(wide.operands), wide_v)
    for t, e in zip(tangents, exact, strict=True):
        if is_inexact(t) and t.size:
            got, want = np.asarray(t).astype(e.dtype), np.asarray(e)
            limit = 64 * float(dtypes.finfo(t.dtype).eps) * max(np.max(abs(want)), 1e-3)
            assert np.max(abs(got - want)) <= limit * max(1, np.sqrt(t.size)), (
                f"tangent\n{got}\nin double precision\n{want}"
            )


@each(SMOOTH)
def test_derivatives_can_be_staged(case):
    """The derivative rules emit valid MLIR, too, and it evaluates to the same as the rules do at once."""
    gradient = case.gradient
    link(gradient.program).operation.verify()
    cts = [None if c is None else ArrayImpl(c) for c in gradient.cotangents]
    eager = pull_back(case.program, wrap(case.operands), case.active, cts)
    staged = gradient(*gradient.primals)
    for i, (got, want) in enumerate(zip(staged, eager, strict=True)):
        if want is not None:
            assert_same_bits(got, np.asarray(want), f"cotangent {i}")


@each(
    [
        c
        for c in SMOOTH
        if not any(map(harness.is_complex, [*c.operands, *c.results])) and sum(x.size for x in c.operands) <= 64
    ]
)
def test_reverse_is_forward(case):
    """jacrev = jacfwd, which also vectorises the rules over tangents and cotangents."""
    wide = case.wide
    operands = wrap(wide.operands)

    def f(*active):
        full = list(operands)
        for i, x in zip(case.active, active, strict=True):
            full[i] = x
        return [y for y in wide.apply(*full) if is_inexact(y)]

    argnums = tuple(range(len(case.active)))
    primals = [operands[i] for i in case.active]
    forward = xf.tree.leaves(xf.jacfwd(f, argnums)(*primals))
    reverse = xf.tree.leaves(xf.jacrev(f, argnums)(*primals))
    for a, b in zip(unwrap(forward), unwrap(reverse), strict=True):
        assert_same_type(a, b, "Jacobian")
        assert np.allclose(a, b, rtol=1e-12, atol=1e-13), f"forward\n{a}\nreverse\n{b}"


SECOND = [
    c
    for c in SMOOTH
    if c.sample.order2
    and c.op.linear != "all"
    and all(x.dtype in (np.float32, np.complex64) for x in c.operands if is_inexact(x))
]


@each(SECOND)
def test_second_order(case):
    """jvp of the gradient = finite differences of the gradient; and the gradient's own transpose."""
    gradient, rng = case.wide.gradient, case.rng
    x = gradient.primals
    v = [random_like(rng, p) for p in x]
    want, error = finite_differences(gradient, x, v)
    _, tangents = push_forward(gradient.program, wrap(x), wrap(v))
    assert_derivative(unwrap(tangents), want, error, gradient(*x), "derivative of the gradient")
    w = [random_like(rng, p) for p in x]
    cts = pull_back(gradient.program, wrap(x), range(len(x)), wrap(w))
    forward, size = real_dot(tangents, w)
    backward, other = real_dot(
        [a for a, c in zip(v, cts, strict=True) if c is not None], [c for c in cts if c is not None]
    )
    assert abs(forward - backward) <= 1e-10 * max(size, other, 1e-4), f"<Hv,w> = {forward}, <v,HTw> = {backward}"


# -- vmap -------------------------------------------------------------------------------------------------------------


def stack(case, rng, which, axes, size):
    """Operands with a batch axis: the sample itself, and the same elements shuffled (they stay in the domain)."""
    out = []
    for i, x in enumerate(case.operands):
        if i not in which:
            out.append(x)
            continue
        examples = [x] + [shuffled(rng, x) for _ in range(size - 1)]
        out.append(
            np.stack(examples, axes[i]) if size else np.zeros((*x.shape[: axes[i]], 0, *x.shape[axes[i] :]), x.dtype)
        )
    return out


def check_vmap(case, which, position, size, out_axis=0):
    rng = case.rng
    axes = {i: min(position, case.operands[i].ndim) for i in which}
    operands = stack(case, rng, which, axes, size)
    in_axes = tuple([axes.get(i) for i in range(len(operands))])
    batched = xf.vmap(lambda *xs: case.apply(*xs), in_axes=in_axes, out_axes=out_axis)(*wrap(operands))
    what = f"batched {which} at axis {position}, size {size}"
    examples = [
        case.apply(*wrap([np.take(x, k, axes[i]) if i in which else x for i, x in enumerate(operands)]))
        for k in range(size)
    ]
    for j, (got, want) in enumerate(zip(batched, case.results, strict=True)):
        axis = out_axis % (want.ndim + 1)
        shape = (*want.shape[:axis], size, *want.shape[axis:])
        assert (got.shape, got.dtype) == (shape, want.dtype), (
            f"{what}: result {j} is {got.shape} {got.dtype}, expected {shape} {want.dtype}"
        )
        if size:
            loop = np.stack(unwrap([e[j] for e in examples]), axis)
            assert_ulps(np.asarray(got), loop, loop_tolerance(case, loop), f"{what}: result {j}")


def loop_tolerance(case, want):
    """Elementwise rules may take another SIMD path (a few ulp); sums may be added in another order."""
    if case.op.kind in ("elementwise", "movement"):
        return 4
    if not want.size or not is_inexact(want):
        return 0
    return 16


@each(BATCHED)
def test_vmap_is_a_loop(case):
    """Every subset of batched operands, the batch axis at every position, and sizes 2, 1 and 0."""
    indices = range(min(len(case.operands), 4))
    ranks = [x.ndim for x in case.operands]
    for n in range(1, len(indices) + 1):
        for which in itertools.combinations(indices, n):
            last = max(ranks[i] for i in which)
            for position in sorted({0, last}) if n < len(indices) else range(last + 1):
                check_vmap(case, which, position, 2)
    everything = tuple(range(len(case.operands)))
    check_vmap(case, everything, 0, 1, out_axis=-1)
    check_vmap(case, everything, 0, 0)


@each([c for c in BATCHED if c.sample is c.op.samples[0]])
def test_nested_vmap(case):
    """Two batch axes, one on all operands and one on the first only."""
    first = case.operands[0]
    operands = [np.stack([x, x]) for x in case.operands]
    operands[0] = np.stack([operands[0]] * 3, 1)
    inner = xf.vmap(lambda *xs: case.apply(*xs), in_axes=(0, *[None] * (len(operands) - 1)))
    got = xf.vmap(inner)(*wrap(operands))
    for y, want in zip(got, case.results, strict=True):
        assert y.shape == (2, 3, *want.shape)
        assert_ulps(np.asarray(y), np.broadcast_to(want, y.shape), loop_tolerance(case, want), f"nested, {first.shape}")


@each(SECOND)
def test_vmap_of_the_gradient_is_a_loop(case):
    gradient, rng = case.wide.gradient, case.rng
    x = gradient.primals
    y = [shuffled(rng, p) for p in x]
    program = gradient.program
    pulled = xf.vmap(lambda *xs: replay(program, [*xs, *program.captures]))(
        *wrap([np.stack([a, b]) for a, b in zip(x, y, strict=True)])
    )
    for got, a, b in zip(pulled, gradient(*x), gradient(*y), strict=True):
        want = np.stack([a, b])
        finite = np.isfinite(want)
        scale = np.max(abs(want[finite]), initial=1e-300)
        wrong = ~np.isclose(np.asarray(got), want, rtol=1e-12, atol=1e-13 * scale, equal_nan=True)
        assert not wrong.any(), f"batched\n{got}\nloop\n{want}"


# -- factors ----------------------------------------------------------------------------------------------------------


@each([c for c in CASES if callable(c.op.factors)])
def test_factors_fit_the_shapes(case):
    """One letter per dimension; a letter has one size wherever it stands; what is reduced is in no result."""
    mapping, _, reduced = case.op.factors(*case.operands, **case.params).partition("|")
    left, _, right = mapping.partition("->")
    sizes = {}
    for texts, arrays in ((left, case.operands), (right, case.results)):
        parts = texts.split(",")
        assert len(parts) == len(arrays), f"{mapping}: {len(arrays)} arrays"
        for text, x in zip(parts, arrays, strict=True):
            assert len(text) == x.ndim and len(set(text)) == x.ndim, f"{mapping}: {text!r} for shape {x.shape}"
            for letter, n in zip(text, x.shape, strict=True):
                assert sizes.setdefault(letter, n) == n, f"{mapping}: {letter!r} has sizes {sizes[letter]} and {n}"
    assert set(reduced) <= set(left) - set(right), f"{mapping}|{reduced}"


# -- dtypes and keys --------------------------------------------------------------------------------------------------


def with_dtype(case, dtype):
    """The sample with another main dtype; None if it has no operands."""
    if not case.operands:
        return None
    main = next((x.dtype for x in case.operands if is_inexact(x)), case.operands[0].dtype)

    def cast(x):
        real = not dtypes.issubdtype(dtype, np.complexfloating)
        return np.asarray(x.real if real and harness.is_complex(x) else x).astype(dtype)

    with np.errstate(all="ignore"):
        operands = [cast(x) if x.dtype == main else x for x in case.operands]
    params = {k: dtype if isinstance(v, np.dtype) and v == main else v for k, v in case.params.items()}
    return harness.Case(case.op, replace(case.sample, make=lambda rng: operands, params=params), str(dtype))


# The verifier takes these and mathematics does not; the public functions refuse them.
MEANINGLESS = {"stablehlo.remainder": types.COMPLEX, "stablehlo.cbrt": types.COMPLEX}


@pytest.mark.parametrize("op", [op for op in registry.values() if op.samples], ids=lambda op: op.name)
def test_results_of_every_dtype(op):
    """Whatever dtype MLIR's verifier takes, the evaluation rule takes, with a result of the staged type."""
    base = next(c for c in CASES if c.op is op)
    # Ops of our own dialect have no verifier: they take what their samples show.
    shown = {x.dtype for c in CASES if c.op is op for x in c.operands}
    taken = shown if op.name.startswith("xform.") else set(types.ALL) - set(MEANINGLESS.get(op.name, ()))
    wrong = []
    for case in [with_dtype(base, d) for d in taken if base.operands]:
        try:
            link(case.program).operation.verify()
        except Exception:
            continue  # refused; that the public functions say so is tested with them
        try:
            results = case.results
        except Exception as e:
            wrong.append(f"{case.id}: the evaluation rule fails: {type(e).__name__}: {e}")
            continue
        for aval, y in zip(case.program.out_avals, results, strict=True):
            if (aval.shape, aval.dtype) != (y.shape, y.dtype):
                wrong.append(f"{case.id}: staged {aval}, evaluated {y.dtype}{list(y.shape)}")
    assert not wrong, "\n".join(wrong)


@each([c for c in CASES if c.op.kind == "movement" and c.operands])
def test_movement_takes_keys(case):
    """Ops that move elements treat keys as elements: the words move together."""
    main = case.operands[0].dtype
    rng = case.rng
    keyed = [x.dtype == main for x in case.operands]
    words = [
        rng.integers(0, 2**32, (*x.shape, 2), np.uint32) if k else x for x, k in zip(case.operands, keyed, strict=True)
    ]
    dtype = dtypes.KeyDType("fry")
    out = case.apply(*[KeyArray(ArrayImpl(x), dtype) if k else ArrayImpl(x) for x, k in zip(words, keyed, strict=True)])
    halves = [case.apply(*wrap([x[..., i] if k else x for x, k in zip(words, keyed, strict=True)])) for i in range(2)]
    for got, first, second in zip(out, *halves, strict=True):
        assert got.is_key, f"the result has dtype {got.dtype}"
        assert_same_bits(np.asarray(got._base), np.stack(unwrap([first, second]), -1), "words")
