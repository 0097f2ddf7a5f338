"""Linking: a program and everything it calls, as one module for the compiler."""

from __future__ import annotations

from xformlib.lowering.ir import context, ir, unknown_location
from xformlib.staging import Program


def link(program: Program) -> ir.Module:
    """A module with the program as public ``@main`` and its callees as private functions."""
    with context, unknown_location:
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            main = program.func.clone()
            main.attributes["sym_name"] = ir.StringAttr.get("main")
            for callee in _reachable(program):
                function = callee.func.clone()
                function.attributes["sym_visibility"] = ir.StringAttr.get("private")
    return module


def _reachable(program: Program) -> list[Program]:
    found: dict[str, Program] = {}
    todo = list(program.callees.values())
    while todo:
        callee = todo.pop()
        if callee.name not in found:
            found[callee.name] = callee
            todo.extend(callee.callees.values())
    return list(found.values())
