"""Gives each output of an IR its own value, so that each has its own name.

OpenVINO keeps names at tensors. In a compiled model, outputs of one value have one name, the name
of the last output. An input that is also an output has the output's name. A copy keeps them apart:
a second Constant, or a Cast to the value's own type.

The copies are made before the quirks, because OpenVINO computes some of them wrongly
(`converted_input`). They are made again after the quirks, because folding takes away the Casts that
no quirk has kept.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Model, Value, names_of_outputs, operand_of
from bridge.neutral.types import STRING
from bridge.passes.context import Context


def own_outputs(model: Model, context: Context) -> bool:
    """Copies, in place, inputs and outputs that are also an output with another name; returns
    whether there were any."""
    graph = model.graph
    names: dict[Value, set[str]] = {value: {value.name} for value in graph.inputs}
    changed = False
    for index, (value, name) in enumerate(zip(graph.outputs, names_of_outputs(graph), strict=True)):
        known = names.setdefault(value, {name})
        if name not in known and value.element not in (None, STRING):
            graph.outputs[index] = _copy(graph, value, name)
            changed = True
    return changed


def _copy(graph: Graph, value: Value, name: str) -> Value:
    """A copy that takes over a name of the value."""
    b = Builder(graph.nodes)
    value.names = [other for other in value.names if other != name]
    if value.constant is not None:
        return b.tensor(value.constant, [name])
    copy = b.op("Cast", value, to=value.element)
    copy.names = [name]
    return copy


def join_outputs(model: Model, context: Context) -> bool:
    """Replaces, in place, such copies at outputs by their sources; returns whether it did."""
    graph = model.graph
    given = list(graph.inputs)
    before = list(graph.outputs)
    for index, value in enumerate(before):
        graph.outputs[index] = next((one for one in given if _is_copy(value, one)), value)
        given.append(graph.outputs[index])
    return graph.outputs != before


def _is_copy(value: Value, of: Value) -> bool:
    """Whether a value is a copy like the copies made here."""
    if value.constant is not None and of.constant is not None:
        one, other = value.constant, of.constant
        return (one.element, one.shape, one.storage) == (other.element, other.shape, other.storage)
    return operand_of(value, "Cast") is of and value.element is of.element
