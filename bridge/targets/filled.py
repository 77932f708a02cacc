"""Loops that no empty tensor enters or leaves.

OpenVINO's GPU plugin ends the process, or keeps old elements, where a tensor that enters a Loop has
none. So each axis that may be empty gets a further element in front, which the body cuts off.

A state stays as it is if the shape of a Reshape behind the Loop is computed from it. The plugin
would read the shape before the Slice behind the Loop has run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from bridge.neutral.builder import Builder
from bridge.neutral.clone import clone_body
from bridge.neutral.graph import Body, Node, Value
from bridge.neutral.ports import Carried, Condition, Invariant, Sliced, Stacked, Yield
from bridge.neutral.rewrite import Rewriter
from bridge.neutral.types import BOOL, I64, I64_MAX, U8, Dim, Interval, TensorType
from bridge.targets.loop_forms import has_numbers


def filled(b: Builder, node: Node, rewriter: Rewriter) -> list[Value] | None:
    """What stands for the outputs of such a Loop; None if no tensor of it can be empty."""
    ends = {
        index: axes
        for index, axes in _ends(node.body)
        if not _is_a_shape(node, node.body.outputs[index], rewriter)
    }
    heads = [
        ends.get(port.output, ())
        if isinstance(port, Carried)
        else _open_axes(value, _along(port, value))
        for value, port in node.body.entries()
    ]
    if not any(ends.values()) and not any(heads):
        return None
    return _Filling(b, node, ends, heads).outputs()


def _ends(body: Body) -> Iterator[tuple[int, Sequence[int]]]:
    """The body outputs with the axes that may be empty; for a state, those of the input."""
    states = {port.output: v for v, port in body.entries() if isinstance(port, Carried)}
    for index, (value, port) in enumerate(body.exits()):
        if isinstance(port, Condition):
            continue
        yield index, _open_axes(states.get(index, value), _along(port, value))


def _is_a_shape(node: Node, port: object, rewriter: Rewriter) -> bool:
    """Whether a Reshape takes a shape that is computed from a state of a Loop."""
    if not isinstance(port, Yield) or port.output is None:
        return False
    values, seen = [node.outputs[port.output]], set()
    while values:
        value = values.pop()
        if value in seen or value.element is not I64:
            continue
        seen.add(value)
        for user in rewriter.users(value):
            if user.op == "Reshape" and user.inputs[1] is value:
                return True
            values += user.outputs
    return False


def _along(port: object, part: Value) -> int | None:
    """The axis of a part along which a Loop goes."""
    if not isinstance(port, Sliced | Stacked) or not port.keepdims or not part.rank:
        return None
    return port.axis % part.rank


def _open_axes(value: Value, along: int | None = None) -> Sequence[int]:
    """The axes of a tensor that may be empty, without the one along which a Loop goes."""
    if not has_numbers(value):
        return ()
    return [
        axis for axis, dim in enumerate(value.shape or ()) if axis != along and not _is_filled(dim)
    ]


def _is_filled(dim: Dim) -> bool:
    return dim > 0 if isinstance(dim, int) else isinstance(dim, Interval) and dim.low > 0


class _Filling:
    """A Loop in that form."""

    def __init__(
        self,
        b: Builder,
        node: Node,
        ends: Mapping[int, Sequence[int]],
        heads: Sequence[Sequence[int]],
    ) -> None:
        self.b = b
        self.node = node
        self.ends = ends
        self.heads = heads
        self.inputs = list(node.inputs)
        self.body = clone_body(node.body)

    def outputs(self) -> list[Value]:
        """What stands for the outputs of the Loop."""
        b, body = self.b, self.body
        head = Builder([], self.node.name, b.target)
        with head:
            for index, port in enumerate(body.inputs):
                if isinstance(port, Invariant | Carried | Sliced) and port.input is not None:
                    self._enter(head, index)
        body.graph.prepend(head.nodes)
        tail = Builder(body.graph.nodes, self.node.name, b.target)
        with tail:
            for index, axes in self.ends.items():
                body.graph.outputs[index] = _more(tail, body.graph.outputs[index], axes)
        made = b.node(
            "Loop", self.inputs, len(self.node.outputs), {}, (body,), self.node.name, None
        ).outputs
        results = list(made)
        for index, axes in self.ends.items():
            exit = body.outputs[index]
            if isinstance(exit, Yield) and exit.output is not None:
                results[exit.output] = _less(b, made[exit.output], axes)
            elif isinstance(exit, Stacked):
                around = _around(axes, exit, self.node.outputs[exit.output])
                results[exit.output] = _less(b, made[exit.output], around)
        return results

    def _enter(self, head: Builder, index: int) -> None:
        """A body input of the longer tensor, and in the body the tensor itself."""
        value, port = self.body.graph.inputs[index], self.body.inputs[index]
        assert isinstance(port, Invariant | Carried | Sliced) and port.input is not None
        outer, axes = self.inputs[port.input], self.heads[index]
        if not axes or outer is None:
            return
        self.inputs.append(_more(self.b, outer, _around(axes, port, outer)))
        longer = [1 + dim if isinstance(dim, int) else Interval(1, None) for dim in value.dims]
        dims = (
            long if axis in axes else dim
            for axis, (long, dim) in enumerate(zip(longer, value.dims, strict=True))
        )
        entry = Value(TensorType(value.element, tuple(dims)), value.names)
        value.names = []
        self.body.graph.inputs[index] = entry
        self.body.inputs[index] = replace(port, input=len(self.inputs) - 1)
        head.node("Slice", [entry, *_ranges(head, axes)], [value])


def _around(axes: Sequence[int], port: object, whole: Value) -> Sequence[int]:
    """The axes of a part, in the whole that a Loop slices or stacks."""
    if not isinstance(port, Sliced | Stacked) or port.keepdims:
        return axes
    at = port.axis % len(whole.dims)
    return [axis + (axis >= at) for axis in axes]


def _more(b: Builder, value: Value, axes: Sequence[int]) -> Value:
    """A tensor with a zero in front of each axis."""
    if not axes:
        return value
    wide = b.cast(value, U8) if value.element is BOOL else value
    pads = [int(axis in axes) for axis in range(len(value.dims))]
    zeros = [0] * len(pads)
    longer = b.op("Pad", wide, b.constant(pads + zeros), b.like(0, wide), mode="constant")
    return b.cast(longer, value.element)


def _less(b: Builder, value: Value, axes: Sequence[int]) -> Value:
    """The tensor without the first element of each axis."""
    if not axes:
        return value
    return b.op("Slice", value, *_ranges(b, axes))


def _ranges(b: Builder, axes: Sequence[int]) -> list[Value]:
    """The inputs of a Slice that leaves out the first element of each axis."""
    count = len(axes)
    return [b.constant(list(n)) for n in ([1] * count, [I64_MAX] * count, axes)]
