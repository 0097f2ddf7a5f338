"""Targets: compiler flags, and the rules by which a program's form of execution is chosen."""

from __future__ import annotations

import functools
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xformlib.lowering.work import Product, Work, estimate_work

__all__ = ["Plan", "Target", "choose_ladder", "choose_mode", "gpu", "host_cpu", "plan"]

# Without the demote flags IREE turns every f64 into f32, function signatures included.
_COMMON = (
    "--iree-input-type=stablehlo",
    "--iree-input-demote-f64-to-f32=false",
    "--iree-input-demote-i64-to-i32=false",
)
# The stack limit lets larger tiles stay on the stack. Without the host's features IREE's f32 functions are 20-50 times
# slower.
_HOST = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
    "--iree-llvmcpu-stack-allocation-limit=131072",
)
# Platform -> IREE's name of it, and the flag that says for which model.
_GPUS = {
    "vulkan": ("vulkan", "--iree-vulkan-target"),
    "cuda": ("cuda", "--iree-cuda-target"),
    "rocm": ("hip", "--iree-rocm-target"),
}
# IREE refuses these; the driver translates the PTX of an older model for them.
_PTX_OF = {"sm_90": "sm_80", "sm_90a": "sm_80", "sm_100": "sm_80", "sm_100a": "sm_80"}
_O3, _O2 = "--iree-opt-level=O3", "--iree-opt-level=O2"
_DATA_TILING = "--iree-opt-data-tiling"
_INNER_TILED = "--iree-llvmcpu-enable-inner-tiled"

Rung = tuple[str, ...]


@dataclass(frozen=True)
class Target:
    """What to compile for: a platform, its flags, and the features that make artifacts of equal flags differ."""

    name: str
    platform: str
    flags: tuple[str, ...]
    features: str


@dataclass(frozen=True)
class Plan:
    """How a program is compiled and run: the flag ladder (a failed compile tries the next), and the mode of the CPU."""

    ladder: tuple[Rung, ...]
    mode: str


_PLAIN: tuple[Rung, ...] = ((_O3,), (_O2,))


@functools.cache
def host_cpu() -> Target:
    """The CPU of this machine, with all of its features."""
    return Target("host", "cpu", (*_HOST, *_COMMON), f"{platform.machine()} {_cpu_features()}")


def gpu(platform: str, model: str) -> Target:
    """A GPU by platform (``"vulkan"``, ``"cuda"``, ``"rocm"``) and model.

    The model must be named: code for another one gives wrong numbers, and nothing checks it at load.

    Raises:
        ValueError: an unknown platform.

    Example:
        >>> gpu("rocm", "gfx942").flags[:2]
        ('--iree-hal-target-device=hip', '--iree-rocm-target=gfx942')
    """
    if platform not in _GPUS:
        raise ValueError(f"unknown platform {platform!r}; expected one of {', '.join(_GPUS)}.")
    device, flag = _GPUS[platform]
    code = _PTX_OF.get(model, model)
    return Target(
        f"{platform}:{model}", platform, (f"--iree-hal-target-device={device}", f"{flag}={code}", *_COMMON), ""
    )


def _cpu_features() -> str:
    """What distinguishes hosts that must not share artifacts."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    # "host" chooses by model as well as by feature, so both count; x86 and ARM name them differently.
    names = ("flags", "Features", "model name", "cpu family", "model", "CPU part", "isa")
    found = {n.strip(): v.strip() for n, _, v in (line.partition(":") for line in reversed(lines))}
    return " | ".join(" ".join(sorted(found[n].split())) for n in names if n in found)


def plan(module: Any, target: Target) -> Plan:
    """Choose flags, and on the CPU the mode, for a module of StableHLO by the work in it."""
    if target.platform != "cpu":
        return Plan(_PLAIN, "")
    work = estimate_work(module)
    return Plan(choose_ladder(work.products), choose_mode(work))


# A call on the pool of threads costs 27-52 us against 3-5 us on the calling thread, and each dispatch about 20 us more,
# so the pool pays from about 100 us per dispatch. Measured on 2 cores, us on the calling thread / on the pool:
#   add of n f32          200k   46 / 35    500k  196 / 95    1M  437 / 209
#   exponential of n f32  200k   87 / 55    500k  232 / 112
#   f32 n x n product     128    42 / 48    192   115 / 95    256 264 / 175
#   sum of n f32          500k  332 / 418   1M    680 / 750   (one workgroup: never pays)
_POOL_PAYS = 100_000.0  # ns


def choose_mode(work: Work) -> str:
    """``"local-task"`` (a pool of threads) if a dispatch is long enough to share out, else ``"local-sync"``."""
    return "local-task" if work.longest >= _POOL_PAYS else "local-sync"


# Data tiling packs operands of 2-D products, which costs as much as it saves for small ones whose sizes fit the
# vectors. Measured, us plain / data tiling / data tiling + inner tiling, on the faster device:
#   f32  128: 32 / 44 / 52    256: 145 / 184 / 206    512: 2444 / 1269 / 1198    100: 61 / 28 / 40
#   f64  128: 172 / 169 / 176    256: 1003 / 1127 / 592    512: 11807 / 13318 / 3322
_TILED = frozenset({"f32", "bf16", "i8"})
_TILING_PAYS = 1 << 25
_ODD_TILING_PAYS = 1 << 18
_VECTOR = 16
_INNER = frozenset({"f64", "f16"})
_INNER_PAYS = 1 << 24


def choose_ladder(products: tuple[Product, ...]) -> tuple[Rung, ...]:
    """The sets of flags to try, best first."""
    if any(map(_inner_pays, products)) and all(p.matrices and p.dtype in _INNER for p in products):
        # Inner tiling fails to compile products of vectors and batches, and gets bf16 wrong.
        return ((_DATA_TILING, _INNER_TILED, _O3), *_PLAIN)
    return ((_DATA_TILING, _O3), *_PLAIN) if any(map(_tiling_pays, products)) else _PLAIN


def _inner_pays(p: Product) -> bool:
    return p.multiplications >= _INNER_PAYS


def _tiling_pays(p: Product) -> bool:
    if not p.matrices or p.dtype not in _TILED:
        return False
    odd = any(n % _VECTOR for n in p.sizes)
    return p.multiplications >= (_ODD_TILING_PAYS if odd else _TILING_PAYS)
