"""What changes nothing, and is there so that an engine sees something else in it."""

from __future__ import annotations

from bridge.neutral.builder import Builder, integers, values_of
from bridge.neutral.graph import Node, Value
from bridge.passes.fuse.uses import Uses, is_number

FAR = 1 << 30
"""An end behind every element: no axis is so long."""


def nothing_added(b: Builder, node: Node, uses: Uses) -> Value | None:
    """x + bucketize(r, bounds) or x - that, no random number r being as large as a bound, is x."""
    value, other = node.inputs
    assert value is not None and other is not None
    fits = other.rank is not None and other.rank <= (value.rank or 0)
    return value if fits and _is_nothing(other, uses) else None


def shape_kept(b: Builder, node: Node, uses: Uses) -> Value | None:
    """x in the shape of x, with nothing added to that, by Expand, Broadcast or Reshape, is x."""
    value, sizes, *axes = node.inputs
    if any(axes):
        return None
    shape = sizes.producer if sizes is not None else None
    if shape is not None and shape.op == "Add":
        sizes = nothing_added(b, shape, uses)
        shape = sizes.producer if sizes is not None else None
    if shape is None or shape.op != "Shape" or shape.inputs[0] is not value:
        return None
    whole = not shape.attributes.get("start") and shape.attributes.get("end") is None
    return value if whole else None


def nothing_padded(b: Builder, node: Node, uses: Uses) -> Value | None:
    """x with an edge of the remainder by 1, which is 0, is x."""
    value, begin, end = node.inputs[:3]
    halves = begin.producer if begin is not None else None
    if halves is None or halves.op != "ir::Split" or end is None or end.producer is not halves:
        return None
    edges = halves.inputs[0].producer if halves.inputs[0] is not None else None
    if edges is None or edges.op != "Concat" or not all(map(_is_zero, edges.inputs)):
        return None
    return value


def padded_with_nothing(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The same, in the shape that it has."""
    padded, sizes = node.inputs
    pad = uses.single_use(padded, "ir::Pad")
    known = integers(sizes)
    if pad is None or padded is None or known is None or node.attributes["allowzero"]:
        return None
    if len(known) != padded.rank or any(
        k and k != d for k, d in zip(known, padded.dims, strict=True)
    ):
        return None
    return nothing_padded(b, pad, uses)


def _is_zero(value: Value | None) -> bool:
    """Whether a value is surely 0, or the remainder of an integer by 1."""
    made = value.producer if value is not None else None
    if made is not None and made.op == "Mod":
        return integers(made.inputs[1]) == (1,)
    return integers(value) == (0,)


def only_row(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The row at such a number of a stack of x alone is x."""
    stack, index, axis = node.inputs
    row = uses.single_use(stack, "Unsqueeze")
    if row is None or index is None or index.rank or not _is_nothing(index, uses):
        return None
    first = integers(axis) == (0,) == integers(row.inputs[1])
    return row.inputs[0] if first and not node.attributes["batch_dims"] else None


def nothing_compared(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The greatest of x and x, or one or the other, is x."""
    return node.inputs[0] if len(node.inputs) == 2 and len({*node.inputs}) == 1 else None


def nothing_cut(b: Builder, node: Node, uses: Uses) -> Value | None:
    """A Slice from the first element to one that is far behind all, or further, is the whole."""
    start, end, axes, step = (node.input(index) for index in range(1, 5))
    whole = {*(integers(start) or (None,))} == {0} and {*(integers(step) or (1,))} == {1}
    made = end.producer if end is not None else None
    ends = made.inputs if made is not None and made.op == "Concat" else [end]
    if not whole or axes is None or not all(map(_is_far, ends)):
        return None
    return node.inputs[0]


def _is_far(end: Value | None) -> bool:
    """Whether a value is at least as large as a number that no size is."""
    made = end.producer if end is not None else None
    if made is None or made.op != "Max":
        return False
    known = (integers(value) for value in made.inputs)
    return any(k is not None and min(k, default=0) >= FAR for k in known) or any(
        map(_is_far, made.inputs)
    )


def line_again(b: Builder, node: Node, uses: Uses) -> Value | None:
    """A vector that is made a row and a vector again."""
    row = node.inputs[0]
    made = uses.single_use(row, "Unsqueeze")
    vector = made.inputs[0] if made is not None else None
    if vector is None or vector.rank != 1 or integers(node.input(1)) != (-1,):
        return None
    return vector


def limit_kept(b: Builder, node: Node, uses: Uses) -> Value | None:
    """A Range whose limit is no less than its start, or no more where the step is negative, is the
    Range of the limit that this is made of: ONNX's is empty there by itself."""
    start, limit, step = node.inputs
    delta, made = values_of(step), uses.single_use(limit, "Max", "Min", "Where")
    if made is None or start is None:
        return None
    if made.op == "Where":
        up, down = (
            uses.single_use(value, op)
            for value, op in zip(made.inputs[1:], ("Max", "Min"), strict=True)
        )
        asked = uses.single_use(made.inputs[0], "Greater")
        ends = [_other(part, start) for part in (up, down)]
        if asked is None or asked.inputs[0] is not step or not is_number(asked.inputs[1], 0):
            return None
        end, first = (ends[0] if ends[0] is ends[1] else None), up
    else:
        upwards = None if delta is None else bool(delta > 0)
        end, first = (_other(made, start) if upwards is (made.op == "Max") else None), made
    if end is None or first is None:
        return None
    b.name = first.name
    return b.op("Range", start, end, step, **node.attributes)


def _other(node: Node | None, value: Value) -> Value | None:
    """The input of a Max or a Min of two that is not `value`."""
    if node is None or len(node.inputs) != 2 or value not in node.inputs:
        return None
    return node.inputs[1 - node.inputs.index(value)]


def _is_nothing(value: Value, uses: Uses) -> bool:
    """Whether a value is one such number."""
    cast = uses.single_use(value, "Cast")
    found = uses.single_use(value if cast is None else cast.inputs[0], "Bucketize")
    if found is None:
        return False
    squeeze = uses.single_use(found.inputs[0], "Squeeze")
    random = uses.single_use(found.inputs[0] if squeeze is None else squeeze.inputs[0], RANDOM)
    if random is None or random.outputs[0].shape != (1,):
        return False
    high, bounds = (None if v is None else v.constant for v in (random.inputs[2], found.inputs[1]))
    return high is not None and bounds is not None and bool((bounds.array() > high.array()).all())


RANDOM = "ir::RandomUniform"
