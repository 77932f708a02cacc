"""`com.microsoft::RotaryEmbedding`, and rotary embeddings of other operators of onnxruntime."""

from typing import Any

import numpy as np

from bridge.neutral.inference.indexes import indexes
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes, ranks, required
from bridge.operators.matmul.attention import by_heads, joined_heads


def rotated(
    b: Builder, x: Value, places: Value, cos: Value, sin: Value, interleaved: bool
) -> Value:
    """A tensor [batch, heads, length, size], rotated. The size of the caches determines the number
    of rotated elements, from the first one on."""
    width = None if cos.shape is None else cos.shape[1]
    if not isinstance(width, int):
        raise Refused("the width of its cos_cache is not known; declare the graph's input shapes")
    return b.op(
        "RotaryEmbedding", x, cos, sin, places,
        interleaved=interleaved, rotary_embedding_dim=2 * width,
    )  # fmt: skip


@legalizes("com.microsoft::RotaryEmbedding", target="ir")
def rotary_embedding(b: Builder, node: Node) -> Result:
    """`com.microsoft::RotaryEmbedding` (1): ONNX's operator. One first position may replace all
    positions, and the caches may determine the number of heads."""
    x, places, cos, sin = required(node, 0, 1, 2, 3)
    attributes = node.attributes
    rank, places_rank = ranks(node, 0, 1)
    heads = attributes.get("num_heads", 0)
    if rank == 3:
        if heads:
            x = by_heads(b, x, heads)
        else:
            width = cos.dims[1] if ranks(node, 2) else None
            if not isinstance(width, int):
                raise Refused("neither the number nor the width of its heads is known")
            x = b.transpose(b.reshape(x, 0, 0, -1, 2 * width), 0, 2, 1, 3)
    if places_rank == 1:
        places = b.expand(places + b.positions(x, 2), b.sizes(x, 0), b.sizes(x, 2))
    y = rotated(b, x, places, cos, sin, bool(attributes.get("interleaved", 0)))
    return joined_heads(b, y) if rank == 3 else y


@legalizes("com.microsoft::MRotaryEmbedding", target="ir")
def multimodal_rotary_embedding(b: Builder, node: Node) -> Result:
    """`com.microsoft::MRotaryEmbedding` (1): ONNX's operator. Each column of the caches is read at
    one of three positions: in time, of the row, or of the column of an image."""
    attributes: dict[str, Any] = node.attributes
    x, places, cos, sin = required(node, 0, 1, 2, 3)
    (rank,), heads = ranks(node, 0), attributes.get("num_heads", 0)
    sections, scale = attributes["mrope_section"], attributes.get("scale", 1.0)
    width = sum(sections)
    streams = np.repeat(np.arange(3), sections)
    if attributes.get("mrope_layout", 0):
        streams = np.zeros(width, np.int64)
        for i in (1, 2):
            streams[i : 3 * sections[i] : 3] = i

    def chosen(cache: Value) -> Value:
        parts = (b.op("Gather", b.op("Gather", cache, places, 0), i, 0) for i in range(3))
        time, row, column = parts
        either = b.where(b.constant(streams == 1), row, column)
        whole = b.where(b.constant(streams == 0), time, either)
        return whole if scale == 1.0 else whole * scale

    if rank == 3:
        x = by_heads(b, x, heads)
    y = b.op(
        "RotaryEmbedding", x, chosen(cos), chosen(sin),
        interleaved=bool(attributes.get("interleaved", 0)), rotary_embedding_dim=2 * width,
    )  # fmt: skip
    return joined_heads(b, y) if rank == 3 else y


indexes("com.microsoft::RotaryEmbedding", {1: "2[0]"})
indexes("com.microsoft::MRotaryEmbedding", {1: "2[0]"})
