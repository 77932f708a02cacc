"""State between calls: IR's variables (ReadValue, Assign) are inputs and outputs in ONNX.

A variable `v` is the input `v`, its value before the call, and the output `v.next`, its value
after; the caller feeds the one with the other. What a variable starts with is the input's default
value, so that the first call need not feed it. Where that is computed from other inputs, an empty
tensor (the default) stands for it. The model's metadata records the variables; on the way back to
IR they are variables again.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from bridge.errors import Unsupported, UnsupportedError
from bridge.metadata import broken, read_record
from bridge.neutral.arrays import spend, zeros
from bridge.neutral.builder import Builder, integers
from bridge.neutral.graph import Body, Graph, Model, Node, Value
from bridge.neutral.ports import Invariant, Yield
from bridge.neutral.rewrite import Substitution
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import ANY, Dim, Element, Shape, TensorType, low
from bridge.operators import Refused
from bridge.operators.ir_texts import format_shape
from bridge.passes.context import Context

KEY = "state"
"""The entry of `Model.metadata` that lists variables, in JSON: `variable`, `input`, `output`."""


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
    readers = [n for n in graph.nodes if n.op == "ReadValue"]
    assigned = {n.attributes["variable_id"]: n for n in graph.nodes if n.op == "Assign"}
    if refused:
        raise UnsupportedError(str(context.target), refused)
    if not readers and not assigned:
        return
    refused = _replace_variables(model, context)
    if refused:
        raise UnsupportedError(str(context.target), refused)
    record = []
    graph.output_names = graph.output_names or [""] * len(graph.outputs)
    for name, node in assigned.items():
        value = node.inputs[0]
        assert value is not None
        after = f"{name}.next"
        graph.outputs.append(value)
        graph.output_names.append(after)
        record.append({"variable": name, "input": name, "output": after})
    model.metadata[KEY] = json.dumps(record, separators=(",", ":"))


def _replace_variables(model: Model, context: Context) -> list[Unsupported]:
    """Puts inputs in the place of what reads variables, and nothing in that of what assigns them;
    the nodes of which that cannot be done."""
    graph = model.graph
    refused: list[Unsupported] = []
    states: dict[str, Value] = {}
    substitution = Substitution()
    nodes: list[Node] = []
    for node in graph.nodes:
        substitution.apply(node)
        if node.op == "Assign":
            value = node.inputs[0]
            assert value is not None
            for output in node.outputs:
                substitution.replace(output, value)
        elif node.op == "ReadValue":
            name = node.attributes["variable_id"]
            state = states.get(name)
            if state is None:
                try:
                    state = _state(model, node, Builder(nodes, node.name, context.target))
                except Refused as why:
                    refused.append(_finding(graph, node, str(why)))
                    continue
                states[name] = state
            own = list(state.names)
            substitution.replace(node.outputs[0], state)
            state.names = own
        else:
            nodes.append(node)
    graph.nodes = nodes
    substitution.finish(graph)
    return refused


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
        state = Value(TensorType(known.element, _around(kind.shape, known.shape)), [name])
        model.graph.inputs.append(state)
        model.defaults[state] = known
        return state
    assert initial is not None
    element = kind.element or initial.element
    shape = _that_may_be_empty(kind.shape if kind.shape is not None else initial.shape)
    state = Value(TensorType(element, shape), [name])
    model.graph.inputs.append(state)
    assert element is not None
    model.defaults[state] = _empty(element, tuple(d if isinstance(d, int) else 0 for d in shape))
    absent = b.op("Equal", b.op("Size", state), b.constant(0))
    branches = tuple(
        Body(Graph([inner], [inner]), [Invariant(index)], [Yield(0)])
        for index, inner in ((1, Value(initial.type)), (2, Value(state.type)))
    )
    return b.node("If", [absent, initial, state], 1, bodies=branches).outputs[0]


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


def _around(declared: Shape, start: tuple[int, ...]) -> Shape:
    """A shape that a variable may have, at its start and later."""
    return start if declared is None else declared


def restore_state(model: Model, context: Context) -> None:
    """Makes the inputs and outputs that the model's metadata names variables of IR again, in
    place."""
    text = model.metadata.pop(KEY, None)
    if text is None:
        return
    graph = model.graph
    inputs = {name: value for value in graph.inputs for name in value.names}
    front: list[Node] = []
    for entry in _read(text):
        value = inputs.get(entry["input"])
        if (
            value is None
            or value not in model.defaults
            or entry["output"] not in graph.output_names
        ):
            continue
        tensor = model.defaults.pop(value)
        graph.inputs.remove(value)
        b = Builder(front, entry["variable"])
        start = b.tensor(tensor)
        kind = value.tensor
        attributes = {"variable_id": entry["variable"], "variable_type": kind.element}
        b.node(
            "ReadValue", [start], [value], {**attributes, "variable_shape": _spelled(kind.shape)}
        )
        index = graph.output_names.index(entry["output"])
        (last,) = (graph.outputs.pop(index),)
        del graph.output_names[index]
        Builder(graph.nodes, entry["variable"]).node(
            "Assign", [last], 1, {"variable_id": entry["variable"]}
        )
    graph.prepend(front)


def _read(text: str) -> list[dict[str, str]]:
    """The variables that a record names; InvalidModelError where it is none."""
    record: Any = read_record(text, "variables")
    keys = {"variable", "input", "output"}
    for entry in record if isinstance(record, list) else [None]:
        if not (isinstance(entry, dict) and set(entry) == keys):
            raise broken("variables", "it is no list of variables, inputs and outputs")
        if not all(isinstance(name, str) for name in entry.values()):
            raise broken("variables", "it has names that are no texts")
    return list(record)


def _spelled(shape: Shape) -> str:
    return format_shape(shape)
