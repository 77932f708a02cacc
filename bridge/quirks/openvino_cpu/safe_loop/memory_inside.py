"""No state shares memory with a value that an iteration reads later.

OpenVINO's CPU plugin computes operators in place, in the memory of their first input, even if this
input is a Parameter of the body. If a state is computed in place from a slice or from another
state, it lies in the memory of that input. The plugin writes the next slice or state there before
an operator reads the first state. `h = x + h` over the slices x gives wrong numbers, and so does
`a, b = b, a + b`. An input that is the same in every iteration is overwritten in the first one. A
rotary embedding writes over its operand, too. A Gather of one row and a Split give views of their
input. A maximum of the input with itself is not computed in place, so it has memory of its own.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Graph, Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Carried, Invariant
from bridge.neutral.rewrite import ValueUses
from bridge.neutral.types import STRING
from bridge.quirks.opaque import hides, opaque, undone
from bridge.quirks.quirk import RECURRENT, is_computed_in, may_hold
from bridge.quirks.safe_loop import Clause, Draft

OWN_MEMORY = {
    "ArgMax", "ArgMin", "Constant", "Conv", "ConvTranspose", "Gather", "GatherElements", "GatherND",
    "If", "Loop", "MatMul", "NonZero", "Range", "Shape", "Size", "TopK", *RECURRENT,
}  # fmt: skip
"""Operators that never write into the memory of their inputs."""

VIEWS = {"Identity", "Reshape", "Slice", "Squeeze", "Unsqueeze"}
"""Operators that write nothing into the memory of their inputs, but may give views of it."""

PARTS = {"Split", "VariadicSplit", "ir::Split"}
"""Operators that give parts of their first input as views."""


def lacks(draft: Draft) -> list[Value]:
    """The inputs of the body that need a memory of their own, in order."""
    return _endangered(draft.body)


def give(draft: Draft, found: list[Value]) -> None:
    """The body reads a copy of each such input."""
    inside = Builder([], draft.node.name, draft.b.target)
    copied = {v: opaque(inside, v, "memory" if _is_computed_in(v) else "content") for v in found}
    draft.enter_as(copied, inside.nodes)


def _endangered(body: Body) -> list[Value]:
    graph = body.graph
    places, uses = _places(graph), ValueUses(graph)
    found: set[Value] = set()
    fixed: set[Value] = set()
    for value, port in body.entries():
        if isinstance(port, Carried):
            found |= places.get(graph.outputs[port.output], set()) - {value}
        elif isinstance(port, Invariant):
            fixed.add(value)
    # An input that is the same in all iterations may be read in place. But a state must not lie in
    # its memory, and no operator may overwrite it.
    overwritten = {place for node in graph.nodes for place in _overwritten(node, places, uses)}
    lost = fixed & (overwritten | _given(graph))
    found = (found - fixed) | {value for value in lost if _is_computed_in(value)}
    return [v for v in graph.inputs if v in found and v.element not in (None, STRING)]


def _is_computed_in(value: Value) -> bool:
    return value.element is not None and is_computed_in(value.element)


def _places(graph: Graph) -> dict[Value, set[Value]]:
    """The inputs of the graph in whose memory each value may lie."""
    places = {value: {value} for value in graph.inputs}
    for node in graph.nodes:
        is_part = node.op in PARTS or _is_row(node)
        if not is_part and _has_own_memory(node):
            continue
        for output in node.outputs:
            places[output] = {
                place
                for index, value in enumerate(node.inputs)
                if value is not None and ((is_part and not index) or may_hold(value, output))
                for place in places.get(value, ())
            }
    return places


def _is_row(node: Node) -> bool:
    """Whether a node gathers one known row."""
    if node.op != "Gather" or node.attributes["batch_dims"]:
        return False
    return len(known_of(node.inputs[1]).ints or ()) == 1


def _given(graph: Graph) -> set[Value | None]:
    """The outputs of the graph, and the values of which they are views."""
    found: set[Value | None] = {*graph.outputs}
    for node in reversed(graph.nodes):
        if node.op in VIEWS and not found.isdisjoint(node.outputs):
            found.add(node.inputs[0])
    return found


def _overwritten(node: Node, places: dict[Value, set[Value]], uses: ValueUses) -> set[Value]:
    first = node.input(0)
    if first is None or node.op in VIEWS or _has_own_memory(node):
        return set()
    is_held = any(may_hold(first, output) for output in node.outputs)
    return places.get(first, set()) if is_held or _is_rotated(node, uses) else set()


def _has_own_memory(node: Node) -> bool:
    """Whether the output of a node surely has memory of its own.

    OpenVINO drops a Slice if it knows that the Slice takes everything. It replaces several known
    Slices by a Split, which is in place.
    """
    if node.op == "Slice":
        return any(v is not None and v.constant is None for v in node.inputs[1:3])
    return node.op in OWN_MEMORY or hides(node, "memory")


def _is_rotated(node: Node, uses: ValueUses) -> bool:
    """Whether a node may be the first Split of a rotary embedding: all its parts are multiplied."""
    if node.op != "VariadicSplit":
        return False
    users = [user for value in node.outputs for user in uses.users(value)]
    return bool(users) and all(user.op == "Mul" for user in users)


QUIRK = Clause(
    holds="No state shares memory with a value that an iteration reads later.",
    lacks=lacks,
    give=give,
    releases="2026.4",
    symptom="A state that is computed in the memory of a Parameter of the body, or in a part of "
    "it, is overwritten before it is read. So h = x + h over slices x is wrong. A rotary embedding "
    "of a value that a Loop captures rotates it again in each iteration.",
    fires="At an input of a Loop's body, if a state or a value that overwrites the state may lie "
    "in its memory.",
    safe="The maximum of a value with itself is the value, and so is the only row of a stack of "
    "it.",
    cost="a copy of each input of a body in whose memory a state may lie",
    undo=undone("memory", "content"),
)
