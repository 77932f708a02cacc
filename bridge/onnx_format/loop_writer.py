"""A neutral Loop as ONNX's Loop or Scan.

The passes have already rewritten it so that one of the two can express it
(`bridge/operators/control/loop_to_onnx.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx

from bridge.neutral.graph import Node, Value, loop_kind
from bridge.neutral.ports import Carried, Condition, Iteration, Sliced, Stacked, Yield
from bridge.neutral.types import BOOL, I64, TensorType
from bridge.onnx_format.attributes import write_attribute

if TYPE_CHECKING:
    from bridge.onnx_format.backend import Writer


def write_loop(writer: Writer, node: Node, proto: onnx.NodeProto) -> None:
    """Fills `proto` with a Loop or Scan."""
    (body,) = node.bodies
    carried = [
        (value, port)
        for value, port in body.entries()
        if isinstance(port, Carried) and not isinstance(body.outputs[port.output], Condition)
    ]
    stacked = [(value, port) for value, port in body.exits() if isinstance(port, Stacked)]
    names: list[str] = []
    claimed: set[int] = set()
    for _, port in carried:
        exit = body.outputs[port.output]
        assert isinstance(exit, Yield)
        if exit.output is None or exit.output in claimed:
            names.append(writer.names.take(f"{proto.name or 'loop'}.unused"))
        else:
            claimed.add(exit.output)
            names.append(writer.names.of[node.outputs[exit.output]])
    names += [writer.names.of[node.outputs[port.output]] for _, port in stacked]
    proto.output.extend(names)
    outputs = [body.graph.outputs[port.output] for _, port in carried]
    outputs += [value for value, _ in stacked]
    attribute = proto.attribute.add()
    attribute.name = "body"
    attribute.type = onnx.AttributeProto.GRAPH
    initial = [node.inputs[port.input] for _, port in carried]  # type: ignore[index]
    if loop_kind(node) == "scan":
        _write_scan(writer, node, proto, attribute.g, initial, outputs)
    else:
        _write_plain_loop(writer, node, proto, attribute.g, initial, outputs)


def _write_scan(
    writer: Writer,
    node: Node,
    proto: onnx.NodeProto,
    graph: onnx.GraphProto,
    initial: list[Value | None],
    outputs: list[Value],
) -> None:
    (body,) = node.bodies
    proto.op_type = "Scan"
    sliced = [(value, port) for value, port in body.entries() if isinstance(port, Sliced)]
    assert all(not p.keepdims and p.part_size == 1 for _, p in sliced)
    stacked = [p for p in body.outputs if isinstance(p, Stacked)]
    inputs = [*initial, *(node.inputs[port.input] for _, port in sliced)]
    proto.input.extend(writer.name_of(v) for v in inputs if v is not None)
    states = [v for v, p in body.entries() if isinstance(p, Carried)]
    given = [*states, *(value for value, _ in sliced)]
    writer.body(node, body, graph, outputs, given, (proto.output[0], "body"))
    write_attribute(proto, "num_scan_inputs", len(sliced), "int")
    for key, ports in (("input", [p for _, p in sliced]), ("output", stacked)):
        if any(p.axis for p in ports):
            write_attribute(proto, f"scan_{key}_axes", [p.axis for p in ports], "ints")
        if any(p.stride < 0 for p in ports):
            directions = [int(p.stride < 0) for p in ports]
            write_attribute(proto, f"scan_{key}_directions", directions, "ints")


def _write_plain_loop(
    writer: Writer,
    node: Node,
    proto: onnx.NodeProto,
    graph: onnx.GraphProto,
    initial: list[Value | None],
    outputs: list[Value],
) -> None:
    (body,) = node.bodies
    proto.op_type = "Loop"
    assert not any(isinstance(p, Sliced) for p in body.inputs)
    assert all(
        not p.keepdims and p.axis == 0 and p.stride > 0
        for p in body.outputs
        if isinstance(p, Stacked)
    )
    heads = [node.input(0), node.input(1), *initial]
    proto.input.extend("" if v is None else writer.name_of(v) for v in heads)
    iteration: Value | None = None
    condition: Value | None = None
    states = []
    for value, port in body.entries():
        if isinstance(port, Iteration):
            iteration = value
        elif isinstance(port, Carried):
            if isinstance(body.outputs[port.output], Condition):
                condition = value
            else:
                states.append(value)
    iteration = iteration or Value(TensorType(I64, ()), ["iteration"])
    if condition is None:
        first = node.input(1)
        type = TensorType(BOOL, ()) if first is None else first.type
        condition = Value(type, ["condition"])
    conditions = [v for v, p in body.exits() if isinstance(p, Condition)]
    again = conditions[0] if conditions else condition
    given = [iteration, condition, *states]
    writer.body(node, body, graph, [again, *outputs], given, (proto.output[0], "body"))
