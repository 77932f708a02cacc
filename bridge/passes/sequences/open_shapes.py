"""Operators on the shapes of tensors of open rank, and on all their elements at once.

Each rule gives the output of a node, or None if the node is handled like other operators.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import ANY, I64, I64_MAX, broadcast, low
from bridge.passes.sequences.rank_cases import InputForms, possible_cases, shapes_after
from bridge.passes.sequences.shape_vectors import (
    Dims,
    as_long_as,
    filled_up,
    joined,
    shapes_as_long_as,
    unsettled,
    with_axis,
    without_axis,
)
from bridge.passes.sequences.tensors import Open, Plain, TensorForm, is_one, plain, unview


def on_shapes(b: Builder, node: Node, forms: InputForms) -> TensorForm | None:
    """The output of a node, if it is one of these operators."""
    rule = _reduce if node.op.startswith("Reduce") else _RULES.get(node.op)
    form = forms[0] if forms else None
    return None if rule is None or form is None else rule(b, node, form, forms)


def _vector(form: TensorForm | None, b: Builder) -> Value:
    """A shape that a node takes, i64 1-D."""
    assert form is not None
    return b.cast(form.at_rank(b, 1), I64)


def _shape(b: Builder, node: Node, form: TensorForm, forms: InputForms) -> TensorForm | None:
    if not isinstance(form, Open):
        return None
    start, end = node.attributes["start"], node.attributes["end"]
    shape = form.shape
    if start or end is not None:
        last = b.constant([I64_MAX if end is None else end])
        shape = shape[start:last]
    wanted = node.attributes["output_type"]
    return Plain(b.cast(shape, wanted or I64))


def _size(b: Builder, node: Node, form: TensorForm, forms: InputForms) -> TensorForm | None:
    return Plain(b.op("Size", form.data)) if isinstance(form, Open) else None


def _reshape(b: Builder, node: Node, form: TensorForm, forms: InputForms) -> TensorForm | None:
    """The elements stay; 0s are sizes of the first axes, which a view has in front."""
    target = _vector(forms[1], b)
    allowzero = node.attributes["allowzero"]
    length = known_of(target).length
    if length is None:
        return form.to_open(b).reshaped(b, target, allowzero)
    data, known = form.leaves()[0], known_of(target).ints
    if isinstance(form, Open) and not allowzero and (known is None or 0 in known):
        data = form.view(b, max(length, *(len(shape) for shape in form.bounded())), front=True)
    return Plain(b.op("Reshape", data, target, allowzero=allowzero))


def _flatten(b: Builder, node: Node, form: TensorForm, forms: InputForms) -> TensorForm | None:
    """Two sizes: the products of the sizes before the axis and from it on, for any rank."""
    axis = node.attributes["axis"]
    if not isinstance(form, Open) or form.shapes is not None:
        return None
    axes = b.constant([0])
    front, behind = form.shape[:axis], form.shape[axis:]
    sizes = [b.op("ReduceProd", part, axes, keepdims=True) for part in (front, behind)]
    return Plain(b.op("Reshape", form.data, b.op("Concat", *sizes, axis=0), allowzero=True))


def _expand(b: Builder, node: Node, form: TensorForm, forms: InputForms) -> TensorForm | None:
    """Both the tensor and the shape get 1s in front, up to the highest rank of either."""
    target = _vector(forms[1], b)
    possible = form.known_shapes()
    lengths = None if target.shape is None else shapes_as_long_as(target.shape[0])
    if possible is None or lengths is None:
        raise unsettled("the rank of its output has no bound")
    known = known_of(target).dims
    shapes: list[Dims] = []
    for one, other in product(possible, lengths if known is None else (known,)):
        shape = broadcast(one, other)
        assert shape is not None
        shapes.append(shape)
    data, longest = form.view(b, len(possible[-1]), front=False), len(lengths[-1])
    filled = target
    if not known_of(target).length:
        filled = b.op("Reshape", filled_up(b, target, longest, False), [longest])
    expanded = b.op("Expand", data, filled)
    return unview(b, expanded, b.max(form.rank(b), b.op("Shape", target)), False, shapes)


def _reduce(b: Builder, node: Node, form: TensorForm, forms: InputForms) -> TensorForm | None:
    """Over all axes."""
    axes = forms[1] if len(forms) > 1 else None
    everything = axes is None or (isinstance(axes, Plain) and known_of(axes.value).ints == ())
    if not isinstance(form, Open) or not everything or node.attributes["noop_with_empty_axes"]:
        return None
    reduced = b.op(node.op, form.data, b.constant([0]), **node.attributes)
    if not node.attributes["keepdims"]:
        return Plain(reduced)
    ones = b.op("Expand", b.constant(1), form.rank(b))
    shapes = None if form.shapes is None else tuple((1,) * len(s) for s in form.shapes)
    return Open(reduced, as_long_as(ones, shapes), shapes)


def _quantize(b: Builder, node: Node, form: TensorForm, forms: InputForms) -> TensorForm | None:
    """With one scale for all elements, which then have no axis."""
    rest = [plain(other) for other in forms[1:]]
    if not isinstance(form, Open) or not all(v is None or is_one(v, 1) for v in rest):
        return None
    quantized = b.op(node.op, form.data, *rest, **{**node.attributes, "axis": 0})
    return Open(quantized, form.shape, form.shapes)


def _unsqueeze(b: Builder, node: Node, form: TensorForm, forms: InputForms) -> TensorForm | None:
    axes = _of_one_end(forms[1])
    if not isinstance(form, Open) or axes is None:
        return None
    shape = form.shape
    for axis in axes:
        shape = with_axis(b, shape, axis)
    return _in_shape(b, node, form, forms, shape)


def _squeeze(b: Builder, node: Node, form: TensorForm, forms: InputForms) -> TensorForm | None:
    """Without axes, all sizes of 1 are removed from the shape."""
    if len(forms) == 1 or forms[1] is None:
        return _squeezed(b, form.to_open(b))
    axes = _of_one_end(forms[1])
    if not isinstance(form, Open) or axes is None:
        return None
    shape = form.shape
    for axis in reversed(axes):
        shape = without_axis(b, shape, axis)
    return _in_shape(b, node, form, forms, shape)


def _of_one_end(form: TensorForm | None) -> tuple[int, ...] | None:
    """Axes that all count from one end, in the order of their distance from it; None for others."""
    axes = known_of(plain(form)).ints
    if not axes or len({axis >= 0 for axis in axes}) > 1:
        return None
    return tuple(sorted(axes, reverse=axes[0] < 0))


def _in_shape(b: Builder, node: Node, form: Open, forms: InputForms, shape: Value) -> Open | None:
    """The same elements in another shape, with the inferred facts about it. None if the operator
    fails for all shapes that the tensor may have."""
    if form.shapes is None:
        return Open(form.data, shape, None)
    cases = [case for case in possible_cases(node, forms) if case.runs]
    shapes = shapes_after(cases, 0)
    return Open(form.data, as_long_as(shape, shapes), shapes) if shapes else None


def _squeezed(b: Builder, pair: Open) -> Open:
    left = b.op("Compress", pair.shape, ~pair.shape.equal(1), axis=0)
    shapes = None if pair.shapes is None else joined(
        rest for shape in pair.shapes for rest in _without_ones(shape)
    )  # fmt: skip
    return Open(pair.data, as_long_as(left, shapes), shapes)


def _without_ones(shape: Dims) -> Iterator[Dims]:
    """The possible shapes that remain of a shape without its 1s."""
    kept = tuple(dim for dim in shape if dim != 1)
    sure = sum(dim == 0 or low(dim) > 1 for dim in kept)
    yield kept
    for rank in range(sure, len(kept)):
        yield (ANY,) * rank


def _constant_of_shape(
    b: Builder, node: Node, form: TensorForm, forms: InputForms
) -> TensorForm | None:
    target = _vector(form, b)
    count = b.op("ReduceProd", target, [0], keepdims=True)
    data = b.op("ConstantOfShape", count, **node.attributes)
    return Open(data, target, shapes_as_long_as(target.dims[0]))


def _cast_like(b: Builder, node: Node, form: TensorForm, forms: InputForms) -> TensorForm | None:
    like = forms[1]
    assert like is not None
    made = b.op("CastLike", form.leaves()[0], like.leaves()[0], **node.attributes)
    return replace(form, data=made) if isinstance(form, Open) else Plain(made)


ShapeRule = Callable[[Builder, Node, TensorForm, InputForms], TensorForm | None]
"""Gets a node, its first input and all of them."""

_RULES: dict[str, ShapeRule] = {
    "CastLike": _cast_like,
    "ConstantOfShape": _constant_of_shape,
    "DequantizeLinear": _quantize,
    "Expand": _expand,
    "Flatten": _flatten,
    "QuantizeLinear": _quantize,
    "Reshape": _reshape,
    "Shape": _shape,
    "Size": _size,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
}
