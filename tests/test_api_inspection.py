"""Looking at programs without running them."""

from __future__ import annotations

import numpy as np
import pytest

import xformlib as xf
import xformlib.numpy as jnp
from xformlib import errors


def test_eval_shape_computes_nothing(evaluations):
    big = xf.ShapeDtypeStruct((10**6, 10**6), np.float32)
    out = xf.eval_shape(lambda x, y: {"s": jnp.sin(x) * y["k"], "n": None, "p": 2}, big, y={"k": 2.0})
    assert out == {"s": big, "n": None, "p": xf.ShapeDtypeStruct((), np.int32, True)}
    assert evaluations["stablehlo.sine"] == 0


def test_eval_shape_of_transformed_functions():
    x = xf.ShapeDtypeStruct((3,), jnp.bfloat16)
    assert xf.eval_shape(xf.grad(lambda x: jnp.sum(x * x)), x) == xf.ShapeDtypeStruct((3,), jnp.bfloat16)
    assert xf.eval_shape(xf.jacfwd(jnp.sin), x) == xf.ShapeDtypeStruct((3, 3), jnp.bfloat16)
    assert xf.eval_shape(xf.vmap(jnp.sum), xf.ShapeDtypeStruct((4, 2), np.float32)).shape == (4,)
    assert xf.eval_shape(xf.jit(lambda x: x[0]), x).shape == ()


def test_eval_shape_takes_whatever_has_shape_and_dtype():
    class Like:
        shape = (2,)
        dtype = np.dtype(np.float64)

    assert xf.eval_shape(lambda x: x, Like()) == xf.ShapeDtypeStruct((2,), np.float32)
    assert xf.eval_shape(lambda x: x, np.ones(2)).dtype == np.float32
    with xf.enable_x64():
        assert xf.eval_shape(lambda x: x, Like()).dtype == np.float64


def test_eval_shape_explains_control_flow():
    with pytest.raises(errors.TracerBoolConversionError):
        xf.eval_shape(lambda x: x if x > 0 else -x, 1.0)


def test_shape_dtype_struct():
    s = xf.ShapeDtypeStruct([2, np.int64(3)], "float32")
    assert (s.shape, s.dtype, s.ndim, s.size) == ((2, 3), np.dtype(np.float32), 2, 6)
    assert s == xf.ShapeDtypeStruct((2, 3), np.float32) and hash(s) == hash(xf.ShapeDtypeStruct((2, 3), np.float32))
    assert s != xf.ShapeDtypeStruct((2, 3), np.float32, weak_type=True) and s != (2, 3)
    assert repr(s) == "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"


def test_typeof():
    assert str(xf.typeof(jnp.zeros((2, 3)))) == "float32[2,3]"
    assert xf.typeof(1.5).weak_type and xf.typeof(np.float32(1.5)).shape == ()
    seen = []
    xf.jit(lambda x: seen.append(xf.typeof(x)) or x)(jnp.zeros((4,), np.int8))
    assert seen[0].shape == (4,) and seen[0].dtype == np.int8


def test_make_mlir():
    text = xf.make_mlir(lambda x: jnp.sin(x) * 2)(xf.ShapeDtypeStruct((3,), np.float32))
    assert "func.func @main(%arg0: tensor<3xf32>) -> tensor<3xf32>" in text
    assert "stablehlo.sine" in text
    inner = xf.jit(jnp.sin)
    text = xf.make_mlir(lambda x: inner(inner(x)))(1.0)
    assert text.count("call @") == 2 and text.count("func.func private") == 1


def test_same_program_gives_the_same_text():
    def make():
        inner = xf.jit(lambda x: jnp.sin(x) + 1)
        return xf.make_mlir(xf.grad(lambda x: inner(inner(x)) * x))(1.0)

    first = make()
    xf.make_mlir(jnp.cos)(jnp.ones(3))
    assert make() == first


def test_make_mlir_of_the_legalised_module():
    text = xf.make_mlir(jnp.sin, stage="legalized")(jnp.ones(3))
    assert "@main" in text
