"""Operators that change the shape: Shape, Size, Reshape, Squeeze, Flatten. Also Transpose, Expand
and Tile."""

import numpy as np

from bridge.neutral.inference import (
    constraints as must,
    first,
    infers,
    infers_shape,
    knows,
)
from bridge.neutral.inference.dims import (
    axis_of,
    contents,
    dim_product,
    dim_quotient,
    known_axes,
    rearranged,
)
from bridge.neutral.inference.known import as_dim, known_of, unknown
from bridge.neutral.types import (
    ANY,
    F32,
    I64_MAX,
    Dim,
    Element,
    KnownValue,
    Shape,
    TensorType,
    Type,
    is_static,
    size_of,
)
from bridge.operators import Builder, Node, Refused, Value, legalizes, ranked, reads, required
from bridge.operators.bodies import either


@legalizes("Shape", target="ir")
@legalizes("Shape", target="onnx")
def shape_part(b: Builder, node: Node) -> Value | None:
    """ShapeOf, and Shape before operator set 15, return all sizes."""
    start, end = node.attributes["start"], node.attributes["end"]
    if (start == 0 and end is None) or b.opset >= 15:
        return None
    whole = b.op("Shape", node.inputs[0], output_type=node.attributes["output_type"])
    last = I64_MAX if end is None else end
    return b.op("Slice", whole, [start], [last], [0])


@legalizes("Reshape", target="onnx")
def reshape_without_zeros(b: Builder, node: Node) -> Value | None:
    """Reshape (1 to 25). Operator sets before 14 lack `allowzero`, but it has no effect on a shape
    without a 0."""
    dims = known_of(node.inputs[1]).ints
    if not node.attributes["allowzero"]:
        return None
    if dims is not None and 0 not in dims:
        return b.op("Reshape", *node.inputs, allowzero=False)
    x, shape = required(node, 0, 1)
    if b.opset >= 14 or x.element is None or (dims is not None and -1 in dims):
        return None
    if dims is not None:
        return b.zeros(x, shape)
    count = b.op("ReduceProd", shape, [0], keepdims=False)
    (result,) = either(
        b,
        count.equal(0),
        [x, shape],
        lambda inner, values: [inner.zeros(values[0], values[1])],
        lambda inner, values: [inner.op("Reshape", *values, allowzero=False)],
        ("nothing", "something"),
    )
    return result


@legalizes("Size", target="ir")
def size_for_ir(b: Builder, node: Node) -> Value:
    """Size (1 to 25), which IR lacks, is the product of the shape."""
    return b.op("ReduceProd", b.op("Shape", node.inputs[0]), [0], keepdims=False)


@legalizes("Flatten", target="ir")
def flatten_for_ir(b: Builder, node: Node) -> Value:
    """Flatten (1 to 25): [d0 … dk, …] → [d0 · … · dk-1, product of the rest]."""
    x, axis = node.operand(0), node.attributes["axis"]
    if axis == 0 or x.rank == 0:
        return b.op("Reshape", x, [1, -1])
    if axis == 1:
        return b.op("Reshape", x, [0, -1])
    shape = b.op("Shape", x)
    front, back = shape[:axis], shape[axis:]
    if x.rank is not None and axis == x.rank:
        return b.op("Reshape", x, [-1, 1])
    dims = [b.op("ReduceProd", part, [0], keepdims=True) for part in (front, back)]
    return b.op("Reshape", x, b.concat(0, *dims), allowzero=True)


@legalizes("Squeeze", target="ir")
def squeeze_for_ir(b: Builder, node: Node) -> Value | None:
    """Squeeze (1 to 25). Without axes, it removes the axes of known size 1, so that the rank is
    known. If the file declares a rank that fits these axes exactly, no other axis can be
    removed."""
    x = node.operand(0)
    if node.input(1) is not None or x.shape is None:
        return None
    axes = [axis for axis, dim in enumerate(x.shape) if dim == 1]
    if not is_static(x.shape) and node.outputs[0].rank != len(x.shape) - len(axes):
        return None
    return b.op("Squeeze", x, axes) if axes else x


