"""Small programs with one known right answer, each standing for a class of faults seen in libraries of this kind."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import xformlib as jax
import xformlib.numpy as jnp
from xformlib import lax

CASES = json.loads((Path(__file__).parent / "data" / "cases.json").read_text())
DOUBLE = ("D25", "E03")


def agrees(got, want, tol):
    """``want`` as a tuple means any of these; a list, element by element; ``tol`` 0 means bit-equal."""
    if isinstance(want, tuple):
        return any(agrees(got, w, tol) for w in want)
    if isinstance(want, list):
        return len(got) == len(want) and all(agrees(g, w, tol) for g, w in zip(got, want, strict=True))
    if isinstance(want, str | bool):
        return got == want
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return False
    if tol == 0:
        return np.array_equal(got, want, equal_nan=want.dtype.kind in "fc")
    return np.allclose(got, want, rtol=tol, atol=tol, equal_nan=True)


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c['id']} {c['title']}")
def test_case(case):
    names = {"jax": jax, "jnp": jnp, "lax": lax, "np": np}
    with jax.enable_x64(case["id"] in DOUBLE):
        exec(compile(case["code"], case["id"], "exec"), names)
        assert agrees(names["got"], names["want"], names.get("tol", 2e-5)), (names["got"], names["want"], case["why"])
