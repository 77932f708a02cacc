"""If, Loop, Scan and Constant as ONNX writes them, read into the neutral graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from bridge.errors import InvalidModelError, Refused, Unsupported, UnsupportedError
from bridge.neutral.captures import Captures
from bridge.neutral.graph import BRANCHES, Value
from bridge.neutral.inference.control import part_type
from bridge.neutral.ports import Carried, Condition, Iteration, Sliced, Stacked, Yield
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import BOOL, I64, STRING, UNKNOWN, TensorType, Type, join, meet
from bridge.onnx_format.attributes import read_attribute
from bridge.onnx_format.proto_node import ProtoNode
from bridge.onnx_format.scope import Scope
from bridge.onnx_format.type_protos import read_type, write_type
from bridge.operators.schemas import schema_of

if TYPE_CHECKING:
    from bridge.onnx_format.frontend import OnnxReader


def graph_attribute(
    reader: OnnxReader, node: ProtoNode, name: str, where: str
) -> tuple[onnx.GraphProto, Scope | None]:
    """The graph that a node has under `name`, and its scope if that is another scope."""
    for attribute in node.attribute:
        if attribute.name == name:
            return reader.grafts.graph(attribute.g), reader.grafts.home(attribute.g)
    raise InvalidModelError(f"{where}: has no {name}")


def read_if(reader: OnnxReader, node: ProtoNode, scope: Scope) -> None:
    """If 1 to 25; they only differ in the allowed types."""
    where = node.where
    if len(node.input) != 1 or not node.input[0]:
        raise InvalidModelError(f"{where}: takes one input, the condition")
    condition = given_input(node.input[0], scope, where)
    _expect_bool(condition, where)
    captures = Captures([condition])
    bodies = []
    for branch in BRANCHES:
        graph, home = graph_attribute(reader, node, branch, where)
        inner = scope.nested(captures, f"{node.described} / {branch}", home)
        reader.graph(graph, inner)
        if len(inner.graph.outputs) != len(node.output):
            raise InvalidModelError(
                f"{where}: its {branch} has {len(inner.graph.outputs)} outputs, the node "
                f"{len(node.output)}"
            )
        inner.body.outputs = [Yield(index) for index in range(len(node.output))]
        bodies.append(inner.body)
    then, otherwise = (body.graph.outputs for body in bodies)
    for name, a, b in zip(node.output, then, otherwise, strict=True):
        try:
            join(a.type, b.type)
        except Refused as error:
            raise InvalidModelError(
                f'{where}: its output "{name}" is {a.type} in one branch and {b.type} in the '
                "other; both branches must give the same element type"
            ) from error
    outputs = scope.outputs(node)
    scope.builder.node(
        "If", captures.inputs, outputs, {}, tuple(bodies), node.name, scope.extras_of(node)
    )
    scope.bind(node, outputs)


def read_loop(reader: OnnxReader, node: ProtoNode, scope: Scope) -> None:
    """Loop 1 to 25."""
    where = node.where
    graph, home = graph_attribute(reader, node, "body", where)
    given = [scope.resolve(name, where) if name else None for name in node.input[:2]]
    given += [None] * (2 - len(given))
    given += [given_input(name, scope, where) for name in node.input[2:]]
    _expect_bool(given[1], where)
    states = len(given) - 2
    if len(node.output) < states:
        raise InvalidModelError(f"{where}: has {len(node.output)} outputs for {states} states")
    _expect_ports(where, graph, states + 2, len(node.output) + 1)
    captures = Captures(given)
    inner = scope.nested(captures, f"{node.described} / body", home)
    body = inner.body
    body.inputs = [Iteration(), Carried(None if given[1] is None else 1, 0)]
    body.inputs += [Carried(2 + i, 1 + i) for i in range(states)]
    for index, info in enumerate(graph.input):
        value = Value(names=[info.name])
        value.declared = reader.declared(read_type(info.type))
        inner.graph.inputs.append(value)
        if index == 0:
            value = _iteration_number(inner, value)
        elif index == 1:
            outer = _outer_type(given[1])
            value.type = meet(meet(TensorType(BOOL), outer), value.declared)
            if value.rank is None:
                value.type = TensorType(BOOL, ())
        else:
            value.type = meet(_outer_type(given[index]), value.declared)
        inner.define(info.name, value, shadows=True)
    reader.graph(graph, inner)
    _expect_bool(inner.graph.outputs[0], where)
    _expect_states(inner, where)
    body.outputs = [Condition()]
    for index in range(1, len(graph.output)):
        body.outputs.append(
            Yield(index - 1) if index <= states else Stacked(index - 1, keepdims=False)
        )
    outputs = scope.outputs(node)
    scope.builder.node(
        "Loop", captures.inputs, outputs, {}, (body,), node.name, scope.extras_of(node)
    )
    scope.bind(node, outputs)


def _iteration_number(inner: Scope, number: Value) -> Value:
    """The iteration's number as the body takes it: a scalar, or 1-D if the body declares it so.
    (The checker accepts 1-D, and onnxruntime follows the declaration of the body.)"""
    declared = number.declared
    number.type = number.declared = TensorType(I64, ())
    if not isinstance(declared, TensorType) or declared.rank != 1:
        return number
    return inner.builder.op("Reshape", number, inner.builder.constant([1]))


def _outer_type(value: Value | None) -> Any:
    return UNKNOWN if value is None else value.type


def _expect_bool(condition: Value | None, where: str) -> None:
    if condition is None:
        return
    if not isinstance(condition.type, TensorType) or condition.element not in (None, BOOL):
        raise InvalidModelError(f"{where}: a condition is bool, here {condition.type}")


def _expect_states(inner: Scope, where: str) -> None:
    """A state that is a tensor has one element type at the start and at the end of the body.
    (An optional may become its content: the standard's own `test_loop16_seq_none`.)"""
    for value, port in inner.body.entries():
        if isinstance(port, Carried):
            result = inner.graph.outputs[port.output]
            if value.element and result.element and value.element is not result.element:
                raise InvalidModelError(
                    f'{where}: its state "{value.name}" is {value.type} and becomes {result.type}'
                )


def _expect_ports(where: str, graph: onnx.GraphProto, inputs: int, outputs: int) -> None:
    for what, count, expected in (
        ("inputs", len(graph.input), inputs),
        ("outputs", len(graph.output), outputs),
    ):
        if count != expected:
            raise InvalidModelError(
                f"{where}: its body has {count} {what}, the node needs {expected}"
            )


def read_scan(reader: OnnxReader, node: ProtoNode, scope: Scope) -> None:
    """Scan 9 to 25. Scan 8 has a batch dimension and is a Loop over it of a Scan 9."""
    from bridge.onnx_format.scan8 import read_scan_8

    if scope.opsets[""] < 9:
        read_scan_8(reader, node, scope)
        return
    where = node.where
    graph, home = graph_attribute(reader, node, "body", where)
    attributes = {a.name: read_attribute(a, reader.files, where) for a in node.attribute}
    captures = Captures([None, None])
    captures.inputs += [given_input(name, scope, where) for name in node.input]
    outputs = scope.outputs(node)
    inner = scope.nested(captures, f"{node.described} / body", home)
    fill_scan_body(reader, inner, graph, attributes, captures.inputs, len(node.output), where)
    scope.builder.node(
        "Loop", captures.inputs, outputs, {}, (inner.body,), node.name, scope.extras_of(node)
    )
    scope.bind(node, outputs)


def fill_scan_body(
    reader: OnnxReader,
    inner: Scope,
    graph: onnx.GraphProto,
    attributes: dict[str, Any],
    given: list[Value | None],
    outputs: int,
    where: str,
) -> None:
    """Reads the body of a Scan 9 whose node inputs stand in `given` from index 2 on."""
    scanned = attributes.get("num_scan_inputs", 0)
    states = len(given) - 2 - scanned
    stacked = outputs - states
    if not (scanned > 0 <= states <= outputs):
        raise InvalidModelError(
            f"{where}: {scanned} scanned inputs do not go with {len(given) - 2} inputs and "
            f"{outputs} outputs"
        )
    _expect_ports(where, graph, states + scanned, outputs)
    body = inner.body
    ways = _ways(attributes, "input", scanned, where)
    body.inputs = [Carried(2 + i, i) for i in range(states)]
    body.inputs += [Sliced(2 + states + i, *way, keepdims=False) for i, way in enumerate(ways)]
    for info, port in zip(graph.input, body.inputs, strict=True):
        value = Value(names=[info.name])
        value.declared = reader.declared(read_type(info.type))
        outer = _outer_type(given[port.input])  # type: ignore[union-attr, index]
        type = scanned_type(outer, port, where) if isinstance(port, Sliced) else outer
        value.type = meet(type, value.declared)
        inner.define(info.name, value, shadows=True)
        inner.graph.inputs.append(value)
    reader.graph(graph, inner)
    ways = _ways(attributes, "output", stacked, where)
    _expect_states(inner, where)
    body.outputs = [Yield(i) for i in range(states)]
    body.outputs += [Stacked(states + i, *way, keepdims=False) for i, way in enumerate(ways)]


def scanned_type(type: Type, port: Sliced, where: str) -> Type:
    """The type of the slices of a scanned input; InvalidModelError if it lacks the axis."""
    rank = type.rank if isinstance(type, TensorType) else None
    if rank is not None and not -rank <= port.axis < rank:
        raise InvalidModelError(f"{where}: has no axis {port.axis} to scan in {type}")
    return part_type(type, port)


def _ways(
    attributes: dict[str, Any], kind: str, count: int, where: str
) -> list[tuple[int, int, int, int]]:
    """The axis of each scanned input or output, and its slices' start, stride and end."""
    directions = _for_each(attributes, f"scan_{kind}_directions", count, where)
    axes = _for_each(attributes, f"scan_{kind}_axes", count, where)
    return [
        (axis, -1, -1, 0) if direction == 1 else (axis, 0, 1, -1)
        for axis, direction in zip(axes, directions, strict=True)
    ]


def _for_each(attributes: dict[str, Any], name: str, count: int, where: str) -> tuple[int, ...]:
    """An attribute with one number for each of `count` ports, by default 0."""
    given = attributes.get(name) or (0,) * count
    if len(given) != count:
        raise InvalidModelError(f"{where}: {name} has {len(given)} numbers for {count} ports")
    return given


def read_constant(reader: OnnxReader, node: ProtoNode, scope: Scope) -> None:
    """Constant 1 to 25, in all its attributes."""
    where = node.where
    found = None
    for attribute in node.attribute:
        value = read_attribute(attribute, reader.files, where)
        match attribute.type:
            case onnx.AttributeProto.TENSOR | onnx.AttributeProto.SPARSE_TENSOR:
                found = value
            case onnx.AttributeProto.FLOAT | onnx.AttributeProto.FLOATS:
                found = Tensor.of(np.array(value, np.float32))
            case onnx.AttributeProto.INT | onnx.AttributeProto.INTS:
                found = Tensor.of(np.array(value, np.int64))
            case onnx.AttributeProto.STRING | onnx.AttributeProto.STRINGS:
                array = np.array(value, dtype=object)
                found = Tensor(STRING, array.shape, array)
    if found is None:
        raise InvalidModelError(f"{where}: has no value")
    name = node.output[0]
    scope.define(name, scope.builder.tensor(found, [scope.prefix + name], node.name))


def given_input(name: str, scope: Scope, where: str) -> Value:
    """The value of an input that may not be absent."""
    value: Value | None = scope.resolve(name, where) if name else None
    if value is None:
        raise InvalidModelError(f'{where}: its input "{name}" may not be absent')
    return value


def read_by_function(reader: OnnxReader, node: ProtoNode, scope: Scope) -> None:
    """SequenceMap 17 and other operators that hold graphs but are no control flow, by the function
    body that the standard makes for their types."""
    from bridge.onnx_format.functions import inline

    where = node.where
    if any(reader.grafts.home(a.g) for a in node.attribute):
        why = (
            "its graph is given where the function around it is called; write it into the function"
        )
        raise UnsupportedError("any format", [Unsupported(node.op_type, where, why)])
    proto = onnx.NodeProto()
    proto.CopyFrom(node.proto)
    del proto.attribute[:]
    proto.attribute.extend(node.attribute)
    schema = schema_of(node.op_type, scope.opsets[node.domain], node.domain)
    assert schema is not None, "the reader has asked for the operator's signature"
    types = []
    for name in node.input:
        value, type = given_input(name, scope, where), onnx.TypeProto()
        write_type(value.type, type)
        if type.WhichOneof("value") is None:
            raise InvalidModelError(f'{where}: the type of its input "{name}" is not known')
        types.append(type.SerializeToString())
    function = onnx.FunctionProto()
    try:
        body = schema.get_context_dependent_function(proto.SerializeToString(), types)
    except (RuntimeError, ValueError) as error:
        raise InvalidModelError(f"{where}: has no meaning: {error}") from None
    function.ParseFromString(body)
    inline(reader, function, node, scope, closed=False)


CONTROL: dict[str, Callable[[Any, ProtoNode, Scope], None]] = {
    "If": read_if,
    "Loop": read_loop,
    "Scan": read_scan,
    "Constant": read_constant,
    "SequenceMap": read_by_function,
}
