"""Linking: a program and everything it calls, as one module for the compiler."""

from __future__ import annotations

from xformlib.lowering.ir import context, ir, unknown_location
from xformlib.staging import Program


def link(program: Program) -> ir.Module:
    """A module with the program as public ``@main`` and its callees as private functions.

    Callees are renamed in order of first call, so that the same program gives the same module in every process.
    """
    callees = _reachable(program)
    names = {callee.name: f"f{i}" for i, callee in enumerate(callees)}
    with context, unknown_location:
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            _copy(program, "main", names)
            for callee in callees:
                function = _copy(callee, names[callee.name], names)
                function.attributes["sym_visibility"] = ir.StringAttr.get("private")
    return module


def _copy(program: Program, name: str, names: dict[str, str]) -> ir.Operation:
    function = program.func.clone()
    function.attributes["sym_name"] = ir.StringAttr.get(name)
    if program.callees:
        for operation in function.regions[0].blocks[0].operations:
            if operation.name == "func.call":
                callee = ir.FlatSymbolRefAttr(operation.attributes["callee"]).value
                operation.attributes["callee"] = ir.FlatSymbolRefAttr.get(names[callee])
    return function


def _reachable(program: Program) -> list[Program]:
    found: dict[str, Program] = {}
    todo = list(program.callees.values())[::-1]
    while todo:
        callee = todo.pop()
        if callee.name not in found:
            found[callee.name] = callee
            todo.extend(list(callee.callees.values())[::-1])
    return list(found.values())
