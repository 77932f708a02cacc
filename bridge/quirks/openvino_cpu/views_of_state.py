"""A state behind its Loop, of which several operators take views.

OpenVINO's CPU plugin reads the operand of a Reshape where it lies. Of several views of one value
that one node takes, it copies all but one. After an iteration more or fewer than the time before,
a state of open size lies elsewhere behind its Loop; the copy still reads the old place, which may
hold other values by then. A maximum with itself takes the state out of that place.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.ports import Yield
from bridge.neutral.types import is_static
from bridge.operators import Result
from bridge.quirks.opaque import opaque, undone
from bridge.quirks.quirk import Place, Quirk, is_computed_in, rewriting

VIEWS = frozenset({"Cast", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
"""Operators that may give their operand as it lies in memory."""

PRODUCTS = frozenset({"Einsum", "MatMul"})
"""Operators for which OpenVINO makes a view of an operand: it may be a vector, or transposed."""


def with_copies_of_states(b: Builder, node: Node, place: Place) -> Result:
    """The Loop, and behind it the maximum of such a state with itself."""
    states = {exit.output for exit in node.body.outputs if isinstance(exit, Yield)}
    copied = {i for i, value in enumerate(node.outputs) if i in states and _is_lost(value, place)}
    if not copied:
        return None
    made = [Value(value.type) for value in node.outputs]
    b.nodes.append(
        Node("Loop", list(node.inputs), made, node.attributes, node.bodies, node.name, node.extras)
    )
    return [opaque(b, v, "memory") if i in copied else v for i, v in enumerate(made)]


def _is_lost(value: Value, place: Place) -> bool:
    """Whether a state of open size has several views."""
    if is_static(value.shape) or value.element is None or not is_computed_in(value.element):
        return False
    return _views(value, place) > 1


def _views(state: Value, place: Place) -> int:
    """How many operands of operators are views of a state, or views of views."""
    count, left = 0, [state]
    while left:
        view = left.pop()
        users = place.users(view)
        left += [user.outputs[0] for user in users if user.op in VIEWS and user.inputs[0] is view]
        count += sum(user.inputs.count(view) for user in users if user.op in PRODUCTS)
        count += view is not state and any(user.op not in VIEWS | PRODUCTS for user in users)
    return count


QUIRK = Quirk(
    releases="2026.4",
    symptom="Where a node takes two views of a Loop's state of open size, as a product of a vector "
    "with itself does, one shows other memory once the number of iterations has changed.",
    fires="At a state of open size behind its Loop, of which several views are taken.",
    safe="The greatest of a value and itself is the value.",
    cost="a Maximum of such a state with itself",
    run=rewriting("Loop", by=with_copies_of_states, uses=True),
    undo=undone("memory"),
)
