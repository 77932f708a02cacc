"""How often values are used; a pattern may only remove unused inner values."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Node, Value, operand_of
from bridge.neutral.inference.known import known_of
from bridge.neutral.rewrite import Rewriter
from bridge.neutral.types import I32, Dim, Element, Shape, is_static

MOST_MOVED = 200
"""The most nodes that move for one node."""


class Uses(Rewriter):
    """The rewriter of a graph in which patterns are fused. `known` are values with public names.
    `scales` maps a dequantized value to its scale and zero point, if a pattern made them."""

    def __init__(self, graph: Graph, *around: Any) -> None:
        super().__init__(graph, *around)
        self.known = frozenset(graph.inputs if self.holder is None else ())
        self.scales: dict[Value, list[Value]] = {}
        self._places: dict[Value, float] = {}

    def output(self, node: Node) -> Value:
        """The used output of a node, the first if several are used."""
        return next((value for value in node.outputs if self.count(value)), node.outputs[0])

    def is_before(self, value: Value, node: Node) -> bool:
        """Whether a value is there before the nodes of the graph come to one of them."""
        places = self._places
        return self.is_there(value) and places[value] < places[node.outputs[0]]

    def put_before(self, values: Sequence[Value], outputs: Sequence[Value]) -> bool:
        """Moves values, and what they need, in front of the producers of the outputs in the order
        of nodes. False if one of them depends on an output, and so on the node that will take it.
        A node in the place of several needs its inputs before each of its outputs."""
        places = self._places
        firsts = [places[value] for value in outputs if self.is_there(value)]
        if not firsts:
            return True
        first, todo, moved = min(firsts), list(values), dict[Node, None]()
        while todo:
            value = todo.pop()
            made = self._handed_over.get(value) or self.of(value)
            makers = {one.producer: None for one in (value, made) if one.producer is not None}
            if value.constant is not None or places.get(value, first) < first:
                continue
            if value in outputs or len(moved) > MOST_MOVED:
                return False
            for maker in makers:
                if maker not in moved:
                    moved[maker] = None
                    todo += maker.operands
        nodes = [node for node in moved if self.is_there(node.outputs[0])]
        nodes.sort(key=lambda node: places[node.outputs[0]])
        last = max((place for place in places.values() if nodes and place < first), default=-1.0)
        for i, node in enumerate(nodes, 1):
            place = last + (first - last) * i / (len(nodes) + 1)
            places.update(dict.fromkeys(node.outputs, place))
        return True

    def is_there(self, value: Value) -> bool:
        """Whether a value was in the graph at first."""
        if not self._places:
            self._places.update(dict.fromkeys(self.graph.inputs, -1))
            for place, producer in enumerate(self.graph.nodes):
                self._places.update(dict.fromkeys(producer.outputs, place))
        return value in self._places


def unconverted(value: Value) -> Value:
    """The source of a conversion, or the value itself if it is not converted."""
    return operand_of(value, "Cast") or value


def zero_points(offset: Value | None, element: Element, scale: np.ndarray) -> np.ndarray | None:
    """The zero points for the scales, of whole numbers that the type has; None if they are no
    such numbers. ONNX has none for i32."""
    if offset is None:
        return np.zeros_like(scale)
    known = known_of(offset).reals
    if known is None or element is I32:
        return None
    if known.ndim > scale.ndim or np.broadcast_shapes(known.shape, scale.shape) != scale.shape:
        return None
    low, high = element.bounds
    whole = (known == np.round(known)) & (known >= low) & (known <= high)
    return np.broadcast_to(known, scale.shape) if whole.all() else None


def trailing(b: Builder, value: Value, shape: Shape) -> Value | None:
    """A value that broadcasts to `shape`, an operand's last axes, as a value of exactly that shape;
    None if it has another shape."""
    own = value.shape
    if not is_static(own) or not is_static(shape) or len(own) < len(shape):
        return None
    cut = len(own) - len(shape)
    return _reshaped(b, value, shape) if own == (1,) * cut + shape else None


def along_channels(b: Builder, value: Value, channels: Dim, rank: int) -> Value | None:
    """A value that broadcasts along axis 1 of an operand of `rank`, as a vector. None if it has
    another form or another length than `channels`."""
    own = value.shape
    if not is_static(own) or not isinstance(channels, int) or len(own) > rank:
        return None
    wide = (1,) * (rank - len(own)) + own
    form = (1, channels, *(1,) * (rank - 2))
    return _reshaped(b, value, (channels,)) if rank >= 2 and wide == form else None


def _reshaped(b: Builder, value: Value, shape: tuple[int, ...]) -> Value:
    """A value in another shape. A constant, or a converted constant, stays one."""
    if value.shape == shape:
        return value
    inner = unconverted(value)
    if inner.constant is None or value.producer is None:
        return b.reshape(value, *shape)
    short = b.reshape(inner, *shape)
    return short if inner is value else b.op("Cast", short, **value.producer.attributes)
