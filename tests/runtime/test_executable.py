"""Executables: results, errors that name the argument, threads, forks, lifetimes."""

from __future__ import annotations

import gc
import os
import threading

import ml_dtypes
import numpy as np
import pytest

from tests.lowering.modules import parse
from xformlib.lowering import compiler, targets
from xformlib.runtime.buffers import from_numpy, to_numpy
from xformlib.runtime.devices import default_device, devices
from xformlib.runtime.errors import ArgumentError, DeviceError, ExecutionError
from xformlib.runtime.executable import Executable

# Types of results, each with the MLIR name.
DTYPES = {
    np.dtype(getattr(ml_dtypes, n, n)): t
    for n, t in {
        "bool": "i1",
        **{f"int{n}": f"i{n}" for n in (8, 16, 32, 64)},
        **{f"uint{n}": f"ui{n}" for n in (8, 16, 32, 64)},
        **{f"float{n}": f"f{n}" for n in (16, 32, 64)},
        "bfloat16": "bf16",
        "complex64": "complex<f32>",
        "complex128": "complex<f64>",
        "float8_e4m3fn": "f8E4M3FN",
        "float8_e5m2": "f8E5M2",
    }.items()
}


def transposition(i, t):
    a, b = f"tensor<2x3x{t}>", f"tensor<3x2x{t}>"
    body = f"%0 = stablehlo.transpose %x, dims = [1, 0] : ({a}) -> {b} return %0 : {b}"
    return f"func.func @f{i}(%x: {a}) -> {b} {{ {body} }}"


MAIN = """
func.func @main(%x: tensor<2x3xf32>, %n: tensor<ui8>) -> (tensor<2x3xf32>, tensor<ui8>) {
  %0 = stablehlo.add %x, %x : tensor<2x3xf32>
  return %0, %n : tensor<2x3xf32>, tensor<ui8> }
func.func @nothing() { return }
func.func @constant() -> tensor<5xf32> {
  %0 = stablehlo.constant dense<[1., 2., 3., 4., 5.]> : tensor<5xf32>
  return %0 : tensor<5xf32> }
func.func @empty(%x: tensor<0x3xf32>) -> tensor<0x3xf32> { return %x : tensor<0x3xf32> }
"""


def build(mode="local-sync"):
    functions = "\n".join(transposition(i, t) for i, t in enumerate(DTYPES.values()))
    return Executable(ARTIFACTS.setdefault("all", compile_(MAIN + functions)), device=default_device(), mode=mode)


def compile_(text):
    return compiler.compile(parse(text), targets.host_cpu()).vmfb


ARTIFACTS: dict[str, bytes] = {}
X = np.arange(6, dtype=np.float32).reshape(2, 3)
N = np.uint8(200)


@pytest.fixture(scope="module", params=["local-sync", "local-task"])
def executable(request):
    return build(request.param)


def test_results(executable):
    y, n = map(to_numpy, executable("main", [X, N]))
    np.testing.assert_array_equal(y, X + X)
    assert (n.shape, n.dtype, n.item()) == ((), np.uint8, 200)
    assert executable("nothing", []) == []
    assert to_numpy(executable("empty", [np.zeros((0, 3), np.float32)])[0]).shape == (0, 3)


def test_buffers_and_arrays_mix(executable):
    call = executable.entry()
    y, n = call([from_numpy(X), N])
    y, n = call((y, n))  # a result, of whichever device, is an argument
    np.testing.assert_array_equal(to_numpy(y), 4 * X)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(executable, dtype):
    x = np.array([[0, 1, 2], [3, 4, 1]]).astype(dtype)
    (y,) = executable(f"f{list(DTYPES).index(dtype)}", [x])
    y = to_numpy(y)
    assert y.dtype == dtype
    np.testing.assert_array_equal(y.astype(np.complex128), x.T.astype(np.complex128))


