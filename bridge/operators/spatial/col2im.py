"""Col2Im: sliding blocks added up to images."""

from bridge.neutral.inference import constraints as must
from bridge.neutral.inference.known import known_of
from bridge.operators import Builder, Node, Value, legalizes, ranks, required


@legalizes("Col2Im", target="ir")
def col2im_for_ir(b: Builder, node: Node) -> Value | None:
    """Col2Im (18 to 28) as Col2Im-15, which accepts only images of two axes but has all its
    attributes."""
    lengths = known_of(node.inputs[1]).length or known_of(node.inputs[2]).length
    count = b.known(lengths, "the length of its image_shape")
    attributes = _attributes(node, count)
    if count != 2:
        return _by_scatter(b, node, count, attributes)
    x, image, block = required(node, 0, 1, 2)
    if known_of(image).length == known_of(block).length == count and attributes == node.attributes:
        return None
    # IR requires known lengths of these inputs.
    shapes = [v if known_of(v).length else b.reshape(v, count) for v in (image, block)]
    return b.op("Col2Im", x, *shapes, **attributes)


def _attributes(node: Node, count: int) -> dict[str, tuple[int, ...]]:
    return {
        "dilations": node.attributes.get("dilations") or (1,) * count,
        "pads": node.attributes.get("pads") or (0,) * (2 * count),
        "strides": node.attributes.get("strides") or (1,) * count,
    }


@legalizes("Col2Im", target="onnx")
def col2im_for_onnx(b: Builder, node: Node) -> Value | None:
    """Col2Im-15. ONNX requires a batch, and has no Col2Im before operator set 18."""
    if ranks(node, 0) != [2]:
        count = known_of(node.inputs[1]).length or known_of(node.inputs[2]).length
        if b.opset >= 18 or count is None:
            return None
        return _by_scatter(b, node, count, _attributes(node, count))
    x, image, block = required(node, 0, 1, 2)
    image_of_one = b.op("Col2Im", b.unsqueeze(x, 0), image, block, **node.attributes)
    return b.op("Squeeze", image_of_one, [0])


def _by_scatter(
    b: Builder, node: Node, count: int, attributes: dict[str, tuple[int, ...]]
) -> Value:
    """Col2Im for any number of axes: adds every element at its place in the flat, padded image."""
    x, image, block = required(node, 0, 1, 2)
    image, block = b.as_i64(image), b.as_i64(block)
    pads = attributes["pads"]
    padded = [image[i] + (pads[i] + pads[i + count]) for i in range(count)]
    places: Value | None = None
    for axis in range(count):
        line = _places(b, padded[axis], block[axis], attributes, axis)
        dims: list[int | Value] = [1] * (2 * count)  # blocks' insides…, blocks…
        dims[axis], dims[axis + count] = b.sizes(line, 0), b.sizes(line, 1)
        line = b.reshape(line, *dims)
        if places is not None:
            places *= padded[axis]
        places = line if places is None else places + line
    assert places is not None
    batch = b.sizes(x, 0)
    rows = b.sizes(x, 1)
    for axis in range(count):
        rows /= block[axis]
    all_rows = batch * rows
    columns = b.op("Transpose", b.reshape(x, all_rows, -1), [1, 0])
    lengths = [b.reshape(length, 1) for length in padded]
    whole = b.fold("Mul", lengths)
    start = b.zeros(x, whole, all_rows)
    summed = b.op("ScatterND", start, b.reshape(places, -1, 1), columns, reduction="add")
    images = b.reshape(b.op("Transpose", summed, [1, 0]), batch, rows, *lengths)
    if not any(pads):
        return images
    front, back = b.constant(list(pads[:count])), b.constant(list(pads[:count]))
    return b.op("Slice", images, front, back + image, list(range(2, count + 2)))


def _places(
    b: Builder, padded: Value, block: Value, attributes: dict[str, tuple[int, ...]], axis: int
) -> Value:
    """The places of the elements of the blocks along one axis: [block, blocks]."""
    dilation, stride = attributes["dilations"][axis], attributes["strides"][axis]
    zero, one = b.constant(0), b.constant(1)
    inner = b.op("Range", zero, block, one) * dilation
    free = padded - (block - one) * dilation - one
    outer = b.op("Range", zero, free / stride + one, one) * stride
    return b.unsqueeze(inner, 1) + outer


def image_and_block(node: Node) -> must.Constraints:
    """Col2Im-18: one size for each axis of the image, and pads for both ends."""
    _, image, block = must.operands(node, 3)
    lengths = [x[0] for x in (image, block) if x.rank == 1]
    if len(lengths) == 2:
        one, other = lengths
        why = "its image_shape and block_shape are {} and {} numbers"
        yield must.Same(one, other, why, one, other)
    axes = next((length for length in lengths if isinstance(length, int)), None)
    for name, count, least in (("dilations", 1, 1), ("strides", 1, 1), ("pads", 2, 0)):
        numbers = node.attributes.get(name)
        if not numbers:
            continue
        if axes is not None and len(numbers) != count * axes:
            yield f"its {name} {list(numbers)} are not for {axes} axes"
        elif min(numbers) < least:
            yield f"its {name} are {list(numbers)}, and must be {least} or more"


def places_of_blocks(node: Node) -> must.Constraints:
    """Col2Im-18: as many blocks as fit in the padded image."""
    (x,), image, block = (
        must.operands(node, 1),
        known_of(node.input(1)).ints,
        known_of(node.input(2)).ints,
    )
    if not x.shape or image is None or block is None or len(image) != len(block):
        return
    axes = len(image)
    dilations, pads, strides = _attributes(node, axes).values()
    places = 1
    for i in range(axes):
        room = image[i] + pads[i] + pads[i + axes] - dilations[i] * (block[i] - 1) - 1
        places *= max(0, room // strides[i] + 1)
    yield must.Same(x[-1], places, f"{{}} are not the {places} blocks of its image", x)


must.hold("Col2Im", image_and_block, places_of_blocks)
