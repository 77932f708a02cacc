"""Shows that a model and its conversion compute the same. Needs the extra `check`."""

from __future__ import annotations

from bridge.check.checker import check
from bridge.check.report import CheckReport

__all__ = ["CheckReport", "check"]
