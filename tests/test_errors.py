"""The catalogue of bad input: each gets a class of ``xformlib.errors``, names the argument and the user's line."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import xformlib as xf
import xformlib.numpy as jnp
from xformlib import errors, lax

x3, x4 = np.ones(3, np.float32), np.ones(4, np.float32)
_leaked = []


def _leak():
    xf.jit(lambda x: _leaked.append(x) or x)(1.0)
    return _leaked[-1] + 1


def _donated():
    x = jnp.ones(3)
    xf.jit(lambda v: v + 1, donate_argnums=0)(x)
    return x + 1


def _compile_error():
    from xformlib.lowering import compiler, targets
    from xformlib.lowering.ir import context, ir

    # A module of StableHLO the compiler refuses: no custom call is known to it.
    text = "func.func @main(%x: tensor<f32>) -> tensor<f32> { %0 = stablehlo.custom_call @nobody(%x) : (tensor<f32>) -> tensor<f32> return %0 : tensor<f32> }"
    try:
        compiler.compile(ir.Module.parse(text, context), targets.host_cpu())
    except compiler.CompilationError as e:
        raise errors.CompileError(str(e)) from e


def _set_item():
    x = jnp.zeros(3)
    x[0] = 1


# name, what the user does, class, texts the message must have
CATALOGUE = [
    ("shapes that do not broadcast", lambda: jnp.add(x3, x4), errors.ShapeError, ["add", "(3,)", "(4,)"]),
    ("operator on shapes that do not broadcast", lambda: jnp.asarray(x3) * x4, errors.ShapeError, ["(3,)", "(4,)"]),
    ("lax shapes", lambda: lax.add(jnp.ones(3), jnp.ones((3, 1))), errors.ShapeError, ["add", "(3,)", "(3, 1)"]),
    ("lax dtypes", lambda: lax.add(jnp.ones(3), jnp.arange(3)), errors.DtypeError, ["add", "float32", "int32"]),
    ("matmul shapes", lambda: jnp.matmul(x3, x4), errors.ShapeError, ["matmul", "(3,)", "(4,)"]),
    ("reshape size", lambda: jnp.reshape(x3, (2, 2)), errors.ShapeError, ["reshape", "(3,)", "(2, 2)"]),
    ("axis out of range", lambda: jnp.sum(x3, axis=1), errors.AxisError, ["sum", "axis", "1"]),
    ("repeated axis", lambda: jnp.sum(np.ones((2, 2)), axis=(0, 0)), errors.AxisError, ["axis"]),
    ("list in place of an array", lambda: jnp.sin([1.0, 2.0]), errors.NotAnArrayError, ["sin", "list", "array("]),
    ("string in place of an array", lambda: jnp.sin("x"), errors.NotAnArrayError, ["sin", "str"]),
    ("array of objects", lambda: jnp.asarray(np.array([None, "a"])), errors.DtypeError, ["object"]),
    ("strings to jit", lambda: xf.jit(lambda x, s: x)(1.0, "fast"), errors.NotAnArrayError, ["'fast'", "static"]),
    ("a string from jit", lambda: xf.jit(lambda x: "fast")(1.0), errors.NotAnArrayError, ["'fast'", "result"]),
    ("not a function to jit", lambda: xf.jit(3), errors.NotAnArrayError, ["jit", "int"]),
    (
        "unhashable static",
        lambda: xf.jit(lambda x, n: x, static_argnums=1)(1.0, [2]),
        errors.StaticArgumentError,
        ["list", "tuple"],
    ),
    ("static number out of range", lambda: xf.jit(lambda x: x, static_argnums=3), errors.StaticArgumentError, ["3"]),
    (
        "static name unknown",
        lambda: xf.jit(lambda x: x, static_argnames="n"),
        errors.StaticArgumentError,
        ["'n'", "'x'"],
    ),
    ("gradient of a vector", lambda: xf.grad(lambda x: x)(x3), errors.GradientError, ["scalar", "(3,)", "jacrev"]),
    ("gradient of a pair", lambda: xf.grad(lambda x: (x, x))(1.0), errors.GradientError, ["has_aux"]),
    (
        "gradient of an integer output",
        lambda: xf.grad(lambda x: jnp.floor(x).astype(int))(1.0),
        errors.GradientError,
        ["int32"],
    ),
    (
        "gradient at an integer",
        lambda: xf.grad(lambda x: x * 1.0)(3),
        errors.GradientError,
        ["int32", "1.0", "argument 0"],
    ),
    ("gradient argnums", lambda: xf.grad(lambda x: x, argnums=1)(1.0), errors.GradientError, ["argnums"]),
    (
        "holomorphic with real input",
        lambda: xf.grad(lambda x: x, holomorphic=True)(1.0),
        errors.GradientError,
        ["complex"],
    ),
    ("tangent shape", lambda: xf.jvp(jnp.sin, (x3,), (x4,)), errors.GradientError, ["(3,)", "(4,)", "tangents"]),
    ("tangent tree", lambda: xf.jvp(jnp.add, (x3, x3), (x3,)), errors.TreeError, ["structure"]),
    ("primals not a tuple", lambda: xf.jvp(jnp.sin, jnp.ones(3), (x3,)), errors.TreeError, ["tuple"]),
    ("cotangent shape", lambda: xf.vjp(jnp.sin, x3)[1](x4), errors.GradientError, ["(3,)", "(4,)"]),
    ("cotangent tree", lambda: xf.vjp(jnp.sin, x3)[1]((x3, x3)), errors.TreeError, ["structure"]),
    (
        "trees of different structure",
        lambda: xf.tree.map(jnp.add, {"a": 1}, {"b": 1}),
        errors.TreeError,
        ["'a'", "'b'"],
    ),
    ("vmap sizes", lambda: xf.vmap(jnp.add)(x3, x4), errors.VmapError, ["argument 0", "argument 1", "3", "4"]),
    ("vmap of a scalar", lambda: xf.vmap(jnp.sin)(1.0), errors.AxisError, ["argument 0", "None"]),
    ("vmap axis", lambda: xf.vmap(jnp.sin, in_axes=2)(x3), errors.AxisError, ["axis 2", "(3,)"]),
    ("vmap in_axes length", lambda: xf.vmap(jnp.add, in_axes=(0,))(x3, x3), errors.VmapError, ["in_axes", "2"]),
    ("vmap in_axes kind", lambda: xf.vmap(jnp.sin, in_axes="0")(x3), errors.VmapError, ["in_axes"]),
    ("vmap of nothing", lambda: xf.vmap(jnp.sin, in_axes=None)(x3), errors.VmapError, ["axis_size"]),
    ("vmap out_axes None", lambda: xf.vmap(jnp.sin, out_axes=None)(x3), errors.VmapError, ["out_axes"]),
    (
        "if in jit",
        lambda: xf.jit(lambda x: 1 if x > 0 else 2)(1.0),
        errors.TracerBoolConversionError,
        ["where", "static"],
    ),
    ("if in vmap", lambda: xf.vmap(lambda x: x if x > 0 else -x)(x3), errors.TracerBoolConversionError, ["where"]),
    ("range in jit", lambda: xf.jit(lambda n: sum(range(n)))(3), errors.TracerIntegerConversionError, ["static"]),
    ("float in jit", lambda: xf.jit(lambda x: float(x))(3.0), errors.ConcretizationTypeError, ["static"]),
    ("NumPy in jit", lambda: xf.jit(lambda x: np.sin(x))(3.0), errors.TracerArrayConversionError, ["NumPy"]),
    ("NumPy in grad", lambda: xf.grad(lambda x: np.sin(x))(3.0), errors.TracerArrayConversionError, ["NumPy"]),
    ("boolean mask in jit", lambda: xf.jit(lambda x: x[x > 0])(x3), errors.NonConcreteBooleanIndexError, ["where"]),
    ("leaked tracer", _leak, errors.UnexpectedTracerError, ["global"]),
    ("item assignment", _set_item, errors.ImmutableArrayError, [".at[", ".set("]),
    ("hash of an array", lambda: hash(jnp.ones(3)), errors.UnhashableArrayError, ["hash"]),
    ("too many indices", lambda: jnp.ones(3)[0, 0], errors.IndexingError, ["2", "1"]),
    ("float index", lambda: jnp.ones(3)[0.5], errors.IndexingError, ["integer"]),
    ("list index", lambda: jnp.ones(3)[[0, 1]], errors.IndexingError, ["array"]),
    ("donated array used again", _donated, errors.DeletedArrayError, ["donate"]),
    ("not a key", lambda: xf.random.normal(3), errors.DtypeError, ["key", "random.key"]),
    ("several keys", lambda: xf.random.normal(xf.random.split(xf.random.key(0))), errors.ShapeError, ["vmap"]),
    ("arithmetic on keys", lambda: xf.random.key(0) + 1, errors.DtypeError, ["key"]),
    ("seed", lambda: xf.random.key(1.5), errors.DtypeError, ["seed"]),
    ("random shape", lambda: xf.random.normal(xf.random.key(0), (-1,)), errors.ShapeError, ["shape"]),
    ("dtype unknown", lambda: jnp.zeros(3, "float31"), errors.DtypeError, ["float31"]),
    ("no common type", lambda: jnp.ones(3, "int4") + jnp.ones(3, "int8"), errors.TypePromotionError, ["int4", "int8"]),
    ("option value", lambda: xf.config.update("jax_enable_x64", "yes"), errors.OptionError, ["enable_x64", "bool"]),
    ("compiled with other shapes", lambda: xf.jit(jnp.sin).lower(x3).compile()(x4), errors.TreeError, ["[3]", "[4]"]),
    ("make_mlir stage", lambda: xf.make_mlir(jnp.sin, stage="x"), errors.StaticArgumentError, ["stage"]),
    ("the compiler's refusal", _compile_error, errors.CompileError, ["custom_call"]),
    ("put on no device", lambda: xf.device_put(1.0, "cpu"), errors.NotAnArrayError, ["device"]),
]


@pytest.mark.parametrize(("act", "cls", "texts"), [c[1:] for c in CATALOGUE], ids=[c[0] for c in CATALOGUE])
def test_bad_input_is_explained(act, cls, texts):
    with pytest.raises(cls) as info:
        act()
    message = str(info.value)
    for text in texts:
        assert text in message, message
    assert isinstance(info.value, errors.XformError)
    # The user's line is this file's.
    assert info.value.user_location is not None
    assert info.value.user_location[0] == __file__, message
    assert __file__ in message


def test_every_error_class_is_in_the_catalogue():
    classes = {c for n, c in vars(errors).items() if inspect.isclass(c) and issubclass(c, errors.XformError)}
    raised = {c[2] for c in CATALOGUE}
    abstract = {errors.XformError, errors.TracerConversionError}
    # A refused rule is a property of an op; tests/ops has one test for each.
    assert classes - raised - abstract == {errors.RuleError}


def test_error_classes_are_public():
    public = {n for n, c in vars(errors).items() if inspect.isclass(c) and issubclass(c, errors.XformError)}
    assert public <= set(errors.__all__)
