"""Threefry-2x32 against published vectors, and its ways of evaluation against each other."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.ops.harness import wrap
from xformlib.ops.random import threefry2x32

VECTORS = json.loads((Path(__file__).parent.parent / "data" / "random_vectors.json").read_text())["threefry_2x32"]


def run(*words):
    return [np.asarray(w) for w in threefry2x32(*wrap(words))]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: "".join(v["counter"]))
@pytest.mark.parametrize("shape", [(), (3,), (20,), (2, 5, 7), (9000,)], ids=str)
def test_published_vectors(vector, shape):
    words = [np.full(shape, int(h, 16), np.uint32) for h in (*vector["key"], *vector["counter"])]
    want = [int(h, 16) for h in vector["out"]]
    for got, w in zip(run(*words), want, strict=True):
        assert got.dtype == np.uint32
        assert got.shape == shape
        assert (got == w).all()
    scalars = [w.ravel()[0] for w in words[:2]]
    for got, w in zip(run(*scalars, *words[2:]), want, strict=True):
        assert (got == w).all()


def test_every_word_counts_in_every_size():
    rng = np.random.default_rng(5)
    words = rng.integers(0, 2**32, (4, 20000), np.uint32)
    whole = np.array(run(*words))
    for start in (0, 8190, 8191, 8192, 19990):
        part = np.array(run(*words[:, start : start + 10]))
        assert np.array_equal(part, whole[:, start : start + 10])


def test_nothing():
    assert [w.shape for w in run(*np.zeros((4, 2, 0), np.uint32))] == [(2, 0), (2, 0)]
