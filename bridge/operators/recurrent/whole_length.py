"""Recognises lengths of sequences equal to the size of their axis."""

from bridge.neutral.graph import producer_of
from bridge.neutral.inference.dims import known_axes
from bridge.neutral.inference.known import known_of
from bridge.operators import Node, Value
from bridge.vocabulary import has_trait

AxisOf = tuple[Value, int]


def is_whole_length(lengths: Value | None, x: Value) -> bool:
    """Whether all lengths are the size of axis 1 of `x`, known or computed."""
    if x.shape is not None and set(known_of(lengths).ints or ()) == {x.shape[1]}:
        return True
    if lengths is None:
        return False
    length = lengths.behind("Cast", traits=frozenset({"repeats", "view"}))
    gather = producer_of(length, "Gather")
    shape = producer_of(gather.operand(0).behind("Cast"), "Shape") if gather else None
    if gather is None or shape is None or shape.attributes["start"]:
        return False
    whole, index = shape.operand(0), known_of(gather.inputs[1]).ints
    if whole.rank is None or index is None or len(index) != 1:
        return False
    return _origin((whole, index[0] % whole.rank)) == _origin((x, 1))


def _origin(axis: AxisOf) -> AxisOf:
    """The axis of an earlier value with the same length. The value may have another shape."""
    while (before := _before(*axis)) is not None:
        axis = before
    return axis


def _before(value: Value, axis: int) -> AxisOf | None:
    node = value.producer
    x = node.inputs[0] if node is not None and node.inputs else None
    if node is None or x is None or x.rank is None:
        return None
    place = _place(node, node.outputs.index(value), x.rank, axis)
    return None if place is None else (x, place)


def _place(node: Node, output: int, rank: int, axis: int) -> int | None:
    """The axis of a node's first input with the same length as this axis of its output; None if
    there is none. `rank` is the rank of the input."""
    if node.op in ("GRU", "LSTM", "RNN"):  # [steps, directions, batch, units] of [steps, batch, ..]
        along = {0: 0, 2: 1} if output == 0 and not node.attributes["layout"] else {}
        return along.get(axis)
    known = known_of(node.input(1)).ints
    if node.op == "Transpose":
        return None if known is None else known[axis]
    if node.op == "Reshape":
        kept = known is not None and known[axis] == 0 and not node.attributes["allowzero"]
        return axis if kept else None
    if node.op in ("Squeeze", "Unsqueeze"):
        return _beside(node, rank, axis)
    alone = has_trait(node.op, "by_element") and len(node.inputs) == 1
    return axis if alone or has_trait(node.op, "shape_of_first") else None


def _beside(node: Node, rank: int, axis: int) -> int | None:
    """`_place` for Squeeze and Unsqueeze."""
    named = known_of(node.input(1)).ints
    wider = rank if node.op == "Squeeze" else rank + len(named or ())
    axes = known_axes(node.input(1), wider)
    if axes is None:
        return None
    kept = [place for place in range(wider) if place not in axes]
    if node.op == "Squeeze":
        return kept[axis]
    return kept.index(axis) if axis in kept else None
