"""Errors of the runtime."""

from __future__ import annotations

__all__ = ["ArgumentError", "DeviceError", "ExecutionError"]


class DeviceError(RuntimeError):
    """A device or driver is missing, or unknown."""


class ArgumentError(ValueError):
    """A call of an executable with the wrong number, shapes or dtypes of arguments."""


class ExecutionError(RuntimeError):
    """A compiled program failed while running, or an artifact could not be loaded."""
