"""Gives each output of an IR its own value, so that each has its own name.

OpenVINO keeps names at tensors. In a compiled model, outputs of one value have one name, the name
of the last output. An input that is also an output has the output's name. A copy keeps them apart:
a second Constant, or a Cast to the value's own type. OpenVINO's CPU plugin casts numbers of 64 bits
through f32 and i32, but not in an Identity, which newer releases have.

The copies are made before the quirks, because OpenVINO computes some of them wrongly
(`converted_input`). They are made again after the quirks, because folding takes away the Casts that
no quirk has kept.
"""

from collections.abc import Hashable

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Model, Value, names_of_outputs, operand_of
from bridge.neutral.types import F64, STRING, U64
from bridge.passes.context import Context


def own_outputs(model: Model, context: Context) -> bool:
    """Copies, in place, inputs and outputs that are also an output with another name; returns
    whether there were any."""
    graph, asked = model.graph, context.options
    exact = (asked.get("device") or "CPU") == "CPU" and not asked.get("openvino")
    names: dict[Value, set[str]] = {value: {value.name} for value in graph.inputs}
    taken: dict[Value, set[str]] = {}
    for index, (value, name) in enumerate(zip(graph.outputs, names_of_outputs(graph), strict=True)):
        known = names.setdefault(value, {name})
        if name not in known and value.element not in (None, STRING):
            graph.outputs[index] = _copy(graph, value, name, exact and value.element in (F64, U64))
            taken.setdefault(value, set()).add(name)
    for value, own in taken.items():
        value.names = [name for name in value.names if name not in own]
    return bool(taken)


def _copy(graph: Graph, value: Value, name: str, exact: bool) -> Value:
    """A copy under a name that the value loses."""
    b = Builder(graph.nodes)
    if value.constant is not None:
        return b.tensor(value.constant, [name])
    copy = b.op("Identity", value) if exact else b.op("Cast", value, to=value.element)
    copy.names = [name]
    return copy


def join_outputs(model: Model, context: Context) -> bool:
    """Replaces, in place, such copies at outputs by their sources; returns whether it did."""
    graph = model.graph
    known: dict[Hashable, Value] = {value: value for value in graph.inputs}
    before = list(graph.outputs)
    for index, value in enumerate(before):
        source = known.get(_source(value), value)
        graph.outputs[index] = source
        known.setdefault(source, source)
        if source.constant is not None:
            known.setdefault(_source(source), source)
    return graph.outputs != before


def _source(value: Value) -> Hashable:
    """What a value is a copy of, if it is like the copies made here: a value, or the bytes of a
    constant; else the value itself."""
    tensor, cast = value.constant, operand_of(value, "Cast", "Identity")
    if tensor is not None:
        return tensor.element, tensor.shape, tensor.storage
    return cast if cast is not None and cast.element is value.element else value
