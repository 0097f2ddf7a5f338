"""The Op record, the registry of all ops, and :func:`bind`, the one door every operation goes through.

All that is known of an operation stands in one :class:`Op` in ``ops/<family>.py``. Rules are plain mathematics on
arrays or tracers, written with other ops (a record is callable), so they nest without further machinery.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from xformlib.array import Array, ArrayImpl, KeyArray, Tracer
from xformlib.errors import DtypeError, NotAnArrayError, UnexpectedTracerError

if TYPE_CHECKING:
    from xformlib.staging import Frame

__all__ = ["Op", "Refusal", "Sample", "at_location", "bind", "registry", "state"]

Kind = Literal["elementwise", "movement", "reduction", "contraction", "inactive", "structured"]


class _State(threading.local):
    """What the current thread is doing: the innermost open function, and where new ops say they come from."""

    frame: Frame | None = None
    location: Any = None

    def __init__(self) -> None:
        # NumPy keeps its floating-point error mode in a context variable: running a rule in a context of our own
        # silences its warnings at a third of the price of np.errstate, and leaves the user's mode alone.
        context = contextvars.copy_context()
        context.run(np.seterr, all="ignore")
        self.run: Callable[..., Any] = context.run


state = _State()


class at_location:
    """New ops come from this MLIR location (None: from the user's own line)."""

    __slots__ = ("location", "saved")

    def __init__(self, location: Any) -> None:
        self.location = location

    def __enter__(self) -> None:
        self.saved = state.location
        state.location = self.location

    def __exit__(self, *_: object) -> None:
        state.location = self.saved


@dataclass(frozen=True)
class Refusal:
    """In place of a rule: the op deliberately has none, and this is why (shown in errors and in the ops table)."""

    why: str


@dataclass(frozen=True)
class Sample:
    """Arguments at which the generated tests exercise an op.

    ``make(rng)`` gives the operands as NumPy arrays; ``params`` the attributes. ``diff`` is False where derivatives are
    not promised (a kink); ``jvp`` then may give the tangent promised there for unit tangents. ``ulp`` bounds the
    difference between eager and compiled results.
    """

    make: Callable[[np.random.Generator], Sequence[np.ndarray]]
    params: Mapping[str, Any] = field(default_factory=dict)
    diff: bool = True
    order2: bool = True
    ulp: int = 4
    note: str = ""


registry: dict[str, Op] = {}


@dataclass(frozen=True, eq=False, slots=True)
class Op:
    """One operation and all of its rules.

    name: MLIR name; ``stablehlo.reduce:add`` names the variant of an op whose body region is fixed.
    numpy: evaluation rule on ndarrays, ``numpy(*operands, **params)``; also the oracle of the tests.
    kind: gives default rules (see ``transforms/``).
    attrs: parameter name -> codec name in ``attributes.py``.
    types: ``types(*operands, **params) -> (shape, dtype)`` (a list of them if ``multi``); default: the operand's own
        type for elementwise ops, MLIR's inference for the rest.
    jvp: per operand ``(t, ans, *operands, **params) -> tangent`` or None (no dependence), as a tuple; or one function
        ``(tangents, ans, *operands, **params) -> tangent(s)`` where absent tangents are None.
    linear: operands in which the op is jointly linear; gives the jvp (the op itself applied to the tangents).
    transpose: per operand ``(ct, *operands, **params) -> cotangent``, as a tuple, or one function returning one
        cotangent per operand. Operands being transposed are given as avals (shape and dtype only).
    batch: ``(size, operands, batched, **params) -> result(s)``, batch axis first; every result is batched.
    factors: einsum-like text over dimensions of operands and results, reduction factors after ``|``.
    emit: ``(builder, operand_values, **params) -> operation`` where the plain form does not do (regions, inits).
    arity: how many leading MLIR operands are operands of the op (the rest are made by ``emit``).
    weak: whether the result is weakly typed when all operands are.
    """

    name: str
    numpy: Callable[..., Any]
    kind: Kind = "structured"
    attrs: Mapping[str, str] = field(default_factory=dict)
    types: Callable[..., Any] | None = None
    jvp: Any = None
    linear: tuple[int, ...] | Literal["all"] = ()
    transpose: Any = None
    batch: Callable[..., Any] | Refusal | None = None
    factors: Callable[..., str] | None = None
    emit: Callable[..., Any] | None = None
    arity: int | None = None
    multi: bool = False
    weak: bool = True
    samples: Sequence[Sample] = ()
    doc: str = ""

    def __post_init__(self) -> None:
        if self.name in registry:
            raise ValueError(f"an op named {self.name!r} is already registered")
        registry[self.name] = self

    def __call__(self, *operands: Any, **params: Any) -> Any:
        return bind(self, *operands, **params)

    def __repr__(self) -> str:
        return f"<Op {self.name}>"

    @property
    def mlir_name(self) -> str:
        return self.name.partition(":")[0]


def bind(op: Op, *operands: Any, **params: Any) -> Any:
    """Apply ``op``: stage it into the innermost open function, or evaluate it at once with its NumPy rule.

    Elementwise ops take operands of one shape, and also rank-0 operands and Python scalars, which are broadcast.
    """
    frame = state.frame
    # A linear function takes only what depends on its own arguments; all else belongs to the function around it.
    while frame is not None and frame.linear and not frame.owns_any(operands):
        frame = frame.parent
    if frame is not None:
        return frame.emit(op, operands, params)
    return evaluate(op, operands, params)


def evaluate(op: Op, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
    """Run the NumPy rule of ``op`` on concrete arrays."""
    weak = op.weak
    data = []
    for x in operands:
        if type(x) is ArrayImpl:
            d = x._np
            data.append(x._load() if d is None else d)
            weak = weak and x.weak_type
        elif isinstance(x, KeyArray):
            from xformlib.keys import bind_keys

            return bind_keys(op, operands, params)
        else:
            data.append(_scalar_operand(op, x, operands))
            weak = weak and not isinstance(x, np.ndarray | np.generic)
    result = state.run(op.numpy, *data, **params)
    if op.multi:
        return tuple([ArrayImpl(r, weak) for r in result])
    return ArrayImpl(result, weak and bool(operands))


def _scalar_operand(op: Op, x: Any, operands: Sequence[Any]) -> Any:
    """A Python or NumPy scalar standing beside arrays takes their dtype; anything else is an error."""
    if isinstance(x, Tracer):
        raise UnexpectedTracerError(
            f"A tracer of shape {x.shape} and dtype {x.dtype} was used after the function that made it had returned. "
            "It was kept in a global, an attribute, a closure or a generator. Return the value from the transformed "
            "function instead of storing it."
        )
    if isinstance(x, (bool, int, float, complex)):
        for y in reversed(operands):  # the condition of a select stands first, and has another dtype
            if isinstance(y, Array):
                return np.asarray(x, y.dtype)
    if isinstance(x, np.ndarray | np.generic):
        return x
    raise NotAnArrayError(
        f"{op.name} was given {type(x).__name__} {x!r:.60}, which is not an array; wrap it with xformlib.numpy.asarray."
    )


def check_not_key(name: str, *operands: Any) -> None:
    """Refuse PRNG keys where arithmetic is asked for."""
    for x in operands:
        if isinstance(x, Array) and x.is_key:
            raise DtypeError(
                f"{name} does not take PRNG keys (got dtype {x.dtype}); "
                "draw numbers with xformlib.random, or use random.key_data(key) for the raw words."
            )
