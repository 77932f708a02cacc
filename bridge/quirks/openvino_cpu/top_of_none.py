"""A TopK of no elements. The CPU plugin fails if k is 0, unless the input is empty."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from bridge.neutral.builder import Builder
from bridge.neutral.dataflow import Facts, Must
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.inference.known import as_dim, known_of
from bridge.neutral.types import low
from bridge.operators import Result
from bridge.passes.context import Context
from bridge.passes.uses import Uses
from bridge.quirks.quirk import Place, Quirk, rewriting
from bridge.vocabulary import has_trait

SAME_NUMBER = ("Cast", "Reshape", "Squeeze", "Unsqueeze")
"""Operators that give a number another type or rank."""


class AtLeastOne(Must):
    """Whether no element of a value is below 1 if each of some sizes is at least 1."""

    iteration = False

    def __init__(self, sizes: Collection[str]) -> None:
        self.sizes = sizes

    def outside(self, value: Value) -> bool:
        """Inputs may be 0."""
        return False

    def settled(self, value: Value, fact: bool) -> bool:
        """The known elements tell more."""
        known = value.known_value
        if not known or None in known:
            return fact
        return all(low(dim) > 0 or dim in self.sizes for dim in map(as_dim, known))

    def transfer(self, node: Node, facts: Sequence[bool | None]) -> list[bool]:
        """Max needs one such input, Min needs all."""
        if node.op == "Max":
            fact = any(facts)
        elif node.op == "Min":
            fact = all(facts)
        else:
            kept = node.op in SAME_NUMBER or has_trait(node.op, "elements_of_first")
            fact = kept and bool(facts[0])
        return [fact] * len(node.outputs)


def cut_from_one(b: Builder, node: Node) -> Result:
    """The first k of at least one element. Of no elements, nothing is cut."""
    x, k = node.inputs[:2]
    if x is None or k is None:
        return None
    outputs = b.ops(node.op, 2, x, b.max(k, 1), **node.attributes)
    count = b.reshape(b.as_i64(k), 1)
    return [b.op("Slice", output, [0], count, [node.attributes["axis"]]) for output in outputs]


def cut(graph: Graph, context: Context) -> bool | None:
    """Cuts the outputs, in place."""
    sizes = {dim for value in graph.inputs for dim in value.shape or () if isinstance(dim, str)}
    sure = Facts(AtLeastOne(sizes), graph)

    def by(b: Builder, node: Node, place: Place) -> Result:
        k = node.inputs[1]
        return None if k is None or sure.of(k) else cut_from_one(b, node)

    return rewriting("ir::TopK", by=by)(graph, context)


def _uncut(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The output of a TopK of all elements that the Slice keeps."""
    data, start, end, axis = (*node.inputs, None)[:4]
    top = data.producer if data is not None else None
    if data is None or top is None or top.op != "ir::TopK" or known_of(start).ints != (0,):
        return None
    x, least = top.inputs[:2]
    made = least.producer if least is not None else None
    if x is None or made is None or made.op != "Max" or known_of(made.inputs[1]).ints != (1,):
        return None
    k, step = made.inputs[0], node.input(4)
    if k is None or not _is_number(end, k) or (step and known_of(step).ints != (1,)):
        return None
    if known_of(axis).ints != (top.attributes["axis"],):
        return None
    place = top.outputs.index(data)
    for other in uses.users(x):
        if other.op == top.op and other.inputs == [x, k] and other.attributes == top.attributes:
            return other.outputs[place]
    return b.ops(top.op, 2, x, k, **top.attributes)[place]


def _is_number(end: Value | None, k: Value) -> bool:
    """Whether a value is k, of another rank or type."""
    while end is not None and end is not k:
        made = end.producer
        end = made.inputs[0] if made is not None and made.op in SAME_NUMBER else None
    return end is k


QUIRK = Quirk(
    releases="2026.4",
    symptom="A TopK with a k of 0 fails, unless the input is empty.",
    fires="At a TopK with a k that may be 0 although no size of an input is 0.",
    safe="The first k of the largest elements are the k largest elements. If k is 0, a Slice keeps "
    "nothing of the one element.",
    cost="a Maximum, and a Slice of each output",
    run=cut,
    undo={"Slice": _uncut},
)
