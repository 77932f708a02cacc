"""RotaryEmbedding: the halves of a head, each by a cosine and the other by a sine."""

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.dims import known_axes
from bridge.neutral.terms import Found, op, var
from bridge.neutral.types import ANY, F16, F32
from bridge.passes.fuse import fuses
from bridge.passes.uses import Uses

WHOLE = var()
BEGIN, REST = op("Split", WHOLE), op("Split", WHOLE).taking(1).shared()
"""The first elements of a head, which alone are rotated, and the other elements."""
TURNED = BEGIN | var()
FIRST, SECOND = (op("Split", TURNED).taking(half).shared() for half in (0, 1))

PLACE, COSINES, SINES = var(rank=2), var(rank=2), var(rank=2)
COS, SIN = (op("Gather", x, PLACE, 0, batch_dims=0).shared() | var() for x in (COSINES, SINES))
"""Tables [batch, length, half], perhaps taken by place from longer ones."""
COS_AXIS, SIN_AXIS = var(), var()
BY_COS, BY_SIN = op("Unsqueeze", COS, COS_AXIS).shared(), op("Unsqueeze", SIN, SIN_AXIS).shared()

LESS = SECOND * BY_SIN
NEGATIVE = (-LESS) | (LESS * -1)
KEPT = FIRST * BY_COS
DIFFERENCE = (KEPT - LESS) | (KEPT + NEGATIVE)
SUM = SECOND * BY_COS + FIRST * BY_SIN
ROTATION = op("Concat", DIFFERENCE, SUM, None)
PARTIAL = op("Concat", ROTATION, REST, None)


@fuses(ROTATION | PARTIAL, FIRST, opset=23)
def rotary_embedding(b: Builder, match: Found, uses: Uses) -> Value | None:
    """Over [batch, heads, length, size], with tables [batch, length, half]."""
    halves, x, width = match.node(FIRST), match[TURNED], 0
    sizes = [half.dims[-1] for half in halves.outputs if half.rank]
    if halves is not match.node(SECOND) or len(sizes) != 2 or sizes[0] != sizes[1]:
        return None
    if not isinstance(sizes[0], int) or not all(map(_is_last, (halves, match.node(ROTATION)))):
        return None
    if PARTIAL in match:
        cut, part = match.node(REST), x.dims[-1]
        if cut.outputs != [x, match[REST]] or not isinstance(part, int):
            return None
        if not _is_last(cut) or not _is_last(match.node(PARTIAL)):
            return None
        x, width = match[WHOLE], part
    if x.rank != 4 or x.element not in (F32, F16):
        return None
    if any(known_axes(match[axis], 4) != (1,) for axis in (COS_AXIS, SIN_AXIS)):
        return None
    if not all(_fits(match[table], x) for table in (COS, SIN)):
        return None
    by_place = COSINES in match and SINES in match
    tables = (COSINES, SINES, PLACE) if by_place else (COS, SIN)
    inputs = [x, *(match[table] for table in tables)]
    return b.op("RotaryEmbedding", *inputs, rotary_embedding_dim=width)


def _fits(table: Value, x: Value) -> bool:
    """Whether a table is as long as x, for each of its batch; ONNX broadcasts neither."""
    if table.rank != 3 or table.element is not x.element or ANY in table.dims[:2]:
        return False
    return table.dims[:2] == (x.dims[0], x.dims[2])


def _is_last(node: Node) -> bool:
    """Whether a node joins or cuts along the last axis."""
    rank = node.outputs[0].rank
    return bool(rank) and node.attributes["axis"] in (-1, (rank or 0) - 1)
