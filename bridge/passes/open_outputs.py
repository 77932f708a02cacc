"""Outputs in ONNX whose rank data decide.

ONNX can leave a size open but not the rank: an output that is a tensor must have a shape (IR.md,
Graphs). The shape of an optional tensor may stay unknown. So the output becomes an optional that is
always present. Its value is the tensor itself, in onnxruntime too.
"""

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Model, Value, names_of_outputs, producer_of
from bridge.neutral.types import OptionalType, TensorType
from bridge.passes.context import Context


def wrap_open_outputs(model: Model, context: Context) -> None:
    """Makes optionals, in place, of the outputs whose rank is not known."""
    graph = model.graph
    names = names_of_outputs(graph)
    wrapped = []
    for index, (value, name) in enumerate(zip(graph.outputs, names, strict=True)):
        if isinstance(value.type, TensorType) and value.rank is None:
            b = Builder(graph.nodes, name, context.target)
            graph.outputs[index] = b.op("Optional", value)
            wrapped.append(f'"{name}"')
    if wrapped:
        graph.output_names = names
        context.report.notes.append(
            "written as an optional that is always present, because a tensor must declare its rank "
            f"and data decide it: the output {', '.join(wrapped)}; onnxruntime gives it as a tensor"
        )


def unwrap_open_outputs(model: Model, context: Context) -> None:
    """Makes tensors again, in place, of optional outputs of open rank that are always present."""
    graph = model.graph
    names = names_of_outputs(graph)
    inside = [_inside(value) for value in graph.outputs]
    if inside != graph.outputs:
        graph.outputs, graph.output_names = inside, names


def _inside(value: Value) -> Value:
    """The content of an optional output of open rank, if it is always present; else the value."""
    type, node = value.type, producer_of(value, "Optional")
    if not (isinstance(type, OptionalType) and isinstance(type.item, TensorType)):
        return value
    if type.item.rank is not None or node is None:
        return value
    return node.input(0) or value
