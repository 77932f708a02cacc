"""Names of open dimensions in the ONNX file (its `dim_param`).

IR has no such names. An open size of an input becomes `x_dim_1`. Two sizes only get one name if an
operator that always runs takes them as equal: onnxruntime shares buffers of equal names.
"""

import re

from bridge.neutral.extras import PRODUCER
from bridge.neutral.graph import Graph, Model
from bridge.neutral.inference import infer_graph
from bridge.neutral.inference.constraints import equal_sizes
from bridge.neutral.inference.dims import naming_results
from bridge.neutral.types import Dim, TensorType, meet, with_dims
from bridge.passes.applies import always, applies
from bridge.passes.context import Context
from bridge.vocabulary import has_trait


@applies(always)
def name_dimensions(model: Model, context: Context) -> None:
    """Names the open dimensions of an IR's inputs, in place. In models of both formats it also
    names dimensions of other values: the same dimensions, and their sums, products or quotients."""
    graph = model.graph
    producer = model.extras.get("onnx", {}).get("producer_name")
    was_ir = model.opset is None or producer == PRODUCER
    invented = _name_inputs(graph) if was_ir else set()
    if not any(isinstance(dim, str) for value in graph.inputs for dim in value.shape or ()):
        return
    # A state's type follows only from its start here; the model may have declared more.
    bodies = [body.graph for node in graph.walk() for body in node.bodies]
    ends = [value for body in bodies for value in (*body.inputs, *body.outputs)]
    known = [value.type for value in ends]
    with naming_results():
        infer_graph(graph)
        if len(invented) > 1 and (same := _equal(graph, invented)):
            for value in graph.inputs:
                value.type = with_dims(value.type, lambda dim: same.get(dim, dim))
            infer_graph(graph)
    for value, type in zip(ends, known, strict=True):
        value.type = meet(value.type, type)


def _name_inputs(graph: Graph) -> set[str]:
    """Gives the open dimensions of inputs names; these."""
    names: set[str] = set()
    taken = {dim for value in graph.inputs for dim in value.shape or () if isinstance(dim, str)}
    for index, value in enumerate(graph.inputs):
        if not isinstance(value.type, TensorType) or value.shape is None:
            continue
        stem = re.sub(r"\W", "_", value.name or f"input_{index}")
        dims: list[Dim] = list(value.shape)
        for axis, dim in enumerate(dims):
            if not isinstance(dim, int | str):
                name = f"{stem}_dim_{axis}"
                while name in taken:
                    name += "_"
                taken.add(name)
                names.add(name)
                dims[axis] = name
        value.type = TensorType(value.element, tuple(dims))
    return names


def _equal(graph: Graph, invented: set[str]) -> dict[Dim, Dim]:
    """The names that replace invented ones because the sizes are equal. Only the nodes outside of
    bodies count, because each of them runs."""
    same: dict[str, str] = {}

    def found(name: str) -> str:
        while name in same:
            name = same[name]
        return name

    for node in graph.nodes:
        shapes = [value.shape or () for value in node.operands]
        names = {dim for shape in shapes for dim in shape if isinstance(dim, str)}
        if len(names) < 2 or names.isdisjoint(invented) or has_trait(node.op, "broadcasts"):
            continue
        for one, other in equal_sizes(node):
            if isinstance(one, str) and isinstance(other, str):
                kept, gone = sorted((found(one), found(other)), key=lambda name: name in invented)
                if kept != gone and gone in invented:
                    same[gone] = kept
    return {name: found(name) for name in same}
