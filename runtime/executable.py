"""Executables: a compiled module loaded on a device, and the call path, which is the hottest code of the library."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xformlib.runtime.buffers import from_numpy
from xformlib.runtime.devices import Device, _binding, hal_device, vm_instance
from xformlib.runtime.errors import ArgumentError, ExecutionError

__all__ = ["Executable"]


class Executable:
    """A ``.vmfb`` on a device. Thread-safe: each thread has a VM context of its own, as IREE asks for.

    Args:
        vmfb: the compiled module.
        device: where it runs.
        mode: for the CPU ``"local-sync"`` (calling thread) or ``"local-task"`` (thread pool).

    Raises:
        ExecutionError: the module can't be loaded.
    """

    def __init__(self, vmfb: bytes, *, device: Device, mode: str = "local-sync") -> None:
        self.device = device
        self._hal = hal_device(mode if device.platform == "cpu" else device.platform, device.id)
        self._local = threading.local()
        self._binding = _binding()
        try:
            self._module = self._binding.VmModule.copy_buffer(vm_instance(), vmfb)
            self._context()
        except ValueError as e:
            raise ExecutionError(f"the compiled module can't be loaded: {e}") from None

    def _context(self) -> Any:
        context = getattr(self._local, "context", None)
        if context is None:
            instance = vm_instance()
            hal = self._binding.create_hal_module(instance, self._hal)
            context = self._local.context = self._binding.VmContext(instance, [hal, self._module])
        return context

    def entry(self, name: str = "main") -> Callable[[Sequence[Any]], list[Any]]:
        """The function ``name``: takes NumPy arrays or buffer views, returns buffer views.

        Raises:
            ArgumentError: the module has no such function; from a call: wrong count, shapes or dtypes.
            ExecutionError: from a call: the program failed.
        """
        function = self._module.lookup_function(name)
        if function is None:
            raise ArgumentError(f"the module has no function {name!r}; it has {self._module.function_names}.")
        return self._bound(function, name)

    def _bound(self, function: Any, name: str) -> Callable[[Sequence[Any]], list[Any]]:
        binding, local = self._binding, self._local
        variants, view_type = binding.VmVariantList, binding.HalBufferView

        def call(args: Sequence[Any]) -> list[Any]:
            context = getattr(local, "context", None) or self._context()
            inputs = variants(len(args))
            for x in args:
                inputs.push_ref(x if type(x) is view_type else from_numpy(np.asarray(x)))
            outputs = variants(8)
            try:
                context.invoke(function, inputs, outputs)
            except (ValueError, RuntimeError) as e:
                raise _explained(e, name) from None
            return [outputs.get_as_object(i, view_type) for i in range(outputs.size)]

        return call


def _explained(e: Exception, name: str) -> Exception:
    text = str(e)
    if "INVALID_ARGUMENT" in text:
        return ArgumentError(f"{name} was called with arguments that do not fit its signature: {text}")
    return ExecutionError(f"{name} failed while running: {text}")
