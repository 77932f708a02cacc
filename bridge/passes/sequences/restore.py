"""Restores sequences and optionals at the boundary of an ONNX model, if its IR came from one."""

from dataclasses import replace

import numpy as np

from bridge.errors import InvalidModelError
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Graph, Model, Node, Value
from bridge.neutral.ports import Carried, Condition, Invariant, Iteration, Stacked, Yield
from bridge.neutral.types import (
    ANY,
    BOOL,
    I64,
    Element,
    OptionalType,
    SequenceType,
    Shape,
    TensorType,
    Type,
)
from bridge.operators.bodies import either
from bridge.passes.applies import applies, rewrites
from bridge.passes.context import Context
from bridge.records.boundary import BOUNDARY, CONSTANTS, BoundaryRecord, BoundaryValue


@applies(rewrites)
def restore_boundary(model: Model, context: Context) -> None:
    """Gives the model back, in place, the inputs and outputs that its metadata records."""
    model.metadata.pop(CONSTANTS.key, None)
    boundary = BOUNDARY.take(model.metadata)
    if boundary is None:
        return
    graph = model.graph
    front: list[Node] = []
    _restore_inputs(graph, boundary, Builder(front, target=context.target))
    back: list[Node] = []
    _restore_outputs(graph, boundary, Builder(back, target=context.target))
    graph.nodes = [*front, *graph.nodes, *back]


def _type(recorded: BoundaryValue) -> Type:
    tensor: Type = TensorType(recorded.type, _shape(recorded))
    type = tensor if recorded.kind in ("tensor", "open") else SequenceType(tensor)
    return OptionalType(type) if recorded.optional else type


def _shape(recorded: BoundaryValue) -> Shape:
    if recorded.shape is None or recorded.mixed:
        return None
    return tuple(ANY if dim is None else dim for dim in recorded.shape)


def _require_elements(name: str, recorded: BoundaryValue, parts: list[Value]) -> None:
    """Raises InvalidModelError if the tensors that stand for `name` hold other elements."""
    held = parts[1:] if recorded.optional else parts
    if recorded.optional and parts[0].element not in (None, BOOL):
        raise InvalidModelError(
            f'the model\'s record of its sequences says that "{parts[0].name}" tells whether '
            f'"{name}" is there; it is {parts[0].element}'
        )
    for value in held[:1] if recorded.kind in ("open", "ragged") else held:
        if value.element not in (None, recorded.type):
            raise InvalidModelError(
                f'the model\'s record of its sequences says that "{name}" holds '
                f'{recorded.element}; "{value.name}" is {value.element}'
            )


def _restore_inputs(graph: Graph, boundary: BoundaryRecord, b: Builder) -> None:
    named = {name: value for value in graph.inputs for name in value.names}
    restored: dict[str, Value] = {}
    for name, recorded in boundary.inputs.items():
        parts = []
        for part in recorded.parts(name):
            if part not in named:
                raise BOUNDARY.names_nothing(part)
            parts.append(named[part])
        _require_elements(name, recorded, parts)
        there = parts[-1].shape
        if recorded.kind == "tensor" and there is not None and len(there) != recorded.rank:
            # The record may be of a file that somebody changed.
            sizes: list[int | str | None] = [d if isinstance(d, int) else None for d in there]
            recorded = replace(recorded, shape=sizes)
        b.name = name
        restored[name] = whole = Value(_type(recorded), [name])
        for old, new in zip(parts, to_parts(b, whole, recorded), strict=True):
            _become(b, old, new)
    for name in boundary.input_order:
        if name not in restored and name not in named:
            raise BOUNDARY.names_nothing(name)
    graph.inputs = [restored.get(name) or named[name] for name in boundary.input_order]


def _become(b: Builder, old: Value, new: Value) -> None:
    """Replaces `old`, which was an input, by `new`."""
    old.names = [f"{name}.part" for name in old.names[:1]]
    b.node("Identity", [new], [old])


def to_parts(b: Builder, whole: Value, recorded: BoundaryValue) -> list[Value]:
    """The tensors that stand for a sequence or an optional, in the order of `parts`."""
    value, present = whole, []
    if recorded.optional:
        present = [b.op("OptionalHasElement", whole)]
        value = _element_or_dummy(b, whole, present[0], recorded)
    if recorded.kind == "tensor":
        return [*present, value]
    return [*present, *_flattened(b, value, recorded.type, recorded.rank)]


def _element_or_dummy(b: Builder, whole: Value, present: Value, recorded: BoundaryValue) -> Value:
    def element(inner: Builder, inside: list[Value]) -> list[Value]:
        return [inner.op("OptionalGetElement", *inside)]

    def dummy(inner: Builder, inside: list[Value]) -> list[Value]:
        if recorded.kind == "tensor":
            return [inner.filled(0, recorded.dummy, recorded.type)]
        return [inner.op("SequenceEmpty", dtype=recorded.type)]

    return either(b, present, [whole], element, dummy, _NAMES)[0]


_NAMES = ("present", "absent")
"""The branches of an If that asks for an optional."""


