"""A variable of IR in the place of a pair of an input and an output of ONNX, and the other way
round."""

from __future__ import annotations

from collections.abc import Callable, Collection

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.rewrite import Substitution
from bridge.operators.ir_texts import format_shape


def read_variable(
    b: Builder, variable: str, start: Value, state: Value, beams: Value | None = None
) -> None:
    """Makes `state`, which was an input, what a variable holds before a call: `start` at first, and
    its sequences in the order of the `beams`."""
    attributes = {
        "variable_id": variable,
        "variable_type": state.element,
        "variable_shape": format_shape(state.shape),
    }
    if beams is None:
        b.node("ReadValue", [start], [state], attributes)
        return
    held = b.op("ReadValue", start, **attributes)
    axis = state.dims.index(beams.dims[0]) if beams.dims[0] in state.dims else 0
    b.node("Gather", [held, beams, b.constant(axis)], [state])


def assign_variable(b: Builder, variable: str, after: Value) -> None:
    """Makes `after`, which was an output, what a variable holds after a call."""
    b.node("Assign", [after], 1, {"variable_id": variable})


def take_variables(
    graph: Graph,
    variables: Collection[str],
    state_of: Callable[[Node, list[Node]], Value],
    beams: Collection[Value] = (),
) -> dict[str, Value]:
    """Takes variables out of a graph, and the selection by `beams` of what they hold. `state_of`
    makes what the first node that reads a variable gives from now on, of nodes that it may add to
    those before. The answer is what each variable is assigned."""
    substitution, nodes = Substitution(), list[Node]()
    states: dict[str, Value] = {}
    assigned: dict[str, Value] = {}
    for node in graph.nodes:
        substitution.apply(node)
        variable = node.attributes.get("variable_id", "")
        if node.op == "ReadValue" and variable in variables:
            if variable not in states:
                states[variable] = state_of(node, nodes)
            node.outputs[0].names = []
            substitution.replace(node.outputs[0], states[variable])
        elif node.op == "Assign" and variable in variables:
            (after,) = node.inputs
            assert after is not None
            assigned[variable] = after
            for output in node.outputs:
                substitution.replace(output, after)
        elif node.op == "Gather" and node.inputs[1] in beams:
            assert node.inputs[0] is not None
            substitution.replace(node.outputs[0], node.inputs[0])
        else:
            nodes.append(node)
    graph.nodes = nodes
    substitution.finish(graph)
    return assigned
