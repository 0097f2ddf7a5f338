"""Legalisation."""

from typing import Any


def legalize(module: Any, target: Any) -> None:
    """Rewrite in place."""