@legalizes("Squeeze", target="onnx")
def squeeze_for_onnx(b: Builder, node: Node) -> Value | None:
    """Squeeze (1 to 25). IR ignores an axis of a size other than 1, and accepts a scalar as
    axes."""
    x, axes = node.operand(0), node.input(1)
    if axes is None:
        return None
    if x.rank == 0:  # IR accepts axis 0 or -1
        return b.op("Identity", x)
    known = None if x.rank is None else known_axes(axes, x.rank)
    if known is not None and any(isinstance(x.dims[a], int) and x.dims[a] != 1 for a in known):
        kept = [a for a in known if not isinstance(x.dims[a], int) or x.dims[a] == 1]
        return b.op("Squeeze", x, kept) if kept else x
    if node.attributes["allow_axis_skip"]:
        if known is None or any(not isinstance(x.dims[a], int) for a in known):
            raise Refused(
                "which axes it squeezes depends on the input (allow_axis_skip); "
                "give the graph's inputs static shapes"
            )
        return b.op("Squeeze", x, axes)
    return b.op("Squeeze", x, b.vector(axes)) if axes.rank == 0 else None


@legalizes("Unsqueeze", target="onnx")
def unsqueeze_for_onnx(b: Builder, node: Node) -> Value | None:
    """Unsqueeze-1 of IR accepts a scalar as axes, but ONNX's Unsqueeze-13 does not."""
    axes = node.operand(1)
    return b.op("Unsqueeze", node.inputs[0], b.vector(axes)) if axes.rank == 0 else None


@legalizes("Unsqueeze", target="ir")
def unsqueeze_for_ir(b: Builder, node: Node) -> Value | None:
    """Unsqueeze (1 to 25) may have empty axes, but Unsqueeze-1 of IR requires an axis."""
    return b.op("Identity", node.inputs[0]) if known_of(node.inputs[1]).length == 0 else None


@legalizes("Transpose", target="onnx")
def transpose_for_onnx(b: Builder, node: Node) -> Value | None:
    """Transpose (1 to 25). An empty order in IR reverses the axes, as an absent order in ONNX."""
    return b.op("Transpose", node.inputs[0]) if known_of(node.input(1)).ints == () else None


@legalizes("Transpose", target="ir")
def transpose_for_ir(b: Builder, node: Node) -> Value | None:
    """Transpose (1 to 25). Without an order, ONNX reverses all axes, but Transpose-1 of IR requires
    the order."""
    x = node.operand(0)
    if node.input(1) is not None:
        return None
    order = range(x.rank)[::-1] if x.rank is not None else []
    return b.op("Transpose", x, list(order))


@legalizes("ConstantOfShape", target="ir")
def constant_of_shape_for_ir(b: Builder, node: Node) -> Value:
    """ConstantOfShape (9 to 25), which IR lacks, as a broadcast of the value."""
    tensor = node.attributes.get("value")
    value = b.constant(0, F32) if tensor is None else b.constant(tensor.array().reshape(()))
    return b.op("Expand", value, node.inputs[0])


@legalizes("Expand", target="ir")
def expand_for_ir(b: Builder, node: Node) -> Value | None:
    """Expand (8 to 13). A scalar is broadcast in one direction, which is cheaper than both
    directions. With an empty shape, the value does not change."""
    x, shape = required(node, 0, 1)
    length = known_of(shape).length
    if length == 0:
        return x
    return b.op("Broadcast", x, shape, mode="numpy") if length and x.shape == () else None


@reads("Broadcast", format="ir")
def read_broadcast(b: Builder, node: Node) -> Value | None:
    """Broadcast in both directions is Expand. Broadcast-1 has axes even if its mode does not use
    them, and files have `none` as its explicit mode."""
    match node.attributes["mode"].lower():
        case "none":
            return b.op("Broadcast", *node.inputs, mode="explicit")
        case "bidirectional":
            return b.op("Expand", node.inputs[0], node.inputs[1])
        case "numpy":
            return b.op("Broadcast", node.inputs[0], node.inputs[1], mode="numpy")
    return None


