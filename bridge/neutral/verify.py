"""Checks that a graph keeps the rules of the neutral graph."""

from __future__ import annotations

from typing import NoReturn

from bridge.errors import BridgeError
from bridge.neutral.attributes import fault_of
from bridge.neutral.graph import Body, Graph, Node, Value
from bridge.neutral.ports import Carried, Condition, Iteration, Stacked, Yield
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import TensorType, join


class VerificationError(BridgeError):
    """A graph breaks a rule of the neutral graph: a defect of a frontend or pass."""


def verify(graph: Graph, where: str = "graph") -> None:
    """Checks single assignment, closedness, order, attributes, port arity and types, in all nested
    graphs.

    Raises VerificationError naming the first breach and the path to it.
    """
    _graph(graph, where, set())


def _fail(where: str, what: str) -> NoReturn:
    raise VerificationError(f"{where}: {what}")


def _graph(graph: Graph, where: str, everywhere: set[Value]) -> None:
    _inputs(graph, where, everywhere)
    seen = set(graph.inputs)
    for node in graph.nodes:
        at = f"{where} / {node!r}"
        for taken in node.inputs:
            if taken is not None and taken not in seen:
                _fail(at, f"uses {taken}, which nothing before it in its graph makes")
        _outputs(node, at, everywhere)
        seen.update(node.outputs)
        _node(node, at)
        for index, body in enumerate(node.bodies):
            _graph(body.graph, f"{at} / body {index}", everywhere)
    for value in graph.outputs:
        if value not in seen:
            _fail(where, f"its output {value} is not made in it")
    if graph.output_names and len(graph.output_names) != len(graph.outputs):
        _fail(where, "has not one output name for each output")


def _inputs(graph: Graph, where: str, everywhere: set[Value]) -> None:
    for value in graph.inputs:
        if value in everywhere:
            _fail(where, f"{value} is an input twice, or belongs to another graph too")
        if value.producer is not None:
            _fail(where, f"the input {value} has a producer")
        everywhere.add(value)


def _outputs(node: Node, at: str, everywhere: set[Value]) -> None:
    for value in node.outputs:
        if value in everywhere:
            _fail(at, f"makes {value}, which is made already")
        if value.producer is not node:
            _fail(at, f"is not the producer of its output {value}")
        everywhere.add(value)


def _node(node: Node, at: str) -> None:
    if node.op == "Constant":
        _constant(node, at)
        return
    if fault := fault_of(node.op, node.attributes):
        _fail(at, fault)
    if node.op == "If":
        _if(node, at)
    elif node.op == "Loop":
        _loop(node, at)
    elif node.bodies:
        _fail(at, "has bodies, but only If and Loop may")


def _constant(node: Node, at: str) -> None:
    tensor = node.attributes.get("value")
    if not isinstance(tensor, Tensor):
        _fail(at, "is a Constant without a value")
    type = node.outputs[0].type
    if type != TensorType(tensor.element, tensor.shape):
        _fail(at, f"its output is {type}, its value {tensor}")


def _ports(node: Node, body: Body, at: str) -> None:
    if len(body.inputs) != len(body.graph.inputs):
        _fail(at, f"{len(body.inputs)} ports for {len(body.graph.inputs)} body inputs")
    if len(body.outputs) != len(body.graph.outputs):
        _fail(at, f"{len(body.outputs)} ports for {len(body.graph.outputs)} body outputs")
    for port in body.inputs:
        index = None if isinstance(port, Iteration) else port.input
        if index is not None and not (index < len(node.inputs) and node.inputs[index] is not None):
            _fail(at, f"{port} names an input that is not there")
        if isinstance(port, Carried) and port.output >= len(body.outputs):
            _fail(at, f"{port} names an output that is not there")
    taken: set[int] = set()
    for exit in body.outputs:
        index = exit.output if isinstance(exit, Yield | Stacked) else None
        if index is None:
            continue
        if index >= len(node.outputs) or index in taken:
            _fail(at, f"{exit} names an output that is not there, or is given already")
        taken.add(index)
    if len(taken) != len(node.outputs):
        _fail(at, "some of its outputs come from no body output")


def _if(node: Node, at: str) -> None:
    if len(node.bodies) != 2 or not node.inputs or node.inputs[0] is None:
        _fail(at, "needs a condition and two bodies")
    for body in node.bodies:
        _ports(node, body, at)
        if not all(isinstance(p, Yield) and p.output is not None for p in body.outputs):
            _fail(at, "a branch may only yield")
    types: dict[int, Value] = {}
    for body in node.bodies:
        for value, port in body.exits():
            assert isinstance(port, Yield) and port.output is not None
            other = types.setdefault(port.output, value)
            try:
                join(other.type, value.type)
            except TypeError:
                _fail(at, f"output {port.output} is {other.type} or {value.type}")


def _loop(node: Node, at: str) -> None:
    if len(node.bodies) != 1 or len(node.inputs) < 2:
        _fail(at, "needs a trip count and a condition (or None for each) and one body")
    (body,) = node.bodies
    _ports(node, body, at)
    if sum(isinstance(p, Condition) for p in body.outputs) > 1:
        _fail(at, "has more than one condition")


def fingerprint(node: Node) -> tuple[object, ...]:
    """What a node is and holds, its bodies included, but for types, which inference refines: two
    that are equal show that nothing was changed between them."""
    return (
        node.op,
        node.name,
        tuple(map(id, node.inputs)),
        tuple(map(id, node.outputs)),
        tuple((key, id(value)) for key, value in node.attributes.items()),
        tuple(
            (
                tuple(body.inputs),
                tuple(body.outputs),
                tuple(map(id, body.graph.inputs)),
                tuple(map(id, body.graph.outputs)),
                tuple((id(inner), fingerprint(inner)) for inner in body.graph.nodes),
            )
            for body in node.bodies
        ),
    )
