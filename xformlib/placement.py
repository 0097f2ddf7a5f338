"""Where arrays live: devices, and moving values to and from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from xformlib.api.arguments import flatten_arrays
from xformlib.array import Array, ArrayImpl, KeyArray
from xformlib.errors import NotAnArrayError
from xformlib.runtime.devices import Device
from xformlib.runtime.devices import default_device as _default_device
from xformlib.runtime.devices import devices as _runtime_devices
from xformlib.tree_util import tree_leaves, tree_map, tree_unflatten

__all__ = [
    "Device",
    "block_until_ready",
    "default_backend",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "local_device_count",
    "local_devices",
]


def devices(backend: str | None = None) -> list[Device]:
    """All devices of a platform (``"cpu"``, ``"vulkan"``, ``"cuda"``, ``"rocm"``); of the default one if None.

    >>> import xformlib as xf
    >>> xf.devices("cpu")
    [CpuDevice(id=0)]
    """
    return _runtime_devices(backend)


def local_devices(backend: str | None = None) -> list[Device]:
    """Devices of this process."""
    return devices(backend)


def device_count(backend: str | None = None) -> int:
    """Number of devices."""
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """Number of devices of this process."""
    return len(local_devices(backend))


def default_backend() -> str:
    """The platform that computations run on by default."""
    return _default_device().platform


def device_put(x: Any, device: Any = None) -> Any:
    """The arrays of pytree ``x`` on ``device`` (arrays and numbers become :class:`Array`).

    Args:
        x: pytree of arrays or numbers.
        device: a :class:`Device`, or None for the default one.

    Raises:
        NotAnArrayError: a leaf that is no array, or a device that is none.

    >>> import xformlib as xf
    >>> xf.device_put([1, 2.5])
    [Array(1, dtype=int32, weak_type=True), Array(2.5, dtype=float32, weak_type=True)]
    """
    if device is not None and not isinstance(device, Device):
        raise NotAnArrayError(f"device_put: device must be one of xformlib.devices(); got {device!r:.60}.")
    if device is not None and device.platform != _default_device().platform:
        raise NotAnArrayError(f"device_put: computations run on {_default_device()}; {device} can't hold arrays yet.")
    leaves, tree = flatten_arrays(x, "device_put: x")
    return tree_unflatten(tree, leaves)


def device_get(x: Any) -> Any:
    """The arrays of pytree ``x`` as NumPy arrays; other leaves unchanged.

    >>> import xformlib as xf
    >>> xf.device_get(xf.device_put(1.5))
    array(1.5, dtype=float32)
    """
    return tree_map(lambda v: np.asarray(v) if isinstance(v, Array) and not isinstance(v, KeyArray) else v, x)


def block_until_ready(x: Any) -> Any:
    """Wait until all arrays of pytree ``x`` are computed; returns ``x``."""
    for leaf in tree_leaves(x):
        if isinstance(leaf, ArrayImpl):
            leaf._load()
    return x
