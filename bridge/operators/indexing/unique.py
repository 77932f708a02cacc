"""Unique and NonZero."""

from bridge.neutral.inference import first, infers, place
from bridge.neutral.inference.dims import at_most, dim_product, with_dim
from bridge.neutral.inference.known import known_of, unknown
from bridge.neutral.types import ANY, I64, Dim, Shape, TensorType, Type
from bridge.operators import Builder, Node, Value, legalizes


@legalizes("Unique", target="ir")
def unique_for_ir(b: Builder, node: Node) -> list[Value] | None:
    """Unique-10 always has all four outputs."""
    if len(node.outputs) == 4:
        return None
    return b.ops("Unique", 4, *node.inputs, **node.attributes)[: len(node.outputs)]


@legalizes("Unique", target="onnx")
def unique_for_onnx(b: Builder, node: Node) -> list[Value] | None:
    """Unique (11 to 28): ONNX's counts are i64."""
    if (axis := node.input(1)) is not None:
        b.constants(axis, "its axis")
    names = ("index_element_type", "count_element_type")
    indices, counts = (node.attributes[name] for name in names)
    if indices is I64 and counts is I64:
        return None
    axis = None if axis is None else b.scalar(axis)
    values, *numbers = b.ops("Unique", 4, node.inputs[0], axis, sorted=node.attributes["sorted"])
    return [values, *map(b.cast, numbers, (indices, indices, counts))]


@infers("Unique")
def infer_unique(node: Node) -> list[Type]:
    """Unique: the values, with an open size along the axis; first places, places of each element,
    counts."""
    data = first(node)
    axis = known_of(node.input(1)).ints
    whole: Dim = ANY
    if data.shape is not None and (node.input(1) is None or axis is not None):
        whole = dim_product(data.shape) if axis is None else data.shape[axis[0]]
    distinct = at_most(whole)
    values: Shape = (distinct,)
    if node.input(1) is not None:
        values = unknown(data.rank)
        if data.shape is not None and axis is not None:
            values = with_dim(data.shape, place(axis[0], len(data.shape)), distinct)
    index, count = (node.attributes[f"{name}_element_type"] for name in ("index", "count"))
    return [
        TensorType(data.element, values),
        TensorType(index, (distinct,)),
        TensorType(index, (whole,)),
        TensorType(count, (distinct,)),
    ]
