"""The schemas of the ONNX standard's operators in the installed onnx. The module is imported at the
first use of a schema, because IR needs no schemas."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnx.defs import OpSchema


NEWEST = 1 << 30
"""A version that every operator set has reached."""


@cache
def schema_of(type: str, opset: int, domain: str = "") -> OpSchema | None:
    """The schema of operator `type` in operator set `opset`; None if the operator set lacks it."""
    import onnx.defs

    try:
        return onnx.defs.get_schema(type, opset, domain)
    except onnx.defs.SchemaError:
        return None


@cache
def schema_defaults(type: str, opset: int, domain: str = "") -> dict[str, Any]:
    """The defaults of an operator's attributes by its schema, as Python values; {} without one."""
    schema = schema_of(type, opset, domain)
    if schema is None:
        return {}
    import onnx.helper

    defaults = (attribute.default_value for attribute in schema.attributes.values())
    return {d.name: _plain(onnx.helper.get_attribute_value(d)) for d in defaults if d.name}


@cache
def attribute_types(type: str, opset: int, domain: str = "") -> dict[str, int]:
    """The types of an operator's attributes by its schema, as AttributeProto has them."""
    schema = schema_of(type, opset, domain)
    given = {} if schema is None else schema.attributes
    return {name: attribute.type.value for name, attribute in given.items()}


def _plain(value: Any) -> Any:
    """A value as the reader gives it."""
    if isinstance(value, bytes):
        return value.decode()
    return tuple(map(_plain, value)) if isinstance(value, list) else value
