"""Shows that a model and its conversion compute the same. Needs the extra `check`."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from bridge.check.checker import check
from bridge.check.report import CheckReport

__all__ = ["CheckReport", "check"]


class _Module(ModuleType):
    """`bridge.check` is the function, but importing this package makes it the package: so that
    may be called too."""

    def __call__(self, *arguments: Any, **options: Any) -> CheckReport:
        return check(*arguments, **options)


sys.modules[__name__].__class__ = _Module
