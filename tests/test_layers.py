"""Imports point down: xformlib -> xformlib.lowering -> xformlib.runtime; and importing the package costs little."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import xformlib

ROOT = Path(xformlib.__file__).parent
LAYERS = ("xformlib.runtime", "xformlib.lowering", "xformlib")  # lowest first
FILES = sorted(p for p in ROOT.rglob("*.py") if "__pycache__" not in p.parts)
# What the lowest layer, which serves compiled programs, may need.
RUNTIME_PACKAGES = {"numpy", "ml_dtypes", "iree", "xformlib"} | set(sys.stdlib_module_names)


def module_name(path: Path) -> str:
    parts = ("xformlib", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layer(module: str) -> int:
    return next(i for i, name in enumerate(LAYERS) if module == name or module.startswith(name + "."))


def imports(path: Path) -> list[tuple[int, str]]:
    """(line, module) of all imports, also those inside functions."""
    package = module_name(path) if path.name == "__init__.py" else module_name(path).rpartition(".")[0]
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [(node.lineno, a.name) for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package.rsplit(".", node.level - 1)[0] + "." if node.level else ""
            module = (base + (node.module or "")).rstrip(".")
            # "from xformlib import lowering" imports the submodule.
            found += [(node.lineno, f"{module}.{a.name}" if module == "xformlib" else module) for a in node.names]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down(path):
    own = layer(module_name(path))
    for line, module in imports(path):
        assert module.split(".")[0] not in ("lowering", "runtime", "tests"), f"{path}:{line}: import xformlib.{module}"
        if module.split(".")[0] == "xformlib":
            assert layer(module) <= own, f"{path}:{line}: {module_name(path)} imports {module}, which is above it"
        elif own == 0:
            assert module.split(".")[0] in RUNTIME_PACKAGES, f"{path}:{line}: the runtime imports {module}"
            assert not module.startswith("iree.compiler"), f"{path}:{line}: the runtime imports the compiler"


def loaded_after(code: str) -> set[str]:
    program = f"import sys\n{code}\nprint(*sorted(sys.modules))"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT.parent)
    return set(out.stdout.split())


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import xformlib", ["numpy", "iree", "scipy", "xformlib.op"]),
        ("import xformlib, xformlib.numpy", ["iree.compiler", "scipy", "xformlib.lowering.ir"]),
        ("import xformlib.numpy as jnp; jnp.sin(jnp.ones(3)) + 1", ["iree.compiler", "scipy", "xformlib.lowering.ir"]),
        ("import xformlib.runtime.executable", ["iree.compiler", "scipy", "xformlib.op"]),
        ("import xformlib as xf; xf.jit(lambda x: x); xf.grad(lambda x: x)", ["iree.compiler", "scipy"]),
    ],
)
def test_imports_are_lazy(code, absent):
    loaded = loaded_after(code)
    unwanted = [m for m in loaded if any(m == a or m.startswith(a + ".") for a in absent)]
    assert not unwanted, f"{code!r} loads {unwanted[:5]}"


def test_symlinks_are_the_packages():
    for name in ("lowering", "runtime"):
        assert (ROOT / name).resolve() == ROOT.parent / name