@legalizes("Broadcast", target="onnx")
def broadcast_for_onnx(b: Builder, node: Node) -> Value:
    """Broadcast-3: numpy's rule, or a mapping from the axes of the input to axes of the target."""
    (x, target), axes = required(node, 0, 1), node.input(2)
    target = b.as_i64(target)
    mode = node.attributes["mode"]
    if mode not in ("numpy", "bidirectional", "explicit"):
        raise Refused(
            f"Bridge supports the broadcasting modes numpy, bidirectional and explicit, not {mode}"
        )
    if mode != "explicit" or axes is None:
        return b.op("Expand", x, target)
    known = known_of(axes).ints
    length = known_of(target).length
    if length is not None and known is not None:
        if not known:
            return b.op("Expand", x, target)
        others = [axis for axis in range(length) if axis not in known]
        return b.op("Expand", b.op("Unsqueeze", x, others) if others else x, target)
    # All sizes are 1, except for the sizes of the input at the mapped axes.
    ones = b.op("Expand", b.constant([1]), b.op("Shape", target))
    axes = b.op("Unsqueeze", b.as_i64(axes), [-1])
    mapped = b.op("ScatterND", ones, axes, b.op("Shape", x))
    return b.op("Expand", b.op("Reshape", x, mapped), target)


@legalizes("Tile", target="onnx")
def tile_for_onnx(b: Builder, node: Node) -> Value | None:
    """Tile (1 to 13). If the shape and the repeats differ in length, IR aligns them at the
    right."""
    x, repeats = required(node, 0, 1)
    length = known_of(repeats).length
    if x.rank is None or length is None or length == x.rank:
        return None
    if length < x.rank:
        ones = b.constant([1] * (x.rank - length))
        return b.op("Tile", x, b.concat(0, ones, b.as_i64(repeats)))
    return b.op("Tile", b.op("Unsqueeze", x, list(range(length - x.rank))), repeats)


@reads("Transpose", format="onnx")
def require_permutation(b: Builder, node: Node) -> None:
    """Transpose (1 to 25): refuses an order that does not have each axis once."""
    perm = node.attributes.get("perm")
    if perm is not None and sorted(perm) != list(range(len(perm))):
        raise Refused(f"perm {list(perm)} is not an order of axes")


@reads("Tile", format="onnx", until=5)
def read_tile_1(b: Builder, node: Node) -> Value:
    """Tile-1 repeats one axis. Its inputs tiles and axis are scalars with the type of the data."""
    tiles, axis = required(node, 1, 2)
    x, rank = ranked(node)
    (at,) = b.constants(b.as_i64(axis), "its axis")
    parts = [b.constant([1])] * rank
    parts[at % rank] = b.as_i64(b.vector(tiles))
    return b.op("Tile", x, b.concat(0, *parts))


@reads("Tile", format="onnx", since=6)
def tile_of_scalar(b: Builder, node: Node) -> Value | None:
    """Tile (6 to 13): a scalar has no axis to repeat."""
    x, _ = required(node, 0, 1)
    return b.op("Identity", x) if x.rank == 0 else None


@legalizes("Range", target="ir")
def range_for_ir(b: Builder, node: Node) -> Value | None:
    """Range (11 to 27). IR requires scalars, but ONNX files may have vectors of one element."""
    if all(value is None or value.rank == 0 for value in node.inputs):
        return None
    return b.op("Range", *(b.scalar(v) for v in node.operands), **node.attributes)


@legalizes("Range", target="onnx")
def range_for_onnx(b: Builder, node: Node) -> Value | None:
    """Range-4 has scalars of any types, and an attribute for the type of its output."""
    wanted = node.attributes["output_type"]
    ends = node.operands
    if wanted is None and all(end.rank == 0 for end in ends):
        return None
    elements = {end.element for end in ends}
    if wanted is not None and len(elements) == 1 and ends[0].element is not wanted:
        numbers = b.op("Range", *(b.scalar(end) for end in ends))
        return b.cast(numbers, wanted)
    return b.op("Range", *(b.scalar(_as(b, end, wanted or end.element)) for end in ends))


def _as(b: Builder, end: Value, element: Element | None) -> Value:
    """A bound as `element`; a known integer stays known."""
    known = known_of(end).ints
    if known is None or element is None or element.kind != "int":
        return b.cast(end, element)
    return b.constant(np.array(known).reshape(()), element)


def _shape_range(node: Node, rank: int) -> tuple[int, int]:
    start, end, _ = slice(node.attributes["start"], node.attributes["end"]).indices(rank)
    return start, max(start, end)


