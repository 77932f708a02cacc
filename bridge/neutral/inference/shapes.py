"""Shape arithmetic: Shape, Reshape, Squeeze, Transpose, Concat, Expand and what goes with them."""

from __future__ import annotations

import math

from bridge.neutral.graph import Node
from bridge.neutral.inference import first, infers, knows, same
from bridge.neutral.inference.dims import (
    Content,
    axis_of,
    content_of,
    contents,
    dim_product,
    dim_quotient,
    dim_sum,
    known_axes,
    known_integers,
    length_of,
    rearranged,
    shape_in,
    unknown,
    with_dim,
)
from bridge.neutral.types import (
    ANY,
    F32,
    I64,
    Dim,
    Shape,
    TensorType,
    Type,
    broadcast,
    is_static,
    meet_dim,
)


@infers("Constant")
def constant(node: Node) -> list[Type]:
    tensor = node.attributes["value"]
    return [TensorType(tensor.element, tensor.shape)]


@knows("Constant")
def constant_content(node: Node) -> Content | None:
    tensor = node.attributes["value"]
    if tensor.element.kind not in ("int", "uint", "bool") or len(tensor.shape) > 1:
        return None
    return tuple(int(x) for x in tensor.array().reshape(-1)) if tensor.size <= 64 else None


infers("Identity")(same)


@knows("Identity")
def same_content(node: Node) -> Content | None:
    return content_of(node.inputs[0])


def _shape_range(node: Node, rank: int) -> tuple[int, int]:
    start, end, _ = slice(node.attributes["start"], node.attributes["end"]).indices(rank)
    return start, max(start, end)


@infers("Shape")
def shape(node: Node) -> list[Type]:
    rank = first(node).rank
    element = node.attributes["output_type"]
    if rank is None:
        return [TensorType(element, (ANY,))]
    start, end = _shape_range(node, rank)
    return [TensorType(element, (end - start,))]


@knows("Shape")
def shape_content(node: Node) -> Content | None:
    dims = first(node).shape
    if dims is None:
        return None
    start, end = _shape_range(node, len(dims))
    return contents(dims[start:end])


@infers("Size")
def size(node: Node) -> list[Type]:
    return [TensorType(I64, ())]


@knows("Size")
def size_content(node: Node) -> Content | None:
    dims = first(node).shape
    return None if dims is None else contents((dim_product(dims),))


@infers("Reshape")
def reshape(node: Node) -> list[Type]:
    data = first(node)
    target = content_of(node.inputs[1])
    if target is None:
        return [TensorType(data.element, unknown(length_of(node.inputs[1])))]
    return [TensorType(data.element, _reshaped(data.shape, target, node.attributes["allowzero"]))]


def _reshaped(data: Shape, target: Content, allowzero: bool) -> Shape:
    dims: list[Dim | None] = []
    for index, wanted in enumerate(target):
        if wanted == 0 and not allowzero:
            dims.append(data[index] if data is not None and index < len(data) else ANY)
        elif wanted == -1:
            dims.append(None)
        else:
            dims.append(ANY if wanted is None else wanted)
    if None in dims:
        # Copied dimensions cancel whatever is known of them.
        own: list[Dim] = list(data) if data is not None else [ANY]
        rest: list[Dim] = []
        for index, (wanted, dim) in enumerate(zip(target, dims, strict=True)):
            copied = wanted == 0 and not allowzero and data is not None and index < len(data)
            if copied and dim is not None and dim in own:
                own.remove(dim)
            elif dim is not None:
                rest.append(dim)
        inferred = dim_quotient(own, rest)
        return tuple(inferred if d is None else d for d in dims)
    return tuple(ANY if d is None else d for d in dims)


@knows("Reshape", "Squeeze", "Unsqueeze", "Flatten")
def flat_content(node: Node) -> Content | None:
    return content_of(node.inputs[0]) if node.outputs[0].rank is not None else None


@infers("Flatten")
def flatten(node: Node) -> list[Type]:
    data = first(node)
    if data.shape is None:
        return [TensorType(data.element, (ANY, ANY))]
    axis = axis_of(node, len(data.shape))
    parts = (data.shape[:axis], data.shape[axis:])
    return [TensorType(data.element, tuple(dim_product(part) for part in parts))]


