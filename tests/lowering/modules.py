"""Modules of StableHLO for the tests of compiling."""

from __future__ import annotations

from typing import Any

from xformlib.lowering.ir import context, ir


def parse(text: str) -> Any:
    return ir.Module.parse(text, context)


def chain(*ops: str, n: int = 64, places: bool = False, first_line: int = 1) -> Any:
    """``ops`` one after the other on a vector of n floats, each at a line of "model.py" if ``places``."""
    t = f"tensor<{n}xf32>"
    lines, last = [], "%x"
    for i, op in enumerate(ops):
        operands = f"{last}, %x" if op in ("add", "subtract", "multiply") else last
        place = f' loc("model.py":{first_line + i}:3)' if places else ""
        lines.append(f"%{i} = stablehlo.{op} {operands} : {t}{place}")
        last = f"%{i}"
    body = "\n".join(lines)
    return parse(f"func.func @main(%x: {t}) -> {t} {{\n{body}\nreturn {last} : {t}\n}}")


def slow(n: int = 64) -> Any:
    """Takes the compiler many seconds."""
    return chain(*("tanh", "sine") * 500, n=n)


def refused(place: str = '"model.py":12:5') -> Any:
    """The compiler reports an error: no custom call is known to it."""
    return parse(
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
        f"%0 = stablehlo.custom_call @nobody(%x) : (tensor<4xf32>) -> tensor<4xf32> loc({place})\n"
        "return %0 : tensor<4xf32> }"
    )


def crashing() -> Any:
    """Kills the compiler's process (a product over a dimension of size 0)."""
    return parse(
        "func.func @main(%x: tensor<4x0xf32>, %y: tensor<0x4xf32>) -> tensor<4x4xf32> {\n"
        "%0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]"
        " : (tensor<4x0xf32>, tensor<0x4xf32>) -> tensor<4x4xf32>\n"
        "return %0 : tensor<4x4xf32> }"
    )
