"""What the generated tests share: cases made from the records' samples, oracles, and comparisons."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

import xformlib.ops  # noqa: F401 - registers the records
from xformlib import dtypes
from xformlib.array import ArrayImpl, Aval
from xformlib.op import Op, Sample, registry
from xformlib.staging import Program, replay, stage
from xformlib.transforms.jvp import jvp
from xformlib.transforms.linearize import linearize
from xformlib.transforms.transpose import transpose

Arrays = Sequence[Any]


def is_inexact(x: Any) -> bool:
    return dtypes.issubdtype(x.dtype, np.inexact)


def is_complex(x: Any) -> bool:
    return dtypes.issubdtype(x.dtype, np.complexfloating)


def wide_dtype(dtype: Any) -> Any:
    """Double precision, for floats."""
    if not isinstance(dtype, np.dtype) or not dtypes.issubdtype(dtype, np.inexact):
        return dtype
    return np.dtype(np.complex128 if dtypes.issubdtype(dtype, np.complexfloating) else np.float64)


def wrap(arrays: Arrays) -> list[ArrayImpl]:
    return [ArrayImpl(np.asarray(x)) for x in arrays]


def unwrap(arrays: Arrays) -> list[np.ndarray]:
    return [np.asarray(x) for x in arrays]


def avals(arrays: Arrays) -> list[Aval]:
    return [Aval(x.shape, x.dtype) for x in arrays]


class Case:
    """One op with the arguments of one of its samples; what several tests need is computed once."""

    def __init__(self, op: Op, sample: Sample, label: str) -> None:
        self.op = op
        self.sample = sample
        self.id = f"{op.name.partition('.')[2]}-{label}"
        self.params = dict(sample.params)

    def __repr__(self) -> str:
        return self.id

    @property
    def rng(self) -> np.random.Generator:
        """Random numbers that do not depend on the order of the tests."""
        return np.random.default_rng(zlib.crc32(self.id.encode()))

    @cached_property
    def operands(self) -> list[np.ndarray]:
        return [np.asarray(x) for x in self.sample.make(self.rng)]

    def apply(self, *operands: Any) -> list[Any]:
        """Results of the op, as a list."""
        out = self.op(*operands, **self.params)
        return list(out) if self.op.multi else [out]

    @cached_property
    def results(self) -> list[np.ndarray]:
        """What the evaluation rule gives."""
        return unwrap(self.apply(*wrap(self.operands)))

    @cached_property
    def program(self) -> Program:
        return stage(self.apply, avals(self.operands), kind=self.id)

    # -- derivatives ----------------------------------------------------------------------------------------------

    @cached_property
    def active(self) -> list[int]:
        """Operands that a derivative can be taken in."""
        return [i for i, x in enumerate(self.operands) if is_inexact(x)]

    @property
    def differentiable(self) -> bool:
        return self.sample.diff and bool(self.active) and self._result_is_inexact

    @cached_property
    def _result_is_inexact(self) -> bool:
        try:
            return any(map(is_inexact, self.results))
        except Exception:  # test_staged_is_eager reports it
            return False

    @cached_property
    def wide(self) -> Case:
        """The same in double precision, where finite differences are sharp."""
        params = {k: wide_dtype(v) for k, v in self.params.items()}
        operands = [x.astype(wide_dtype(x.dtype)) for x in self.operands]
        case = Case(self.op, replace(self.sample, make=lambda rng: operands, params=params), "")
        case.id = self.id
        return case

    @cached_property
    def gradient(self) -> Gradient:
        return Gradient(self)

    def directions(self, rng: np.random.Generator, which: Sequence[int]) -> list[np.ndarray | None]:
        """Random tangents of some operands, None for the others."""
        return [random_like(rng, x) if i in which else None for i, x in enumerate(self.operands)]


class Gradient:
    """x -> J(x)^T w for fixed random cotangents w: the derivative of <w, op(x)>, as a program."""

    def __init__(self, case: Case) -> None:
        self.case = case
        rng = np.random.default_rng(7)
        self.cotangents = [random_like(rng, y) if is_inexact(y) else None for y in case.results]
        self.primals = [case.operands[i] for i in case.active]
        self.program = stage(self._pull, avals(self.primals), kind="gradient")

    def _pull(self, *active: Any) -> list[Any]:
        operands: list[Any] = wrap(self.case.operands)
        for i, x in zip(self.case.active, active, strict=True):
            operands[i] = x
        cts = pull_back(
            self.case.program,
            operands,
            self.case.active,
            [None if c is None else ArrayImpl(c) for c in self.cotangents],
        )
        return [zeros_like(x) if c is None else c for c, x in zip(cts, self.primals, strict=True)]

    def __call__(self, *active: np.ndarray) -> list[np.ndarray]:
        return unwrap(replay(self.program, [*wrap(active), *self.program.captures]))


def zeros_like(x: Any) -> ArrayImpl:
    return ArrayImpl(np.zeros(x.shape, x.dtype))


def push_forward(program: Program, operands: Arrays, tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """(outputs, tangents) of a program; absent tangents become zeros."""
    nothing = [None] * len(program.captures)
    outs, ts = jvp(program, [*operands, *program.captures], [*tangents, *nothing])
    return outs, [zeros_like(o) if t is None else t for o, t in zip(outs, ts, strict=True)]


def pull_back(program: Program, operands: Arrays, active: Sequence[int], cotangents: Sequence[Any]) -> list[Any]:
    """Cotangents of the active operands through linearize and transpose; None where zero."""
    flags = [i in active for i in range(len(operands))] + [False] * len(program.captures)
    _, linear = linearize(program, [*operands, *program.captures], flags)
    n, captures = len(linear.program.in_avals), linear.program.captures
    given = [c for c, a in zip(cotangents, linear.active_out, strict=True) if a]
    wanted = [True] * n + [False] * len(captures)
    return transpose(linear.program, [None] * n + list(captures), wanted, given)[:n]


# -- cases ------------------------------------------------------------------------------------------------------------


def _label(sample: Sample, index: int) -> str:
    with np.errstate(all="ignore"):
        operands = [np.asarray(x) for x in sample.make(np.random.default_rng(0))]
    text = ",".join([f"{x.dtype}{list(x.shape)}".replace(" ", "") for x in operands[:3]])
    return f"{index}-{text}" + (f"-{sample.note}" if sample.note else "")


def _derived(op: Op) -> list[Sample]:
    """Samples every elementwise op has, though its record does not say so: zero-size, 0-d, and rank-0 beside larger."""
    if op.kind != "elementwise" or not op.samples:
        return []
    base = op.samples[0]
    arity = len(base.make(np.random.default_rng(0)))

    def first(shapes: Sequence[tuple[int, ...]], note: str) -> Sample:
        def make(rng: np.random.Generator) -> list[np.ndarray]:
            flat = [np.asarray(x).ravel() for x in base.make(rng)]
            return [
                np.resize(x, shape) if 0 not in shape else np.zeros(shape, x.dtype)
                for x, shape in zip(flat, shapes, strict=True)
            ]

        return replace(base, make=make, note=note)

    samples = [first([(2, 0, 3)] * arity, "derived zero-size"), first([()] * arity, "derived 0-d")]
    for i in range(arity if arity > 1 else 0):
        samples.append(first([() if j == i else (2, 2) for j in range(arity)], f"derived operand {i} 0-d"))
    return samples


@functools.cache
def cases() -> tuple[Case, ...]:
    """All samples of all records."""
    return tuple(
        [
            Case(op, sample, _label(sample, i))
            for op in registry.values()
            for i, sample in enumerate([*op.samples, *_derived(op)])
        ]
    )


# -- oracles ----------------------------------------------------------------------------------------------------------


def random_like(rng: np.random.Generator, x: Any) -> np.ndarray:
    """Normal numbers of the shape and dtype of ``x``."""
    out = rng.standard_normal(x.shape)
    if is_complex(x):
        out = out + 1j * rng.standard_normal(x.shape)
    return np.asarray(out).astype(x.dtype)


def finite_differences(
    f: Callable[..., Arrays], x: Arrays, v: Sequence[Any]
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """(derivative of ``f`` at ``x`` along ``v``, estimate of its error), by Ridders' extrapolated central differences.

    C. J. F. Ridders, Accurate computation of F'(x) and F'(x)F''(x), Adv. Eng. Software 4 (1982).
    """

    def central(h: float) -> list[np.ndarray]:
        def at(step: float) -> Arrays:
            return f(*[xi if vi is None else xi + step * vi for xi, vi in zip(x, v, strict=True)])

        with np.errstate(all="ignore"):
            return [(np.asarray(p) - np.asarray(m)) / (2 * h) for p, m in zip(at(h), at(-h), strict=True)]

    previous: list[list[np.ndarray]] = []
    best: list[np.ndarray] = []
    error: list[np.ndarray] = []
    for i in range(6):
        row = [central(2e-3 / 2**i)]
        for j in range(i):
            factor = 4.0 ** (j + 1)
            row.append([(factor * a - b) / (factor - 1) for a, b in zip(row[j], previous[j], strict=True)])
            new = [np.maximum(abs(c - a), abs(c - b)) for c, a, b in zip(row[j + 1], row[j], previous[j], strict=True)]
            if not error:
                best, error = row[j + 1], new
                continue
            better = [n < e for n, e in zip(new, error, strict=True)]
            best = [np.where(t, c, b) for t, c, b in zip(better, row[j + 1], best, strict=True)]
            error = [np.where(t, n, e) for t, n, e in zip(better, new, error, strict=True)]
        previous = row
    return best, error


def real_dot(xs: Arrays, ys: Arrays) -> tuple[float, float]:
    """(Re sum x y, sum |x y|) without conjugation: the pairing that transposes keep."""
    total, size = 0.0, 0.0
    for x, y in zip(xs, ys, strict=True):
        product = np.asarray(x) * np.asarray(y)
        total += float(np.sum(product).real)
        size += float(np.sum(abs(product)))
    return total, size


# -- comparisons ------------------------------------------------------------------------------------------------------


def assert_same_type(got: Any, want: Any, what: str) -> None:
    assert got.shape == want.shape, f"{what}: shape {got.shape}, expected {want.shape}"
    assert got.dtype == want.dtype, f"{what}: dtype {got.dtype}, expected {want.dtype}"


def assert_same_bits(got: Any, want: Any, what: str) -> None:
    assert_same_type(got, want, what)
    assert np.ascontiguousarray(got).tobytes() == np.ascontiguousarray(want).tobytes(), (
        f"{what}:\n{got}\nexpected\n{want}"
    )


def shuffled(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """The elements of ``x`` in another order."""
    return x.ravel()[rng.permutation(x.size)].reshape(x.shape)


def assert_derivative(got: Arrays, want: Arrays, error: Arrays, values: Arrays, what: str) -> None:
    """Agreement with finite differences, up to their own error, which must be small for the test to mean something."""
    for g, w, e, y in zip(got, want, error, values, strict=True):
        if not w.size:
            continue
        scale = np.max(abs(w)) + 1e-3 * np.max(abs(y)) + 1e-12
        assert np.all(e <= 1e-5 * scale), (
            f"{what}: finite differences do not converge here (a kink?): error {np.max(e)}"
        )
        wrong = ~(abs(np.asarray(g) - w) <= 1e-7 * scale + 10 * e)
        assert not wrong.any(), f"{what}: derivative\n{np.asarray(g)}\nfinite differences\n{w}"


def ulps(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Distance in units of the last place of ``want`` (complex: of its magnitude).

    It is inf where one only is NaN or infinite, and where zeros differ in sign. Subnormals count as zeros of either
    sign, for hardware may flush them.
    """
    if is_complex(want):
        if not np.isfinite(want).all() or not np.isfinite(got).all():
            return np.maximum(ulps(got.real, want.real), ulps(got.imag, want.imag))
        spacing = np.spacing(np.maximum(abs(want), np.finfo(want.real.dtype).tiny))
        return abs(got - want) / spacing
    info = dtypes.finfo(want.dtype)
    g, w = got.astype(np.float64), want.astype(np.float64)
    tiny, eps = float(info.smallest_normal), float(info.eps)
    exponent = np.floor(np.log2(np.maximum(np.where(np.isfinite(w), abs(w), 1.0), tiny)))
    with np.errstate(all="ignore"):
        distance = abs(g - w) / (2.0**exponent * eps)
    small = (abs(g) < tiny) & (abs(w) < tiny)
    exact = ~(np.isfinite(g) & np.isfinite(w))
    same = (np.isnan(g) & np.isnan(w)) | (g == w)
    zeros = (g == 0) & (w == 0) & (np.signbit(g) != np.signbit(w))
    distance = np.where(small, 0.0, distance)
    distance = np.where(zeros, np.inf, distance)
    return np.where(exact, np.where(same, 0.0, np.inf), distance)


def assert_ulps(got: Any, want: Any, limit: float, what: str) -> None:
    """Equal for integers and booleans; within ``limit`` units in the last place for floats."""
    assert_same_type(got, want, what)
    got, want = np.asarray(got), np.asarray(want)
    if not is_inexact(want):
        wrong = got != want
    else:
        distance = ulps(got, want)
        wrong = ~(distance <= limit)
    if np.any(wrong):
        where = tuple(np.argwhere(wrong)[0])
        detail = f"{np.count_nonzero(wrong)} of {want.size}, first at {where}: {got[where]!r}, expected {want[where]!r}"
        if is_inexact(want):
            detail += f"; {np.max(distance)} ulp, allowed {limit}"
        raise AssertionError(f"{what}: {detail}")
