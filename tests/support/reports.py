"""What tests ask of a check's report."""

from __future__ import annotations

from typing import Any

from bridge.check import CheckReport


def feeds_of(report: CheckReport) -> list[dict[str, Any]]:
    """The inputs that ran."""
    return [case.feeds for case in report.inputs.cases]


def whole_feeds_of(report: CheckReport) -> list[dict[str, Any]]:
    """The inputs that ran and have elements in all tensors."""
    return [case.feeds for case in report.inputs.cases if not case.is_empty]
