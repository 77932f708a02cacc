"""Operators that create or enlarge tensors: Expand, Broadcast, Tile, ConstantOfShape. Also Range
and Concat."""

import math

import numpy as np

from bridge.neutral.inference import (
    KNOWN_VALUE_LIMIT,
    constraints as must,
    first,
    infers,
    infers_shape,
    knows,
    place,
    require,
)
from bridge.neutral.inference.dims import dim_product, dim_sum
from bridge.neutral.inference.known import as_dim, is_at_least_zero, known_of, unknown
from bridge.neutral.types import (
    ANY,
    F32,
    Dim,
    KnownValue,
    Part,
    Shape,
    TensorType,
    Type,
    broadcast,
    differ,
    meet_dim,
)
from bridge.operators import Builder, Node, Value
from bridge.operators.guarding import SafeInputs, Unsafe, go_together, guards, if_taken, pick


@infers("Concat")
def infer_concat(node: Node) -> list[Type]:
    """Concat: the sum of the sizes along `axis`. The other dimensions are common to all inputs."""
    types = [first(node, index) for index in range(len(node.inputs))]
    element = next((t.element for t in types if t.element is not None), None)
    shapes = [t.shape for t in types if t.shape is not None]
    if not shapes:
        return [TensorType(element)]
    rank = len(shapes[0])
    require(all(len(shape) == rank for shape in shapes))
    axis = place(node.attributes["axis"], rank)
    dims = list(shapes[0])
    for other in shapes[1:]:
        dims = [meet_dim(a, b) for a, b in zip(dims, other, strict=True)]
    dims[axis] = dim_sum(t.shape[axis] if t.shape is not None else ANY for t in types)
    return [TensorType(element, tuple(dims))]


@knows("Concat")
def concat_content(node: Node) -> KnownValue | None:
    """Concat: the elements of all vectors in turn; of a vector of known length, unknown ones."""
    parts: list[Part] = []
    for value in node.inputs:
        content = known_of(value).parts
        if content is None:
            length = known_of(value).length
            if length is None or length > KNOWN_VALUE_LIMIT:
                return None
            content = (None,) * length
        parts.extend(content)
    return tuple(parts) if node.outputs[0].rank == 1 else None


@infers("Broadcast", "Expand")
def infer_broadcast(node: Node) -> list[Type]:
    """Broadcast: the target shape; with the mode "bidirectional", and in Expand, that and the shape
    of the data broadcast."""
    data, target = first(node), known_of(node.inputs[1]).dims
    if node.attributes.get("mode", "bidirectional") == "bidirectional":
        target = None if target is None else broadcast(data.shape, target)
    return [TensorType(data.element, target)]


@knows("Expand", "Broadcast")
def expanded_content(node: Node) -> KnownValue | None:
    """Expand, Broadcast: one number as often as the result is long."""
    content = known_of(node.inputs[0]).parts
    return _repeated(content, node.outputs[0].shape) if content and len(content) == 1 else None


def _repeated(content: KnownValue, shape: Shape) -> KnownValue | None:
    """One element as often as a scalar, or a short vector, of this shape has elements."""
    if not shape:
        return content if shape == () else None
    count = shape[0] if len(shape) == 1 else None
    return content * count if isinstance(count, int) and count <= KNOWN_VALUE_LIMIT else None


@infers("ConstantOfShape")
def infer_constant_of_shape(node: Node) -> list[Type]:
    """ConstantOfShape: the shape that input 0 holds, of the value's element type (default: f32)."""
    value = node.attributes.get("value")
    return [TensorType(F32 if value is None else value.element, known_of(node.inputs[0]).dims)]


@knows("ConstantOfShape")
def constant_of_shape_content(node: Node) -> KnownValue | None:
    """ConstantOfShape: the value as often as the result is long, where it is an integer."""
    value = node.attributes.get("value")
    if value is None or not value.element.is_integer:
        return None
    return _repeated((int(value.array().reshape(-1)[0]),), node.outputs[0].shape)


@infers_shape("Tile")
def shape_of_tiles(node: Node, dims: tuple[Dim, ...]) -> Shape:
    """Tile: each dimension times its repeat; missing dimensions and repeats in front are 1."""
    repeats = known_of(node.inputs[1]).parts
    length = known_of(node.inputs[1]).length
    if length is None:
        # ONNX wants one repeat per dimension; IR may have fewer or more of them.
        return None
    rank = max(len(dims), length)
    if repeats is None:
        return unknown(rank)
    dims = (1,) * (rank - len(dims)) + dims
    times = (1,) * (rank - len(repeats)) + repeats
    return tuple(
        ANY if t is None else dim_product((d, as_dim(t))) for d, t in zip(dims, times, strict=True)
    )


@infers("Range")
def infer_range(node: Node) -> list[Type]:
    """Range: a vector, as long as the ends say where they are known."""
    element = node.attributes.get("output_type") or first(node).element
    start, limit, delta = (known_of(value).parts for value in node.inputs)
    if start == (0,) and delta == (1,) and limit is not None and isinstance(limit[0], str):
        return [TensorType(element, (limit[0],))]
    if limit is not None and isinstance(limit[0], str) and _ends_before(start, delta):
        return [TensorType(element, (0,))]
    count = _count(node)
    return [TensorType(element, (ANY if count is None else count,))]


