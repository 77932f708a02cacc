"""Operators that undo each other. A rule adds one if a format keeps an axis or an order that the
other format does not keep; the rule of the way back adds its inverse."""

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value, producer_of
from bridge.neutral.inference.dims import known_axes
from bridge.neutral.inference.known import known_of
from bridge.neutral.tensor import Tensor
from bridge.neutral.terms import Found, op, var
from bridge.neutral.types import is_static
from bridge.passes.fuse import fuses
from bridge.passes.uses import Uses

X, MADE, REMOVED = var(), var(), var()
UNSQUEEZED = op("Unsqueeze", X, MADE).shared()


SQUEEZED = op("Squeeze", UNSQUEEZED, REMOVED)


@fuses(SQUEEZED)
def squeezed_again(b: Builder, match: Found, uses: Uses) -> Value | None:
    """Squeeze of the axes that Unsqueeze has just made."""
    rank = match[UNSQUEEZED].rank
    removed, added = (None if rank is None else known_axes(match[v], rank) for v in (REMOVED, MADE))
    if not removed or added is None or sorted(removed) != sorted(added):
        return None
    return named_after(match[X], match.node(SQUEEZED), uses)


KNOWN = var(where=lambda x: is_static(x.shape))
RESHAPED = op("Reshape", op("Reshape", KNOWN).shared())


@fuses(RESHAPED)
def reshaped_again(b: Builder, match: Found, uses: Uses) -> Value | None:
    """Reshape to the shape that there was before another Reshape."""
    same = match[RESHAPED].shape == match[KNOWN].shape
    return named_after(match[KNOWN], match.node(RESHAPED), uses) if same else None


INTEGERS = var(where=lambda x: x.constant is not None)
DEQUANTIZED = op("DequantizeLinear", INTEGERS)
IN_SHAPE = op("Reshape", DEQUANTIZED)


@fuses(IN_SHAPE, DEQUANTIZED)
def reshaped_integers(b: Builder, match: Found, uses: Uses) -> Value | None:
    """DequantizeLinear of constant integers in another shape, which keeps the axis of scales. An
    engine takes weights for its integer kernels straight from DequantizeLinear."""
    node, tensor, shape = match.node(DEQUANTIZED), match[INTEGERS].constant, match[IN_SHAPE].shape
    scale, axis = node.inputs[1], node.attributes["axis"]
    if tensor is None or scale is None or not is_static(shape) or node.attributes["block_size"]:
        return None
    if not is_static(scale.shape) or (scale.rank != 0 and scale.shape != (1,)):
        axis %= len(tensor.shape)
        if shape[: axis + 1] != tensor.shape[: axis + 1]:
            return None
    integers = b.tensor(Tensor(tensor.element, shape, tensor.source), match[INTEGERS].names[:])
    attributes = {**node.attributes, "axis": axis}
    return b.node("DequantizeLinear", [integers, *node.inputs[1:]], 1, attributes).outputs[0]


def transposed_again(b: Builder, node: Node, uses: Uses) -> Value | None:
    """Transposes of one another."""
    whole = known_of(node.input(1)).ints
    if whole is None:
        return None
    value, last, alone = node.operand(0), node, True
    while (before := producer_of(value, "Transpose")) is not None:
        order = known_of(before.input(1)).ints
        if order is None or len(order) != len(whole):
            break
        alone = alone and uses.count(value) == 1
        value, whole, last = before.operand(0), tuple(order[axis] for axis in whole), before
        if whole == tuple(range(len(whole))):
            return named_after(value, node, uses)
    if last is node or not alone:
        return None
    b.name = last.name
    return b.transpose(value, *whole)


def joined_again(b: Builder, node: Node, uses: Uses) -> Value | None:
    """Concat of all that a Split gives, in order."""
    split = producer_of(node.input(0), "Split")
    if split is None or node.inputs != split.outputs:
        return None
    value = split.operand(0)
    if value.rank is None:
        return None
    axes = {n.attributes["axis"] % value.rank for n in (split, node)}
    return named_after(value, node, uses) if len(axes) == 1 else None


def copied(b: Builder, node: Node, uses: Uses) -> Value | None:
    """A copy becomes its source, as on the way to IR. An output gets its copy later."""
    return node.inputs[0]


def named_after(value: Value | None, node: Node, uses: Uses) -> Value | None:
    """A value that a node gives again; people know it by the name that it has behind."""
    if value is not None and value not in uses.known:
        known = node.outputs[0].names
        value.names[:] = [*known, *(name for name in value.names if name not in known)]
    return value
