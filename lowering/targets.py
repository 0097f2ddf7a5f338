"""Targets: compiler flags, and the rules by which a program's form of execution is chosen."""

from __future__ import annotations

import functools
import math
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Plan", "Target", "host_cpu", "plan"]

# Without the demote flags IREE turns every f64 into f32, function signatures included. The stack limit lets larger tiles
# stay on the stack.
_COMMON = (
    "--iree-input-type=stablehlo",
    "--iree-input-demote-f64-to-f32=false",
    "--iree-input-demote-i64-to-i32=false",
)
_CPU = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-stack-allocation-limit=131072",
)
DATA_TILING = "--iree-opt-data-tiling"
_O3, _O2 = "--iree-opt-level=O3", "--iree-opt-level=O2"


@dataclass(frozen=True)
class Target:
    """What to compile for: a platform, its flags, and the features that make artifacts differ."""

    name: str
    platform: str
    flags: tuple[str, ...]
    features: str


@dataclass(frozen=True)
class Plan:
    """How one program is compiled and run: the flag ladder (the next is tried when a compile fails), and the CPU device."""

    ladder: tuple[tuple[str, ...], ...]
    mode: str


@functools.cache
def host_cpu() -> Target:
    """The CPU of this machine with all of its features (without them IREE's f32 functions are 20-50 times slower)."""
    flags = (*_CPU, "--iree-llvmcpu-target-cpu=host", *_COMMON)
    return Target("host", "cpu", flags, f"{platform.machine()} {_cpu_features()}")


def _cpu_features() -> str:
    """What distinguishes hosts that must not share artifacts."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("flags", "Features")):
                return " ".join(sorted(line.partition(":")[2].split()))
    except OSError:
        pass
    return platform.processor()


# Work (elementary operations) above which the thread pool pays: a call on it costs 27-52 us against 3-5 us on the calling
# thread, plus about 20 us per dispatch; one core does roughly 5 elementary operations per ns once vectorised, so the pool
# gains from about 100 us, half a million operations, per dispatch.
_POOL_PAYS = 500_000
# 2-D f32/bf16/i8 products gain from data tiling from about 256 rows and columns (15x at 1024); below, packing costs more
# than it saves.
_TILING_PAYS = 128 * 128 * 128


def plan(module: Any) -> Plan:
    """Choose flags and device for a module of StableHLO by the work in it."""
    work, largest_product = estimate_work(module)
    plain = [(_O3,), (_O2,)]
    ladder = [(DATA_TILING, _O3), *plain] if largest_product >= _TILING_PAYS else plain
    return Plan(tuple(ladder), "local-task" if work >= _POOL_PAYS else "local-sync")


def estimate_work(module: Any) -> tuple[int, int]:
    """(work of the costliest operation, multiply-adds of the largest product) of a module."""
    from xformlib.lowering.ir import ir

    most, product = 0, 0

    def visit(operation: Any) -> Any:
        nonlocal most, product
        if operation.name == "stablehlo.dot_general":
            count = _multiply_adds(operation)
            product = max(product, count)
            most = max(most, count)
        elif operation.name.startswith(("stablehlo.", "chlo.")):
            sizes = [_size(v.type) for v in (*operation.results, *operation.operands)]
            most = max([most, *sizes])
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return most, product


def _size(type: Any) -> int:
    from xformlib.lowering.ir import ir

    try:
        return math.prod(ir.RankedTensorType(type).shape)
    except ValueError:
        return 0


def _multiply_adds(operation: Any) -> int:
    left = _size(operation.operands[0].type)
    right = _size(operation.operands[1].type)
    out = _size(operation.results[0].type)
    # |lhs| = b*m*k, |rhs| = b*k*n, |out| = b*m*n, so the product of all is (b*m*n*k)^2 * b.
    return math.isqrt(left * right * out)
