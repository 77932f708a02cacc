"""What the weights and the companions of a layer cannot be beside its data: other channels, other
sizes of a window, other heads."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.neutral.builder import integers
from bridge.neutral.graph import Node
from bridge.neutral.types import ANY, Dim, Shape, differ, format_shape, is_static, size_of


def _shapes(node: Node, count: int) -> list[Shape]:
    """The shapes of the first inputs; None for those that are absent or of unknown rank."""
    given = [None if value is None else value.shape for value in node.inputs[:count]]
    return given + [None] * (count - len(given))


def _multiple(dim: Dim, of: int) -> bool:
    """Whether a dimension may be so many equal parts, one at least."""
    return of > 0 and (not isinstance(dim, int) or dim % of == 0)


def convolution(node: Node) -> Iterator[str]:
    """X [batch, channels, …] and W [results, channels / group, …], for the transposed one
    [channels, results / group, …]; `kernel_shape` are the last axes of W (ONNX, Conv,
    ConvTranspose, DeformConv)."""
    x, w = _shapes(node, 2)
    group, kernel = node.attributes["group"], node.attributes["kernel_shape"]
    if x is None or w is None:
        return
    if len(x) != len(w):
        yield f"{format_shape(x)} and {format_shape(w)} differ in rank"
        return
    if len(w) < 3:
        return  # The window tells.
    transposed = node.op == "ConvTranspose"
    channels = w[0] if transposed else w[1] * group if isinstance(w[1], int) else w[1]
    if differ(x[1], channels):
        yield f"{format_shape(x)} and {format_shape(w)} differ in channels"
    if not _multiple(w[0], group):
        yield f"{format_shape(w)} has no {group} groups"
    if kernel and (len(kernel) != len(w) - 2 or any(map(differ, kernel, w[2:]))):
        yield f"its kernel_shape is {list(kernel)}, and its weights are {format_shape(w)}"


def transposed_convolution(node: Node) -> Iterator[str]:
    """Data [batch, channels, …] and filters [channels, results, …] (IR,
    ConvolutionBackpropData)."""
    x, w = _shapes(node, 2)
    if x is not None and w is not None and len(x) == len(w) > 1 and differ(x[1], w[0]):
        yield f"{format_shape(x)} and {format_shape(w)} differ in channels"


def deformable_convolution(node: Node) -> Iterator[str]:
    """The offsets hold two numbers for each element of a window and each of their groups, the mask
    one (ONNX, DeformConv)."""
    w, offsets, _, mask = _shapes(node, 5)[1:]
    groups = node.attributes["offset_group"]
    sizes = () if w is None else w[2:]
    if w is None or not is_static(sizes):
        return
    window = size_of(sizes)
    for what, shape, each in (("offsets", offsets, 2 * window), ("mask", mask, window)):
        if shape is None:
            continue
        if len(shape) != len(w) or differ(shape[1], groups * each):
            yield f"{format_shape(shape)} are no {what} for {groups} groups of {format_shape(w)}"
    result = node.outputs[0].shape
    for shape in (offsets, mask):
        if shape is not None and result is not None and any(map(differ, shape[2:], result[2:])):
            yield f"{format_shape(shape)} are not for the places of {format_shape(result)}"


def blocks_to_image(node: Node) -> Iterator[str]:
    """A number for each axis of the image, and pads for both ends (ONNX, Col2Im)."""
    image, block = _shapes(node, 3)[1:]
    lengths = [shape[0] for shape in (image, block) if shape is not None and len(shape) == 1]
    if len(lengths) == 2 and differ(*lengths):
        yield f"its image_shape and block_shape are {lengths[0]} and {lengths[1]} numbers"
    axes = next((length for length in lengths if isinstance(length, int)), None)
    for name, count, least in (("dilations", 1, 1), ("strides", 1, 1), ("pads", 2, 0)):
        numbers = node.attributes.get(name)
        if not numbers:
            continue
        if axes is not None and len(numbers) != count * axes:
            yield f"its {name} {list(numbers)} are not for {axes} axes"
        elif min(numbers) < least:
            yield f"its {name} are {list(numbers)}, and must be {least} or more"


def places_of_blocks(node: Node) -> Iterator[str]:
    """As many blocks as have room in the padded image (ONNX, Col2Im)."""
    x, image, block = node.input(0), integers(node.input(1)), integers(node.input(2))
    if x is None or not x.shape or image is None or block is None or len(image) != len(block):
        return
    axes = len(image)
    strides, dilations, pads = (
        node.attributes.get(name) or (default,) * count
        for name, default, count in (
            ("strides", 1, axes),
            ("dilations", 1, axes),
            ("pads", 0, 2 * axes),
        )
    )
    places = 1
    for i in range(axes):
        room = image[i] + pads[i] + pads[i + axes] - dilations[i] * (block[i] - 1) - 1
        places *= max(0, room // strides[i] + 1)
    if differ(x.shape[-1], places):
        yield f"{format_shape(x.shape)} are not the {places} blocks of its image"


def blocks(node: Node) -> Iterator[str]:
    """Sizes that are so many blocks, or channels of which each block has so many (ONNX,
    SpaceToDepth, DepthToSpace)."""
    (x,) = _shapes(node, 1)
    block = node.attributes["blocksize"]
    if block < 1:
        yield f"its blocks have the size {block}"
    elif x is not None and len(x) > 2:
        parts = x[2:] if node.op == "SpaceToDepth" else x[1:2]
        by = block if node.op == "SpaceToDepth" else block ** (len(x) - 2)
        if not all(_multiple(dim, by) for dim in parts):
            yield f"{format_shape(x)} has no blocks of {block}"


def group_normalization(node: Node) -> Iterator[str]:
    """Equal groups of channels, and a scale and a bias for each channel (from operator set 21
    on; ONNX, GroupNormalization)."""
    x, scale, bias = _shapes(node, 3)
    if x is None or len(x) < 2:
        return
    groups = node.attributes["num_groups"]
    if not _multiple(x[1], groups):
        yield f"the channels of {format_shape(x)} are no {groups} groups"
    for shape in (scale, bias):
        if shape is not None and (len(shape) != 1 or differ(shape[0], x[1])):
            yield f"{format_shape(shape)} are no factors for the channels of {format_shape(x)}"


def attention(node: Node) -> Iterator[str]:
    """Queries, keys and values all of rank 3, with numbers of heads, or all of rank 4; as many
    heads of keys as of values, of which each serves equally many queries (ONNX, Attention)."""
    q, k, v = shapes = _shapes(node, 3)
    if not 0 <= (mode := node.attributes["qk_matmul_output_mode"]) <= 3:
        yield f"its scores have no stage {mode}"
    ranks = {len(shape) for shape in shapes if shape is not None}
    if ranks - {3, 4} or len(ranks) > 1:
        given = ", ".join(map(format_shape, shapes))
        yield f"{given} are not all of rank 3 or all of rank 4"
        return
    for one, other in ((q, k), (k, v)):
        if one is not None and other is not None and differ(one[0], other[0]):
            yield f"{format_shape(one)} and {format_shape(other)} differ in batches"
    if k is not None and v is not None and differ(k[-2], v[-2]):
        yield f"{format_shape(k)} and {format_shape(v)} differ in length"
    yield from _heads(node, shapes) if ranks == {3} else _axes_of_heads(shapes)


def _heads(node: Node, shapes: list[Shape]) -> Iterator[str]:
    """Heads that attributes count in the last axis."""
    queries, keys = (node.attributes.get(name) for name in ("q_num_heads", "kv_num_heads"))
    for shape, count in zip(shapes, (queries, keys, keys), strict=True):
        if count is None or not _multiple(ANY if shape is None else shape[2], count):
            yield f"{format_shape(shape)} has no {count} heads"
            return
    if queries % keys:  # type: ignore[operator]
        yield f"{queries} heads of queries do not share {keys} of keys"


def _axes_of_heads(shapes: list[Shape]) -> Iterator[str]:
    """[batch, heads, length, size] of queries, keys and values."""
    q, k, v = shapes
    if k is not None and v is not None and differ(k[1], v[1]):
        yield f"{format_shape(k)} and {format_shape(v)} differ in heads"
    if q is None or k is None:
        return
    if differ(q[3], k[3]):
        yield f"{format_shape(q)} and {format_shape(k)} differ in the size of a head"
    if isinstance(k[1], int) and not _multiple(q[1], k[1]):
        yield f"{q[1]} heads of queries do not share {k[1]} of keys"


def scaled_attention(node: Node) -> Iterator[str]:
    """Queries [.., queries, size], keys [.., keys, size], values [.., keys, other size] of one type
    (IR, ScaledDotProductAttention)."""
    q, k, v = _shapes(node, 3)
    elements = {value.element for value in node.inputs[:3] if value is not None} - {None}
    if len(elements) > 1:
        yield f"its inputs are {' and '.join(sorted(map(str, elements)))}"
    if any(shape is not None and len(shape) < 2 for shape in (q, k, v)):
        return
    if q is not None and k is not None and differ(q[-1], k[-1]):
        yield f"{format_shape(q)} and {format_shape(k)} differ in the size of a head"
    if k is not None and v is not None and differ(k[-2], v[-2]):
        yield f"{format_shape(k)} and {format_shape(v)} differ in length"