@infers("Squeeze")
def squeeze(node: Node) -> list[Type]:
    data = first(node)
    if data.shape is None:
        return [TensorType(data.element)]
    if node.input(1) is None:
        if not all(isinstance(d, int) for d in data.shape):
            return [TensorType(data.element)]
        return [TensorType(data.element, tuple(d for d in data.shape if d != 1))]
    axes = known_axes(node.inputs[1], len(data.shape))
    if axes is None:
        count = length_of(node.inputs[1])
        return [
            TensorType(data.element, unknown(None if count is None else len(data.shape) - count))
        ]
    if node.attributes["allow_axis_skip"] and any(data.shape[axis] != 1 for axis in axes):
        return [TensorType(data.element)]
    return [
        TensorType(data.element, tuple(d for i, d in enumerate(data.shape) if i not in axes))
    ]  # fmt: skip


@infers("Unsqueeze")
def unsqueeze(node: Node) -> list[Type]:
    data = first(node)
    count = length_of(node.inputs[1]) if first(node, 1).rank != 0 else 1
    if data.shape is None or count is None:
        return [TensorType(data.element)]
    rank = len(data.shape) + count
    axes = known_axes(node.inputs[1], rank)
    if axes is None:
        return [TensorType(data.element, unknown(rank))]
    dims = iter(data.shape)
    return [TensorType(data.element, tuple(1 if i in axes else next(dims) for i in range(rank)))]


@infers("Transpose")
def transpose(node: Node) -> list[Type]:
    data = first(node)
    perm = known_integers(node.input(1))
    if data.shape is None:
        return [TensorType(data.element, unknown(length_of(node.input(1)) or None))]
    if not perm:
        known = node.input(1) is None or perm is not None
        return [TensorType(data.element, data.shape[::-1] if known else unknown(data.rank))]
    return [TensorType(data.element, tuple(data.shape[axis] for axis in perm))]


@knows("Transpose")
def transposed_content(node: Node) -> Content | None:
    content, shape = content_of(node.inputs[0]), first(node).shape
    perm = known_integers(node.input(1))
    if content is None or shape is None or not is_static(shape) or perm is None:
        return None
    return rearranged(content, shape, lambda places: places.transpose(perm or None))


@infers("Concat")
def concat(node: Node) -> list[Type]:
    types = [first(node, index) for index in range(len(node.inputs))]
    element = next((t.element for t in types if t.element is not None), None)
    shapes = [t.shape for t in types if t.shape is not None]
    if not shapes:
        return [TensorType(element)]
    rank = len(shapes[0])
    axis = axis_of(node, rank)
    dims = list(shapes[0])
    for other in shapes[1:]:
        dims = [meet_dim(a, b) for a, b in zip(dims, other, strict=True)]
    dims[axis] = dim_sum(t.shape[axis] if t.shape is not None else ANY for t in types)
    return [TensorType(element, tuple(dims))]


@knows("Concat")
def concat_content(node: Node) -> Content | None:
    parts: list[int | str | None] = []
    for value in node.inputs:
        content = content_of(value)
        if content is None:
            length = length_of(value)
            if length is None or length > 64:
                return None
            content = (None,) * length
        parts.extend(content)
    return tuple(parts) if node.outputs[0].rank == 1 else None


@infers("Expand")
def expand(node: Node) -> list[Type]:
    data = first(node)
    return [TensorType(data.element, broadcast(data.shape, shape_in(node.inputs[1])))]


@infers("Broadcast")
def broadcast_(node: Node) -> list[Type]:
    data, target = first(node), shape_in(node.inputs[1])
    if node.attributes["mode"] == "bidirectional":
        return [TensorType(data.element, broadcast(data.shape, target))]
    return [TensorType(data.element, target)]


@knows("Expand", "Broadcast")
def expanded_content(node: Node) -> Content | None:
    content = content_of(node.inputs[0])
    out = node.outputs[0].shape
    if content is None or len(content) != 1 or out is None or len(out) > 1:
        return None
    if not out:
        return content
    return content * out[0] if isinstance(out[0], int) and out[0] <= 64 else None


