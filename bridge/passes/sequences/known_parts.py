"""The nodes that `restore.py` made at the boundary of an ONNX model, recognised on the way to IR.

The tensors that stand for a sequence or an optional are the inputs and outputs again.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from bridge.errors import UnsupportedError
from bridge.neutral.boundary_record import BoundaryRecord, BoundaryValue
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Model, Node, Value, names_of_outputs
from bridge.neutral.match import Match
from bridge.neutral.rewrite import Pattern, Rewriter
from bridge.neutral.types import (
    ANY,
    BOOL,
    I64,
    OptionalType,
    SequenceType,
    TensorType,
    Type,
    innermost,
)
from bridge.operators import Refused
from bridge.passes.context import Context
from bridge.passes.dead import remove_dead_nodes
from bridge.passes.sequences.boundary import input_form, shape_of, write_boundary
from bridge.passes.sequences.form import is_compound
from bridge.passes.sequences.restore import put_together, taken_apart


def know_parts(model: Model, context: Context) -> None:
    """Replaces, in place, sequences and optionals that Bridge restored at the boundary by their
    tensors, and records the meaning of these tensors."""
    graph, boundary = model.graph, context.boundary
    _inputs(graph, boundary)
    _outputs(graph, boundary)
    write_boundary(model, boundary)


def _outputs(graph: Graph, boundary: BoundaryRecord) -> None:
    names = names_of_outputs(graph)
    own_values = {*graph.inputs, *(value for node in graph.nodes for value in node.outputs)}
    outputs: list[Value] = []
    own: list[str] = []
    for value, name in zip(graph.outputs, names, strict=True):
        recorded, parts = _output(value, own_values) if is_compound(value) else (None, [value])
        outputs += parts
        own += [name] if recorded is None else recorded.parts(name)
        if recorded is not None:
            boundary.outputs[name] = recorded
    if boundary.outputs:
        graph.outputs, graph.output_names = outputs, own


def _output(value: Value, own: set[Value]) -> tuple[BoundaryValue | None, list[Value]]:
    """The record of an output and its tensors, among the graph's `own`. If it was not put together
    from tensors, the record is None and the output stays."""
    for recorded in _candidates(value.type):
        parts = [Value(type) for type in _types(recorded)]
        nodes: list[Node] = []
        match = Match({}, parts)
        if match.alike((put_together(Builder(nodes), recorded, list(parts)), value)):
            found = [match.bound[part] for part in parts]
            if own.issuperset(found):
                return _as_found(recorded, found[-1], value.type), found
    return None, [value]


def _candidates(type: Type) -> Iterator[BoundaryValue]:
    """The records from which Bridge may have restored a value of a type."""
    optional = isinstance(type, OptionalType)
    item = type.item if isinstance(type, OptionalType) else type
    element = innermost(item).element
    if element is None:
        return
    if isinstance(item, SequenceType):
        for mixed in (False, True):
            yield BoundaryValue(
                "ragged", element.name, shape_of(innermost(item)), optional, mixed=mixed
            )
    elif optional:
        yield BoundaryValue("tensor", element.name, shape_of(item), optional)


def _types(recorded: BoundaryValue) -> list[TensorType]:
    element = recorded.type
    present = [TensorType(BOOL, ())] if recorded.optional else []
    if recorded.kind == "tensor":
        return [*present, TensorType(element)]
    return [*present, TensorType(element, (ANY,)), TensorType(I64, (ANY, ANY))]


def _as_found(recorded: BoundaryValue, last: Value, type: Type) -> BoundaryValue:
    """A recorded with the rank that its tensors have."""
    shape = last.shape
    rank: object = None
    if recorded.kind == "ragged":
        rank = shape[1] if shape is not None and len(shape) == 2 else None
    elif shape is not None:
        rank = len(shape)
    if isinstance(rank, int):
        recorded.shape = shape_of(innermost(type), rank)
    return recorded


def _inputs(graph: Graph, boundary: BoundaryRecord) -> None:
    inputs: list[Value] = []
    for whole in graph.inputs:
        known = _input(graph, whole) if is_compound(whole) else None
        if known is None:
            inputs.append(whole)
            continue
        recorded, parts = known
        boundary.inputs[whole.name] = recorded
        inputs += parts
    graph.inputs = inputs


def _input(graph: Graph, whole: Value) -> tuple[BoundaryValue, list[Value]] | None:
    """The record of an input and its tensors. They replace the values that were made of the input.
    None if other nodes use the input too."""
    try:
        form, recorded = input_form(whole.name, whole.type)
    except (Refused, UnsupportedError):
        return None
    parts = list(form.leaves())
    for used in _choices(len(parts)):
        made = _made(graph, whole, recorded, used)
        if made is not None:
            break
    else:
        return None
    found, matched = made
    rewriter = Rewriter(graph)
    for index, value in zip(used, found, strict=True):
        rewriter.replace(value, parts[index], names=False)
    ops = frozenset(node.op for node in matched)
    rewriter.run(Pattern(lambda b, node, _: () if node in matched else None, ops, bodies=False))
    return recorded, parts


def _choices(count: int) -> Iterator[tuple[int, ...]]:
    """The combinations of parts that a model may use: all of them first."""
    for size in range(count, 0, -1):
        yield from combinations(range(count), size)


def _made(
    graph: Graph, whole: Value, recorded: BoundaryValue, used: tuple[int, ...]
) -> tuple[list[Value], set[Node]] | None:
    """The values that are these parts of an input, and the nodes that take it apart. None if
    other values are made of the input too."""
    inside = Value(whole.type)
    pattern = Graph([inside])
    taken = taken_apart(Builder(pattern.nodes), inside, recorded)
    pattern.outputs = [taken[index] for index in used]
    remove_dead_nodes(pattern, trim=True)
    match = Match({inside: whole})
    found = []
    for part in pattern.outputs:
        value = next((v for v in _alike(graph, part) if match.alike((part, v))), None)
        if value is None:
            return None
        found.append(value)
    matched = set(match.nodes.values())
    return (found, matched) if _is_all(graph, whole, found, matched) else None


def _alike(graph: Graph, pattern: Value) -> Iterator[Value]:
    """The values of a graph that a node of the pattern's operator makes."""
    made = pattern.producer
    assert made is not None
    place = made.outputs.index(pattern)
    for node in graph.nodes:
        if node.op == made.op and place < len(node.outputs):
            yield node.outputs[place]


def _is_all(graph: Graph, whole: Value, parts: list[Value], matched: set[Node]) -> bool:
    """Whether the parts are the only used results of the matched nodes."""
    within = {value for node in matched for value in node.outputs} - set(parts) | {whole}
    used = {v for node in graph.nodes if node not in matched for v in node.inputs}
    return not within & (used | set(graph.outputs))
