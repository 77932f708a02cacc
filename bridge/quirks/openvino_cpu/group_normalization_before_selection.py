"""GroupNormalization before a Select: the CPU plugin ends the process when it compiles some.

Which ones, the other inputs of the Select decide, in a way that a file does not tell. So it is
taken apart wherever a Select takes what it gives. The parts compute the same.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.operators import Result
from bridge.quirks.openvino_cpu.group_normalization_in_body import in_parts
from bridge.quirks.quirk import Place, Quirk, rewriting


def taken_apart(b: Builder, node: Node, place: Place) -> Result:
    """Its parts, where a Select takes what it gives."""
    is_selected = any(user.op == "Where" for user in place.users(node.outputs[0]))
    return in_parts(b, node) if is_selected else None


QUIRK = Quirk(
    releases="2026.4",
    symptom="GroupNormalization whose output a Select takes ends the process when it is compiled, "
    "where other inputs of the Select are computed.",
    fires="At a GroupNormalization that a Where takes.",
    safe="The standard defines it so: each group less its mean, over its deviation; then times "
    "the scale, plus the bias.",
    cost="six operators for one",
    run=rewriting("GroupNormalization", by=taken_apart, uses=True),
)
