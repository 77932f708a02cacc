"""The cost of a model, as rows and as data."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from bridge.neutral.cost import CostPart


def as_json(parts: list[CostPart]) -> list[dict[str, Any]]:
    """The parts, for scripts."""
    return [{"where": p.where, "larger": p.larger, **asdict(p.cost)} for p in parts]


def lines(parts: list[CostPart]) -> Iterator[tuple[str, str, str, str]]:
    """The parts as rows of a table."""
    for part in parts:
        mark = {True: " (larger)", False: "", None: ""}[part.larger]
        cost = part.cost
        yield (
            f"{'  ' * part.depth}{part.where}{mark}",
            _short(cost.multiplications, ""),
            _short(cost.weights, "B"),
            _short(cost.activations, "B"),
        )


def _short(number: int, unit: str) -> str:
    """A number for people: `1.2 M`, `815 B`."""
    size, prefixes = float(number), ["", "k", "M", "G", "T"]
    while size >= 999.95 and len(prefixes) > 1:
        size, prefixes = size / 1000, prefixes[1:]
    text = f"{number}" if number < 1000 else f"{size:.1f}"
    return f"{text} {prefixes[0]}{unit}".rstrip()
