"""Dropout, which has an effect only in training."""

import numpy as np

from bridge.neutral.inference.known import known_of
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes, reads


@reads("Dropout", format="onnx", until=9)
def read_dropout_1(b: Builder, node: Node) -> Result:
    """Dropout (1 to 7), whose mask has the type of the data."""
    return _with_old_mask(b, node, node.operand(0))


@reads("Dropout", format="onnx", since=10, until=11)
def read_dropout_10(b: Builder, node: Node) -> Result:
    """Dropout-10, whose mask is boolean."""
    return _with_old_mask(b, node, b.constant(np.array(False)))


def _with_old_mask(b: Builder, node: Node, like: Value) -> Result:
    """The standard does not say what the mask is at inference. In onnxruntime it is 0."""
    if len(node.outputs) == 1:
        return None
    data, ratio = node.operand(0), node.attributes.get("ratio", 0.5)
    mask = b.op("Expand", b.op("CastLike", b.constant(0), like), b.op("Shape", data))
    return b.op("Dropout", data, ratio), mask


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
