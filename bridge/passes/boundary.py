"""What may change at a graph's boundary: inputs with a default value, and shapes given anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bridge.errors import UsageError
from bridge.neutral.builder import constant_value
from bridge.neutral.graph import Model, Node
from bridge.neutral.inference import infer_graph
from bridge.neutral.types import (
    ANY,
    Dim,
    Element,
    ForeignType,
    OptionalType,
    SequenceType,
    TensorType,
    Type,
)
from bridge.report import Report


def defaults_to_constants(model: Model, report: Report) -> None:
    """IR has no inputs with defaults: they become the constants that they are by default."""
    if not model.defaults:
        return
    nodes = []
    for value, tensor in model.defaults.items():
        known = constant_value(tensor)
        value.type, value.content = known.type, known.content
        nodes.append(Node("Constant", [], [value], {"value": tensor}, (), value.name))
        report.notes.append(f'the input "{value.name}" has a default value and became a constant')
    model.graph.inputs = [v for v in model.graph.inputs if v not in model.defaults]
    model.graph.nodes[:0] = nodes
    model.defaults = {}
    infer_graph(model.graph)


def override_shapes(model: Model, shapes: Mapping[str, Sequence[Any]]) -> None:
    """Gives inputs other shapes, by name, and infers the model anew. A dimension is an int, a
    symbol (str), an Interval, or None for any size."""
    by_name = {name: value for value in model.graph.inputs for name in value.names}
    for name, shape in shapes.items():
        value = by_name.get(name)
        if value is None:
            raise UsageError(
                f'there is no input "{name}"; the inputs are {", ".join(sorted(by_name))}'
            )
        dims = tuple(ANY if dim is None else dim for dim in shape)
        value.type = value.declared = _reshaped(value.type, dims, name)
    infer_graph(model.graph)


def _reshaped(type: Type, dims: tuple[Dim, ...], name: str) -> Type:
    """The type with another shape: that of the tensor, or of a sequence's or optional's own."""
    if isinstance(type, SequenceType):
        return SequenceType(TensorType(_element(type.item), dims))
    if isinstance(type, OptionalType):
        return OptionalType(_reshaped(type.item, dims, name))
    if isinstance(type, ForeignType) or type.rank not in (None, len(dims)):
        raise UsageError(f'the input "{name}" is {type}: it cannot be given {len(dims)} dimensions')
    return TensorType(type.element, dims)


def _element(type: Type) -> Element | None:
    return type.element if isinstance(type, TensorType) else None
