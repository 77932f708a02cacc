"""Checks that a graph keeps the rules of the neutral graph."""

from typing import NoReturn

from bridge.errors import BridgeError, Refused
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


def _fail(where: str, what: str, node: Node | None = None) -> NoReturn:
    at = where if node is None else f"{where} / {node!r}"
    raise VerificationError(f"{at}: {what}")


def _graph(graph: Graph, where: str, everywhere: set[Value]) -> None:
    _inputs(graph, where, everywhere)
    seen = set(graph.inputs)
    for node in graph.nodes:
        for taken in node.operands:
            if taken not in seen:
                _fail(where, f"uses {taken}, which no node before it in its graph makes", node)
        _outputs(node, where, everywhere)
        seen.update(node.outputs)
        _node(node, where)
        for index, body in enumerate(node.bodies):
            _graph(body.graph, f"{where} / {node!r} / body {index}", everywhere)
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


def _outputs(node: Node, where: str, everywhere: set[Value]) -> None:
    for value in node.outputs:
        if value in everywhere:
            _fail(where, f"makes {value}, which is made already", node)
        if value.producer is not node:
            _fail(where, f"is not the producer of its output {value}", node)
        everywhere.add(value)


def _node(node: Node, where: str) -> None:
    if node.op == "Constant":
        _constant(node, where)
        return
    if fault := fault_of(node.op, node.attributes):
        _fail(where, fault, node)
    if node.op == "If":
        _if(node, where)
    elif node.op == "Loop":
        _loop(node, where)
    elif node.bodies:
        _fail(where, "has bodies, but only If and Loop may", node)


def _constant(node: Node, where: str) -> None:
    tensor = node.attributes.get("value")
    if not isinstance(tensor, Tensor):
        _fail(where, "is a Constant without a value", node)
    type = node.outputs[0].type
    if type != TensorType(tensor.element, tensor.shape):
        _fail(where, f"its output is {type}, its value {tensor}", node)
    if not tensor.is_whole:
        _fail(where, f"the value of {tensor} has not as many elements", node)


def _ports(node: Node, body: Body, where: str) -> None:
    if len(body.inputs) != len(body.graph.inputs):
        _fail(where, f"{len(body.inputs)} ports for {len(body.graph.inputs)} body inputs", node)
    if len(body.outputs) != len(body.graph.outputs):
        _fail(where, f"{len(body.outputs)} ports for {len(body.graph.outputs)} body outputs", node)
    for port in body.inputs:
        index = None if isinstance(port, Iteration) else port.input
        if index is not None and not (index < len(node.inputs) and node.inputs[index] is not None):
            _fail(where, f"{port} names an input that is not there", node)
        if isinstance(port, Carried) and port.output >= len(body.outputs):
            _fail(where, f"{port} names an output that is not there", node)
    taken: set[int] = set()
    for exit in body.outputs:
        index = exit.output if isinstance(exit, Yield | Stacked) else None
        if index is None:
            continue
        if index >= len(node.outputs) or index in taken:
            _fail(where, f"{exit} names an output that is not there, or is given already", node)
        taken.add(index)
    if len(taken) != len(node.outputs):
        _fail(where, "some of its outputs come from no body output", node)


def _if(node: Node, where: str) -> None:
    if len(node.bodies) != 2 or not node.inputs or node.inputs[0] is None:
        _fail(where, "needs a condition and two bodies", node)
    for body in node.bodies:
        _ports(node, body, where)
        if not all(isinstance(p, Yield) and p.output is not None for p in body.outputs):
            _fail(where, "a branch may only yield", node)
    types: dict[int, Value] = {}
    for body in node.bodies:
        for value, output in body.results():
            other = types.setdefault(output, value)
            try:
                join(other.type, value.type)
            except Refused:
                _fail(where, f"output {output} is {other.type} or {value.type}", node)


def _loop(node: Node, where: str) -> None:
    if len(node.bodies) != 1 or len(node.inputs) < 2:
        _fail(where, "needs a trip count and a condition (or None for each) and one body", node)
    (body,) = node.bodies
    _ports(node, body, where)
    if sum(isinstance(p, Condition) for p in body.outputs) > 1:
        _fail(where, "has more than one condition", node)


def fingerprint(node: Node) -> tuple[object, ...]:
    """All facts of a node, its bodies included, without types, which inference refines. Two equal
    fingerprints show that the node did not change between them."""
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
