"""RotaryEmbedding: rotates pairs of elements by angles that grow with their position."""

from bridge.operators import Builder, Node, Result, Value, legalizes, required
from bridge.operators.matmul.attention import by_heads, joined_heads


@legalizes("RotaryEmbedding", target="ir")
def rotary_embedding_to_ir(b: Builder, node: Node) -> Result:
    """RotaryEmbedding-23 in the form that OpenVINO fuses to RoPE. Interleaved pairs, and heads of
    unknown size, have the form of the standard's function body."""
    x, cos, sin = required(node, 0, 1, 2)
    places, attributes, by_size = node.input(3), node.attributes, x.rank == 3
    if attributes["interleaved"] or x.rank not in (3, 4):
        return None
    heads = by_heads(b, x, attributes["num_heads"]) if by_size else x
    size = heads.dims[3]
    if not isinstance(size, int):
        return None
    if places is not None:
        cos, sin = (b.op("Gather", table, places, 0) for table in (cos, sin))
    width = attributes["rotary_embedding_dim"] or size
    parts = b.split(heads, 3, *([width] if width == size else [width, size - width]))
    y = b.concat(3, _turned(b, parts[0], width // 2, cos, sin), *parts[1:])
    return joined_heads(b, y) if by_size else y


def _turned(b: Builder, x: Value, half: int, cos: Value, sin: Value) -> Value:
    """A tensor `[batch, heads, length, size]`, rotated by angles [batch, length, half]."""
    cos, sin = (b.unsqueeze(table, 1) for table in (cos, sin))
    first, second = b.split(x, 3, half, half)
    away = second * sin * -1.0
    return b.concat(3,
        first * cos + away,
        second * cos + first * sin,
    )  # fmt: skip
