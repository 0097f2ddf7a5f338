"""Derivatives of tanh to third order, by nesting ``grad``."""

import xformlib as xf
import xformlib.numpy as jnp


def main() -> None:
    """Print tanh and its first three derivatives at 1."""
    f = jnp.tanh
    for order in range(4):
        print(f"order {order}: {f(1.0)}")
        f = xf.grad(f)


if __name__ == "__main__":
    main()
