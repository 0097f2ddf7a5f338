"""The random bit generator: Threefry-2x32."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xformlib.op import Op, Sample

__all__ = ["PARITY", "ROTATIONS", "threefry2x32"]

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
_MASK = 0xFFFFFFFF


_FEW = 16
_BLOCK = 1 << 13  # words that stay in the nearest cache through all rounds


def _threefry2x32(*words: Any) -> tuple[np.ndarray, np.ndarray]:
    # Scalars (the usual keys) stay scalars; everything else has one shape.
    shape = next((w.shape for w in words if w.shape), ())
    count = math.prod(shape)
    flat = [w.reshape(-1) if w.shape else w for w in words]
    if count <= _FEW:
        rows = zip(*[w.tolist() if w.shape else [w.item()] * count for w in flat], strict=True)
        pairs = np.array([_one(*row) for row in rows], np.uint32).reshape(count, 2)
        return pairs[:, 0].reshape(shape), pairs[:, 1].reshape(shape)
    a, b = np.empty(count, np.uint32), np.empty(count, np.uint32)
    for start in range(0, count, _BLOCK):
        part = slice(start, start + _BLOCK)
        k0, k1, x0, x1 = [w if w.ndim == 0 else w[part] for w in flat]
        np.add(x0, k0, out=a[part])
        np.add(x1, k1, out=b[part])
        _rounds(k0, k1, a[part], b[part])
    return a.reshape(shape), b.reshape(shape)


def _rounds(k0: Any, k1: Any, a: np.ndarray, b: np.ndarray) -> None:
    """All rounds, in place, on counters the first key words were added to."""
    keys = (k0, k1, k0 ^ k1 ^ np.uint32(PARITY))
    high = np.empty_like(b)
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            a += b
            np.left_shift(b, np.uint32(rotation), out=high)
            b >>= np.uint32(32 - rotation)
            b |= high
            b ^= a
        a += keys[(group + 1) % 3]
        b += keys[(group + 2) % 3] + np.uint32(group + 1)


def _one(k0: int, k1: int, a: int, b: int) -> tuple[int, int]:
    """One block in Python integers: faster than NumPy for a few of them, as in splitting keys."""
    keys = (k0, k1, k0 ^ k1 ^ PARITY)
    a, b = (a + k0) & _MASK, (b + k1) & _MASK
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            a = (a + b) & _MASK
            b = ((b << rotation | b >> (32 - rotation)) & _MASK) ^ a
        a = (a + keys[(group + 1) % 3]) & _MASK
        b = (b + keys[(group + 2) % 3] + group + 1) & _MASK
    return a, b


def _words(*shape: int) -> Any:
    return lambda rng: [rng.integers(0, 2**32, shape, np.uint32) for _ in range(4)]


threefry2x32: Op = Op(
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
        Sample(_words(5, 7), ulp=0),
    ],
    doc="Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror and Shaw, SC 2011): key words, counter words -> two words.",
)
