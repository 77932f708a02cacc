"""A node as a file has it."""

from dataclasses import dataclass

import onnx

from bridge.onnx_format.opsets import canonical


@dataclass(eq=False)
class ProtoNode:
    """A NodeProto taken apart, because protobuf makes a field anew for each access.

    The fields have the names of the NodeProto; `domain` is "" for the default one. `described`
    is the operator with the name of the node, or of its first output. `where` is its path from the
    top graph down.
    """

    proto: onnx.NodeProto
    op_type: str
    domain: str
    name: str
    input: list[str]
    output: list[str]
    attribute: list[onnx.AttributeProto]
    described: str
    where: str


def taken_apart(proto: onnx.NodeProto, around: str) -> ProtoNode:
    """A node of the graph that stands at the path `around`."""
    op_type, name, output = proto.op_type, proto.name, proto.output[:]
    described = f'{op_type} "{name or (output[0] if output else "")}"'
    return ProtoNode(
        proto,
        op_type,
        canonical(proto.domain),
        name,
        proto.input[:],
        output,
        proto.attribute[:],
        described,
        f"{around} / {described}",
    )
