"""xformlib: composable transformations of array programs, traced to StableHLO and run by IREE.

The names and semantics are JAX's: ``import xformlib as jax; import xformlib.numpy as jnp``. Everything is loaded at first
use, so importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_SUBMODULES = ("dlpack", "dtypes", "errors", "lax", "lowering", "nn", "numpy", "random", "runtime", "tree", "tree_util")
_NAMES = {
    "Array": "xformlib.array",
    "Device": "xformlib.placement",
    "ShapeDtypeStruct": "xformlib.api.inspection",
    "block_until_ready": "xformlib.placement",
    "clear_caches": "xformlib.api.jit",
    "config": "xformlib.options",
    "default_backend": "xformlib.placement",
    "default_device": "xformlib.options",
    "device_count": "xformlib.placement",
    "device_get": "xformlib.placement",
    "device_put": "xformlib.placement",
    "devices": "xformlib.placement",
    "disable_jit": "xformlib.options",
    "enable_x64": "xformlib.options",
    "eval_shape": "xformlib.api.inspection",
    "float0": "xformlib.dtypes",
    "grad": "xformlib.api.autodiff",
    "hessian": "xformlib.api.jacobians",
    "jacfwd": "xformlib.api.jacobians",
    "jacrev": "xformlib.api.jacobians",
    "jit": "xformlib.api.jit",
    "jvp": "xformlib.api.autodiff",
    "linearize": "xformlib.api.autodiff",
    "local_device_count": "xformlib.placement",
    "local_devices": "xformlib.placement",
    "make_mlir": "xformlib.api.inspection",
    "numpy_dtype_promotion": "xformlib.options",
    "typeof": "xformlib.api.inspection",
    "value_and_grad": "xformlib.api.autodiff",
    "vjp": "xformlib.api.autodiff",
    "vmap": "xformlib.api.vectorize",
}

__all__ = ["__version__", *_SUBMODULES, *_NAMES]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        value = getattr(importlib.import_module(_NAMES[name]), name)
    elif name in _SUBMODULES:
        value = importlib.import_module(f"xformlib.{name}")
    else:
        raise AttributeError(f"module 'xformlib' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


if TYPE_CHECKING:
    from xformlib import dlpack, dtypes, errors, lax, lowering, nn, numpy, random, runtime, tree, tree_util
    from xformlib.api.autodiff import grad, jvp, linearize, value_and_grad, vjp
    from xformlib.api.inspection import ShapeDtypeStruct, eval_shape, make_mlir, typeof
    from xformlib.api.jacobians import hessian, jacfwd, jacrev
    from xformlib.api.jit import clear_caches, jit
    from xformlib.api.vectorize import vmap
    from xformlib.array import Array
    from xformlib.dtypes import float0
    from xformlib.options import config, default_device, disable_jit, enable_x64, numpy_dtype_promotion
    from xformlib.placement import (
        Device,
        block_until_ready,
        default_backend,
        device_count,
        device_get,
        device_put,
        devices,
        local_device_count,
        local_devices,
    )
