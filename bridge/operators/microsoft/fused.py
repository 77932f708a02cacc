"""Fused operators of onnxruntime: activations with a bias, products and convolutions with a scale
and an activation (onnxruntime's ContribOperators). Attributes have their values from the file."""

from bridge.neutral.inference import constraints as must
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes, ranks, required
from bridge.operators.activation.softmax import over_all_from

# Activations ------------------------------------------------------------------------------------


@legalizes("com.microsoft::Gelu", "com.microsoft::BiasGelu", target="ir")
def gelu(b: Builder, node: Node) -> Result:
    """`com.microsoft::Gelu` and BiasGelu (1): Gelu of a sum."""
    return b.op("Gelu", _biased(b, node))


@legalizes("com.microsoft::FastGelu", target="ir")
def fast_gelu(b: Builder, node: Node) -> Result:
    """`com.microsoft::FastGelu` (1): Gelu by tanh of a sum."""
    return b.op("Gelu", _biased(b, node), approximate="tanh")


@legalizes("com.microsoft::QuickGelu", target="ir")
def quick_gelu(b: Builder, node: Node) -> Result:
    """`com.microsoft::QuickGelu` (1): x * sigmoid(alpha * x), ONNX's Swish."""
    x = node.operand(0)
    return b.op("Swish", x, b.like(node.attributes.get("alpha", 1.702), x))


@legalizes("com.microsoft::ScaledSiLU", target="ir")
def scaled_silu(b: Builder, node: Node) -> Result:
    """`com.microsoft::ScaledSiLU` (1): z * sigmoid(z), with z the data times a scale or `alpha`."""
    x, scale, alpha = node.operand(0), node.input(1), node.attributes.get("alpha", 1.0)
    z = x * b.cast(b.like(alpha, x) if scale is None else scale, x.element)
    return z * b.op("Sigmoid", z)


@legalizes("com.microsoft::GatedAdd", target="ir")
def gated_add(b: Builder, node: Node) -> Result:
    """`com.microsoft::GatedAdd` (1): X + Y * gate."""
    x, y, gate = required(node, 0, 1, 2)
    return x + y * gate


@legalizes("com.microsoft::BiasSplitGelu", target="ir")
def bias_split_gelu(b: Builder, node: Node) -> Result:
    """`com.microsoft::BiasSplitGelu` (1): the left half of the sum times the Gelu of the right
    half."""
    left, right = b.ops("Split", 2, _biased(b, node), axis=-1)
    return left * b.op("Gelu", right)


@legalizes("com.microsoft::BiasAdd", target="ir")
def bias_add(b: Builder, node: Node) -> Result:
    """`com.microsoft::BiasAdd` (1): the sum of the data, a bias and the skip."""
    return _biased(b, node) + node.input(2)


@legalizes("com.microsoft::BiasSoftmax", target="ir")
def bias_softmax(b: Builder, node: Node) -> Result:
    """`com.microsoft::BiasSoftmax` (1): Softmax of a sum along an axis and those behind it."""
    ranks(node, 0)
    node.attributes.get("is_inner_broadcast")  # The shapes say it.
    return over_all_from(b, "Softmax", _biased(b, node), node.attributes.get("axis", 1))


def _biased(b: Builder, node: Node) -> Value:
    """The sum of an input and a bias."""
    return b.plus(*required(node, 0), node.input(1))


def _activated(b: Builder, node: Node, x: Value) -> Value:
    """Applies the node's activation, named as in ONNX, with its parameters in the order alpha,
    beta."""
    attributes = node.attributes
    name = attributes.get("activation", "")
    named = ("activation_alpha", "activation_beta")
    parameters = attributes.get("activation_params") or [
        attributes[key] for key in named if key in attributes
    ]
    match name, parameters:
        case "", _:
            return x
        case (("Relu" | "Sigmoid" | "Tanh" | "Softplus" | "Softsign" | "HardSwish"), _):
            return b.op(name, x)
        case (("LeakyRelu" | "Elu" | "ThresholdedRelu"), (alpha, *_)):
            return b.op(name, x, alpha=alpha)
        case (("HardSigmoid" | "Clip"), (first, second, *_)):
            return b.op(name, x, b.like(first, x), b.like(second, x))
    raise Refused(f"the activation {name} with {len(parameters)} parameters is not known")


