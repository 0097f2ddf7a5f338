"""Options: names, values, environment variables, with blocks, the compile key."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import xformlib as xf
from xformlib import options
from xformlib.errors import OptionError
from xformlib.options import OPTIONS, config, current, read_environment


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = config.values
    yield
    for name, value in before.items():
        config.update(name, value)


def test_names_with_and_without_prefix() -> None:
    for name in ("jax_debug_nans", "debug_nans", "xformlib_debug_nans"):
        config.update(name, True)
        assert config.debug_nans is config.jax_debug_nans is config.read(name) is current().debug_nans is True
        config.update(name, False)
        assert config.debug_nans is False
    assert xf.config is config


def test_defaults() -> None:
    assert config.values.keys() == OPTIONS.keys()
    assert not config.jax_enable_x64
    assert not config.x64_enabled
    assert config.jax_numpy_dtype_promotion == "standard"
    assert config.jax_default_device is None
    for name, option in OPTIONS.items():
        assert option.name == name
        assert option.accepts(getattr(options.State, name)), name
        assert option.doc


def test_platform_name_is_platforms() -> None:
    config.update("jax_platform_name", "cpu")
    assert config.jax_platforms == config.jax_platform_name == "cpu"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("jax_enable_x65", "no option 'jax_enable_x65'. Did you mean 'enable_x64'"),
        ("debug_nan", "Did you mean 'debug_nans'"),
        ("zzz", "The options are check_tracer_leaks, "),
    ],
)
def test_unknown_names(name: str, message: str) -> None:
    for act in (lambda: config.update(name, True), lambda: config.read(name), lambda: getattr(config, name)):
        with pytest.raises(AttributeError, match=message):
            act()


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("jax_enable_x64", 1, "a bool; got int 1"),
        ("jax_enable_x64", "yes", "a bool; got str 'yes'"),
        ("jax_numpy_dtype_promotion", "loose", "one of 'standard', 'strict'; got str 'loose'"),
        ("jax_numpy_rank_promotion", None, "one of 'allow', 'warn', 'raise'"),
        ("jax_default_matmul_precision", 3, "'highest'"),
        ("jax_default_device", 3, "a device"),
        ("jax_platforms", ["cpu"], "a string or None"),
        ("jax_num_cpu_devices", "2", "an int"),
        ("jax_num_cpu_devices", True, "an int; got bool"),
        (3, True, "the name of an option is a string"),
    ],
)
def test_wrong_values(name: Any, value: Any, expected: str) -> None:
    before = config.values
    with pytest.raises(TypeError, match=expected) as e:
        config.update(name, value)
    assert isinstance(e.value, OptionError)
    assert isinstance(e.value, ValueError)
    assert str(name).removeprefix("jax_") in str(e.value)
    assert config.values == before


def test_options_with_one_value() -> None:
    config.update("jax_threefry_partitionable", True)
    assert config.jax_threefry_partitionable is True
    config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
    with pytest.raises(OptionError, match="can only be True, because random bits"):
        config.update("jax_threefry_partitionable", False)
    with pytest.raises(OptionError, match="can only be 'threefry2x32'"):
        config.update("jax_default_prng_impl", "rbg")


def test_options_are_not_assigned() -> None:
    with pytest.raises(AttributeError, match=r"config\.update\('jax_enable_x64', value\)"):
        config.jax_enable_x64 = True
    assert not config.enable_x64


# -- with blocks -------------------------------------------------------------------------------------------------------


def test_blocks_nest_and_end() -> None:
    with xf.enable_x64():
        assert config.enable_x64
        with xf.enable_x64(False), xf.disable_jit():
            assert not config.enable_x64
            assert config.disable_jit
        assert config.enable_x64
        assert not config.disable_jit
    assert not config.enable_x64


def test_blocks_end_with_errors() -> None:
    with pytest.raises(RuntimeError), xf.enable_x64(True):
        raise RuntimeError
    assert not config.enable_x64


@pytest.mark.parametrize(
    ("manager", "name", "value"),
    [
        (lambda: options.debug_nans(), "debug_nans", True),
        (lambda: options.debug_infs(), "debug_infs", True),
        (lambda: options.check_tracer_leaks(), "check_tracer_leaks", True),
        (lambda: options.checking_leaks(), "check_tracer_leaks", True),
        (lambda: options.log_compiles(), "log_compiles", True),
        (lambda: options.explain_cache_misses(), "explain_cache_misses", True),
        (lambda: options.numpy_dtype_promotion("strict"), "numpy_dtype_promotion", "strict"),
        (lambda: options.numpy_rank_promotion("raise"), "numpy_rank_promotion", "raise"),
        (lambda: options.default_matmul_precision("highest"), "default_matmul_precision", "highest"),
        (lambda: options.default_device("cpu"), "default_device", "cpu"),
    ],
)
def test_managers(manager: Any, name: str, value: Any) -> None:
    before = config.read(name)
    with manager():
        assert config.read(name) == value
    assert config.read(name) == before


def test_a_manager_checks_its_value_at_once() -> None:
    with pytest.raises(OptionError, match="'strict'"):
        options.numpy_dtype_promotion("wrong")


def test_a_manager_can_be_used_again_and_inside_itself() -> None:
    on = xf.enable_x64()
    for _ in range(2):
        with on, on:
            assert config.enable_x64
        assert not config.enable_x64


def test_decorator() -> None:
    @xf.enable_x64()
    def f(depth: int) -> bool:
        return config.enable_x64 and (depth == 0 or f(depth - 1))

    assert f(2)
    assert not config.enable_x64


def test_update_within_a_block() -> None:
    """An update reaches everything but the option that a block overrides."""
    with xf.enable_x64():
        config.update("jax_enable_x64", False)
        config.update("jax_debug_nans", True)
        assert config.enable_x64
        assert config.debug_nans
        with options.debug_infs():
            config.update("jax_debug_nans", False)
            config.update("jax_enable_x64", False)
            assert config.enable_x64
            assert not config.debug_nans
    assert not config.enable_x64
    with xf.enable_x64(False):
        config.update("jax_enable_x64", True)
        assert not config.enable_x64
    assert config.enable_x64


def in_thread(f: Any) -> Any:
    out: list[Any] = []
    t = threading.Thread(target=lambda: out.append(f()))
    t.start()
    t.join()
    return out[0]


def test_blocks_hold_in_their_thread() -> None:
    with xf.enable_x64():
        assert in_thread(lambda: config.enable_x64) is False
        assert contextvars.copy_context().run(lambda: config.enable_x64)
    config.update("jax_enable_x64", True)
    assert in_thread(lambda: config.enable_x64) is True


def test_blocks_hold_in_their_task() -> None:
    async def task(x64: bool) -> list[bool]:
        seen = []
        with xf.enable_x64(x64):
            for _ in range(3):
                await asyncio.sleep(0)
                seen.append(config.enable_x64)
        return seen

    async def both() -> list[list[bool]]:
        return list(await asyncio.gather(task(True), task(False)))

    assert asyncio.run(both()) == [[True] * 3, [False] * 3]


# -- the compile key ---------------------------------------------------------------------------------------------------


def test_key_changes_with_every_option_of_compiled_code() -> None:
    other = {
        "enable_x64": True,
        "debug_nans": True,
        "debug_infs": True,
        "numpy_dtype_promotion": "strict",
        "numpy_rank_promotion": "raise",
        "default_matmul_precision": "highest",
        "default_device": "cpu",
        "platforms": "cpu",
    }
    assert {n for n, o in OPTIONS.items() if o.compiled} == other.keys()
    before = config.key()
    hash(before)
    for name, value in other.items():
        with options.Override(name, value):
            assert config.key() != before
            inside = config.key()
        assert config.key() == before
        config.update(name, value)
        assert config.key() == inside
        config.update(name, getattr(options.State, name))
    with options.disable_jit(), options.log_compiles():
        assert config.key() == before


def test_key_within_a_block_follows_updates() -> None:
    with xf.enable_x64():
        before = config.key()
        config.update("debug_nans", True)
        assert config.key() != before
        config.update("debug_nans", False)
        assert config.key() == before


# -- the environment ---------------------------------------------------------------------------------------------------


def test_environment() -> None:
    read_environment({"XFORMLIB_ENABLE_X64": "1", "XFORMLIB_NUM_CPU_DEVICES": "4", "XFORMLIB_PLATFORMS": "cpu"})
    assert (config.enable_x64, config.num_cpu_devices, config.platforms) == (True, 4, "cpu")
    read_environment({"XFORMLIB_ENABLE_X64": "False", "XFORMLIB_PLATFORMS": "", "XFORMLIB_OTHER": "x"})
    assert (config.enable_x64, config.platforms) == (False, None)


@pytest.mark.parametrize(
    ("variable", "text", "expected"),
    [
        ("XFORMLIB_ENABLE_X64", "maybe", "a bool"),
        ("XFORMLIB_NUM_CPU_DEVICES", "two", "an int"),
        ("XFORMLIB_NUMPY_RANK_PROMOTION", "never", "one of 'allow'"),
    ],
)
def test_bad_environment(variable: str, text: str, expected: str) -> None:
    with pytest.raises(OptionError, match=f"environment variable {variable}='{text}': expected {expected}"):
        read_environment({variable: text})


def test_environment_of_a_process() -> None:
    program = "import xformlib as xf; print(xf.config.jax_enable_x64, xf.dtypes.canonicalize_dtype(float))"
    run = subprocess.run(
        [sys.executable, "-c", program], env={"XFORMLIB_ENABLE_X64": "true"}, capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["True", "float64"]
