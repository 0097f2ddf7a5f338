"""Dimension mappings as einsum-like text: which dimensions of operands and results are one and the same axis.

Equal letters are one factor: it may be sharded alike everywhere. A letter that stands once is a dimension the op
must see whole. Letters after ``|`` are reduced over: sharding one leaves partial results to be combined.
"""

from __future__ import annotations

import string
from collections.abc import Hashable, Sequence

__all__ = ["factor_text", "touched"]


def factor_text(
    operands: Sequence[Sequence[Hashable]], results: Sequence[Sequence[Hashable]], reduced: Sequence[Hashable] = ()
) -> str:
    """Text of a mapping whose factors are any hashable labels.

    >>> factor_text([["i", "k"], ["k", "j"]], [["i", "j"]], ["k"])
    'ab,bc->ac|b'
    """
    letters: dict[Hashable, str] = {}

    def text(labels: Sequence[Hashable]) -> str:
        return "".join([letters.setdefault(label, string.ascii_letters[len(letters)]) for label in labels])

    left = ",".join([text(labels) for labels in operands])
    right = ",".join([text(labels) for labels in results])
    return f"{left}->{right}" + (f"|{text(reduced)}" if reduced else "")


def touched(rank: int, dimensions: Sequence[int], side: Hashable) -> list[Hashable]:
    """Labels of an array's dimensions: its own (by ``side``) for those in ``dimensions``, shared ones for the rest."""
    return [(side, d) if d in dimensions else d for d in range(rank)]
