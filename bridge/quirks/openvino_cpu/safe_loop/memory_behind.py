"""Several views of a state behind its Loop do not share the memory of the state.

OpenVINO's CPU plugin reads the operand of a Reshape in place. If one node takes several views of
one value, the plugin copies all but one. The number of iterations may differ from the inference
before. Then a state of open size has another place in memory behind its Loop. The copy still reads
the old place, which may hold other values by then. A maximum of the state with itself gives it
memory of its own.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.ports import Yield
from bridge.neutral.types import is_static
from bridge.quirks.opaque import opaque, undone
from bridge.quirks.quirk import Place, is_computed_in
from bridge.quirks.safe_loop import Clause, Draft

VIEWS = frozenset({"Cast", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
"""Operators that may give their operand as a view."""

PRODUCTS = frozenset({"Einsum", "MatMul"})
"""Operators for which OpenVINO makes a view of an operand, if it is a vector or transposed."""


def lacks(draft: Draft) -> list[int]:
    """The outputs that are states of open size with several views."""
    states = {exit.output for exit in draft.body.outputs if isinstance(exit, Yield)}
    outputs = enumerate(draft.node.outputs)
    return [i for i, value in outputs if i in states and _is_lost(value, draft.place)]


def give(draft: Draft, found: list[int]) -> None:
    """A Maximum of the state with itself, behind the Loop."""
    for index in found:
        draft.loop.after(index, _copied)


def _copied(b: Builder, state: Value) -> Value:
    return opaque(b, state, "memory")


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


QUIRK = Clause(
    holds="Several views of a state behind the Loop do not share its memory.",
    lacks=lacks,
    give=give,
    releases="2026.4",
    symptom="A node may take two views of a Loop's state of open size, such as a product of a "
    "vector with itself. One view then shows other memory after the number of iterations has "
    "changed.",
    fires="At a state of open size behind its Loop, if it has several views.",
    safe="The maximum of a value with itself is the value.",
    cost="a Maximum of such a state with itself",
    undo=undone("memory"),
)
