"""Ifs whose branches differ in rank (placeholder until the pass lands)."""

from __future__ import annotations

from bridge.neutral.graph import Model
from bridge.report import Report


def settle_ranks(model: Model, report: Report) -> None:
    """Prunes branches that would make the model fail."""
