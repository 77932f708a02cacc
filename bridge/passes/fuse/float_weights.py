"""Scaled integer constants that meet floats, as Cast, Sub and Mul.

onnxruntime folds these into a constant of floats. It does not fold DequantizeLinear: it scales the
weights in each run, or fuses DequantizeLinear and MatMul to MatMulNBits, which quantises the other
operand. DequantizeLinear is for weights that meet quantised activations.
"""

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value, producer_of
from bridge.operators.quantization.quantize import scaled
from bridge.passes.fuse.weights import DOMAIN
from bridge.passes.uses import Uses
from bridge.vocabulary import has_trait

PASSING = ("Concat", "DequantizeLinear", "MaxPool", "Mul", "Split", "Sub")
"""Operators that scale integers, or leave elements as they are."""


def float_weights(b: Builder, node: Node, uses: Uses) -> Value | None:
    """A DequantizeLinear of constants, no user of which has a quantised operand or result.
    One that the original model had stays."""
    if (node.extras or {}).get("restored"):
        return None
    if any(value is not None and value.constant is None for value in node.inputs):
        return None
    if meets_integers(node.outputs[0], uses):
        return None
    return scaled(b, node)


def stays_arithmetic(b: Builder, weights: Value, uses: Uses) -> bool:
    """Whether integers that are scaled in f32 stay Cast, Sub and Mul: no kernel takes them."""
    return DOMAIN not in b.domains and not meets_integers(weights, uses)


def meets_integers(weights: Value, uses: Uses) -> bool:
    """Whether an operator takes the weights beside quantised values, or is quantised behind."""
    waiting = [weights]
    for value in waiting:
        for user in uses.users(value):
            if has_trait(user.op, "moves"):
                waiting.append(user.outputs[0])
                continue
            operands = any(_is_quantized(other) for other in user.inputs if other is not value)
            behind = uses.users(user.outputs[0])
            if operands or any(has_trait(one.op, "quantizes") for one in behind):
                return True
    return False


def _is_quantized(value: Value | None) -> bool:
    """Whether a value that is computed had 8 bits or fewer before it was scaled."""
    node = producer_of(value)
    while node is not None and (node.op in PASSING or has_trait(node.op, "elements_of_first")):
        before = node.inputs[0]
        if before is None or before.constant is not None:
            return False
        element = before.element
        if element is not None and element.kind in ("int", "uint") and element.bits <= 8:
            return True
        node = before.producer
    return node is not None and has_trait(node.op, "quantizes")
