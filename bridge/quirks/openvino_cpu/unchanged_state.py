"""A state that stays what it was at first: OpenVINO fails where the next value is the initial one
by another way."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.ports import Carried, Invariant, Yield
from bridge.operators import Result
from bridge.operators.control.draft import Draft
from bridge.quirks.quirk import OPENVINO_CPU, Place, Quirk, rewriting


def no_state(b: Builder, node: Node, place: Place) -> Result:
    """The state as a value that is the same in each iteration."""
    body = node.body
    outer = {v: node.inputs[p.input] for v, p in body.entries() if isinstance(p, Invariant)}
    draft = Draft.of(node)
    found: dict[int, Value] = {}
    for index, (value, port) in enumerate(body.entries()):
        if not isinstance(port, Carried) or port.input is None:
            continue
        result, exit = body.exit_of(port)
        again, initial = result.behind("Identity"), node.inputs[port.input]
        if initial is None or not isinstance(exit, Yield) or exit.output is None:
            continue
        if again is value or outer.get(again) is initial:
            draft.body.inputs[index] = Invariant(port.input)
            found[exit.output] = initial
    if not found:
        return None
    results = draft.build(b)
    for output, initial in found.items():
        results[output] = initial
    return results


QUIRK = Quirk(
    OPENVINO_CPU,
    releases="2026.4",
    symptom="A Loop's state whose next value is its initial one, captured by another way, is not "
    "read.",
    cost="none: the state goes",
    run=rewriting("Loop", by=no_state),
)