def _flattened(b: Builder, sequence: Value, element: Element, rank: int) -> tuple[Value, Value]:
    """`data` and `shapes` of a sequence."""
    count = b.op("SequenceLength", sequence)
    start = b.constant(np.zeros(0, element.dtype))
    state = Value(TensorType(element, (ANY,)), ["data"])
    inside = Value(sequence.type, ["sequence"])
    index = Value(TensorType(I64, ()), ["index"])
    again = Value(TensorType(BOOL, ()), ["condition"])
    graph = Graph([index, again, state, inside], name="flatten")
    inner = Builder(graph.nodes, b.name)
    item = inner.op("SequenceAt", inside, index)
    flat = inner.op("Reshape", item, [-1])
    joined, shape = inner.op("Concat", state, flat, axis=0), inner.op("Shape", item)
    graph.outputs = [inner.op("Identity", again), joined, shape]
    body = Body(
        graph,
        [Iteration(), Carried(None, 0), Carried(2, 1), Invariant(3)],
        [Condition(), Yield(0), Stacked(1, keepdims=False)],
    )
    inputs = [count, None, start, sequence]
    data, rows = b.node("Loop", inputs, 2, {}, (body,)).outputs
    lines = b.op("Reshape", count, [1])
    shape = b.op("Concat", lines, [rank], axis=0)
    return data, b.op("Reshape", rows, shape, allowzero=True)


def _restore_outputs(graph: Graph, boundary: BoundaryRecord, b: Builder) -> None:
    named: dict[str, Value] = {}
    for value, name in zip(graph.outputs, graph.output_names, strict=True):
        named[name] = value
    owner = {
        part: name for name, recorded in boundary.outputs.items() for part in recorded.parts(name)
    }
    outputs: list[Value] = []
    names: list[str] = []
    for name in graph.output_names:
        whole = owner.get(name, name)
        if whole in names:
            continue
        names.append(whole)
        recorded = boundary.outputs.get(whole)
        if recorded is None:
            outputs.append(named[name])
            continue
        missing = [part for part in recorded.parts(whole) if part not in named]
        if missing:
            raise BOUNDARY.names_nothing(missing[0])
        b.name = whole
        parts = [named[part] for part in recorded.parts(whole)]
        _require_elements(whole, recorded, parts)
        restored = from_parts(b, recorded, parts)
        said = _type(recorded)
        # The record may be of a file that somebody changed.
        if (
            not isinstance(said, TensorType)
            or said.rank is None
            or restored.rank in (None, said.rank)
        ):
            restored.type = restored.declared = said
        outputs.append(restored)
    graph.outputs, graph.output_names = outputs, names


def from_parts(b: Builder, recorded: BoundaryValue, parts: list[Value]) -> Value:
    """The sequence, optional or tensor of open rank that tensors stand for."""
    if not recorded.optional:
        return _whole(b, recorded, parts)
    present, *held = parts
    type = _type(recorded)
    assert isinstance(type, OptionalType)
    item = type.item
    (whole,) = either(
        b,
        present,
        held,
        lambda inner, inside: [inner.op("Optional", _whole(inner, recorded, inside))],
        lambda inner, inside: [inner.op("Optional", type=item)],
        _NAMES,
    )
    return whole


def _whole(b: Builder, recorded: BoundaryValue, parts: list[Value]) -> Value:
    """The sequence or tensor that its parts make."""
    if recorded.kind == "tensor":
        return parts[0]
    if recorded.kind == "open":
        data, shape = parts
        if shape.element is not I64:
            shape = b.op("Cast", shape, to=I64)
        return b.op("Reshape", data, shape, allowzero=True)
    return _sequence(b, recorded, parts)


def _sequence(b: Builder, recorded: BoundaryValue, parts: list[Value]) -> Value:
    if recorded.kind == "elements":
        return b.op("SequenceConstruct", *parts)
    data, shapes = parts
    element = recorded.type
    count = b.op("Gather", b.op("Shape", shapes), 0, 0)
    start = b.op("SequenceEmpty", dtype=element)
    type = SequenceType(TensorType(element, _shape(recorded)))
    index = Value(TensorType(I64, ()), ["index"])
    offset = Value(TensorType(I64, (1,)), ["offset"])
    state = Value(type, ["sequence"])
    all_data, all_shapes = Value(data.type, ["all_data"]), Value(shapes.type, ["all_shapes"])
    again = Value(TensorType(BOOL, ()), ["condition"])
    graph = Graph([index, again, offset, state, all_data, all_shapes], name="cut")
    inner = Builder(graph.nodes, b.name)
    shape = inner.op("Gather", all_shapes, index, 0)
    if recorded.mixed:
        shape = inner.op("Compress", shape, inner.op("GreaterOrEqual", shape, 0))
    if shapes.element is not I64:
        shape = inner.op("Cast", shape, to=I64)
    end = inner.op("Add", offset, inner.op("ReduceProd", shape, [0], keepdims=True))
    piece = inner.op("Slice", all_data, offset, end, [0])
    item = inner.op("Reshape", piece, shape, allowzero=True)
    longer = inner.op("SequenceInsert", state, item)
    graph.outputs = [inner.op("Identity", again), end, longer]
    body = Body(
        graph,
        [Iteration(), Carried(None, 0), Carried(2, 1), Carried(3, 2), Invariant(4), Invariant(5)],
        [Condition(), Yield(0), Yield(1)],
    )
    inputs = [count, None, b.constant([0]), start, data, shapes]
    return b.node("Loop", inputs, 2, {}, (body,)).outputs[1]
