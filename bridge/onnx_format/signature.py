"""Checks a node against the standard: its inputs, outputs and attributes."""

from dataclasses import dataclass
from functools import cache

import onnx
import onnx.defs

from bridge.errors import InvalidModelError
from bridge.onnx_format.proto_node import ProtoNode
from bridge.operators.schemas import schema_of


@dataclass(eq=False)
class Signature:
    """The inputs, outputs and attributes of an operator in the standard.

    It has the numbers of inputs and outputs, and tells which of them may be absent. Attributes have
    their types (numbers of `AttributeProto.type`), and it tells which are required. The
    others have their defaults, as bytes of an AttributeProto."""

    inputs: tuple[int, int]
    outputs: tuple[int, int]
    required_inputs: tuple[int, ...]
    optional_outputs: frozenset[int]
    attributes: dict[str, int]
    required_attributes: frozenset[str]
    defaults: frozenset[bytes]


@cache
def signature(type: str, version: int, domain: str) -> Signature | None:
    """The signature of an operator of the standard; None for others, and for one that the operator
    set has no longer."""
    schema = schema_of(type, version, domain)
    if schema is None or schema.deprecated:
        return None
    option = onnx.defs.OpSchema.FormalParameterOption
    attributes = schema.attributes
    defaults = (attribute.default_value for attribute in attributes.values())
    return Signature(
        (schema.min_input, schema.max_input),
        (schema.min_output, schema.max_output),
        tuple(i for i, p in enumerate(schema.inputs) if p.option == option.Single),
        frozenset(i for i, p in enumerate(schema.outputs) if p.option == option.Optional),
        {name: int(attribute.type.value) for name, attribute in attributes.items()},
        frozenset(name for name, attribute in attributes.items() if attribute.required),
        frozenset(default.SerializeToString() for default in defaults if default.name),
    )


_TAKEN_OTHERWISE = {"STFT"}
"""Operators whose default the standard's own shape inference does not use: it takes `onesided`
as 0."""


def leave_out_defaults(proto: onnx.NodeProto, version: int) -> None:
    """Removes the attributes of a node that equal their defaults in the standard."""
    declared = signature(proto.op_type, version, proto.domain)
    if declared is None or not declared.defaults or proto.op_type in _TAKEN_OTHERWISE:
        return
    kept = [a for a in proto.attribute if a.SerializeToString() not in declared.defaults]
    if len(kept) < len(proto.attribute):
        del proto.attribute[:]
        proto.attribute.extend(kept)


def require_signature(node: ProtoNode, version: int) -> None:
    """Raises InvalidModelError for a node that its operator's signature does not allow."""
    attributes, inputs = node.attribute, node.input
    if len(attributes) > 1 and len({a.name for a in attributes}) < len(attributes):
        raise InvalidModelError(f"{node.where}: has two attributes of one name")
    declared = signature(node.op_type, version, node.domain)
    if declared is None:
        return
    for kind, given, (least, most) in (
        ("inputs", len(inputs), declared.inputs),
        ("outputs", len(node.output), declared.outputs),
    ):
        if not least <= given <= most:
            allowed = str(least) if least == most else f"{least} to {most}"
            raise InvalidModelError(
                f"{node.where}: has {given} {kind}, {node.op_type} of operator set {version} has "
                f"{allowed if most < 1 << 16 else f'at least {least}'}"
            )
    if "" in inputs:
        for index in declared.required_inputs:
            if index < len(inputs) and not inputs[index]:
                raise InvalidModelError(f"{node.where}: its input {index} may not be absent")
    if attributes or declared.required_attributes:
        _require_attributes(node, declared, version)


def _require_attributes(node: ProtoNode, declared: Signature, version: int) -> None:
    for attribute in node.attribute:
        expected = declared.attributes.get(attribute.name)
        if expected is None:
            if attribute.name.startswith("__"):  # someone's own note, which the checker lets pass
                continue
            raise InvalidModelError(
                f"{node.where}: {node.op_type} of operator set {version} has no attribute "
                f"{attribute.name}"
            )
        if attribute.type != expected:
            kinds = onnx.AttributeProto.AttributeType
            raise InvalidModelError(
                f"{node.where}: its attribute {attribute.name} is {kinds.Name(attribute.type)}, "
                f"not {kinds.Name(expected)}"
            )
    if declared.required_attributes:
        for name in sorted(declared.required_attributes - {a.name for a in node.attribute}):
            raise InvalidModelError(f"{node.where}: its attribute {name} is missing")


def leave_out_absent(node: ProtoNode, version: int) -> None:
    """Removes the optional outputs at a node's end that have no name: they are not there."""
    count = len(node.output)
    if count == 1 or all(node.output):
        return
    declared = signature(node.op_type, version, node.domain)
    while count and not node.output[count - 1] and declared and (
        count - 1 in declared.optional_outputs
    ):  # fmt: skip
        count -= 1
    if count:
        del node.output[count:]
