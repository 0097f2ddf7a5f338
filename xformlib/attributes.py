"""Codecs between the Python parameters of ops and MLIR attributes. Records name them; only staging imports this.

Attributes are interned by MLIR for the life of the context, so both directions are memoised.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from xformlib.dims import DotDims, GatherDims, ScatterDims
from xformlib.lowering.ir import context, ir, tensor_type, type_info, unknown_location

__all__ = ["decode", "encode"]


class Codec(NamedTuple):
    """``encode(value) -> attribute``; ``decode(attribute) -> value``."""

    encode: Callable[[Any], ir.Attribute]
    decode: Callable[[ir.Attribute], Any]


def _enum(kind: str) -> Codec:
    def to_attr(value: str) -> ir.Attribute:
        return ir.Attribute.parse(f"#stablehlo<{kind} {value}>", context)

    def to_value(attr: ir.Attribute) -> str:
        return str(attr).rpartition(" ")[2].rstrip(">")

    return Codec(to_attr, to_value)


def _struct(mnemonic: str, record: type[Any], single: tuple[str, ...] = ()) -> Codec:
    """An attribute printed as ``#stablehlo.mnemonic<field = [1, 2], ...>``, as a named tuple of int tuples."""

    def to_attr(value: Any) -> ir.Attribute:
        parts = []
        for name, v in zip(value._fields, value, strict=True):
            if name in single:
                parts.append(f"{name} = {v}")
            elif v:
                parts.append(f"{name} = [{', '.join(map(str, v))}]")
        return ir.Attribute.parse(f"#stablehlo.{mnemonic}<{', '.join(parts)}>", context)

    def to_value(attr: ir.Attribute) -> Any:
        text = str(attr)
        fields: dict[str, Any] = {
            k: tuple(int(i) for i in v.split(",") if i.strip()) for k, v in re.findall(r"(\w+) = \[([\d, ]*)\]", text)
        }
        fields |= {k: int(v) for k, v in re.findall(r"(\w+) = (\d+)", text)}
        return record(**{f: fields.get(f, 0 if f in single else ()) for f in record._fields})

    return Codec(to_attr, to_value)


def _elements_to_attr(value: np.ndarray) -> ir.Attribute:
    value = np.asarray(value)
    return ir.DenseElementsAttr.get(np.ascontiguousarray(value), type=tensor_type(value.shape, value.dtype))


_CODECS: dict[str, Codec] = {
    "bool": Codec(lambda v: ir.BoolAttr.get(v, context), lambda a: bool(ir.BoolAttr(a).value)),
    "bools": Codec(lambda v: ir.DenseBoolArrayAttr.get(list(v), context), lambda a: tuple(ir.DenseBoolArrayAttr(a))),
    "direction": _enum("comparison_direction"),
    "compare_type": _enum("comparison_type"),
    "dot": _struct("dot", DotDims),
    "gather": _struct("gather", GatherDims, single=("index_vector_dim",)),
    "i32": Codec(
        lambda v: ir.IntegerAttr.get(ir.IntegerType.get_signless(32, context), v),
        lambda a: int(ir.IntegerAttr(a).value),
    ),
    "i64": Codec(
        lambda v: ir.IntegerAttr.get(ir.IntegerType.get_signless(64, context), v),
        lambda a: int(ir.IntegerAttr(a).value),
    ),
    "i64s": Codec(lambda v: ir.DenseI64ArrayAttr.get(list(v), context), lambda a: tuple(ir.DenseI64ArrayAttr(a))),
    # Constants are few and small, and made here only: decoding finds the value that was encoded (see below).
    "elements": Codec(_elements_to_attr, lambda a: np.array(ir.DenseElementsAttr(a))),
    "scatter": _struct("scatter", ScatterDims, single=("index_vector_dim",)),
    "string": Codec(lambda v: ir.StringAttr.get(v, context), lambda a: str(ir.StringAttr(a).value)),
}
# Parameters that StableHLO keeps in the result type instead of an attribute.
_RESULT: dict[str, Callable[[Any], Any]] = {
    "result_shape": lambda t: type_info(t)[0],
    "result_dtype": lambda t: type_info(t)[1],
}

_encoded: dict[tuple[Any, ...], ir.Attribute] = {}
_decoded: dict[ir.Attribute, Any] = {}


def _key(codec: str, value: Any) -> tuple[Any, ...]:
    if codec == "elements":
        value = np.asarray(value)
        return codec, value.dtype, value.shape, value.tobytes()
    return codec, value


def encode(attrs: Mapping[str, str], params: Mapping[str, Any]) -> dict[str, ir.Attribute]:
    """MLIR attributes of an op from its Python parameters."""
    out = {}
    for name, codec in attrs.items():
        if codec in _RESULT:
            continue
        value = params[name]
        key = _key(codec, value)
        attr = _encoded.get(key)
        if attr is None:
            with unknown_location:
                attr = _encoded[key] = _CODECS[codec].encode(value)
            _decoded.setdefault(attr, value)
        out[name] = attr
    return out


def decode(attrs: Mapping[str, str], operation: ir.Operation) -> dict[str, Any]:
    """Python parameters of an op from its MLIR form; the inverse of :func:`encode`."""
    out: dict[str, Any] = {}
    attributes = operation.attributes
    for name, codec in attrs.items():
        read = _RESULT.get(codec)
        if read is not None:
            out[name] = read(operation.results[0].type)
            continue
        attr = attributes[name]
        value = _decoded.get(attr)
        if value is None:
            value = _decoded[attr] = _CODECS[codec].decode(attr)
        out[name] = value
    return out


@functools.cache
def string_attr(value: str) -> ir.Attribute:
    """A cached StringAttr."""
    return ir.StringAttr.get(value, context)
