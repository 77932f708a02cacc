"""What OpenVINO knows before a model runs, and what keeps it from that.

What follows from constants it folds where it can evaluate the operators; the CPU plugin computes
the rest once, when it compiles the model.
"""

from __future__ import annotations

from collections.abc import Iterator

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Graph, Node, Value
from bridge.neutral.ports import Carried, Invariant, Yield
from bridge.neutral.types import F32, I64
from bridge.operators.builder_helpers import squeeze, unsqueeze
from bridge.quirks.quirk import UNFOLDED, UNFORESEEN, Place, follows_from_constants


def is_known(value: Value | None, place: Place) -> bool:
    """Whether it may compute a value of this graph, by way of the graphs around it, too."""
    if follows_from_constants(value):
        return True
    return value is not None and known_before(place).get(value, False)


def known_before(place: Place) -> dict[Value, bool]:
    """Which values of a graph it may compute."""
    if not place.found:
        given: set[Value] = set()
        if place.outer is not None and place.holder is not None and place.body is not None:
            outer = known_before(place.outer)
            known = {value for value in place.holder.inputs if value and outer.get(value)}
            given = _captured(place.holder, place.body, known)
        computed = _computed(place.graph, given)
        made = (value for node in place.graph.nodes for value in node.outputs)
        place.found.update((value, value in computed) for value in (*place.graph.inputs, *made))
    return place.found


def _captured(node: Node, body: Body, known: set[Value]) -> set[Value]:
    """The inputs of a body that are among these values outside."""
    return {value for value, outer in node.captures(body).items() if outer in known}


def _computed(graph: Graph, known: set[Value]) -> set[Value]:
    """What follows from constants and these values."""
    known = set(known)
    for node in graph.nodes:
        if node.op in UNFORESEEN:
            continue
        if node.op == "If":
            known |= _of_branches(node, known)
        elif all(value is None or value in known for value in node.inputs):
            known.update(node.outputs)
    return known


def _of_branches(node: Node, known: set[Value]) -> set[Value]:
    """The outputs of an If that takes the place of a branch, which may be either."""
    if node.inputs[0] not in known:
        return set()
    found: set[Value] = set()
    for body in node.bodies:
        inside = _computed(body.graph, _captured(node, body, known))
        for value, port in body.exits():
            if value in inside and isinstance(port, Yield) and port.output is not None:
                found.add(node.outputs[port.output])
    return found


def known_values(place: Place) -> dict[Value, bool]:
    """The values of a graph that follow from constants, and which of them the plugin computes."""
    known = place.found
    if known:
        return known
    known.update(dict.fromkeys(_entries(place), False))
    for node in place.graph.nodes:
        operands = [value for value in node.inputs if value is not None]
        if node.op not in UNFORESEEN and all(value in known for value in operands):
            computed = node.op in UNFOLDED or any(known[value] for value in operands)
            known.update(dict.fromkeys(node.outputs, computed))
    return known


def _entries(place: Place) -> Iterator[Value]:
    """The inputs of a body that OpenVINO has as constants there."""
    if place.body is None or place.holder is None or place.outer is None:
        return
    outside = known_values(place.outer)
    for value, port in place.body.entries():
        if isinstance(port, Carried):
            stays = place.body.exit_of(port)[0].behind("Identity") is value
        else:
            stays = isinstance(port, Invariant)
        if stays and isinstance(port, Carried | Invariant) and port.input is not None:
            given = place.holder.inputs[port.input]
            if given is not None and outside.get(given) is False:
                yield value


def of_unknown_content(b: Builder, value: Value) -> Value:
    """A copy of the value of which OpenVINO does not know that it follows from constants, made at
    each inference: the only row of a stack, by a number that it does not know."""
    return b.op("Gather", unsqueeze(b, value, 0), unknown_nothing(b, 0), b.constant(0))


def unknown_nothing(b: Builder, rank: int = 1) -> Value:
    """A 0 that OpenVINO does not know before the model runs; i64, one of rank 1 or a scalar."""
    some = b.op(
        "ir::RandomUniform", b.constant([1], I64), b.constant(0.0, F32), b.constant(0.5, F32),
        output_type=F32,
    )  # fmt: skip
    return b.op("Bucketize", some if rank else squeeze(b, some, 0), b.constant([1.0]))
