"""A broadcast of no elements that OpenVINO computes when it compiles the model: a division by zero
ends the process. What Bridge knows to be empty is a constant by then, but
OpenVINO also folds what is computed from constants of any type, and Ifs whose conditions are. The
plugin broadcasts nothing well, so the shape is made one that is not known before the model runs.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Graph, Node, Value
from bridge.neutral.ports import Invariant, Yield
from bridge.neutral.types import low
from bridge.operators import Result
from bridge.operators.idioms import cast
from bridge.quirks.computed import unknown_nothing
from bridge.quirks.quirk import OPENVINO_CPU, UNFORESEEN, Place, Quirk, rewriting


def to_unknown_shape(b: Builder, node: Node, place: Place) -> Result:
    """The broadcast to a shape to which something unknown, which is 0, is added."""
    data, sizes = node.inputs
    assert data is not None and sizes is not None
    if not _may_be_empty(data):
        return None
    known = _known_before(place)
    if not (known.get(data) and known.get(sizes)):
        return None
    hidden = b.op("Add", sizes, cast(b, unknown_nothing(b), sizes.element))
    made = b.op("Expand", data, hidden)
    # OpenVINO still finds that it has no elements.
    known[made] = True
    return made


def _may_be_empty(value: Value) -> bool:
    return value.shape is None or any(low(dim) == 0 for dim in value.shape)


def _known_before(place: Place) -> dict[Value, bool]:
    """Which values of a graph OpenVINO may compute before the model runs."""
    if not place.found:
        given: set[Value] = set()
        if place.outer is not None and place.holder is not None and place.body is not None:
            outer = _known_before(place.outer)
            known = {value for value in place.holder.inputs if value and outer.get(value)}
            given = _captured(place.holder, place.body, known)
        computed = _computed(place.graph, given)
        made = (value for node in place.graph.nodes for value in node.outputs)
        place.found.update((value, value in computed) for value in (*place.graph.inputs, *made))
    return place.found


def _captured(node: Node, body: Body, known: set[Value]) -> set[Value]:
    """The inputs of a body that are among these values outside."""
    return {
        value
        for value, port in body.entries()
        if isinstance(port, Invariant) and node.inputs[port.input] in known
    }


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


QUIRK = Quirk(
    OPENVINO_CPU,
    releases="2026.4",
    symptom="A broadcast of no elements that is computed from constants ends the process that "
    "compiles the model.",
    cost="a random number below 1/2, of which a Bucketize makes 0, added to the shape",
    run=rewriting("Expand", by=to_unknown_shape),
)
