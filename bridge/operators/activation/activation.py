"""Activation functions with parameters as inputs in one format and as attributes in the other."""

from bridge.neutral.inference import constraints as must
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import F32
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes, reads, required


@reads("Swish", format="onnx", since=24)
def read_swish(b: Builder, node: Node) -> Result:
    """Swish-24: the attribute becomes a constant of the type of the data, unless
    it is 1."""
    x = node.operand(0)
    alpha = node.attributes.get("alpha", 1.0)
    return b.op("Swish", x, None if alpha == 1 else b.like(alpha, x))


@legalizes("HardSigmoid", target="ir")
@legalizes("HardSigmoid", target="onnx")
def hard_sigmoid(b: Builder, node: Node) -> Result:
    """HardSigmoid (1 to 22) with computed parameters: max(0, min(1, alpha · x +
    beta))."""
    x, alpha, beta = required(node, 0, 1, 2)
    if known_of(alpha).array is not None and known_of(beta).array is not None:
        return None
    return b.op("Clip", x * alpha + beta, b.like(0.0, x), b.like(1.0, x))


@legalizes("Selu", target="ir")
@legalizes("Selu", target="onnx")
def selu(b: Builder, node: Node) -> Result:
    """Selu (1 to 22) with computed parameters. The result is gamma · x for positive
    x, else gamma · alpha · (exp(x) - 1)."""
    x, alpha, gamma = required(node, 0, 1, 2)
    if known_of(alpha).array is not None and known_of(gamma).array is not None:
        return None
    zero = b.like(0.0, x)
    below = b.op("Exp", b.min(x, zero)) - b.like(1.0, x)
    return gamma * (b.max(x, zero) + alpha * below)


@legalizes("Shrink", target="ir")
def shrink(b: Builder, node: Node) -> Result:
    """Shrink-9. The function of the standard rounds the bias of integers to 0; its text and
    onnxruntime do not: they add in floats, and cut what they get off to an integer."""
    x, lambd, bias = node.operand(0), node.attributes["lambd"], node.attributes["bias"]
    if x.element is not None and x.element.is_float:
        return None  # The function of the standard is right.
    numbers = b.cast(x, F32)
    shrunk = b.where(numbers > lambd, numbers - bias, b.like(0.0, numbers))
    return b.cast(b.where(numbers < -lambd, numbers + bias, shrunk), x.element)


@legalizes("Swish", target="onnx")
def swish(b: Builder, node: Node) -> Result:
    """x · sigmoid(beta · x), if the operator set has no Swish or beta is not a constant."""
    x, beta = node.input(0), node.input(1)
    if b.opset >= 24 and (beta is None or known_of(beta).array is not None):
        return None
    return x * b.op("Sigmoid", x if beta is None else x * beta)


@legalizes("HSigmoid", target="onnx")
def h_sigmoid(b: Builder, node: Node) -> Result:
    """min(max(x + 3, 0), 6) / 6 (HSigmoid-5)."""
    return b.op("HardSigmoid", node.operand(0), b.constant(1 / 6, F32), b.constant(0.5, F32))


@legalizes("LeakyRelu", target="ir")
def leaky_relu(b: Builder, node: Node) -> Result:
    """LeakyRelu (1 to 16) as PReLU with one slope for all elements."""
    x = node.operand(0)
    alpha = node.attributes["alpha"]
    return b.op("PRelu", x, b.like(alpha if x.rank == 0 else [alpha], x))


@reads("PRelu", format="onnx", until=6)
def read_prelu(b: Builder, node: Node) -> Result:
    """PRelu-1 and PRelu-6: one slope for all elements, or one for each channel (axis 1)."""
    x, slope = required(node, 0, 1)
    return b.op("PRelu", x, _per_channel(b, x, slope))


@reads("PReLU", format="ir")
def read_ir_prelu(b: Builder, node: Node) -> Result:
    """PReLU-1. A 1-D slope of the length of the data's axis 1 belongs to this axis. Any other slope
    is broadcast as in numpy. The slope may have a type of its own: OpenVINO's Model Optimizer wrote
    f32 slopes into models of f16."""
    x, slope = required(node, 0, 1)
    if None not in (x.element, slope.element):
        slope = b.cast(slope, x.element)
    if _broadcasts(x, slope):
        return b.op("PRelu", x, slope)
    if x.shape is None or slope.shape is None:
        raise Refused("its slope may be by channel, which depends on ranks that are not known")
    channels, count = x.shape[1], slope.shape[0]
    if isinstance(channels, int) and isinstance(count, int):
        return b.op("PRelu", x, _per_channel(b, x, slope) if channels == count else slope)
    ones = [1] * (len(x.shape) - 2)
    length = b.sizes(slope, 0)
    shaped = b.where(b.sizes(x, 1).equal(length), b.shape(length, *ones), b.shape(*ones, length))
    return b.op("PRelu", x, b.op("Reshape", slope, shaped))


def _broadcasts(x: Value, slope: Value) -> bool:
    """Whether a slope has the same effect by channel and by numpy's broadcasting."""
    return slope.rank not in (None, 1) or slope.shape == (1,) or x.rank in (1, 2)


def _per_channel(b: Builder, x: Value, slope: Value) -> Value:
    """A 1-D slope, reshaped for numpy's broadcasting to align it with axis 1."""
    if _broadcasts(x, slope):
        return slope
    if x.rank is None or slope.rank is None:
        raise Refused("a slope by channel needs the ranks of both inputs; declare their shapes")
    return b.unsqueeze(slope, *range(1, x.rank - 1))


@legalizes("PRelu", target="ir")
def prelu(b: Builder, node: Node) -> Result:
    """PRelu (1 to 16). ONNX broadcasts the slope as numpy does, but IR applies a 1-D slope by
    channel."""
    x, slope = required(node, 0, 1)
    if _broadcasts(x, slope):
        return None
    if slope.rank is None:
        zero = b.like(0.0, x)
        return b.max(x, zero) + slope * b.min(x, zero)
    return b.op("PRelu", x, b.unsqueeze(slope, 0))


must.hold("PRelu", must.broadcasts)
