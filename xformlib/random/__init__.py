"""Random numbers from explicit keys: the same key always gives the same numbers, eager and compiled."""

from xformlib.random.keys import PRNGKey, bits, clone, fold_in, key, key_data, key_impl, split, wrap_key_data
from xformlib.random.samplers import (
    bernoulli,
    categorical,
    choice,
    exponential,
    gumbel,
    normal,
    permutation,
    randint,
    uniform,
)

__all__ = [
    "PRNGKey",
    "bernoulli",
    "bits",
    "categorical",
    "choice",
    "clone",
    "exponential",
    "fold_in",
    "gumbel",
    "key",
    "key_data",
    "key_impl",
    "normal",
    "permutation",
    "randint",
    "split",
    "uniform",
    "wrap_key_data",
]