@infers("Shape")
def infer_shape(node: Node) -> list[Type]:
    """Shape: a vector as long as the rank, or as the part from `start` to `end`."""
    rank = first(node).rank
    element = node.attributes["output_type"]
    if rank is None:
        return [TensorType(element, (ANY,))]
    start, end = _shape_range(node, rank)
    return [TensorType(element, (end - start,))]


@knows("Shape")
def shape_content(node: Node) -> KnownValue | None:
    """Shape: the dimensions, sizes and symbols."""
    dims = first(node).shape
    if dims is None:
        return None
    start, end = _shape_range(node, len(dims))
    return contents(dims[start:end])


@knows("Size")
def size_content(node: Node) -> KnownValue | None:
    """Size: the product of the dimensions."""
    dims = first(node).shape
    return None if dims is None else contents((dim_product(dims),))


@infers("Reshape")
def infer_reshape(node: Node) -> list[Type]:
    """Reshape: the shape that input 1 holds, 0 copied and -1 computed where that is possible."""
    data = first(node)
    target = known_of(node.inputs[1]).parts
    if target is None:
        return [TensorType(data.element, unknown(known_of(node.inputs[1]).length))]
    return [TensorType(data.element, _reshaped(data.shape, target, node.attributes["allowzero"]))]


def _reshaped(data: Shape, target: KnownValue, allowzero: bool) -> Shape:
    dims: list[Dim | None] = []
    for index, wanted in enumerate(target):
        if wanted == 0 and not allowzero:
            dims.append(data[index] if data is not None and index < len(data) else ANY)
        elif wanted == -1:
            dims.append(None)
        else:
            dims.append(as_dim(wanted))
    if None in dims:
        # Copied dimensions cancel whatever is known of them.
        uncancelled: list[Dim] = list(data) if data is not None else [ANY]
        rest: list[Dim] = []
        for index, (wanted, dim) in enumerate(zip(target, dims, strict=True)):
            copied = wanted == 0 and not allowzero and data is not None and index < len(data)
            if copied and dim is not None and dim in uncancelled:
                uncancelled.remove(dim)
            elif dim is not None:
                rest.append(dim)
        inferred = dim_quotient(uncancelled, rest)
        return tuple(inferred if d is None else d for d in dims)
    return tuple(ANY if d is None else d for d in dims)


@knows("Reshape", "Squeeze", "Unsqueeze", "Flatten")
def flat_content(node: Node) -> KnownValue | None:
    """Reshape, Squeeze, Unsqueeze, Flatten: the elements of the input, in their order."""
    return known_of(node.inputs[0]).parts if node.outputs[0].rank is not None else None


@infers("Flatten")
def infer_flatten(node: Node) -> list[Type]:
    """Flatten: a matrix of the dimensions before `axis` and those from it on, multiplied."""
    data = first(node)
    if data.shape is None:
        return [TensorType(data.element, (ANY, ANY))]
    axis = axis_of(node, len(data.shape))
    parts = (data.shape[:axis], data.shape[axis:])
    return [TensorType(data.element, tuple(dim_product(part) for part in parts))]


@infers_shape("Squeeze")
def shape_of_squeezed(node: Node, dims: tuple[Dim, ...]) -> Shape:
    """Squeeze: without `axes`, or without all axes of size 1 where they are not given."""
    if node.input(1) is None:
        known = all(isinstance(d, int) for d in dims)
        return tuple(d for d in dims if d != 1) if known else None
    axes = known_axes(node.inputs[1], len(dims))
    if axes is None:
        count = known_of(node.inputs[1]).length
        return unknown(None if count is None else len(dims) - count)
    if node.attributes["allow_axis_skip"] and any(dims[axis] != 1 for axis in axes):
        return None
    return tuple(d for i, d in enumerate(dims) if i not in axes)


@infers_shape("Unsqueeze")
def shape_of_unsqueezed(node: Node, dims: tuple[Dim, ...]) -> Shape:
    """Unsqueeze: 1 at each of `axes`, which count in the result."""
    count = known_of(node.inputs[1]).length if first(node, 1).rank != 0 else 1
    if count is None:
        return None
    rank = len(dims) + count
    axes = known_axes(node.inputs[1], rank)
    if axes is None:
        return unknown(rank)
    shape = list(dims)
    for axis in sorted(axes):
        shape.insert(axis, 1)
    return tuple(shape)


