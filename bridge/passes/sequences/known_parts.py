"""The nodes that `restore.py` wrote at the boundary of an ONNX model, recognised on the way to IR.

The tensors that stand for a sequence or an optional are the inputs and outputs again. They are
recognised by building the same nodes and comparing. ONNX could hold a record of them, but a record
alone proves nothing about a file that another tool has changed.
"""

from collections.abc import Iterator
from itertools import chain, combinations

from bridge.errors import UnsupportedError
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Model, Node, Value, names_of_outputs
from bridge.neutral.match import Match
from bridge.neutral.rewrite import Pattern, Rewriter
from bridge.neutral.types import (
    ANY,
    BOOL,
    I64,
    Dim,
    OptionalType,
    SequenceType,
    TensorType,
    Type,
    innermost,
)
from bridge.operators import Refused
from bridge.passes.context import Context
from bridge.passes.dead import remove_dead_nodes
from bridge.passes.sequences.compound_boundary import input_form, shape_of, write_boundary
from bridge.passes.sequences.form import is_compound
from bridge.passes.sequences.restore import from_parts, to_parts
from bridge.records.boundary import BoundaryRecord, BoundaryValue


def know_parts(model: Model, context: Context) -> None:
    """Replaces, in place, sequences and optionals that Bridge restored at the boundary by their
    tensors, and records the meaning of these tensors."""
    graph, boundary = model.graph, context.boundary
    _inputs(graph, boundary)
    _outputs(graph, boundary)
    write_boundary(model, boundary)


def _outputs(graph: Graph, boundary: BoundaryRecord) -> None:
    names = names_of_outputs(graph)
    inside = {*graph.inputs, *(value for node in graph.nodes for value in node.outputs)}
    outputs: list[Value] = []
    output_names: list[str] = []
    for value, name in zip(graph.outputs, names, strict=True):
        recorded, parts = _output(value, inside) if is_compound(value) else (None, [value])
        outputs += parts
        output_names += [name] if recorded is None else recorded.parts(name)
        if recorded is not None:
            boundary.outputs[name] = recorded
    if boundary.outputs:
        graph.outputs, graph.output_names = outputs, output_names


def _output(value: Value, inside: set[Value]) -> tuple[BoundaryValue | None, list[Value]]:
    """The record of an output and its tensors, among those `inside` the graph. If it was not put
    together from tensors, the record is None and the output stays."""
    for recorded in _candidates(value.type):
        parts = [Value(type) for type in _types(recorded)]
        nodes: list[Node] = []
        match = Match({}, parts)
        if match.alike((from_parts(Builder(nodes), recorded, list(parts)), value)):
            tensors = [match.bound[part] for part in parts]
            if inside.issuperset(tensors):
                return _with_rank(recorded, tensors[-1], value.type), tensors
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


def _with_rank(recorded: BoundaryValue, last: Value, type: Type) -> BoundaryValue:
    """The record with the rank that the tensors have. `last` is the last of them."""
    rank: Dim | None = last.rank
    if recorded.kind == "ragged":
        rank = last.dims[1] if rank == 2 else None
    if isinstance(rank, int):
        recorded.shape = shape_of(innermost(type), rank)
    return recorded


def _inputs(graph: Graph, boundary: BoundaryRecord) -> None:
    inputs: list[Value] = []
    for whole in graph.inputs:
        recorded = _input(graph, whole, inputs) if is_compound(whole) else None
        if recorded is None:
            inputs.append(whole)
        else:
            boundary.inputs[whole.name] = recorded
    graph.inputs = inputs


def _input(graph: Graph, whole: Value, inputs: list[Value]) -> BoundaryValue | None:
    """The record of an input. Its tensors become `inputs`, and replace the values that were
    computed from it. None if other nodes use the input too."""
    try:
        form, recorded = input_form(whole.name, whole.type)
    except (Refused, UnsupportedError):
        return None
    parts = form.leaves()
    # A model need not use all parts.
    choices = (combinations(range(len(parts)), size) for size in range(len(parts), 0, -1))
    matches = (
        _matched_parts(graph, whole, recorded, used) for used in chain.from_iterable(choices)
    )
    values, nodes = next(filter(None, matches), ({}, set[Node]()))
    if not values:
        return None
    rewriter = Rewriter(graph)
    for index, value in values.items():
        rewriter.replace(value, parts[index], names=False)
    ops = frozenset(node.op for node in nodes)
    rewriter.run(Pattern(lambda b, node, _: () if node in nodes else None, ops, bodies=False))
    inputs += parts
    return recorded


def _matched_parts(
    graph: Graph, whole: Value, recorded: BoundaryValue, used: tuple[int, ...]
) -> tuple[dict[int, Value], set[Node]] | None:
    """The values that are these parts of an input, and the nodes that compute them. None if other
    values are computed from the input too."""
    inside = Value(whole.type)
    pattern = Graph([inside])
    taken = to_parts(Builder(pattern.nodes), inside, recorded)
    pattern.outputs = [taken[index] for index in used]
    remove_dead_nodes(pattern, trim=True)
    match = Match({inside: whole})
    values: dict[int, Value] = {}
    for index, part in zip(used, pattern.outputs, strict=True):
        value = next((v for v in _candidates_for(graph, part) if match.alike((part, v))), None)
        if value is None:
            return None
        values[index] = value
    nodes = set(match.nodes.values())
    within = {value for node in nodes for value in node.outputs} - set(values.values()) | {whole}
    outside = {value for node in graph.nodes if node not in nodes for value in node.inputs}
    return None if within & (outside | set(graph.outputs)) else (values, nodes)


def _candidates_for(graph: Graph, pattern: Value) -> Iterator[Value]:
    """The same output of each node of the operator that computes the pattern."""
    place = pattern.node.outputs.index(pattern)
    for node in graph.nodes:
        if node.op == pattern.node.op and place < len(node.outputs):
            yield node.outputs[place]
