"""The docstring of each function that is registered for an operator names the operator.

ruff asks for docstrings of the other public functions (D101 to D103).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import bridge.hooks  # noqa: F401
from bridge.neutral.inference import _inferences, _known_values
from bridge.operators import legalizations, load_all, readers
from bridge.passes.sequences.operators import LOWERED

MANY = 5
"""A function for this many operators or more may name their common subject instead."""


def registered() -> dict[Callable[..., Any], set[str]]:
    """The registered functions with their operators."""
    load_all()
    found: dict[Callable[..., Any], set[str]] = defaultdict(set)
    for (_, op), rule in legalizations.items():
        found[rule].add(op)
    for (_, op), some in readers.items():
        for reader in some:
            found[reader.rule].add(op)
    for table in (_inferences, _known_values, LOWERED):
        for op, function in table.items():
            found[function].add(op)
    return found


def test_what_is_registered_says_of_what_it_is() -> None:
    silent = []
    for function, operators in registered().items():
        beginning = (function.__doc__ or "").partition("\n\n")[0].lower()
        names = (op.rpartition("::")[2].lower() for op in operators)
        common = beginning and len(operators) >= MANY
        if not common and not any(name in beginning for name in names):
            silent.append(f"{function.__module__}.{function.__qualname__}")
    assert not silent
