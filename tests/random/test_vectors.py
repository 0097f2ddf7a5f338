"""Random numbers equal the published vectors: integers bit for bit, floats within the tolerance each vector allows."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import xformlib as jax
import xformlib.numpy as jnp
from xformlib import random
from xformlib.ops.random import threefry2x32

DATA = json.loads((Path(__file__).parent.parent / "data" / "random_vectors.json").read_text())
VECTORS = DATA["vectors"]

# "fma": scale and shift are rounded once in the vectors and twice here: 1 ulp of the larger of the two terms.
# "ulp": through log or the inverse error function.
_ULP = {"bits": 0, "float": 0, "fma": 1, "ulp": 8}


def wanted_of(vector):
    """The expected array."""
    dtype = np.dtype(getattr(ml_dtypes, vector["dtype"], vector["dtype"]))
    data = b"".join(bytes.fromhex(h) for h in vector["hex"])
    return np.frombuffer(data, dtype).reshape(vector["shape"])


def evaluate(vector):
    """The vector's call, evaluated with this library."""
    return eval(vector["call"], {"jax": jax, "jnp": jnp, "np": np, "random": random})


def scope(vector):
    """The width of types the vector was made with."""
    return jax.enable_x64(vector["x64"])


def check(got, vector):
    wanted = wanted_of(vector)
    got = np.asarray(got)
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    ulp = _ULP[vector["exact"]]
    if ulp == 0 or wanted.dtype.kind in "iub":
        assert got.tobytes() == wanted.tobytes(), (got, wanted)
        return
    # 16-bit types: the error of one float32 rounding is far below half a unit of theirs.
    real = wanted.real.dtype
    scale = np.maximum(np.abs(wanted), _shift(vector)).astype(real) if vector["exact"] == "fma" else np.abs(wanted)
    bound = ulp * np.spacing(np.asarray(scale, np.float64 if real == np.float64 else np.float32)).astype(np.float64)
    if real.itemsize == 2:
        bound = ulp * np.abs(np.asarray(scale, np.float64)) * float(ml_dtypes.finfo(real).eps)
    wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
    assert np.all(np.abs(got.astype(wide) - wanted.astype(wide)) <= bound), (got, wanted)


def _shift(vector):
    """The size of the interval's bounds: what cancels in ``unit * (high - low) + low``."""
    return 5.0 if "maxval=5.0" in vector["call"] else 1.0


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v['id']}-{v['group']}")
def test_eager(vector):
    with scope(vector):
        check(evaluate(vector), vector)


# Compiled: one program per width gives all vectors, since a program costs a quarter of a second and a dispatch 50 ms.
def _staged_under_jit(vector):
    # Seeds are host integers. A compiled sort is quadratic: the permutation of 70,000 is an explained error (tested below).
    return vector["group"] != "key" and "permutation(random.key(0), 70000)" not in vector["call"]


@pytest.mark.parametrize("group", sorted({v["group"] for v in VECTORS if _staged_under_jit(v)}))
def test_compiled(group):
    for wide in (False, True):
        vectors = [v for v in VECTORS if v["group"] == group and v["x64"] == wide and _staged_under_jit(v)]
        if not vectors:
            continue
        with jax.enable_x64(wide):
            results = jax.jit(lambda: [evaluate(v) for v in vectors])()  # noqa: B023 - called at once
            for got, vector in zip(results, vectors, strict=True):
                check(got, vector)


@pytest.mark.parametrize("case", DATA["threefry_2x32"], ids=lambda c: c["out"][0])
def test_threefry_block(case):
    words = [jnp.asarray(np.array([int(h, 16)], np.uint32)) for h in (*case["key"], *case["counter"])]
    out = threefry2x32(*words)
    assert [f"{int(w[0]):08x}" for w in out] == case["out"]


def test_a_compiled_sort_too_large_for_its_quadratic_form_is_explained():
    with pytest.raises(jax.errors.CompileError, match="outside of jit"):
        jax.jit(lambda k: random.permutation(k, 70000))(random.key(0))
