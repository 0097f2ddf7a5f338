"""Targets, and the choice of flags and device by the work in a module."""

from __future__ import annotations

import pytest

from tests.lowering.modules import chain, parse
from xformlib.lowering import compiler, targets
from xformlib.lowering.targets import choose_ladder, plan
from xformlib.lowering.work import estimate_work

HOST = targets.host_cpu()


def product(m, k, n, dtype="f32"):
    a, b, c = f"tensor<{m}x{k}x{dtype}>", f"tensor<{k}x{n}x{dtype}>", f"tensor<{m}x{n}x{dtype}>"
    return parse(
        f"func.func @main(%x: {a}, %y: {b}) -> {c} {{"
        f"%0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : ({a}, {b}) -> {c} return %0 : {c} }}"
    )


def batched(b, m, k, n):
    x, y, z = f"tensor<{b}x{m}x{k}xf64>", f"tensor<{b}x{k}x{n}xf64>", f"tensor<{b}x{m}x{n}xf64>"
    return parse(
        f"func.func @main(%x: {x}, %y: {y}) -> {z} {{ %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], "
        f"contracting_dims = [2] x [1] : ({x}, {y}) -> {z} return %0 : {z} }}"
    )


def convolution(size, channels):
    x, k = f"tensor<1x{size}x{size}x{channels}xf32>", f"tensor<3x3x{channels}x{channels}xf32>"
    y = f"tensor<1x{size - 2}x{size - 2}x{channels}xf32>"
    return parse(
        f"func.func @main(%x: {x}, %k: {k}) -> {y} {{ %0 = stablehlo.convolution(%x, %k) "
        "dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} "
        f"{{feature_group_count = 1 : i64, batch_group_count = 1 : i64}} : ({x}, {k}) -> {y} return %0 : {y} }}"
    )


def total(n):
    return parse(
        f"func.func @main(%x: tensor<{n}xf32>) -> tensor<f32> {{ %c = stablehlo.constant dense<0.0> : tensor<f32> "
        "%0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [0] "
        f": (tensor<{n}xf32>, tensor<f32>) -> tensor<f32> return %0 : tensor<f32> }}"
    )


def test_flags_keep_64_bits_and_use_the_host():
    flags = HOST.flags
    assert "--iree-input-demote-f64-to-f32=false" in flags
    assert "--iree-input-demote-i64-to-i32=false" in flags
    assert "--iree-llvmcpu-target-cpu=host" in flags
    assert HOST.features


@pytest.mark.parametrize(
    ("platform", "model"), [("vulkan", "llvmpipe"), ("cuda", "sm_80"), ("cuda", "sm_90"), ("rocm", "gfx942")]
)
def test_gpus_compile(platform, model):
    target = targets.gpu(platform, model)
    assert compiler.compile(chain("add", "tanh", n=1_000_000), target).vmfb
    assert plan(product(512, 512, 512), target).ladder[0] == ("--iree-opt-level=O3",)


def test_an_unknown_gpu_platform():
    with pytest.raises(ValueError, match=r"'metal'.*vulkan, cuda, rocm"):
        targets.gpu("metal", "m1")


@pytest.mark.parametrize(
    ("module", "mode"),
    [
        (lambda: chain("add", n=10), "local-sync"),
        (lambda: chain("add", n=100_000), "local-sync"),
        (lambda: chain("add", n=1_000_000), "local-task"),
        (lambda: chain(*["tanh"] * 10, n=50_000), "local-task"),  # fused into one dispatch
        (lambda: product(64, 64, 64), "local-sync"),
        (lambda: product(256, 256, 256), "local-task"),
        (lambda: convolution(16, 4), "local-sync"),
        (lambda: convolution(64, 64), "local-task"),
        (lambda: total(1_000_000), "local-sync"),  # one thread's work
    ],
)
def test_the_pool_of_threads_is_for_long_dispatches(module, mode):
    assert plan(module(), HOST).mode == mode


def test_work_in_loops_counts_and_loops_themselves_do_not():
    t = "tensor<1000000xf32>"

    def loop(body):
        return parse(f"""func.func @main(%x: {t}) -> {t} {{
          %go = stablehlo.constant dense<false> : tensor<i1>
          %r:2 = stablehlo.while(%p = %go, %v = %x) : tensor<i1>, {t}
            cond {{ stablehlo.return %p : tensor<i1> }}
            do {{ {body} }}
          return %r#1 : {t} }}""")

    heavy = f"%w = stablehlo.add %v, %v : {t} stablehlo.return %p, %w : tensor<i1>, {t}"
    light = f"stablehlo.return %p, %v : tensor<i1>, {t}"
    assert plan(loop(heavy), HOST).mode == "local-task"
    assert plan(loop(light), HOST).mode == "local-sync"


@pytest.mark.parametrize(
    ("module", "flag"),
    [
        (lambda: product(256, 256, 256), None),
        (lambda: product(512, 512, 512), "--iree-opt-data-tiling"),
        (lambda: product(100, 100, 100), "--iree-opt-data-tiling"),
        (lambda: product(10, 10, 10), None),
        (lambda: product(512, 512, 512, "f64"), "--iree-llvmcpu-enable-inner-tiled"),
        (lambda: product(100, 100, 100, "f64"), None),
        (lambda: batched(8, 256, 256, 256), None),
    ],
)
def test_flags_by_product(module, flag):
    ladder = choose_ladder(estimate_work(module()).products)
    assert (flag in ladder[0]) if flag else (ladder[0] == ("--iree-opt-level=O3",))
    assert ladder[-1] == ("--iree-opt-level=O2",)


def test_multiplications():
    (p,) = estimate_work(product(2, 3, 5)).products
    assert (p.multiplications, p.matrices) == (30, True)
    (p,) = estimate_work(batched(7, 2, 3, 5)).products
    assert not p.matrices
    assert p.multiplications == 210
