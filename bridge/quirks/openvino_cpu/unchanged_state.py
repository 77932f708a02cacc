"""A state that stays what it was at first: OpenVINO fails where the next value is the initial one
by another way."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.ports import Carried, Invariant, Stacked, Yield
from bridge.operators import Result
from bridge.operators.control.draft import Draft
from bridge.quirks.quirk import OPENVINO_CPU, Place, Quirk, rewriting
from bridge.struct import replace


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
    results = list(node.outputs)
    left = [index for index in range(len(results)) if index not in found]
    if left:
        made = _without(b, draft, left)
        for index, value in zip(left, made, strict=True):
            results[index] = value
    for output, initial in found.items():
        results[output] = initial
    return results


def _without(b: Builder, draft: Draft, left: list[int]) -> list[Value]:
    """The Loop with those of its outputs alone that are left, and what its body reads for them:
    OpenVINO drops the others, too, and no other quirk shall take the Loop for one that needs them.
    """
    body, places = draft.body, {old: new for new, old in enumerate(left)}
    exits = []
    for index, port in enumerate(body.outputs):
        if isinstance(port, Yield | Stacked) and port.output is not None:
            if port.output not in places:
                continue
            body.outputs[index] = replace(port, output=places[port.output])
        exits.append(index)
    body.keep_exits(exits)
    read = {value for node in body.graph.nodes for value in node.inputs} | {*body.graph.outputs}
    body.take_entries(lambda value, port: isinstance(port, Invariant) and value not in read)
    draft.drop_unused_inputs()
    old = draft.node
    made = b.node("Loop", draft.inputs, len(left), {}, (body,), extras=old.extras).outputs
    for index, value in zip(left, made, strict=True):
        value.type = value.declared = old.outputs[index].type
    return list(made)


QUIRK = Quirk(
    OPENVINO_CPU,
    releases="2026.4",
    symptom="A Loop's state whose next value is its initial one, captured by another way, is not "
    "read.",
    cost="none: the state goes",
    run=rewriting("Loop", by=no_state),
)
