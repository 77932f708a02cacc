"""Output sizes of windows: convolutions and poolings."""

from collections.abc import Iterator, Sequence
from typing import Any

from bridge.neutral.attributes import Attributes
from bridge.neutral.inference import constraints as must, first, require
from bridge.neutral.inference.dims import dim_product
from bridge.neutral.types import ANY, Dim, Shape, TensorType, high, interval, low
from bridge.operators import Node


def window_size(
    dim: Dim, kernel: int, stride: int, dilation: int, pads: tuple[int, int], rounding: str
) -> Dim:
    """The number of positions of a window along an axis; `rounding` as in AvgPool."""
    if not isinstance(dim, int):
        if stride == 1 and sum(pads) == dilation * (kernel - 1):
            return dim
        # A larger axis has at least as many positions.
        least, most = (
            None if end is None else window_size(end, kernel, stride, dilation, pads, rounding)
            for end in (low(dim), high(dim))
        )
        return interval(low(least or 0), None if most is None else high(most))
    room = dim + sum(pads) - (dilation * (kernel - 1) + 1)
    if rounding == "floor":
        return max(room // stride + 1, 0)
    count = -(-room // stride) + 1
    if rounding == "ceil_torch" and (count - 1) * stride >= dim + pads[0]:
        count -= 1
    return max(count, 0)


def full_attributes(attributes: dict[str, Any], rank: int) -> dict[str, Any]:
    """Explicit auto_pad, dilations, pads and strides of a window with `rank` spatial axes. Pads are
    0 if auto_pad determines them."""
    auto_pad = attributes.get("auto_pad", "NOTSET")
    pads = attributes.get("pads") if auto_pad == "NOTSET" else None
    return {
        "auto_pad": auto_pad,
        "dilations": attributes.get("dilations") or (1,) * rank,
        "pads": pads or (0,) * (2 * rank),
        "strides": attributes.get("strides") or (1,) * rank,
    }


def windows(
    attributes: dict[str, Any], spatial: Sequence[Dim], kernel: Sequence[Dim]
) -> tuple[Dim, ...]:
    """The spatial axes after a convolution or pooling with the usual attributes."""
    rank = len(spatial)
    require(not next(window_faults(attributes, rank), ""))
    full = full_attributes(attributes, rank)
    strides, dilations, pads = full["strides"], full["dilations"], full["pads"]
    rounding = attributes.get("rounding_type") or (
        "ceil_torch" if attributes.get("ceil_mode") else "floor"
    )
    result: list[Dim] = []
    for i, dim in enumerate(spatial):
        if full["auto_pad"].startswith("SAME"):
            unknown = dim if strides[i] == 1 else ANY
            result.append(-(-dim // strides[i]) if isinstance(dim, int) else unknown)
            continue
        k = kernel[i]
        ends = pads[i], pads[i + rank]
        if isinstance(k, int):
            result.append(window_size(dim, k, strides[i], dilations[i], ends, rounding))
        else:
            result.append(ANY)
    return tuple(result)


def convolved(node: Node, data: Shape, filters: Shape, channels: int, leading: int) -> Shape:
    """The shape after a convolution. The filters have `leading` axes before the spatial axes. The
    product of the first `channels` of these is the number of output channels."""
    kernel: Sequence[Dim]
    out: Dim
    if filters is not None:
        kernel = node.attributes.get("kernel_shape") or filters[leading:]
        out = dim_product(filters[:channels])
    elif data is not None:
        kernel, out = node.attributes.get("kernel_shape") or (ANY,) * (len(data) - 2), ANY
    else:
        return None
    require(data is None or len(data) > 2)
    batch, spatial = (data[0], data[2:]) if data is not None else (ANY, (ANY,) * len(kernel))
    if len(spatial) != len(kernel):
        return None
    return (batch, out, *windows(node.attributes, spatial, kernel))


def pooled(node: Node) -> TensorType:
    """The type after a pooling: batch, channels, and the number of windows along each axis."""
    data = first(node)
    kernel = node.attributes["kernel_shape"]
    require(data.shape is None or len(data.shape) > 2)
    batch, channels = (ANY, ANY) if data.shape is None else data.shape[:2]
    spatial = (ANY,) * len(kernel) if data.shape is None else data.shape[2:]
    require(len(spatial) == len(kernel))
    return TensorType(data.element, (batch, channels, *windows(node.attributes, spatial, kernel)))


_PER_AXIS = {"kernel_shape": 1, "strides": 1, "dilations": 1, "output_padding": 1, "pads": 2}
"""The length of each attribute for one axis of the window."""
_POSITIVE = ("kernel_shape", "strides", "dilations")


def window_faults(attributes: Attributes, axes: int | None) -> Iterator[str]:
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


def window(node: Node) -> must.Constraints:
    """A convolution or pooling: data with axes for a window, and attributes for these axes."""
    rank = must.Operand(node.input(0)).rank
    if rank is not None and rank < 3:
        yield f"its input 0 is of rank {rank}, without axes for a window"
    else:
        yield from window_faults(node.attributes, None if rank is None else rank - 2)


def pooling(node: Node) -> must.Constraints:
    """A pooling: a window with one axis at least."""
    yield from window(node)
    if not node.attributes["kernel_shape"]:
        yield "its kernel_shape has no axes"
