"""Conversion between a neutral node and its spelling in one format, by the rows of `mappings/`.

This module has the common parts of both formats. Each format has its own text form of attributes
(`onnx_format/attributes.py`, `ir_format/attributes.py`).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bridge.neutral.builder import Builder, Target
from bridge.neutral.extras import NodeExtras
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import BOOL, F32, I64, STRING
from bridge.operators.type_constraints import disallowed, ill_typed, schema_type, untied
from bridge.vocabulary import REQUIRED, Operator, SpelledAttribute, Spelling, operator

_ELEMENT_OF_TYPE = {
    "int": I64, "ints": I64, "float": F32, "floats": F32, "bool": BOOL, "string": STRING,
    "strings": STRING,
}  # fmt: skip


def choose(node: Node, target: Target) -> tuple[Spelling | None, str]:
    """The spelling that `target` can use for the node, or None and the reason against it."""
    row = operator(node.op)
    if row is None:
        why = (node.extras or {}).get("why")  # from a rule that refused the layer
        return None, why or "Bridge does not know this operator"
    spellings = row.onnx if target.format == "onnx" else row.ir
    foreign = row.family == "microsoft" and "com.microsoft" not in target.domains
    if not spellings or foreign:
        return None, f"{target} has no such operator and Bridge no rule that expresses it"
    why = ""
    for spelling in spellings:
        if target.format == "onnx":
            if spelling.domain == "" and int(spelling.version) > target.opset:
                why = why or f"it exists since operator set {spelling.version}"
                continue
            if spelling.until is not None and spelling.until < target.opset:
                why = why or f"it was removed after operator set {spelling.until}"
                continue
        obstacle = _obstacle(node, row, spelling, target.format == "ir")
        if not obstacle and target.format == "onnx" and spelling.domain == "":
            obstacle = disallowed(
                spelling.type, target.opset, _inputs(node, row, spelling), node.outputs
            )
        if not obstacle:
            return spelling, ""
        why = obstacle
        # This operator set has an older spelling only if its type differs.
        only_type = all(s.type == spelling.type for s in spellings)
        if target.format == "onnx" and spelling.domain == "" and only_type:
            break
    return None, why


def type_fault(node: Node) -> str:
    """Why ONNX's schema allows the types of a node's inputs in no operator set; "" if it may."""
    row = operator(node.op)
    if row is None or not row.onnx or node.bodies:
        return ""
    spelling = row.onnx[0]
    types = tuple([v and schema_type(v.type) for v in _inputs(node, row, spelling)])
    return ill_typed(spelling.type, spelling.domain, types)


def layer_fault(node: Node) -> str:
    """Why no engine takes the types of the inputs of a node in IR's vocabulary; "" if it may."""
    row = operator(node.op)
    if row is None or node.bodies or len(node.inputs) < 2:
        return ""
    inputs = list(node.inputs)
    if row.onnx and "broadcasts" not in row.traits:
        for name in row.integers:
            place = row.places[name]
            inputs[place : place + 1] = [None] * (place < len(inputs))
    return untied(node.op, tuple([v and schema_type(v.type) for v in inputs]))


def oldest(node: Node) -> int:
    """The first operator set of the node's domain that can express the ONNX node."""
    row = operator(node.op)
    assert row is not None
    return min(int(s.version) for s in row.onnx if not _obstacle(node, row, s, False))


def _absent_input(node: Node, row: Operator, spelling: Spelling) -> str:
    """The message about an absent input that the spelling requires; "" if no input is missing."""
    for name in spelling.required:
        if node.input(row.places[name]) is None:
            return f"{spelling.type} must be given its {name}"
    return ""


def _obstacle(node: Node, row: Operator, spelling: Spelling, is_ir: bool) -> str:
    """The reason that a spelling cannot express a node; "" if it can."""
    if is_ir and (why := _absent_input(node, row, spelling)):
        return why
    if spelling.plain:
        return ""
    for name in spelling.absent:
        if node.attributes.get(name) != row.defaults.get(name):
            return f"{spelling.type} has no attribute {name}, here {node.attributes.get(name)}"
    for name, value in zip(row.places, node.inputs, strict=False):
        if value is not None and (why := _input_obstacle(value, name, spelling)):
            return why
    for name, spelled in spelling.attributes.items():
        value = node.attributes.get(name)
        if isinstance(value, str) and spelled.values is not None and value not in spelled.values:
            return f"{spelling.type} has no {name} = {value}"
    return ""


_LISTS = ("ints", "floats", "strings")


def _input_obstacle(value: Value, name: str, spelling: Spelling) -> str:
    """The reason that a spelling cannot have a value as its input `name`; "" if it can."""
    if name in spelling.as_attributes:
        known = known_of(value).array
        if known is None:
            return f"its {name} must be constant in {spelling.type}; `values` makes an input so"
        if known.size != 1 and spelling.as_attributes[name].type not in _LISTS:
            return f"its input {name} must be one number in {spelling.type}"
    elif name not in spelling.places:
        return f"{spelling.type} has no input {name}"
    allowed = spelling.elements.get(name)
    if allowed and value.element is not None and value.element.name not in allowed:
        return f"{spelling.type} takes no {value.element} as {name}"
    return ""


