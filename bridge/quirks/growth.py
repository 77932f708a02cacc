"""Growth of a value over an iteration. The value may have more elements, or fewer, than a state
from which it is computed."""

from collections.abc import Iterator
from enum import IntFlag
from functools import reduce
from itertools import pairwise
from operator import or_

from bridge.neutral.dataflow import Forward, Now, Updates
from bridge.neutral.graph import Body, Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import InputPort, OutputPort, Sliced, Stacked
from bridge.quirks.opaque import is_shape_of, recognise
from bridge.vocabulary import operator


class Change(IntFlag):
    """The number of elements of a value, compared with the state."""

    NONE = 0
    SAME = 1
    MORE = 3
    LESS = 5
    ANY = 7
    SINGLE = 8
    """One element, whatever the state is."""
    OTHER = 16
    """A value that is not computed from the state."""


FAR = 1 << 30
"""An end index behind every element."""

SAME = frozenset({
    "Abs", "Cast", "Exp", "Identity", "Log", "Neg", "Relu", "Reshape", "Sigmoid", "Softmax", "Sqrt",
    "Squeeze", "Tanh", "Transpose", "Unsqueeze",
})  # fmt: skip
"""Operators whose output has as many elements as their first input."""


class Growth(Forward[Change]):
    """The change of each value, compared with a state."""

    bottom = Change.NONE
    iteration = Change.SINGLE

    def __init__(self, state: Value) -> None:
        self.state = state

    def outside(self, value: Value) -> Change:
        """The state alone is computed from the state."""
        return Change.SAME if value is self.state else _apart(value)

    def join(self, one: Change, other: Change) -> Change:
        """One element is at most as many as a state has. An empty state is not copied."""
        joined = one | other
        if joined & Change.SAME and joined & Change.OTHER:
            return Change.ANY
        is_less = joined & Change.SAME and joined & Change.SINGLE
        return joined & Change.ANY | Change.LESS if is_less else joined

    def node(self, node: Node, now: Now[Change]) -> Updates[Change]:
        """The changes of the outputs, from those of the inputs."""
        for output in node.outputs:
            yield output, _changed(node, output, now) or _apart(output)

    def entry(
        self, node: Node, body: Body, value: Value, port: InputPort, now: Now[Change]
    ) -> Change:
        """A slice of a value that is computed from the state has any number of elements."""
        fact = super().entry(node, body, value, port, now)
        return Change.ANY if fact & Change.SAME and isinstance(port, Sliced) else fact

    def exit(self, node: Node, value: Value, port: OutputPort, now: Now[Change]) -> Change:
        """So has a stack."""
        stacked = isinstance(port, Stacked) and now(value) & Change.SAME
        return Change.ANY if stacked else now(value)


def _changed(node: Node, output: Value, now: Now[Change]) -> Change:
    """The change of an output; NONE if it is not computed from the state."""
    inputs = [Change.NONE if value is None else now(value) & Change.ANY for value in node.inputs]
    found = [fact for fact in inputs if fact]
    if node.op in ("Broadcast", "Expand") and _is_single(node.inputs[0]):
        like = is_shape_of(node.inputs[1])
        return Change.NONE if like is None else now(like) & Change.ANY
    if not found or node.op == "Shape":
        return Change.NONE
    joined = reduce(or_, found)
    if recognise(node) is not None or node.op in SAME:
        return joined if inputs[0] else Change.ANY
    row = operator(node.op)
    if row is not None and "broadcasts" in row.traits:
        # An axis of size 1 may get another size.
        others = (v for v, fact in zip(node.inputs, inputs, strict=True) if v and not fact)
        in_a_row = len(found) == 1 or output.rank == 1
        return joined if in_a_row and all(map(_is_single, others)) else joined | Change.MORE
    if node.op == "Concat":
        # A Concat only adds elements to a value.
        whole = [*found, *_whole_of_parts(node, now)]
        return (
            Change.MORE if any(fact in (Change.SAME, Change.MORE) for fact in whole) else Change.ANY
        )
    if node.op == "Slice":
        return joined | Change.LESS if inputs[0] else Change.ANY
    return Change.ANY


def _apart(value: Value) -> Change:
    return Change.SINGLE if _is_single(value) else Change.OTHER


def _is_single(value: Value | None) -> bool:
    """Whether a value has one element."""
    return value is not None and value.shape is not None and {*value.shape} <= {1}


def _whole_of_parts(node: Node, now: Now[Change]) -> Iterator[Change]:
    """The changes of values that are split in two parts, if both parts are joined again."""
    cuts = [v.producer for v in node.inputs if v is not None and v.producer is not None]
    for first, last in pairwise(cut.inputs for cut in cuts if cut.op == "Slice"):
        begins, ends, whole = known_of(first[1]).ints, known_of(last[2]).ints, first[0]
        to_end = ends is not None and len(ends) == 1 and ends[0] is not None and ends[0] > FAR
        if begins == (0,) and to_end and whole is last[0] and first[2] is last[1]:
            yield Change.NONE if whole is None else now(whole) & Change.ANY
