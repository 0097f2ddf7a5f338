"""Shared set-up: one compile cache for all test workers, kept between runs; nothing of the user's is touched."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

# Before xformlib starts: compiled artifacts are content-addressed, so sharing them between workers and runs is safe.
os.environ.setdefault("XFORMLIB_CACHE_DIR", str(Path(tempfile.gettempdir()) / f"xformlib-tests-{os.getuid()}"))


@pytest.fixture
def x64():
    """64-bit types on for one test."""
    import xformlib as xf

    with xf.enable_x64():
        yield