# Products ---------------------------------------------------------------------------------------


@legalizes(
    "com.microsoft::FusedMatMul", "com.microsoft::TransposeMatMul",
    "com.microsoft::FusedMatMulActivation",
    target="ir",
)  # fmt: skip
def fused_matmul(b: Builder, node: Node) -> Result:
    """`com.microsoft::FusedMatMul`, FusedMatMulActivation and TransposeMatMul (1): alpha times the
    product. First, transBatch moves the first axis behind the batch. Then, trans exchanges the last
    two axes."""
    attributes = node.attributes
    sides = required(node, 0, 1)
    for i, name in enumerate(("transBatchA", "transBatchB")):
        if attributes.get(name, 0):
            (rank,) = ranks(node, i)
            sides[i] = b.transpose(sides[i], *range(1, rank - 1), 0, rank - 1)
    flags = {f"transpose_{x}": bool(attributes.get(f"trans{x.upper()}", 0)) for x in "ab"}
    y = b.op("MatMul", *sides, **flags)
    alpha = attributes.get("alpha", 1.0)
    if alpha != 1:
        y *= alpha
    return _activated(b, node, y)


@legalizes("com.microsoft::FusedGemm", target="ir")
def fused_gemm(b: Builder, node: Node) -> Result:
    """`com.microsoft::FusedGemm` (1): Gemm with an activation behind it."""
    attributes = node.attributes
    flags = {name: bool(attributes.get(name, 0)) for name in ("transA", "transB")}
    scales = {name: attributes.get(name, 1.0) for name in ("alpha", "beta")}
    y = b.op("Gemm", *node.inputs, **flags, **scales)
    return _activated(b, node, y)


@legalizes("com.microsoft::GemmFastGelu", target="ir")
def gemm_fast_gelu(b: Builder, node: Node) -> Result:
    """`com.microsoft::GemmFastGelu` (1): a matrix product, a bias, and Gelu by tanh."""
    left, right = required(node, 0, 1)
    y = b.plus(b.op("MatMul", left, right), node.input(2))
    return b.op("Gelu", y, approximate="tanh")


# Convolutions -----------------------------------------------------------------------------------

_CONV = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")


@legalizes("com.microsoft::NhwcConv", target="ir")
def nhwc_conv(b: Builder, node: Node) -> Result:
    """`com.microsoft::NhwcConv` (1): Conv with the channels last, also in the weights."""
    data, weights = required(node, 0, 1)
    (rank,) = ranks(node, 0)
    first = b.channels_first(data, rank), b.channels_first(weights, rank)
    y = b.op("Conv", *first, node.input(2), **node.attributes)
    return b.channels_last(y, rank)


@legalizes("com.microsoft::FusedConv", "com.microsoft::NhwcFusedConv", target="ir")
def fused_conv(b: Builder, node: Node) -> Result:
    """FusedConv and NhwcFusedConv: an activation of a convolution plus Z. NhwcFusedConv has the
    channels last in the data, Z and the result."""
    data, weights = required(node, 0, 1)
    attributes = node.attributes
    last = node.op.endswith("NhwcFusedConv")
    if last:
        data = b.channels_first(data, ranks(node, 0)[0])
    settings = {name: attributes[name] for name in _CONV if name in attributes}
    y = b.op("Conv", data, weights, node.input(2), **settings)
    if last:
        y = b.channels_last(y, ranks(node, 0)[0])
    return _activated(b, node, b.plus(y, node.input(3)))


must.hold("com.microsoft::FusedGemm", *must.have_ranks(2, 2))
