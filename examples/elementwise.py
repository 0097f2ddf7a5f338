"""``x*x + x*2`` on a 5000 x 5000 array, eager and compiled; a ``print`` inside ``jit``; an update with ``.at``."""

from __future__ import annotations

import time
from typing import Any

import xformlib as xf
import xformlib.numpy as jnp


def polynomial(x: Any) -> Any:
    """Three passes over memory when eager, one when compiled."""
    return x * x + x * 2.0


@xf.jit
def traced(x: Any) -> Any:
    """The print runs while the function is traced: once per signature, not once per call."""
    print(f"tracing with {x}")
    return x + 1


def main(size: int = 5000) -> None:
    """Run and time."""
    x = xf.random.normal(xf.random.key(0), (size, size))
    compiled = xf.jit(polynomial)
    for name, f in [("eager", polynomial), ("compiled", compiled)]:
        f(x).block_until_ready()
        start = time.perf_counter()
        f(x).block_until_ready()
        print(f"{name:9}{1e3 * (time.perf_counter() - start):7.1f} ms")
    for i in range(3):
        traced(jnp.arange(3) + i)
    print(jnp.zeros(3).at[0].set(5))


if __name__ == "__main__":
    main()
