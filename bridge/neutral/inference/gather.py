"""Gathering, scattering, searching: types."""

from __future__ import annotations

from bridge.neutral.graph import Node
from bridge.neutral.inference import first, infers, knows
from bridge.neutral.inference.dims import (
    Content,
    axis_of,
    content_of,
    dim_product,
    known_integers,
    rank_sum,
    unknown,
    with_dim,
)
from bridge.neutral.types import ANY, Dim, Shape, TensorType, Type


@infers("Gather")
def gather(node: Node) -> list[Type]:
    data, indices = first(node, 0), first(node, 1)
    axis = known_integers(node.inputs[2])
    batch = node.attributes["batch_dims"]
    if indices.rank is not None and batch < 0:
        batch += indices.rank
    if data.shape is None or indices.shape is None or axis is None:
        return [TensorType(data.element, unknown(rank_sum(data.rank, indices.rank, -1 - batch)))]
    at = axis[0] % len(data.shape)
    dims = (*data.shape[:at], *indices.shape[batch:], *data.shape[at + 1 :])
    return [TensorType(data.element, dims)]


@knows("Gather")
def gather_content(node: Node) -> Content | None:
    content, indices = content_of(node.inputs[0]), known_integers(node.inputs[1])
    if content is None or indices is None or first(node).rank != 1:
        return None
    return tuple(content[i] for i in indices)


@infers("GatherElements")
def gather_elements(node: Node) -> list[Type]:
    return [TensorType(first(node).element, first(node, 1).shape)]


@infers("GatherND")
def gather_nd(node: Node) -> list[Type]:
    data, indices = first(node, 0), first(node, 1)
    if data.shape is None or indices.shape is None or not isinstance(indices.shape[-1], int):
        return [TensorType(data.element)]
    depth, batch = indices.shape[-1], node.attributes["batch_dims"]
    return [TensorType(data.element, (*indices.shape[:-1], *data.shape[batch + depth :]))]


@infers("GatherTree")
def gather_tree(node: Node) -> list[Type]:
    return [first(node)]


@infers("ScatterElements", "ScatterND", "ScatterUpdate")
def scatter(node: Node) -> list[Type]:
    return [first(node)]


@knows("ScatterElements", "ScatterND", "ScatterUpdate")
def scatter_content(node: Node) -> Content | None:
    content, updates = content_of(node.inputs[0]), content_of(node.inputs[2])
    indices = known_integers(node.inputs[1])
    if content is None or indices is None or first(node).rank != 1:
        return None
    if node.attributes.get("reduction", "none") != "none":
        return None
    result = list(content)
    for at, index in enumerate(indices):
        result[index] = updates[at] if updates is not None else None
    return tuple(result)


@infers("OneHot")
def one_hot(node: Node) -> list[Type]:
    return [_one_hot(node, first(node, 2).element)]


@infers("ir::OneHot")
def ir_one_hot(node: Node) -> list[Type]:
    return [_one_hot(node, first(node, 2).element)]


def _one_hot(node: Node, element: object) -> TensorType:
    indices = first(node)
    if indices.shape is None:
        return TensorType(element)  # type: ignore[arg-type]
    depth = content_of(node.inputs[1])
    dim: Dim = ANY if depth is None or depth[0] is None else depth[0]
    axis = axis_of(node, len(indices.shape) + 1)
    return TensorType(element, (*indices.shape[:axis], dim, *indices.shape[axis:]))  # type: ignore[arg-type]


@infers("NonZero")
def non_zero(node: Node) -> list[Type]:
    rank = first(node).rank
    return [TensorType(node.attributes["output_type"], (ANY if rank is None else rank, ANY))]


@infers("Compress")
def compress(node: Node) -> list[Type]:
    data = first(node)
    axis = node.attributes.get("axis")
    if axis is None:
        return [TensorType(data.element, (ANY,))]
    if data.shape is None:
        return [data]
    return [TensorType(data.element, with_dim(data.shape, axis % len(data.shape), ANY))]


@infers("Unique")
def unique(node: Node) -> list[Type]:
    data = first(node)
    indices = TensorType(node.attributes["index_element_type"], (ANY,))
    counts = TensorType(node.attributes["count_element_type"], (ANY,))
    axis = known_integers(node.input(1))
    inverse = indices
    if node.input(1) is None:
        values: Shape = (ANY,)
        if data.shape is not None:
            inverse = TensorType(indices.element, (dim_product(data.shape),))
    elif data.shape is None or axis is None:
        values = unknown(data.rank)
    else:
        values = with_dim(data.shape, axis[0] % len(data.shape), ANY)
        inverse = TensorType(indices.element, (data.shape[axis[0]],))
    return [TensorType(data.element, values), indices, inverse, counts]


@infers("Bucketize")
def bucketize(node: Node) -> list[Type]:
    return [TensorType(node.attributes["output_type"], first(node).shape)]


@infers("SearchSorted")
def search_sorted(node: Node) -> list[Type]:
    return [TensorType(node.attributes["output_type"], first(node, 1).shape)]


@infers("EmbeddingBagOffsets")
def embedding_bag_offsets(node: Node) -> list[Type]:
    table, offsets = first(node), first(node, 2)
    if table.shape is None:
        return [table]
    count = ANY if offsets.shape is None else offsets.shape[0]
    return [TensorType(table.element, (count, *table.shape[1:]))]


@infers("EmbeddingBagPacked")
def embedding_bag_packed(node: Node) -> list[Type]:
    table, indices = first(node), first(node, 1)
    if table.shape is None:
        return [table]
    count = ANY if indices.shape is None else indices.shape[0]
    return [TensorType(table.element, (count, *table.shape[1:]))]


@infers("EmbeddingSegmentsSum")
def embedding_segments_sum(node: Node) -> list[Type]:
    return [_segments(node, 3)]


@infers("SegmentMax")
def segment_max(node: Node) -> list[Type]:
    return [_segments(node, 2)]


def _segments(node: Node, count_input: int) -> TensorType:
    data = first(node)
    if data.shape is None:
        return data
    count: Dim = ANY
    known = content_of(node.input(count_input))
    if known is not None and known[0] is not None:
        count = known[0]
    else:
        segments = known_integers(node.inputs[2 if count_input == 3 else 1])
        if node.input(count_input) is None and segments:
            count = segments[-1] + 1
    return TensorType(data.element, (count, *data.shape[1:]))
