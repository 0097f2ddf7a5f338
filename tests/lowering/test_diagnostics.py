"""The compiler's output as diagnostics."""

from __future__ import annotations

from xformlib.lowering.diagnostics import Diagnostic, parse_diagnostics


def test_places_callers_and_errors_without_a_place():
    text = """iree-lld: error: undefined symbol: cos
>>> referenced by -:1
/home/a b/model.py:12:5: error: failed to link
/home/train.py:30:9: note: called from
/home/main.py:3:1: note: called from
/home/a b/model.py:12:5: note: see current operation: "x"() : () -> ()
-:1:52: error: no place
-:1:1: note: called from
-:1:52: error: no place
"""
    assert parse_diagnostics(text) == [
        Diagnostic("undefined symbol: cos"),
        Diagnostic("failed to link", "/home/a b/model.py", 12, 5, (("/home/train.py", 30), ("/home/main.py", 3))),
        Diagnostic("no place"),
    ]


def test_long_messages_are_cut_and_other_output_ignored():
    assert parse_diagnostics("a stack dump\n#0 0x00 main\n") == []
    (d,) = parse_diagnostics("f.py:1:2: error: " + "x" * 5000)
    assert len(d.message) < 1000
