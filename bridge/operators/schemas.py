"""The schemas of the ONNX standard's operators in the installed onnx. The module is imported at the
first use of a schema, because IR needs no schemas."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx.defs import OpSchema


@cache
def schema_of(type: str, opset: int, domain: str = "") -> OpSchema | None:
    """The schema of operator `type` in operator set `opset`; None if the operator set lacks it."""
    import onnx.defs

    try:
        return onnx.defs.get_schema(type, opset, domain)
    except onnx.defs.SchemaError:
        return None
