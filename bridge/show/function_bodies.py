"""Operators whose meaning the ONNX standard gives as a function body.

The facts are the standard's (`OpSchema.has_function`, `has_context_dependent_function`, ONNX
1.23); they are kept here because asking the standard means importing it.
"""

from __future__ import annotations

FUNCTION_BODIES = frozenset(
    """
    AffineGrid Attention Bernoulli BlackmanWindow CastLike CausalConvWithState Celu CenterCropPad
    Clip DepthToSpace DynamicQuantizeLinear Elu FlexAttention Gelu GreaterOrEqual
    GroupNormalization HammingWindow HannWindow HardSigmoid HardSwish LayerNormalization LeakyRelu
    LessOrEqual LinearAttention LogSoftmax MeanVarianceNormalization Mish
    NegativeLogLikelihoodLoss PRelu RMSNormalization Range ReduceL1 ReduceL2 ReduceLogSum
    ReduceLogSumExp ReduceSumSquare Relu RotaryEmbedding Selu SequenceMap Shrink Softmax
    SoftmaxCrossEntropyLoss Softplus Softsign SpaceToDepth SwiGLU Swish ThresholdedRelu
    """.split()  # noqa: SIM905
)