def spell(node: Node, spelling: Spelling) -> tuple[list[Value | None], dict[str, Any]]:
    """The inputs and attributes of a node in a spelling from `choose`. Attributes are Python values
    with the format's names."""
    row = operator(node.op)
    assert row is not None
    inputs = _inputs(node, row, spelling)
    while inputs and inputs[-1] is None:
        inputs.pop()
    attributes: dict[str, Any] = dict(spelling.fixed)
    for name, spelled in spelling.attributes.items():
        value = node.attributes.get(name)
        if value is not None:
            _put(attributes, spelled, value)
    for name, spelled in spelling.as_attributes.items():
        array = known_of(node.input(row.places[name])).array
        if array is not None:
            _put(attributes, spelled, _as_attribute(array, spelled.type))
    return inputs, attributes


def _inputs(node: Node, row: Operator, spelling: Spelling) -> list[Value | None]:
    """The node's inputs in the order of the spelling."""
    if spelling.plain and len(node.inputs) <= len(row.inputs):
        return list(node.inputs)
    inputs: list[Value | None] = []
    for declared, name in zip(spelling.inputs, spelling.places, strict=True):
        index = row.places[name]
        if declared.endswith("*"):
            inputs.extend(node.inputs[index:])
        else:
            inputs.append(node.input(index))
    return inputs


def _put(attributes: dict[str, Any], spelled: SpelledAttribute, value: Any) -> None:
    if spelled.values is not None:
        value = spelled.values.get(value, value)
    if len(spelled.names) == 1:
        attributes[spelled.names[0]] = value
        return
    half = len(value) // 2
    attributes[spelled.names[0]] = value[:half]
    attributes[spelled.names[1]] = value[half:]


def _as_attribute(array: np.ndarray, kind: str) -> Any:
    flat = array.reshape(-1).tolist()
    return tuple(flat) if kind in _LISTS else flat[0]


def fits(row: Operator, spelling: Spelling, attributes: dict[str, Any]) -> bool:
    """Whether a format's node with these attributes (Python values) has this spelling."""
    return all(attributes.get(k, v) == v for k, v in spelling.fixed.items())


def takes(spelling: Spelling, count: int) -> bool:
    """Whether a spelling has place for so many inputs."""
    names = spelling.inputs
    return count <= len(names) or (bool(names) and names[-1].endswith("*"))


def unspell(
    builder: Builder,
    row: Operator,
    spelling: Spelling,
    inputs: Sequence[Value | None],
    attributes: dict[str, Any],
    outputs: Sequence[Value],
    name: str = "",
    extras: NodeExtras | None = None,
) -> Node:
    """The neutral node of a format's node. `attributes` are Python values with the format's names.

    An attribute that is an input in the neutral vocabulary becomes a Constant before the node.
    """
    neutral: dict[str, Any] = {}
    for key, spelled in spelling.attributes.items():
        value = _take(attributes, spelled)
        if value is REQUIRED or (value is None and spelled.default is REQUIRED):
            raise KeyError(f"attribute {spelled.names[0]} is missing")
        if value is not None:
            neutral[key] = value
    if not spelling.plain or len(inputs) != len(row.inputs) or None in inputs:
        inputs = _unspelled_inputs(builder, row, spelling, inputs, attributes)
    return builder.node(row.name, inputs, outputs, neutral, (), name, extras)


def _unspelled_inputs(
    builder: Builder,
    row: Operator,
    spelling: Spelling,
    inputs: Sequence[Value | None],
    attributes: dict[str, Any],
) -> list[Value | None]:
    """The inputs of the neutral node, in the order of the row."""
    neutral: list[Value | None] = []
    for declared, key in zip(row.inputs, row.places, strict=True):
        if key in spelling.as_attributes:
            spelled = spelling.as_attributes[key]
            value = _take(attributes, spelled)
            if value is None or value is REQUIRED:
                neutral.append(None)
            else:
                element = _ELEMENT_OF_TYPE[spelled.type]
                if spelled.type == "float" and "same_type" in row.traits and neutral[0] is not None:
                    element = neutral[0].element or element
                neutral.append(builder.constant(np.array(value, element.dtype)))
        elif key in spelling.places:
            at = spelling.places[key]
            if declared.endswith("*"):
                neutral.extend(inputs[at:])
            else:
                value = inputs[at] if at < len(inputs) else None
                if value is None and not declared.endswith("?"):
                    raise KeyError(f"input {key} is missing")
                neutral.append(value)
        else:
            neutral.append(None)
    return neutral


def _take(attributes: dict[str, Any], spelled: SpelledAttribute) -> Any:
    if len(spelled.names) > 1:
        parts = [attributes.get(name, ()) for name in spelled.names]
        most = max(map(len, parts))  # one of two pads may be empty
        if not most:
            return spelled.default
        return tuple(x for part in parts for x in part or (0,) * most)
    value = attributes.get(spelled.names[0], spelled.default)
    if spelled.values is not None and isinstance(value, str | bool):
        value = spelled.neutral_value(value)
    return value
