"""Replaces a pair of an input and an output of ONNX by a variable of IR, and the other way
round."""

from collections.abc import Callable, Collection
from typing import Any

from bridge.neutral.arrays import zeros
from bridge.neutral.builder import Builder, Target
from bridge.neutral.graph import Graph, Model, Node, Value
from bridge.neutral.rewrite import Pattern, Result, Rewriter
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import ANY, Dim, Element, Shape
from bridge.operators import Refused
from bridge.operators.bodies import either
from bridge.operators.ir_texts import format_shape


def read_variable(
    b: Builder, variable: str, start: Value, state: Value, beams: Value | None = None
) -> None:
    """Makes `state`, which was an input, the contents of a variable before a call. The variable
    holds `start` at first. With `beams`, the variable's sequences are put in their order."""
    attributes = variable_attributes(variable, state)
    if beams is None:
        b.node("ReadValue", [start], [state], attributes)
        return
    held = b.op("ReadValue", start, **attributes)
    axis = state.dims.index(beams.dims[0]) if beams.dims[0] in state.dims else 0
    b.node("Gather", [held, beams, b.constant(axis)], [state])


def variable_attributes(variable: str, state: Value) -> dict[str, Any]:
    """The attributes of a ReadValue whose output is `state`."""
    return {
        "variable_id": variable,
        "variable_type": state.element,
        "variable_shape": format_shape(state.shape),
    }


def assign_variable(b: Builder, variable: str, after: Value) -> None:
    """Assigns `after`, which was an output, to a variable."""
    b.node("Assign", [after], 1, {"variable_id": variable})


def take_variables(
    graph: Graph,
    variables: Collection[str],
    state_of: Callable[[Builder, Node], Value],
    target: Target | None = None,
    beams: Collection[Value] = (),
) -> dict[str, Value]:
    """Removes variables from a graph, and the Gathers that select their sequences by `beams`.
    `state_of` gets the first node that reads a variable, and makes the value that replaces the
    node's output. The answer is the value that was assigned to each variable."""
    states: dict[str, Value] = {}
    assigned: dict[str, Value] = {}

    def taken(b: Builder, node: Node, rewriter: Rewriter) -> Result:
        if node.op == "Gather":
            return node.inputs[0] if node.inputs[1] in beams else None
        variable = node.attributes["variable_id"]
        if variable not in variables:
            return None
        if node.op == "ReadValue":
            if variable not in states:
                states[variable] = state_of(b, node)
            rewriter.replace(node.outputs[0], states[variable], names=False)
            return ()
        assigned[variable] = after = node.operand(0)
        return [after] * len(node.outputs)

    ops = frozenset({"Assign", "Gather", "ReadValue"})
    Rewriter(graph).run(Pattern(taken, ops, target, bodies=False))
    return assigned


def or_start(b: Builder, model: Model, state: Value, start: Value) -> Value:
    """The contents of a variable that is now the input `state` of a model. An empty tensor is the
    input's default. If the input is empty, the contents are `start`."""
    sizes = tuple(dim if isinstance(dim, int) else 0 for dim in state.dims)
    model.defaults[state] = empty(state.known_element, sizes)
    absent = b.op("Equal", b.op("Size", state), 0)
    (value,) = either(b, absent, [start, state], lambda _, v: v[:1], lambda _, v: v[1:])
    return value


def empty(element: Element, shape: tuple[int, ...]) -> Tensor:
    """Zeros of this shape."""
    return Tensor(element, shape, zeros(shape, element.dtype, "the start of a variable"))


def that_may_be_empty(shape: Shape) -> tuple[Dim, ...]:
    """The shape, with a dimension that may be 0."""
    if not shape:
        raise Refused("what it starts with is computed, and its rank is 0 or unknown")
    dims: list[Dim] = [d if isinstance(d, int) and d > 0 else ANY for d in shape]
    return tuple(dims) if ANY in dims else (ANY, *dims[1:])
