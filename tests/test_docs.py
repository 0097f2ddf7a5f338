"""Every code block of README and docs runs, and so does every example in a docstring."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import xformlib

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def modules() -> list[str]:
    """All modules of the library but the worker, which is a script."""
    found = [m.name for m in pkgutil.walk_packages(xformlib.__path__, "xformlib.")]
    return [n for n in found if not n.endswith((".worker", ".__main__"))]


@pytest.mark.parametrize("page", [p for p in PAGES if _BLOCK.search(p.read_text())], ids=lambda p: p.name)
def test_code_blocks_of_a_page_run_in_order(page):
    namespace: dict[str, object] = {}
    for match in _BLOCK.finditer(page.read_text()):
        line = page.read_text()[: match.start()].count("\n") + 1
        exec(compile("\n" * line + match[1], str(page), "exec"), namespace)


@pytest.mark.parametrize("name", modules())
def test_examples_in_docstrings(name):
    module = importlib.import_module(name)
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    globals_ = {**vars(module), "np": np, "xformlib": sys.modules["xformlib"]}
    for test in finder.find(module, name, globs=globals_):
        runner.run(test)
    assert runner.failures == 0
