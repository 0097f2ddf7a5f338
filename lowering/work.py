"""An estimate of the work in a module, from which flags and device are chosen; right within a factor of two."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from xformlib.lowering.ir import ir, type_info

__all__ = ["Product", "Work", "estimate_work"]


@dataclass(frozen=True)
class Product:
    """A ``dot_general``: multiply-adds, element type, sizes of all dimensions, and whether it is of two matrices."""

    multiplications: int
    dtype: str
    sizes: tuple[int, ...]
    matrices: bool


@dataclass(frozen=True)
class Work:
    """``longest``: ns on one core of the longest dispatch that threads could share; ``products`` of the module."""

    longest: float
    products: tuple[Product, ...]


# ns per element on one core, measured at sizes around the second-level cache.
_TRAFFIC = 0.2
_CHEAP = 0.03
_TRANSCENDENTAL = 0.25
_MULTIPLY_ADD = {"f32": 0.016, "f64": 0.08}
_OTHER_MULTIPLY_ADD = 0.05

_TRANSCENDENTALS = frozenset(
    {
        *("stablehlo.exponential", "stablehlo.exponential_minus_one", "stablehlo.log", "stablehlo.log_plus_one"),
        *("stablehlo.sine", "stablehlo.cosine", "stablehlo.tan", "stablehlo.tanh", "stablehlo.atan2"),
        *("stablehlo.logistic", "stablehlo.power", "stablehlo.sqrt", "stablehlo.rsqrt", "stablehlo.cbrt"),
        *("stablehlo.divide", "stablehlo.remainder"),
    }
)
# No work of their own (fused, views, or containers), or on one thread only (custom kernels, host calls).
_FREE = frozenset(
    {
        *("stablehlo.constant", "stablehlo.iota", "stablehlo.reshape", "stablehlo.broadcast_in_dim"),
        *("stablehlo.optimization_barrier", "stablehlo.tuple", "stablehlo.get_tuple_element", "stablehlo.return"),
        *("stablehlo.while", "stablehlo.case", "stablehlo.if", "scf.for", "scf.while", "scf.if"),
        *("func.call", "func.return", "util.call", "flow.dispatch"),
    }
)
# What is inside these is dispatched op by op; regions of other ops say what one of them computes.
_CONTAINERS = frozenset(
    {
        *("builtin.module", "func.func", "util.func", "scf.for", "scf.while", "scf.if"),
        *("stablehlo.while", "stablehlo.case", "stablehlo.if"),
    }
)
# A reduction to fewer results than this is one workgroup's work.
_SHARED_REDUCTION = 64


def estimate_work(module: Any) -> Work:
    """Walk the ops of a module, those of loops and branches included.

    Elementwise ops on results of one size in one block are taken as fused into one dispatch; any other op is a
    dispatch.
    """
    dispatches: list[float] = [0.0]
    fused: dict[tuple[Any, int], float] = defaultdict(float)
    products: list[Product] = []

    def visit(operation: Any) -> Any:
        name = operation.name
        inside = ir.WalkResult.ADVANCE if name in _CONTAINERS else ir.WalkResult.SKIP
        if name in _FREE or not operation.results:
            return inside
        out = _size(operation.results[0].type)
        if name == "stablehlo.dot_general":
            product = _product(operation, out)
            products.append(product)
            dispatches.append(product.multiplications * _MULTIPLY_ADD.get(product.dtype, _OTHER_MULTIPLY_ADD))
        elif name == "stablehlo.convolution":
            dispatches.append(out * _taps(operation) * _MULTIPLY_ADD["f32"])
        elif operation.regions and out < _SHARED_REDUCTION:
            pass
        else:
            size = max([out, *(_size(v.type) for v in operation.operands)])
            if size == out:
                fused[operation.block, out] += size * (_TRANSCENDENTAL if name in _TRANSCENDENTALS else _CHEAP)
            else:
                dispatches.append(size * _TRAFFIC)
        return inside

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    dispatches += [ns + size * _TRAFFIC for (_, size), ns in fused.items()]
    return Work(max(dispatches), tuple(products))


def _shape(type: Any) -> tuple[int, ...]:
    try:
        return type_info(type)[0]
    except (ValueError, KeyError):  # no ranked tensor of a NumPy dtype
        return ()


def _size(type: Any) -> int:
    return math.prod(1 if n < 0 else n for n in _shape(type))  # negative: dynamic


_CONTRACTED = re.compile(r"lhs_contracting_dimensions = \[([\d, ]+)\]")


def _product(operation: Any, out: int) -> Product:
    left, right = operation.operands[0].type, operation.operands[1].type
    a, b, c = _shape(left), _shape(right), _shape(operation.results[0].type)
    contracted = _CONTRACTED.search(str(operation.attributes["dot_dimension_numbers"]))
    dims = [int(d) for d in contracted[1].split(",")] if contracted else []
    multiplications = out * math.prod(a[d] for d in dims)
    matrices = len(a) == len(b) == len(c) == 2
    return Product(multiplications, str(ir.RankedTensorType(left).element_type), (*a, *b), matrices)


_KERNEL = re.compile(r"\]x\[([^\]]*)\]->")


def _taps(operation: Any) -> int:
    """Multiply-adds per result of a convolution: the kernel's elements per output feature."""
    kernel = _shape(operation.operands[1].type)
    layout = _KERNEL.search(str(operation.attributes["dimension_numbers"]))
    if layout is None:
        return 1
    features = kernel[[d.strip() for d in layout[1].split(",")].index("o")]
    return math.prod(kernel) // max(features, 1)
