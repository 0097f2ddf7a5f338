"""The random bit generator: Threefry-2x32."""

from __future__ import annotations

from typing import Any

import numpy as np

from xformlib.op import Op, Sample

__all__ = ["PARITY", "ROTATIONS", "threefry2x32"]

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


def _threefry2x32(k0: Any, k1: Any, x0: Any, x1: Any) -> tuple[np.ndarray, np.ndarray]:
    shape = np.broadcast_shapes(k0.shape, k1.shape, x0.shape, x1.shape)
    keys = (k0, k1, k0 ^ k1 ^ np.uint32(PARITY))
    a, b, high = np.empty(shape, np.uint32), np.empty(shape, np.uint32), np.empty(shape, np.uint32)
    np.add(x0, k0, out=a)
    np.add(x1, k1, out=b)
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            a += b
            np.left_shift(b, np.uint32(rotation), out=high)
            b >>= np.uint32(32 - rotation)
            b |= high
            b ^= a
        a += keys[(group + 1) % 3]
        b += keys[(group + 2) % 3] + np.uint32(group + 1)
    return a, b


def _words(*shape: int) -> Any:
    return lambda rng: [rng.integers(0, 2**32, shape, np.uint32) for _ in range(4)]


threefry2x32 = Op(
    "xform.threefry2x32",
    numpy=_threefry2x32,
    kind="elementwise",
    types=lambda k0, k1, x0, x1: [(x0.shape, x0.dtype), (x1.shape, x1.dtype)],
    multi=True,
    weak=False,
    samples=[
        Sample(_words(7), ulp=0),
        Sample(_words(), ulp=0),
        Sample(_words(2, 1, 3), ulp=0),
        Sample(_words(0), ulp=0),
    ],
    doc="Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror and Shaw, SC 2011): key words, counter words -> two words.",
)
