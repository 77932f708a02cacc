"""Dropout, which has an effect only in training."""

from __future__ import annotations

import numpy as np

from bridge.neutral.inference.known import known_of
from bridge.operators import Builder, Node, Refused, Result, legalizes


@legalizes("Dropout", target="ir")
def dropout_to_ir(b: Builder, node: Node) -> Result:
    """Dropout (1 to 22). At inference it is a copy, and its mask is all true. IR has no Dropout for
    training."""
    data, training = node.operand(0), known_of(node.input(2)).array
    if node.input(2) is not None and (training is None or training.item()):
        ratio = known_of(node.input(1)).array
        if ratio is None or ratio.item() != 0:
            raise Refused("training drops elements at random; set training_mode to false")
    output = b.op("Identity", data)
    if len(node.outputs) == 1:
        return output
    return output, b.op("Expand", b.constant(np.array(True)), b.op("Shape", data))
