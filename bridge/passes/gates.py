"""HardSigmoid with 1/6 and 1/2 as IR's HSigmoid, where it is the gate of a product.

OpenVINO computes HSigmoid within the layers around it, and a HardSigmoid apart from them, with more
conversions. HSigmoid of large numbers may be 1 less the last place. A product does not mind that; a
comparison might.
"""

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Model, Node
from bridge.neutral.inference.known import known_of
from bridge.neutral.rewrite import Pattern, Result, Rewriter
from bridge.neutral.types import F32
from bridge.passes.context import Context
from bridge.vocabulary import has_trait


def use_h_sigmoid(model: Model, context: Context) -> bool:
    """Uses HSigmoid for gates, in place."""
    pattern = Pattern(_gate, frozenset({"HardSigmoid"}), context.target, uses=True)
    return Rewriter(model.graph).run(pattern)


def _gate(b: Builder, node: Node, uses: Rewriter) -> Result:
    x, alpha, beta = node.inputs
    slope, shift = known_of(alpha).array, known_of(beta).array
    if x is None or x.element is not F32 or slope is None or shift is None:
        return None
    if (slope != np.float32(1 / 6)).any() or (shift != np.float32(0.5)).any():
        return None
    gate = node.outputs[0]
    users = uses.users(gate)
    known = all(user.op == "Mul" or has_trait(user.op, "quantizes") for user in users)
    return b.op("HSigmoid", x) if users and known and gate not in uses.graph.outputs else None