@infers("Transpose")
def infer_transpose(node: Node) -> list[Type]:
    """Transpose: the dimensions in the order given, turned round where none is."""
    data = first(node)
    perm = known_of(node.input(1)).ints
    if data.shape is None:
        return [TensorType(data.element, unknown(known_of(node.input(1)).length or None))]
    if not perm:
        known = node.input(1) is None or perm is not None
        return [TensorType(data.element, data.shape[::-1] if known else unknown(data.rank))]
    return [TensorType(data.element, tuple(data.shape[axis] for axis in perm))]


@knows("Transpose")
def transposed_content(node: Node) -> KnownValue | None:
    """Transpose: the elements in their new places, where shape and order are known."""
    content, shape = known_of(node.inputs[0]).parts, first(node).shape
    perm = known_of(node.input(1)).ints
    if content is None or shape is None or not is_static(shape) or perm is None:
        return None
    return rearranged(content, shape, lambda places: places.transpose(perm or None))


# Constraints on the inputs ------------------------------------------------------------------------


def elements_of_shape(node: Node) -> must.Constraints:
    """Reshape: as many elements as the data has, one -1 at most, and a 0 where there is a size to
    copy."""
    (x,), target = must.operands(node, 1), known_of(node.input(1)).ints
    if target is not None and (min(target, default=0) < -1 or target.count(-1) > 1):
        yield f"{list(target)} is no shape"
        return
    if not is_static(x.shape) or target is None:
        return
    copies = not node.attributes["allowzero"]
    if copies and any(not size and place >= len(x.shape) for place, size in enumerate(target)):
        yield f"{x} has no dimension to copy for each 0 of {list(target)}"
        return
    sizes = [x.shape[i] if copies and not size else size for i, size in enumerate(target)]
    given, wanted = size_of(x.shape), size_of([size for size in sizes if size >= 0])
    fits = (given % wanted == 0 if wanted else not given) if -1 in sizes else given == wanted
    if not fits:
        yield f"{x} cannot take the shape {list(target)}"


def order_of_axes(node: Node) -> must.Constraints:
    """Transpose: each axis once."""
    (x,), order = must.operands(node, 1), known_of(node.input(1)).ints
    count = known_of(node.input(1)).length
    if count:
        yield must.Rank(x, count, f"{{}} has no {count} axes to exchange", x)
    if order and x.rank is not None and sorted(order) != list(range(len(order))):
        yield f"{list(order)} is no order of the axes of {x}"


def squeezed_axes(node: Node) -> must.Constraints:
    """Squeeze: axes of size 1."""
    (x,), axes = must.operands(node, 1), known_of(node.input(1)).ints
    if axes is None:
        return
    if not node.attributes["allow_axis_skip"]:
        yield from must.fewer_axes(must.Operand(node.outputs[0]), x, axes, scalars=False)
        for axis in axes:
            yield must.Same(x[axis], 1, f"axis {axis} of {{}} is not 1", x)


def added_axes(node: Node) -> must.Constraints:
    """Unsqueeze: each further axis once."""
    yield from must.integral(node.input(1))
    (x,), axes = must.operands(node, 1), known_of(node.input(1)).ints
    if axes is None:
        return
    yield must.Ranks(must.Operand(node.outputs[0]), x, len(axes))
    if x.rank is None:
        return
    rank = x.rank + len(axes)
    for axis in axes:
        if not -rank <= axis < rank:
            yield f"{x} with {len(axes)} further axes has no axis {axis}"
    if len({axis % rank for axis in axes}) < len(axes):
        yield f"its axes {list(axes)} name one of {rank} twice"


must.hold("Flatten", must.axis_attribute("axis", 1))
must.hold("Reshape", must.has_rank(1, 1, of=1), elements_of_shape)
must.hold("Squeeze", must.axes_in(1), squeezed_axes)
must.hold("Transpose", order_of_axes)
must.hold("Unsqueeze", must.has_rank(0, 1, of=1), added_axes)
