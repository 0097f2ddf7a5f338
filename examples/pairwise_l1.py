"""All pairwise L1 distances between points, by two nested vmaps over a function of two points."""

from typing import Any

import numpy as np

import xformlib as xf
import xformlib.numpy as jnp


def distance(a: Any, b: Any) -> Any:
    """L1 distance of two points."""
    return jnp.sum(jnp.abs(a - b))


pairwise = xf.jit(xf.vmap(xf.vmap(distance, in_axes=(None, 0)), in_axes=(0, None)))


def main() -> None:
    """Compare with NumPy's broadcasting."""
    points = xf.random.normal(xf.random.key(0), (100, 3))
    result = pairwise(points, points)
    host = np.asarray(points)
    expected = np.abs(host[:, None] - host[None]).sum(-1)
    print(f"{result.shape}, largest difference from NumPy {np.abs(np.asarray(result) - expected).max():.1e}")


if __name__ == "__main__":
    main()
