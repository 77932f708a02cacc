"""Growth of a value over an iteration. The value may have more elements, or fewer, than a state
from which it is computed."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntFlag
from itertools import pairwise

from bridge.neutral.graph import Body, Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Carried, Invariant, Yield, outer_input
from bridge.quirks.opaque import is_shape_of, recognise
from bridge.vocabulary import operator


class Change(IntFlag):
    """The number of elements of a value, compared with the state."""

    NONE = 0
    MORE = 1
    LESS = 2
    ANY = 3


Changes = dict[Value, Change | None]
"""The change of each value; None for a value that is not computed from the state."""


def change(value: Value, known: Changes) -> Change | None:
    """The difference between the number of elements of a value and the number of the state.

    None if the value is not computed from the state. `known` has the change of the state. This
    function adds the changes of other values.
    """
    todo = [value]
    while todo:
        last = todo[-1]
        made = last.producer
        if last in known or made is None or made.op in ("Constant", "Shape"):
            known.setdefault(last, None)
            todo.pop()
            continue
        left = [v for v in made.inputs if v is not None and v not in known]
        if left:
            todo += left
            continue
        for output in made.outputs:
            known[output] = _changed(made, output, known)
        todo.pop()
    return known[value]


def _changed(node: Node, output: Value, known: Changes) -> Change | None:
    """The change of an output, from the changes of the inputs of its node."""
    inputs = [None if value is None else known[value] for value in node.inputs]
    found = [fact for fact in inputs if fact is not None]
    if node.bodies:
        return _changed_by_bodies(node, output, known)
    if node.op in ("Broadcast", "Expand") and _is_single(node.inputs[0]):
        like = is_shape_of(node.inputs[1])
        return known.get(like) if like is not None else None
    if not found:
        return None
    joined = Change.NONE
    for fact in found:
        joined |= fact
    if recognise(node) is not None or node.op in _SAME:
        return joined if inputs[0] is not None else Change.ANY
    row = operator(node.op)
    if row is not None and "broadcasts" in row.traits:
        # An axis of size 1 may get another size.
        others = (v for v, fact in zip(node.inputs, inputs, strict=True) if fact is None and v)
        in_a_row = len(found) == 1 or output.rank == 1
        return joined if in_a_row and all(map(_is_single, others)) else joined | Change.MORE
    if node.op == "Concat":
        # A Concat only adds elements to a value.
        whole = [*found, *_whole_of_parts(node, known)]
        return Change.MORE if any(Change.LESS not in fact for fact in whole) else Change.ANY
    if node.op == "Slice":
        return joined | Change.LESS if inputs[0] is not None else Change.ANY
    return Change.ANY


def _is_single(value: Value | None) -> bool:
    """Whether a value has one element."""
    return value is not None and value.shape is not None and {*value.shape} <= {1}


def _whole_of_parts(node: Node, known: Changes) -> Iterator[Change]:
    """The changes of values that are split in two parts, if both parts are joined again."""
    cuts = [v.producer for v in node.inputs if v is not None and v.producer is not None]
    for first, last in pairwise(cut.inputs for cut in cuts if cut.op == "Slice"):
        begins, ends, whole = known_of(first[1]).ints, known_of(last[2]).ints, first[0]
        to_end = ends is not None and len(ends) == 1 and ends[0] is not None and ends[0] > _FAR
        if begins == (0,) and to_end and whole is last[0] and first[2] is last[1]:
            fact = known[whole] if whole is not None else None
            if fact is not None:
                yield fact


_FAR = 1 << 30
"""An end index behind every element."""

_SAME = frozenset({
    "Abs", "Cast", "Exp", "Identity", "Log", "Neg", "Relu", "Reshape", "Sigmoid", "Softmax", "Sqrt",
    "Squeeze", "Tanh", "Transpose", "Unsqueeze",
})  # fmt: skip
"""Operators whose output has as many elements as their first input."""


def _changed_by_bodies(node: Node, output: Value, known: Changes) -> Change | None:
    """The change of an output of an If or a Loop."""
    found: list[Change | None] = []
    single: list[bool] = []
    place = node.outputs.index(output)
    for body in node.bodies:
        inside = _entries(node, body, known)
        exits = [v for v, port in body.exits() if port == Yield(place)]
        found += [change(value, inside) for value in exits] or [Change.ANY]
        single += [_is_single(value) for value in exits] or [False]
        starts = (p for p in body.inputs if isinstance(p, Carried) and p.input is not None)
        for port in starts:  # Without an iteration the start comes out.
            if body.outputs[port.output] == Yield(place) and port.input is not None:
                start = node.inputs[port.input]
                found.append(None if start is None else known[start])
                single.append(_is_single(start))
    if all(fact is None for fact in found):
        return None
    joined = Change.NONE
    for fact, is_single in zip(found, single, strict=True):
        # A value of one element is at most as large as a state. An empty state is not copied.
        other = Change.LESS if is_single else Change.ANY
        joined |= other if fact is None else fact
    return joined


def _entries(node: Node, body: Body, known: Changes) -> Changes:
    """The changes of the inputs of a body. A state of a Loop has the change of its initial
    value."""
    inside: Changes = {}
    for value, port in body.entries():
        index = outer_input(port)
        outer = None if index is None else node.inputs[index]
        fact = None if outer is None else known[outer]
        whole = isinstance(port, Invariant | Carried) or fact is None
        inside[value] = fact if whole else Change.ANY
    return inside
