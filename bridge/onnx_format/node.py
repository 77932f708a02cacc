"""One neutral node as a NodeProto, by its mapping row."""

from collections.abc import Callable

import onnx

from bridge.errors import InvalidModelError
from bridge.neutral.graph import Node, Value
from bridge.onnx_format.attributes import kinds_of, write_attribute
from bridge.operators.spelling import spell
from bridge.vocabulary import Spelling


def write_node(
    node: Node, spelling: Spelling, name_of: Callable[[Value], str], proto: onnx.NodeProto
) -> None:
    """Fills `proto` with the node in a spelling that `choose` gave; InvalidModelError if ONNX
    has no room for a number."""
    inputs, attributes = spell(node, spelling)
    proto.op_type = spelling.type
    if spelling.domain:
        proto.domain = spelling.domain
    proto.input.extend("" if value is None else name_of(value) for value in inputs)
    if attributes:
        kinds = kinds_of(spelling)
        for key in sorted(attributes):
            try:
                write_attribute(proto, key, attributes[key], kinds.get(key))
            except ValueError as error:  # a rule's sums of unbounded numbers
                raise InvalidModelError(f"{node!r}: its {key} cannot be: {error}") from error
