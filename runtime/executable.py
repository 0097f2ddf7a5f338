"""Executables: a compiled module loaded on a device, and the call path, which is the hottest code of the library."""

from __future__ import annotations

import os
import re
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xformlib.runtime.buffers import dtype_of, element_types, from_numpy
from xformlib.runtime.devices import Device, binding, vm_instance
from xformlib.runtime.errors import ArgumentError, ExecutionError

__all__ = ["Executable"]

Entry = Callable[[Sequence[Any]], list[Any]]


class Executable:
    """A ``.vmfb`` on a device. Thread-safe: each thread has a VM context of its own, as IREE asks for.

    Args:
        vmfb: the compiled module.
        device: where it runs.
        mode: for the CPU ``"local-sync"`` (on the calling thread) or ``"local-task"`` (on a pool of threads).

    Raises:
        ExecutionError: the module can't be loaded.
    """

    def __init__(self, vmfb: bytes, *, device: Device, mode: str = "local-sync") -> None:
        self.device = device
        self.mode = mode
        self._local = threading.local()
        try:
            self._module = binding().VmModule.copy_buffer(vm_instance(), vmfb)
            self._context()
        except (ValueError, RuntimeError) as e:
            raise ExecutionError(f"the compiled module can't be loaded on {device}: {_reason(e)}") from None
        _executables.add(self)

    def _context(self) -> Any:
        """This thread's context, made at its first call (0.3 ms)."""
        instance = vm_instance()
        hal = binding().create_hal_module(instance, self.device.hal(self.mode))
        context = self._local.context = binding().VmContext(instance, [hal, self._module])
        return context

    def __call__(self, entry: str, args: Sequence[Any]) -> list[Any]:
        """Call the function ``entry``; see :meth:`entry`."""
        return self.entry(entry)(args)

    def entry(self, name: str = "main") -> Entry:
        """The function ``name`` as a callable: takes a sequence of NumPy arrays and buffer views, returns buffer views.

        NumPy arrays are copied, so that no result shares memory with them.

        Raises:
            ArgumentError: the module has no such function. From a call: wrong number, shapes or dtypes of arguments.
            ExecutionError: from a call: the program failed.
        """
        function = self._module.lookup_function(name)
        if function is None:
            raise ArgumentError(f"the module has no function {name!r}; it has {', '.join(self._public())}.")
        return self._bound(function)

    def _public(self) -> list[str]:
        return [n for n in self._module.function_names if not n.startswith("__")]

    def _bound(self, function: Any) -> Entry:
        # Everything the call needs as a local variable: attribute look-ups would be a tenth of its time.
        local, make_context, device = self._local, self._context, self.device
        variants, view_type = binding().VmVariantList, binding().HalBufferView
        integers, count = _integers(function)

        def call(args: Sequence[Any]) -> list[Any]:
            try:
                context = local.context
            except AttributeError:
                context = make_context()
            inputs = variants(len(args))
            push = inputs.push_ref
            for x in args:
                push(x if type(x) is view_type else from_numpy(np.asarray(x), device))
            outputs = variants(1)
            # IREE checks shapes, and types but for their sign.
            if integers and len(args) == count:
                for i, codes in integers:
                    if inputs.get_as_object(i, view_type).element_type not in codes:
                        raise _explained(None, function, inputs)
            try:
                context.invoke(function, inputs, outputs)
            except (ValueError, RuntimeError) as e:
                raise _explained(e, function, inputs) from None
            get = outputs.get_as_object
            return [get(i, view_type) for i in range(outputs.size)]

        return call


# -- errors ----------------------------------------------------------------------------------------------------------

_TENSOR = r"tensor<((?:[\d?]+x)*)([^<>]+(?:<\w+>)?)>"
_ARGUMENT = re.compile(rf"%input\d+: {_TENSOR}(?: \{{iree\.abi\.encoding = {_TENSOR}\}})?")
_NAMES = {
    "i1": "bool",
    **{f"i{n}": f"int{n}" for n in (8, 16, 32, 64)},
    **{f"ui{n}": f"uint{n}" for n in (8, 16, 32, 64)},
    **{f"f{n}": f"float{n}" for n in (16, 32, 64)},
    "bf16": "bfloat16",
    "complex<f32>": "complex64",
    "complex<f64>": "complex128",
}


def _signature(function: Any) -> list[tuple[tuple[str, ...], str]] | None:
    """(shape, dtype) of each argument by the module's own declaration, None if it has none; "?" is a free dimension."""
    declared = (function.reflection or {}).get("iree.abi.declaration")
    if declared is None:
        return None
    found = _ARGUMENT.findall(declared.partition(") -> ")[0])
    return [(tuple(dims.split("x")[:-1]), _dtype_name(encoded or type)) for dims, type, _, encoded in found]


def _dtype_name(type: str) -> str:
    return _NAMES.get(type, type.replace("f8E", "float8_e").lower())


def _integers(function: Any) -> tuple[list[tuple[int, frozenset[int]]], int]:
    """The integer and boolean arguments of a function with the element types they may have; the number of arguments."""
    arguments = _signature(function) or []
    integers = [(i, d) for i, (_, d) in enumerate(arguments) if d == "bool" or d.startswith(("int", "uint"))]
    return [(i, element_types(d)) for i, d in integers], len(arguments)


def _explained(e: Exception | None, function: Any, inputs: Any) -> Exception:
    """The error to raise when a call failed; it looks for the first argument that does not fit."""
    wanted = _signature(function)
    name = function.name
    given = [inputs.get_as_object(i, binding().HalBufferView) for i in range(inputs.size)]
    if wanted is not None and len(wanted) != len(given):
        return ArgumentError(f"{name} takes {len(wanted)} argument(s), {len(given)} were given.")
    for i, (view, (shape, dtype)) in enumerate(zip(given, wanted or (), strict=False)):
        has = tuple(map(str, view.shape)), dtype_of(view).name
        if has[1] != dtype or not _fits(has[0], shape):
            return ArgumentError(f"argument {i} of {name} must be {_text(shape, dtype)}; it is {_text(*has)}.")
    return ExecutionError(f"{name} failed while running: {e}")


def _fits(shape: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    return len(shape) == len(pattern) and all(p in ("?", s) for s, p in zip(shape, pattern, strict=True))


def _reason(e: Exception) -> str:
    """Why a module could not be loaded; IREE's own text may have pages of target attributes."""
    text = str(e)
    return "it was compiled for a device of another kind" if "not found or unavailable" in text else text[:500]


def _text(shape: tuple[str, ...], dtype: str) -> str:
    return f"{dtype}[{','.join(shape)}]"


# -- fork ------------------------------------------------------------------------------------------------------------

_executables: weakref.WeakSet[Executable] = weakref.WeakSet()
_abandoned: list[Any] = []


def _after_fork() -> None:
    """A context refers to a device whose threads stayed in the parent: a forked child makes new ones. The inherited are
    kept, since releasing them may wait for those threads."""
    for executable in _executables:
        _abandoned.append(dict(executable._local.__dict__))
        executable._local.__dict__.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
