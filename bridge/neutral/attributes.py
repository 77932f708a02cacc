"""Attributes of nodes: their types, and the check against the operator's row."""

from typing import Any

from bridge.neutral.tensor import Tensor
from bridge.vocabulary import REQUIRED, Attribute, operator
from bridge.vocabulary.elements import Element

Attributes = dict[str, Any]
"""Attributes by name: int, float, str, bool, Element, Tensor, tuples of these, or None for an
absent attribute. The operator's row gives the type of each attribute, so Python's types do not.
`fault_of` checks a node against its row."""

_TYPES: dict[str, type | tuple[type, ...]] = {
    "int": int,
    "float": (float, int),
    "bool": bool,
    "string": (str, bytes),
    "element": Element,
    "tensor": Tensor,
}


def fault_of(op: str, attributes: Attributes) -> str:
    """The error in a node's attributes, by the row of its operator. "" if there is no error or
    the operator has no row."""
    row = operator(op)
    if row is None:
        return ""
    for name, value in attributes.items():
        declared = row.attributes.get(name)
        if declared is None:
            return f"has an attribute {name}, which is not in its row"
        if value is declared.default:
            continue
        if not _fits(value, declared):
            return f"its attribute {name} is {value!r}, which is no {declared.type}"
        if declared.choices and value not in declared.choices:
            choices = ", ".join(declared.choices)
            return f'its attribute {name} is "{value}", which is none of {choices}'
    for name, declared in row.attributes.items():
        if declared.default is REQUIRED and name not in attributes:
            return f"has no attribute {name}"
    return ""


def _fits(value: object, declared: Attribute) -> bool:
    if value is None:
        return declared.default is None
    single = declared.type.removesuffix("s")
    if single not in _TYPES:
        return True
    if single == declared.type:
        return _is_a(value, single)
    return isinstance(value, tuple) and all(_is_a(item, single) for item in value)


def _is_a(value: object, kind: str) -> bool:
    return isinstance(value, _TYPES[kind]) and (kind == "bool" or not isinstance(value, bool))
