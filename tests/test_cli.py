"""The command line."""

from __future__ import annotations

import subprocess
import sys

import pytest

from xformlib.cli import main
from xformlib.coverage import ASPECTS, MISSING, coverage
from xformlib.op import Op, Refusal, registry


def test_ops_table(capsys):
    assert main(["ops"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["op", *ASPECTS]
    assert len(lines) == len(registry) + 1
    cells = next(line for line in lines if line.startswith("stablehlo.sine ")).split()
    assert cells[1:4] == ["rule", "default", "rule"]


def test_ops_by_name(capsys):
    assert main(["ops", "cosine", "reduce:max"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["stablehlo.cosine", "stablehlo.reduce:max"]


def test_no_cell_is_blank():
    for row in coverage():
        assert set(row.cells) == set(ASPECTS)
        assert all(row.cells.values()), row.op.name


def test_missing(capsys):
    op = Op("xform.test_bare", numpy=abs)
    try:
        assert main(["ops", "--missing"]) == 1
        assert "xform.test_bare" in capsys.readouterr().out
        (row,) = [r for r in coverage() if r.op is op]
        assert set(row.missing) == {"jvp", "batch", "samples", "doc"}
        assert row.cells["jvp"] == MISSING
    finally:
        del registry[op.name]


def test_refusals_are_shown_in_full(capsys):
    why = "a reason that is longer than a cell of the table would usually be"
    op = Op("xform.test_refusing", numpy=abs, jvp=Refusal(why), batch=Refusal(why), linear="all")
    try:
        main(["ops", "--full", op.name])
        assert capsys.readouterr().out.count(f"refused: {why}") == 2
        main(["ops", op.name])
        assert why not in capsys.readouterr().out
    finally:
        del registry[op.name]


def test_as_a_module():
    out = subprocess.run([sys.executable, "-m", "xformlib", "ops", "sine"], capture_output=True, text=True, check=True)
    assert "stablehlo.sine" in out.stdout


def test_unknown_command():
    with pytest.raises(SystemExit):
        main(["nonsense"])
