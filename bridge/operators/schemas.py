"""The schemas of the ONNX standard's operators, as the installed onnx has them. It is imported when
one is asked for: IR is read and written without."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx.defs import OpSchema


@cache
def schema_of(type: str, opset: int, domain: str = "") -> OpSchema | None:
    """The schema of operator `type` in operator set `opset`; None where that lacks it."""
    import onnx.defs

    try:
        return onnx.defs.get_schema(type, opset, domain)
    except onnx.defs.SchemaError:
        return None
