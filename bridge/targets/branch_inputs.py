"""How the branches of Ifs find their inputs, on devices that do not read port maps.

Each branch means the same before and after: an input that it does not read, or a copy of a value,
changes nothing. The way back drops both.
"""

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Graph, Model, Node, Value
from bridge.neutral.ports import Invariant
from bridge.passes.context import Context
from bridge.quirks.opaque import opaque
from bridge.targets import device_of


def arrange_branches(model: Model, context: Context) -> None:
    """Arranges, in place, the inputs of all Ifs as the device finds them."""
    how = device_of(context.options).branches
    if how == "port":
        return
    bodies = [body.graph for node in model.graph.walk() for body in node.bodies]
    for graph in (model.graph, *bodies):
        for node in [node for node in graph.nodes if node.op == "If"]:
            if how == "producer":
                _part(graph, node, context)
            else:
                _align(node)


def is_aligned(node: Node) -> bool:
    """Whether each branch of an If declares all of its inputs, in their order."""
    every = [Invariant(index) for index in range(1, len(node.inputs))]
    return all(body.inputs == every for body in node.bodies)


def is_parted(node: Node) -> bool:
    """Whether no two inputs of an If come from one producer."""
    producers = [value.producer or value for value in node.inputs[1:] if value is not None]
    return len({*producers}) == len(producers)


def _align(node: Node) -> None:
    """The NPU compiler ignores port maps: the i-th Parameter of a branch gets the input i + 1 of
    the If. So each branch declares all of them. One that a branch reads twice, and the condition,
    become inputs of their own."""
    for body in node.bodies:
        seen: set[int] = {0}
        for index, port in enumerate(body.inputs):
            assert isinstance(port, Invariant)
            if port.input in seen:
                node.inputs.append(node.inputs[port.input])
                body.inputs[index] = Invariant(len(node.inputs) - 1)
            seen.add(port.input)
    for body in node.bodies:
        _declare_all(node, body)


def _declare_all(node: Node, body: Body) -> None:
    known = {port.input: value for value, port in body.entries() if isinstance(port, Invariant)}
    body.graph.inputs = []
    for index in range(1, len(node.inputs)):
        value = known.get(index) or Value(node.operand(index).type)
        body.graph.inputs.append(value)
    body.inputs = [Invariant(index) for index in range(1, len(node.inputs))]


def _part(graph: Graph, node: Node, context: Context) -> None:
    """Copies inputs of an If that have the same producer, except the first. The GPU plugin tells
    the inputs of an If apart by their producer alone, without its port."""
    copies: list[Node] = []
    b = Builder(copies, node.name, context.target)
    seen: set[object] = set()
    for index in range(1, len(node.inputs)):
        value = node.operand(index)
        producer = value.producer or value
        if producer in seen:
            node.inputs[index] = opaque(b, value, "memory")
        seen.add(producer)
    place = graph.nodes.index(node)
    graph.nodes[place:place] = copies
