"""Operators on the shapes of tensors of open rank, and on all their elements at once.

Each rule says what a node gives, or None where what goes for other operators goes for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import product

from bridge.neutral.builder import Builder, integers
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.dims import length_of, shape_in
from bridge.neutral.types import ANY, I64, I64_MAX, Dim, broadcast, low
from bridge.passes.sequences.forms import (
    Form,
    Forms,
    Open,
    is_one,
    joined,
    plain,
    shapes_of,
    tensor,
    to_open,
)
from bridge.passes.sequences.open_rank import (
    as_long_as,
    rank_of,
    reshaped,
    shapes_as_long_as,
    shapes_of_open,
    to_rank,
    unsettled,
    unview,
    view,
    wide,
    with_axis,
    without_axis,
)


def on_shapes(b: Builder, node: Node, forms: Forms) -> Form | None:
    """What a node gives, where it is one of these."""
    rule = _reduce if node.op.startswith("Reduce") else _RULES.get(node.op)
    return None if rule is None else rule(b, node, forms)


def _vector(form: Form | None, b: Builder) -> Value:
    """A shape that a node takes, i64 1-D."""
    value = to_rank(b, form, 1) if isinstance(form, Open) else plain(form)
    assert value is not None
    return value if value.element is I64 else b.op("Cast", value, to=I64)


def _shape(b: Builder, node: Node, forms: Forms) -> Form | None:
    form = forms[0]
    if not isinstance(form, Open):
        return None
    start, end = node.attributes["start"], node.attributes["end"]
    shape = form.shape
    if start or end is not None:
        last = b.constant([I64_MAX if end is None else end])
        shape = b.op("Slice", shape, b.constant([start]), last, b.constant([0]))
    wanted = node.attributes["output_type"]
    return shape if wanted in (None, I64) else b.op("Cast", shape, to=wanted)


def _size(b: Builder, node: Node, forms: Forms) -> Form | None:
    form = forms[0]
    return b.op("Size", form.data) if isinstance(form, Open) else None


def _reshape(b: Builder, node: Node, forms: Forms) -> Form | None:
    """The elements stay; 0s are sizes of the first axes, which a view has in front."""
    form, target = forms[0], _vector(forms[1], b)
    allowzero = node.attributes["allowzero"]
    length = length_of(target)
    known = integers(target)
    copies = not allowzero and (known is None or 0 in known)
    if length is not None and not isinstance(form, Open):
        return b.op("Reshape", plain(form), target, allowzero=allowzero)
    if length is not None and isinstance(form, Open):
        if not copies:
            return b.op("Reshape", form.data, target, allowzero=allowzero)
        rank = max(length, *(len(shape) for shape in shapes_of_open(form)))
        return b.op("Reshape", view(b, form, rank, True), target, allowzero=False)
    pair = to_open(b, tensor(form))
    return reshaped(b, pair, target, allowzero)


def _expand(b: Builder, node: Node, forms: Forms) -> Form | None:
    """Both the tensor and the shape get 1s in front, up to the highest rank of either."""
    form, target = tensor(forms[0]), _vector(forms[1], b)
    own = shapes_of(form)
    lengths = None if target.shape is None else shapes_as_long_as(target.shape[0])
    if own is None or lengths is None:
        raise unsettled("nothing bounds the rank of its output")
    known = shape_in(target)
    shapes: list[tuple[Dim, ...]] = []
    for one, other in product(own, lengths if known is None else (known,)):
        shape = broadcast(one, other)
        assert shape is not None
        shapes.append(shape)
    longest = len(lengths[-1])
    data = view(b, form, len(own[-1]), False) if isinstance(form, Open) else form
    made = b.op("Expand", data, target if length_of(target) else wide(b, target, longest))
    rank = rank_of(b, form) if isinstance(form, Open) else b.constant([form.rank])
    return unview(b, made, b.op("Max", rank, b.op("Shape", target)), False, shapes)


def _reduce(b: Builder, node: Node, forms: Forms) -> Form | None:
    """Over all axes."""
    form, axes = forms[0], forms[1] if len(forms) > 1 else None
    everything = axes is None or (isinstance(axes, Value) and integers(axes) == ())
    if not isinstance(form, Open) or not everything or node.attributes["noop_with_empty_axes"]:
        return None
    made = b.op(node.op, form.data, b.constant([0]), **node.attributes)
    if not node.attributes["keepdims"]:
        return made
    ones = b.op("Expand", b.constant(1), rank_of(b, form))
    shapes = None if form.shapes is None else tuple((1,) * len(s) for s in form.shapes)
    return Open(made, as_long_as(ones, shapes), shapes)


def _quantize(b: Builder, node: Node, forms: Forms) -> Form | None:
    """With one scale for all elements, which then have no axis."""
    form, rest = forms[0], [plain(f) for f in forms[1:]]
    if not isinstance(form, Open) or not all(v is None or is_one(v, 1) for v in rest):
        return None
    made = b.op(node.op, form.data, *rest, **{**node.attributes, "axis": 0})
    return Open(made, form.shape, form.shapes)


def _unsqueeze(b: Builder, node: Node, forms: Forms) -> Form | None:
    form, axes = forms[0], _of_one_end(forms[1])
    if not isinstance(form, Open) or axes is None:
        return None
    shape = form.shape
    for axis in axes:
        shape = with_axis(b, shape, axis)
    return _in_shape(form, shape, (_with(known, axes) for known in form.shapes or ()))


def _squeeze(b: Builder, node: Node, forms: Forms) -> Form | None:
    """Without axes, what is not 1 of the shape is left."""
    form = tensor(forms[0])
    if len(forms) == 1 or forms[1] is None:
        return _squeezed(b, to_open(b, form))
    axes = _of_one_end(forms[1])
    if not isinstance(form, Open) or axes is None:
        return None
    shape = form.shape
    for axis in reversed(axes):
        shape = without_axis(b, shape, axis)
    return _in_shape(form, shape, (_without(known, axes) for known in form.shapes or ()))


def _of_one_end(form: Form | None) -> tuple[int, ...] | None:
    """Axes that all count from one end, in the order of their distance from it; None for others."""
    axes = integers(plain(form))
    if not axes or len({axis >= 0 for axis in axes}) > 1:
        return None
    return tuple(sorted(axes, reverse=axes[0] < 0))


def _in_shape(form: Open, shape: Value, known: Iterable[tuple[Dim, ...] | None]) -> Open | None:
    """The same elements in another shape, of which all is `known` but the cases that fail (None);
    None where all fail."""
    if form.shapes is None:
        return Open(form.data, shape, None)
    shapes = joined(shape for shape in known if shape is not None)
    return Open(form.data, as_long_as(shape, shapes), shapes) if shapes else None


def _with(shape: tuple[Dim, ...], axes: tuple[int, ...]) -> tuple[Dim, ...] | None:
    """A shape with 1s at these axes of what it is then."""
    rank = len(shape) + len(axes)
    if not all(-rank <= axis < rank for axis in axes):
        return None
    places, rest = {axis % rank for axis in axes}, iter(shape)
    return tuple(1 if place in places else next(rest) for place in range(rank))


def _without(shape: tuple[Dim, ...], axes: tuple[int, ...]) -> tuple[Dim, ...] | None:
    """A shape without these axes, if they may be 1."""
    rank = len(shape)
    if not all(-rank <= axis < rank and _may_be_one(shape[axis]) for axis in axes):
        return None
    places = {axis % rank for axis in axes}
    return tuple(dim for place, dim in enumerate(shape) if place not in places)


def _may_be_one(dim: Dim) -> bool:
    return dim == 1 or not isinstance(dim, int)


def _squeezed(b: Builder, pair: Open) -> Open:
    kept = b.op("Not", b.op("Equal", pair.shape, b.constant(1)))
    left = b.op("Compress", pair.shape, kept, axis=0)
    shapes = None if pair.shapes is None else joined(
        rest for shape in pair.shapes for rest in _without_ones(shape)
    )  # fmt: skip
    return Open(pair.data, as_long_as(left, shapes), shapes)


def _without_ones(shape: tuple[Dim, ...]) -> Iterator[tuple[Dim, ...]]:
    """What may be left of a shape without its 1s."""
    kept = tuple(dim for dim in shape if dim != 1)
    sure = sum(dim == 0 or low(dim) > 1 for dim in kept)
    yield kept
    for rank in range(sure, len(kept)):
        yield (ANY,) * rank


def _constant_of_shape(b: Builder, node: Node, forms: Forms) -> Form | None:
    target = _vector(forms[0], b)
    assert target.shape is not None
    count = b.op("ReduceProd", target, b.constant([0]), keepdims=True)
    data = b.op("ConstantOfShape", count, **node.attributes)
    return Open(data, target, shapes_as_long_as(target.shape[0]))


def _cast_like(b: Builder, node: Node, forms: Forms) -> Form | None:
    form, like = forms[0], forms[1]
    one = like.data if isinstance(like, Open) else plain(like)
    if not isinstance(form, Open):
        return b.op("CastLike", plain(form), one, **node.attributes)
    return replace(form, data=b.op("CastLike", form.data, one, **node.attributes))


_RULES: dict[str, Callable[[Builder, Node, Forms], Form | None]] = {
    "CastLike": _cast_like,
    "ConstantOfShape": _constant_of_shape,
    "DequantizeLinear": _quantize,
    "Expand": _expand,
    "QuantizeLinear": _quantize,
    "Reshape": _reshape,
    "Shape": _shape,
    "Size": _size,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
}
