"""Shows that a model and its conversion compute the same. Needs the extra `check`.

`bridge.check(...)` calls `bridge.check.check`, whatever was imported before.

Names are imported when they are first used: the process that engines run in needs none of them.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bridge.check.checker import check
    from bridge.check.report import CheckReport

__all__ = ["CheckReport", "check"]

_HOMES = {"check": ".checker", "CheckReport": ".report"}


if not TYPE_CHECKING:

    class _Package(ModuleType):
        """The package, which can be called: `bridge.check` names it and the function too."""

        def __call__(self, *arguments: Any, **options: Any) -> CheckReport:
            return self.check(*arguments, **options)

    sys.modules[__name__].__class__ = _Package

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'bridge.check' has no attribute {name!r}")
        return getattr(import_module(_HOMES[name], __package__), name)
