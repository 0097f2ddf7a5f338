"""An empty cache of compiled artifacts for tests that count compiles."""

from __future__ import annotations

import pytest


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XFORMLIB_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def compiled():
    """Number of compiles by workers since the test began."""
    from xformlib.lowering.compiler import statistics

    start = statistics.compiled
    return lambda: statistics.compiled - start