def _ends_before(start: KnownValue | None, delta: KnownValue | None) -> bool:
    """Whether steps from here down come to no size, which is 0 at least."""
    known = [each[0] if each else None for each in (start, delta)]
    return isinstance(known[0], int) and isinstance(known[1], int) and known[0] <= 0 > known[1]


def _count(node: Node) -> int | None:
    """The number of elements where start, limit and delta are known, of any type."""
    ends = [known_of(value).array for value in node.inputs]
    if any(end is None for end in ends):
        return None
    start, limit, delta = (end.reshape(-1)[0].item() for end in ends)  # type: ignore[union-attr]
    count = (limit - start) / delta if delta else math.nan
    return max(0, math.ceil(count)) if math.isfinite(count) else None


@knows("Range")
def range_content(node: Node) -> KnownValue | None:
    """Range: the numbers, where the ends are known integers."""
    element = node.attributes.get("output_type") or first(node).element
    ends = [known_of(value).ints for value in node.inputs]
    if any(end is None for end in ends) or element is None or not element.is_integer:
        return None
    require(all(end is not None and len(end) == 1 for end in ends))
    (start,), (limit,), (delta,) = ends  # type: ignore[misc]
    numbers = range(start, limit, delta)
    return tuple(numbers) if len(numbers) <= KNOWN_VALUE_LIMIT else None


def shape_to_expand_to(node: Node) -> must.Constraints:
    """Expand: the wanted shape, broadcast with the shape of the data."""
    (x,), target = must.operands(node, 1), known_of(node.input(1)).ints
    for have, wanted in zip(reversed(x.shape or ()), reversed(target or ()), strict=False):
        if wanted != 1 and have != 1 and differ(have, wanted):
            yield f"{x} cannot take the shape {list(target or ())}"
            return


def same_but_for_axis(node: Node) -> must.Constraints:
    """Concat: inputs of one rank, whose sizes are equal but along the axis."""
    parts = must.operands(node, len(node.inputs))
    for part in parts:
        yield must.Ranks(must.Operand(node.outputs[0]), part)
    known = [part for part in parts if part.shape is not None]
    for part in known[1:]:
        yield must.Ranks(known[0], part, 0, "{} differ in rank", must.Shapes(node.inputs))
        rank = len(part.shape or ())
        for i in range(rank):
            if i != node.attributes["axis"] % rank:
                why = f"{{}} differ along axis {i}"
                yield must.Same(known[0][i], part[i], why, must.Shapes(node.inputs))


def repeats(node: Node) -> must.Constraints:
    """Tile: a number of repeats for each axis. IR adds axes where there are more repeats."""
    length = known_of(node.input(1)).length
    if length is not None:
        yield must.Rank(must.Operand(node.input(0)), length)


def step(node: Node) -> must.Constraints:
    """Range: a step other than 0."""
    step = known_of(node.input(2)).array
    if step is not None and step.size == 1 and (not step.all() or not np.isfinite(step).all()):
        yield f"its step is {step.item()}"


must.hold("Broadcast", must.not_negative(1))
must.hold("Concat", must.axis_attribute("axis"), same_but_for_axis)
must.hold("ConstantOfShape", must.has_rank(1, 1), must.not_negative(0))
must.hold("Expand", must.has_rank(1, 1, of=1), must.not_negative(1), shape_to_expand_to)
must.hold("Range", must.one_element(0, 1, 2), step)
must.hold("Tile", must.has_rank(1, 1, of=1), must.not_negative(1), repeats)


@guards("Range")
def _range(b: Builder, node: Node, counts: Value) -> SafeInputs:
    """Range: it is empty, in steps of 1."""
    start, limit, step = node.inputs
    assert start is not None and limit is not None and step is not None
    known = [known_of(value).parts for value in node.inputs]
    if all(each is not None and None not in each for each in known) and known_of(step).ints != (0,):
        return None
    return [start, pick(b, counts, limit, start), if_taken(b, counts, step, 1)]


@guards("ConstantOfShape", "Tile")
def _computed_shape(b: Builder, node: Node, counts: Value) -> SafeInputs:
    """ConstantOfShape, Tile: an empty output, if data decide its size."""
    place = 0 if node.op == "ConstantOfShape" else 1
    shape = node.inputs[place]
    known = known_of(shape).parts
    if known is not None and all(map(is_at_least_zero, known)):
        return None
    assert shape is not None
    inputs = list(node.inputs)
    inputs[place] = if_taken(b, counts, shape, 0)
    return inputs


@guards("Broadcast", "Expand")
def _expand(b: Builder, node: Node, counts: Value) -> SafeInputs:
    """Broadcast, Expand: the shapes go together; in some modes the data alone are broadcast."""
    data, target = node.inputs[:2]
    known = known_of(target).parts
    if data is None or known is None or None in known:
        raise Unsafe("data decide the shape of its output")
    dims = tuple(map(as_dim, known))
    mode = node.attributes.get("mode", "bidirectional")
    if not go_together([data.shape, dims]) or (
        mode != "bidirectional" and (mode != "numpy" or broadcast(data.shape, dims) != dims)
    ):
        raise Unsafe("sizes may not go together there")
    return None
