"""GroupNormalization, for which the CPU plugin has no kernel.

OpenVINO decomposes the operator in the outermost graph only. It crashes there, too, if some Selects
read the output. This depends on the other inputs of the Select, and a file does not show it.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting


def in_parts(b: Builder, node: Node, place: Place) -> Result:
    """An MVN over each group, then a scale and a bias."""
    data, scale, bias = node.inputs
    is_selected = any(user.op == "Where" for user in place.users(node.outputs[0]))
    if data is None or data.rank is None or not (place.body or is_selected):
        return None
    assert scale is not None and bias is not None
    grouped = b.reshape(data, 0, node.attributes["num_groups"], -1)
    eps = node.attributes["epsilon"]
    settings = {"eps": eps, "eps_mode": "inside_sqrt", "normalize_variance": True}
    even = b.op("Reshape", b.op("MVN", grouped, [2], **settings), b.op("Shape", data))
    return even * _along_channels(b, scale, data.rank) + _along_channels(b, bias, data.rank)


def _along_channels(b: Builder, vector: Value, rank: int) -> Value:
    return b.reshape(vector, 1, -1, *(1,) * (rank - 2))


QUIRK = Quirk(
    releases="2026.4",
    symptom="GroupNormalization in the body of an If or a Loop does not compile: evaluate() is not "
    "implemented. OpenVINO crashes when it compiles one whose output a Select reads, if other "
    "inputs of the Select are computed.",
    fires="At a GroupNormalization of known rank in a body, or with a Where as its reader.",
    safe="This is the definition in the standard. Each group minus its mean is divided by its "
    "deviation, multiplied by the scale, and added to the bias.",
    cost="six operators for one",
    run=rewriting("GroupNormalization", by=in_parts, uses=True),
)
