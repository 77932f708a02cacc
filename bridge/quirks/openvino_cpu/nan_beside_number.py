"""The maximum or the minimum of NaN and a number. The kernels give the second operand. So NaN
behind a constant stays NaN, and NaN in front of one is lost.

With a dynamic shape, the plugin joins elementwise operators, and the constant is second again.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.operators import Result
from bridge.quirks.known import is_known
from bridge.quirks.openvino_cpu.nan_is_greater import MARK, exchanged_again
from bridge.quirks.quirk import Place, Quirk, rewriting


def behind_constant(b: Builder, node: Node, place: Place) -> Result:
    """The operator on a constant and what is computed, marked for the way back."""
    x, y = node.inputs
    if x is None or y is None or x.element is None or not x.element.is_float:
        return None
    # The element type alone of the other input of a CastLike matters.
    if is_known(x.behind("CastLike"), place) or not is_known(y.behind("CastLike"), place):
        return None
    return b.node(node.op, [y, x], extras={"rt_info": MARK}).outputs[0]


QUIRK = Quirk(
    releases="2026.4",
    symptom="The Maximum or the Minimum of NaN and a constant is the constant.",
    fires="At a Max or a Min of floats, if OpenVINO knows the second operand alone.",
    safe="The operands of a maximum and of a minimum may change places.",
    cost="none: the operands are exchanged, and rt_info records it",
    run=rewriting("Max", "Min", by=behind_constant),
    undo={"Max": exchanged_again, "Min": exchanged_again},
)
