"""Which windows of convolutions and poolings are none: attributes for another number of axes, or
sizes and steps below 1."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.neutral.attributes import Attributes
from bridge.neutral.graph import Node

POOLING = ("AveragePool", "AvgPool", "LpPool", "MaxPool", "MaxUnpool")
CONVOLUTION = (
    "BinaryConvolution", "Conv", "ConvInteger", "ConvTranspose", "ConvolutionBackpropData",
    "DeformConv", "DeformableConvolution", "GroupConvolution", "GroupConvolutionBackpropData",
    "QLinearConv",
)  # fmt: skip

_PER_AXIS = {"kernel_shape": 1, "strides": 1, "dilations": 1, "output_padding": 1, "pads": 2}
"""How many numbers each attribute has for an axis of the window."""
_POSITIVE = ("kernel_shape", "strides", "dilations")
_NOT_NEGATIVE = ("output_padding", "pads")


def window(node: Node) -> Iterator[str]:
    """What contradicts itself in the attributes of a window."""
    shape = node.inputs[0].shape if node.inputs[0] is not None else None
    if shape is not None and len(shape) < 3:
        yield f"its input 0 is of rank {len(shape)}, without axes for a window"
    else:
        yield from contradictions(node.attributes, None if shape is None else len(shape) - 2)
    if node.op in POOLING and not node.attributes["kernel_shape"]:
        yield "its kernel_shape has no axes"


def contradictions(attributes: Attributes, axes: int | None) -> Iterator[str]:
    """What contradicts itself in the attributes of a window with so many axes, if that is known;
    those without numbers are absent."""
    for name, per_axis in _PER_AXIS.items():
        numbers = attributes.get(name)
        if not numbers:
            continue
        axes = len(numbers) // per_axis if axes is None else axes
        if len(numbers) != axes * per_axis:
            yield f"its {name} {list(numbers)} are not for {axes} axes"
        if name in _POSITIVE and min(numbers) < 1:
            yield f"its {name} are {list(numbers)}, and must be 1 or more"


def negative_padding(node: Node) -> str:
    """Which padding of a window is below 0, which IR has and ONNX has not; "" where none is."""
    if node.op in (*POOLING, *CONVOLUTION):
        for name in _NOT_NEGATIVE:
            numbers = node.attributes.get(name) or (0,)
            if min(numbers) < 0:
                return f"its {name} are {list(numbers)}; ONNX has none below 0"
    return ""
