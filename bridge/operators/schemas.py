"""The schemas of the ONNX standard's operators, as the installed onnx has them."""

from __future__ import annotations

from functools import cache

import onnx.defs


@cache
def schema_of(type: str, opset: int, domain: str = "") -> onnx.defs.OpSchema | None:
    """The schema of operator `type` in operator set `opset`; None where that lacks it."""
    try:
        return onnx.defs.get_schema(type, opset, domain)
    except onnx.defs.SchemaError:
        return None
