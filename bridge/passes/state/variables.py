"""State between calls: IR's variables (ReadValue, Assign) are inputs and outputs in ONNX.

A variable `v` is the input `v`, its value before the call, and the output `v.next`, its value
after; the caller feeds the one with the other. What a variable starts with is the input's default
value, so that the first call need not feed it. Where that is computed from other inputs, an empty
tensor (the default) stands for it. The model's metadata records the variables; on the way back to
IR they are variables again.
"""

from __future__ import annotations

import numpy as np

from bridge.errors import Unsupported, UnsupportedError
from bridge.neutral.arrays import spend, zeros
from bridge.neutral.builder import Builder, integers
from bridge.neutral.graph import Body, Graph, Model, Node, Value
from bridge.neutral.ports import Invariant, Yield
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import ANY, Dim, Element, Shape, TensorType, low
from bridge.operators import Refused
from bridge.passes.context import Context
from bridge.passes.state.exchange import assign_variable, read_variable, take_variables
from bridge.passes.state.records import STATE, StatePair


def lower_state(model: Model, context: Context) -> None:
    """Makes inputs and outputs of the variables of a model, in place.

    Raises UnsupportedError with the nodes that stand in the way.
    """
    graph = model.graph
    refused = [
        _finding(graph, n, "a variable inside the body of an If or Loop has no counterpart in ONNX")
        for outer in graph.nodes
        for body in outer.bodies
        for n in body.graph.walk()
        if n.op in ("ReadValue", "Assign")
    ]
    if refused:
        raise UnsupportedError(str(context.target), refused)
    variables = {
        n.attributes["variable_id"] for n in graph.nodes if n.op in ("ReadValue", "Assign")
    }
    if not variables:
        return

    def state_of(b: Builder, node: Node) -> Value:
        try:
            return _state(model, node, b)
        except Refused as why:
            refused.append(_finding(graph, node, str(why)))
            return Value(node.outputs[0].type)

    assigned = take_variables(graph, variables, state_of, context.target)
    if refused:
        raise UnsupportedError(str(context.target), refused)
    pairs = [StatePair(name, name, f"{name}.next") for name in assigned]
    graph.output_names = graph.output_names or [""] * len(graph.outputs)
    graph.outputs += assigned.values()
    graph.output_names += [pair.output for pair in pairs]
    STATE.write(model.metadata, pairs)


def _finding(graph: Graph, node: Node, why: str) -> Unsupported:
    return Unsupported(node.op, f"{graph.name or 'graph'} / {node!r}", why)


def _state(model: Model, node: Node, b: Builder) -> Value:
    """The value of a variable before the call: a new input, or what the variable starts with where
    that is empty."""
    initial = node.input(0)
    kind = node.outputs[0].tensor
    name = node.attributes["variable_id"]
    known = _known(initial, kind)
    if known is not None:
        shape = known.shape if kind.shape is None else kind.shape
        return _input(model, name, TensorType(known.element, shape), known)
    assert initial is not None
    element = kind.element or initial.element
    assert element is not None
    shape = _that_may_be_empty(kind.shape if kind.shape is not None else initial.shape)
    empty = _empty(element, tuple(d if isinstance(d, int) else 0 for d in shape))
    state = _input(model, name, TensorType(element, shape), empty)
    absent = b.op("Equal", b.op("Size", state), b.constant(0))
    branches = tuple(
        Body(Graph([inner], [inner]), [Invariant(index)], [Yield(0)])
        for index, inner in ((1, Value(initial.type)), (2, Value(state.type)))
    )
    return b.node("If", [absent, initial, state], 1, bodies=branches).outputs[0]


def _input(model: Model, name: str, type: TensorType, default: Tensor) -> Value:
    """A new input of the model."""
    value = Value(type, [name])
    model.graph.inputs.append(value)
    model.defaults[value] = default
    return value


def _known(initial: Value | None, kind: TensorType) -> Tensor | None:
    """What a variable starts with, where it is a constant: zeros where it is not given."""
    if initial is None:
        assert kind.element is not None
        return _empty(kind.element, tuple(low(dim) for dim in kind.shape or ()))
    if initial.constant is not None:
        return initial.constant
    producer = initial.producer
    if producer is not None and producer.op == "Expand":
        source, dims = producer.inputs[0], integers(producer.inputs[1])
        if source is not None and source.constant is not None and dims is not None:
            array = source.constant.array()
            spend((*dims,), array.dtype, f'the start of the variable "{producer.name}"')
            return Tensor.of(np.array(array * np.ones(dims, array.dtype)))
    return None


def _that_may_be_empty(shape: Shape) -> tuple[Dim, ...]:
    """The shape, with a dimension that may be 0."""
    if not shape:
        raise Refused("what it starts with is computed, and its rank is 0 or unknown")
    dims: list[Dim] = [d if isinstance(d, int) and d > 0 else ANY for d in shape]
    return tuple(dims) if ANY in dims else (ANY, *dims[1:])


def _empty(element: Element, shape: tuple[int, ...]) -> Tensor:
    return Tensor(element, shape, zeros(shape, element.dtype, "the start of a variable"))


def restore_state(model: Model, context: Context) -> None:
    """Makes the inputs and outputs that the model's metadata names variables of IR again, in
    place."""
    graph = model.graph
    inputs = {name: value for value in graph.inputs for name in value.names}
    front: list[Node] = []
    for pair in STATE.take(model.metadata) or ():
        value = inputs.get(pair.input)
        if value is None or value not in model.defaults or pair.output not in graph.output_names:
            continue
        graph.inputs.remove(value)
        b = Builder(front, pair.variable)
        read_variable(b, pair.variable, b.tensor(model.defaults.pop(value)), value)
        index = graph.output_names.index(pair.output)
        del graph.output_names[index]
        last = graph.outputs.pop(index)
        assign_variable(Builder(graph.nodes, pair.variable), pair.variable, last)
    graph.prepend(front)