def test_results_share_no_memory_with_numpy_arguments(executable):
    x = np.zeros((0, 3), np.float32)
    n = np.array(7, np.uint8)
    _, m = executable("main", [X, n])
    n[...] = 8
    assert to_numpy(m) == 7
    assert to_numpy(executable("empty", [x])[0]).shape == (0, 3)


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ([], r"main takes 2 argument\(s\), 0 were given"),
        ([X, N, N], r"main takes 2 argument\(s\), 3 were given"),
        ([X.T, N], r"argument 0 of main must be float32\[2,3\]; it is float32\[3,2\]"),
        ([X[0], N], r"argument 0 of main must be float32\[2,3\]; it is float32\[3\]"),
        ([X.astype(np.float64), N], r"argument 0 of main must be float32\[2,3\]; it is float64\[2,3\]"),
        ([X, np.int8(1)], r"argument 1 of main must be uint8\[\]; it is int8\[\]"),
        ([X.astype(object), N], "dtype object"),
    ],
)
def test_arguments_that_do_not_fit(executable, args, text):
    with pytest.raises(ArgumentError, match=text) as e:
        executable("main", args)
    assert isinstance(e.value, ValueError)
    test_results(executable)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_another_dtype_of_the_same_width_is_refused(executable, dtype):
    for i, other in enumerate(DTYPES):
        if other != dtype and other.itemsize == dtype.itemsize:
            with pytest.raises(ArgumentError, match=f"must be {other.name}.*it is {dtype.name}"):
                executable(f"f{i}", [np.ones((2, 3), dtype)])


@pytest.mark.parametrize(("dtype", "t"), DTYPES.items(), ids=str)
def test_errors_know_every_dtype(executable, dtype, t):
    name = f"f{list(DTYPES.values()).index(t)}"
    with pytest.raises(ArgumentError) as e:
        executable(name, [np.zeros(5, np.float32)])
    assert str(e.value) == f"argument 0 of {name} must be {dtype.name}[2,3]; it is float32[5]."


def test_an_unknown_function_names_the_known_ones(executable):
    with pytest.raises(ArgumentError, match=r"'mian'.*main, nothing"):
        executable.entry("mian")


def test_what_is_no_artifact_is_refused():
    with pytest.raises(ExecutionError, match="loaded"):
        Executable(b"not a module" * 100, device=default_device())


def test_results_outlive_the_executable():
    executable = Executable(compile_(MAIN), device=default_device())
    y = to_numpy(executable("constant", [])[0])
    view, _ = executable("main", [X, N])
    del executable
    gc.collect()
    np.testing.assert_array_equal(y, [1, 2, 3, 4, 5])
    np.testing.assert_array_equal(to_numpy(view), X + X)


def test_many_threads(executable):
    failures = []

    def work(i):
        try:
            call = executable.entry()
            for k in range(100):
                y, n = call([X + i, np.uint8(k)])
                np.testing.assert_array_equal(to_numpy(y), 2 * (X + i))
                assert to_numpy(n) == k
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_a_forked_child_runs_it_too(executable):
    view, _ = executable("main", [X, N])
    child = os.fork()
    if child == 0:
        good = False
        try:
            again, _ = executable("main", [view, N])
            good = bool(np.array_equal(to_numpy(again), 4 * X))
        finally:
            os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    test_results(executable)


@pytest.fixture(scope="module")
def vulkan():
    try:
        return devices("vulkan")[0]
    except DeviceError as e:
        pytest.skip(str(e))


def test_a_gpu(vulkan):
    model = "llvmpipe" if "llvmpipe" in vulkan.device_kind else None
    if model is None:
        pytest.skip(f"no target is known for {vulkan.device_kind}")
    artifact = compiler.compile(parse(MAIN), targets.gpu("vulkan", model))
    executable = Executable(artifact.vmfb, device=vulkan)
    y, n = executable("main", [X, N])
    np.testing.assert_array_equal(to_numpy(y, device=vulkan), X + X)
    assert to_numpy(n, device=vulkan) == N
    y, _ = executable("main", [y, n])
    np.testing.assert_array_equal(to_numpy(y, device=vulkan), 4 * X)
    with pytest.raises(ArgumentError, match="argument 0"):
        executable("main", [X.T, N])


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.float16, ml_dtypes.bfloat16, np.complex64], ids=str)
def test_gpu_buffers(vulkan, dtype):
    for shape in ((), (5,), (2, 3)):
        x = np.ones(shape, dtype)
        y = to_numpy(from_numpy(x, vulkan), device=vulkan)
        assert (y.shape, y.dtype) == (x.shape, x.dtype)
        assert y.tobytes() == x.tobytes()


def test_an_artifact_for_another_kind_of_device(vulkan):
    with pytest.raises(ExecutionError, match="another kind"):
        Executable(compile_(MAIN), device=vulkan)


def test_an_artifact_for_a_gpu_is_not_for_the_cpu():
    artifact = compiler.compile(parse(MAIN), targets.gpu("vulkan", "llvmpipe"))
    with pytest.raises(ExecutionError, match="another kind"):
        Executable(artifact.vmfb, device=default_device())