@infers("ConstantOfShape")
def constant_of_shape(node: Node) -> list[Type]:
    value = node.attributes.get("value")
    return [TensorType(F32 if value is None else value.element, shape_in(node.inputs[0]))]


@knows("ConstantOfShape")
def constant_of_shape_content(node: Node) -> Content | None:
    value = node.attributes.get("value")
    out = node.outputs[0].shape
    if value is None or not value.element.is_integer or out is None or len(out) > 1:
        return None
    content = (int(value.array().reshape(-1)[0]),)
    if not out:
        return content
    return content * out[0] if isinstance(out[0], int) and out[0] <= 64 else None


@infers("Tile")
def tile(node: Node) -> list[Type]:
    data = first(node)
    repeats = content_of(node.inputs[1])
    length = length_of(node.inputs[1])
    if data.shape is None or length is None:
        # ONNX wants one repeat per dimension; IR may have fewer or more of them.
        return [TensorType(data.element)]
    rank = max(len(data.shape), length)
    if repeats is None:
        return [TensorType(data.element, unknown(rank))]
    dims = (1,) * (rank - len(data.shape)) + data.shape
    times = (1,) * (rank - len(repeats)) + repeats
    return [
        TensorType(
            data.element,
            tuple(
                ANY if t is None else dim_product((d, t)) for d, t in zip(dims, times, strict=True)
            ),
        )
    ]


@infers("Range")
def range_(node: Node) -> list[Type]:
    element = node.attributes.get("output_type") or first(node).element
    content = range_content(node)
    if content is not None:
        return [TensorType(element, (len(content),))]
    start, limit, delta = (content_of(value) for value in node.inputs)
    if start == (0,) and delta == (1,) and limit is not None and isinstance(limit[0], str):
        return [TensorType(element, (limit[0],))]
    count = _float_count(node)
    return [TensorType(element, (ANY if count is None else count,))]


def _float_count(node: Node) -> int | None:
    """The number of elements where start, limit and delta are constants of any type."""
    from bridge.neutral.builder import values_of

    ends = [values_of(value) for value in node.inputs]
    if any(end is None for end in ends):
        return None
    start, limit, delta = (float(end.reshape(-1)[0]) for end in ends)  # type: ignore[union-attr]
    return max(0, math.ceil((limit - start) / delta)) if delta else None


@knows("Range")
def range_content(node: Node) -> Content | None:
    element = node.attributes.get("output_type") or first(node).element
    ends = [known_integers(value) for value in node.inputs]
    if any(end is None for end in ends) or element is None or not element.is_integer:
        return None
    (start,), (limit,), (delta,) = ends  # type: ignore[misc]
    numbers = range(start, limit, delta)
    return tuple(numbers) if len(numbers) <= 64 else None


@infers("Reverse", "Roll", "ReverseSequence", "Trilu", "TensorScatter", "SliceScatter")
def like_first(node: Node) -> list[Type]:
    return [first(node)]


@infers("Eye")
def eye(node: Node) -> list[Type]:
    batch: Shape = () if node.input(3) is None else shape_in(node.inputs[3])
    if batch is None:
        return [TensorType(node.attributes["output_type"])]
    sides = tuple(content_of(value) for value in node.inputs[:2])
    dims = tuple(ANY if s is None or s[0] is None else s[0] for s in sides)
    return [TensorType(node.attributes["output_type"], (*batch, *dims))]


@infers("EyeLike")
def eye_like(node: Node) -> list[Type]:
    data = first(node)
    return [TensorType(node.attributes.get("dtype") or data.element, data.shape)]


@infers("CenterCropPad")
def center_crop_pad(node: Node) -> list[Type]:
    data = first(node)
    if data.shape is None:
        return [data]
    rank = len(data.shape)
    axes = node.attributes.get("axes") or tuple(range(rank))
    wanted = shape_in(node.inputs[1]) or (ANY,) * len(axes)
    dims: tuple[Dim, ...] = data.shape
    for axis, dim in zip(axes, wanted, strict=True):
        dims = with_dim(dims, axis % rank, dim)
    return [TensorType(data.element, dims)]
