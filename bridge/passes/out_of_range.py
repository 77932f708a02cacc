"""Places that an ONNX model names and its tensors have not."""

from collections.abc import Iterator

from bridge.neutral.graph import Model, Node
from bridge.neutral.inference.known import known_of
from bridge.operators.indexing.gather import out_of_range
from bridge.passes.context import Context
from bridge.passes.legality import found


def tell_out_of_range(model: Model, context: Context) -> bool:
    """Notes every Gather of a constant index that is out of range: onnxruntime refuses to run it,
    and OpenVINO gives 0. It is not refused, because a branch that never runs does no harm."""
    context.report.notes += [f"{each.where}: {each.why}" for each in found(model.graph, _faults)]
    return False


def _faults(node: Node) -> Iterator[str]:
    if node.op not in ("Gather", "GatherElements"):
        return
    data, indices = node.input(0), node.input(1)
    axis = node.attributes.get("axis", 0)
    if node.op == "Gather":
        (axis,) = known_of(node.input(2)).ints or (None,)
    if data is None or indices is None or data.shape is None or axis is None:
        return
    if not -len(data.shape) <= axis < len(data.shape):
        return
    outside, wanted = out_of_range(data, indices, axis), known_of(indices).array
    if outside is not None and wanted is not None:
        first, length = wanted[outside].reshape(-1)[0], data.shape[axis]
        yield f"its index {first} is out of range of {length} elements; onnxruntime does not run it"
