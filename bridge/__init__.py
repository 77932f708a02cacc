"""Bridge: models between ONNX and OpenVINO IR, both ways, conditional subgraphs included.

    import bridge
    bridge.convert("model.onnx", "model.xml")
    bridge.convert("model.xml", "model.onnx")

Names are imported when they are first used, so that `import bridge` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bridge.errors import (
        BridgeError,
        InvalidModelError,
        LimitError,
        UnsupportedError,
        UsageError,
    )
    from bridge.library.api import convert, load, save, to_onnx, to_openvino
    from bridge.library.packing import Boundary, pack, unpack
    from bridge.neutral.types import Interval
    from bridge.report import Report

_HOMES = {
    "convert": ".library.api",
    "load": ".library.api",
    "save": ".library.api",
    "to_onnx": ".library.api",
    "to_openvino": ".library.api",
    "Boundary": ".library.packing",
    "pack": ".library.packing",
    "unpack": ".library.packing",
    "Interval": ".neutral.types",
    "Report": ".report",
    "BridgeError": ".errors",
    "InvalidModelError": ".errors",
    "LimitError": ".errors",
    "UnsupportedError": ".errors",
    "UsageError": ".errors",
}

__all__ = [
    "Boundary",
    "BridgeError",
    "Interval",
    "InvalidModelError",
    "LimitError",
    "Report",
    "UnsupportedError",
    "UsageError",
    "convert",
    "load",
    "pack",
    "save",
    "to_onnx",
    "to_openvino",
    "unpack",
]


if not TYPE_CHECKING:  # else a type checker would take any name for one of Bridge's

    def __getattr__(name: str) -> Any:
        if name == "check":
            return import_module(".check", __package__)
        home = _HOMES.get(name)
        if home is None:
            from bridge.suggestions import nearest

            meant = nearest(name, __all__)
            help = f"; did you mean '{meant}'?" if meant else ""
            raise AttributeError(f"module 'bridge' has no attribute {name!r}{help}")
        return getattr(import_module(home, __package__), name)

    def __dir__() -> list[str]:
        return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
