"""Each sequence and optional operator on forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bridge.neutral.builder import Builder, integers
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import (
    ANY,
    F32,
    I64,
    OptionalType,
    SequenceType,
    TensorType,
    Type,
    format_shape,
)
from bridge.operators import Refused
from bridge.operators.sequence.sequences import drops_axis
from bridge.passes.sequences import ragged, uniform
from bridge.passes.sequences.forms import (
    Elements,
    Fails,
    Form,
    Maybe,
    Open,
    Ragged,
    Sequence,
    Uniform,
    element_of,
    leaves,
    only_shape,
    ranks_of,
    to_ragged,
    to_uniform,
)
from bridge.passes.sequences.open_operators import lower_open

LONGEST = 64
"""Parts up to which a split of known sizes gives single values instead of a ragged pair."""

Lowered = Callable[[Builder, Node, list[Form | None]], Form]

_table: dict[str, Lowered] = {}


def lowers(op: str) -> Callable[[Lowered], Lowered]:
    """Registers the lowering of an operator."""

    def register(function: Lowered) -> Lowered:
        _table[op] = function
        return function

    return register


def lowering(op: str) -> Lowered | None:
    """The lowering of an operator, None where it is none of sequences or optionals."""
    return _table.get(op)


def _sequence(form: Form | None, node: Node) -> Sequence:
    """The sequence itself, where an optional holds it."""
    while isinstance(form, Maybe):
        form = form.payload
    if isinstance(form, Sequence):
        return form
    raise Refused(f"its input is no sequence but {form}")


def _tensor(form: Form | None) -> Value:
    item = _item(form)
    if isinstance(item, Value):
        return item
    raise Refused("its input may have several ranks where one is expected")


def _item(form: Form | None) -> Value | Open:
    while isinstance(form, Maybe):
        form = form.payload
    if isinstance(form, Value | Open):
        return form
    raise Refused("its input is a sequence where a tensor is expected")


def _name(node: Node) -> str:
    """The name by which a message calls the sequence that a node takes."""
    value = node.input(0)
    return value.name if value is not None and value.name else node.name


@lowers("SequenceConstruct")
def construct(b: Builder, node: Node, forms: list[Form | None]) -> Form:
    """SequenceConstruct-11: its inputs are the elements."""
    items = tuple(_item(form) for form in forms)
    return Elements(items, TensorType(items[0].element if items else None))


@lowers("SequenceEmpty")
def sequence_empty(b: Builder, node: Node, forms: list[Form | None]) -> Form:
    """SequenceEmpty-11: no elements."""
    return Elements((), TensorType(node.attributes["dtype"] or F32))


@lowers("SequenceLength")
def sequence_length(b: Builder, node: Node, forms: list[Form | None]) -> Form:
    """SequenceLength-11: known, or the number of rows."""
    form = _sequence(forms[0], node)
    if isinstance(form, Elements):
        return b.constant(len(form.items))
    return uniform.length(b, form) if isinstance(form, Uniform) else ragged.length(b, form)


def _movable(b: Builder, form: Sequence, node: Node) -> Ragged | Uniform:
    """The sequence in a form whose elements have positions that are known at run time alone."""
    if isinstance(form, Uniform):
        return form
    shape = only_shape(form)
    if isinstance(form, Elements) and shape is not None:
        return to_uniform(b, form, Uniform(next(leaves(form)), element_of(form), shape))
    return to_ragged(b, form, _name(node))


def _constant_position(form: Elements, index: Value, bound: int) -> int | None:
    known = integers(index)
    if known is None:
        return None
    place = known[0] + len(form.items) if known[0] < 0 else known[0]
    if not 0 <= place < bound:
        raise Fails(f"position {known[0]} is outside the sequence of {len(form.items)} elements")
    return place


@lowers("SequenceAt")
def sequence_at(b: Builder, node: Node, forms: list[Form | None]) -> Form:
    """SequenceAt-11: a known element, or a row of all elements joined."""
    form, index = _sequence(forms[0], node), _tensor(forms[1])
    if isinstance(form, Elements):
        place = _constant_position(form, index, len(form.items))
        if place is not None:
            return form.items[place]
    form = _movable(b, form, node)
    return uniform.at(b, form, index) if isinstance(form, Uniform) else ragged.at(b, form, index)


@lowers("SequenceInsert")
def sequence_insert(b: Builder, node: Node, forms: list[Form | None]) -> Form:
    """SequenceInsert-11: without a position at the end."""
    form, value = _sequence(forms[0], node), _item(forms[1])
    index = _tensor(forms[2]) if len(forms) > 2 and forms[2] is not None else None
    if isinstance(form, Elements):
        place = (
            len(form.items)
            if index is None
            else _constant_position(form, index, len(form.items) + 1)
        )
        if place is not None:
            items = (*form.items[:place], value, *form.items[place:])
            return Elements(items, form.item)
    form = _movable(b, form, node)
    if isinstance(form, Uniform) and isinstance(value, Value) and form.shape == value.shape:
        return uniform.insert(b, form, value, index)
    return ragged.insert(b, to_ragged(b, form, _name(node)), value, index)


@lowers("SequenceErase")
def sequence_erase(b: Builder, node: Node, forms: list[Form | None]) -> Form:
    """SequenceErase-11: without a position the last one."""
    form = _sequence(forms[0], node)
    index = _tensor(forms[1]) if len(forms) > 1 and forms[1] is not None else None
    if isinstance(form, Elements):
        last = b.constant(-1) if index is None else index
        place = _constant_position(form, last, len(form.items))
        if place is not None:
            return Elements((*form.items[:place], *form.items[place + 1 :]), form.item)
    form = _movable(b, form, node)
    if isinstance(form, Uniform):
        return uniform.erase(b, form, index)
    return ragged.erase(b, form, index)


@lowers("ConcatFromSequence")
def concat_from_sequence(b: Builder, node: Node, forms: list[Form | None]) -> Form:
    """ConcatFromSequence-11: joined along an axis that the elements have, or stacked along a new
    one."""
    form = _sequence(forms[0], node)
    axis, new = node.attributes["axis"], node.attributes["new_axis"]
    ranks = ranks_of(form)
    if ranks and not any(-(rank + new) <= axis < rank + new for rank in ranks):
        raise Fails(f"elements of rank {max(ranks)} cannot be joined along axis {axis}")
    if isinstance(form, Uniform):
        return (uniform.stack if new else uniform.concat)(b, form, axis)
    if isinstance(form, Ragged):
        join = ragged.stack if new else ragged.concat
        return join(b, form, axis, _name(node))
    if not form.items:
        raise Fails("an empty sequence has nothing to concatenate")
    items = form.items
    if new:
        items = tuple(_applied(b, "Unsqueeze", item, b.constant([axis])) for item in items)
    return _applied(b, "Concat", *items, axis=axis)


def _applied(b: Builder, op: str, *forms: Value | Open, **attributes: Any) -> Value | Open:
    """An operator on tensors some of which may be of open rank."""
    values = [form for form in forms if isinstance(form, Value)]
    if len(values) == len(forms):
        return b.op(op, *values, **attributes)
    return _item(lower_open(b, Node(op, [], [Value()], attributes), forms)[0])


@lowers("SplitToSequence")
def split_to_sequence(b: Builder, node: Node, forms: list[Form | None]) -> Form:
    """SplitToSequence (11 to 24): elements where their number is known, else ragged parts."""
    value = _tensor(forms[0])
    split = _tensor(forms[1]) if len(forms) > 1 and forms[1] is not None else None
    if value.rank is None:
        raise Refused(
            f'the rank of "{value.name}", which is split into a sequence, is not known; give the '
            "inputs' shapes with --input-shape"
        )
    axis = node.attributes["axis"]
    if not -value.rank <= axis < value.rank:
        raise Fails(f"{format_shape(value.shape)} has no axis {axis}")
    axis %= value.rank
    keepdims = not drops_axis(node)
    counts = _known_counts(value.dims[axis], split)
    if counts is not None and len(counts) <= LONGEST:
        return _parts(b, value, axis, counts, keepdims)
    dim = b.op("Slice", b.op("Shape", value), b.constant([axis]), b.constant([axis + 1]))
    if split is None:
        sizes = b.op("Expand", b.constant(1), dim)
    elif split.rank == 0:
        sizes = ragged.chunks(b, dim, ragged.scalar(b, split))
    else:
        sizes = split if split.element is I64 else b.op("Cast", split, to=I64)
    return ragged.split(b, value, axis, sizes, keepdims)


def _known_counts(dim: object, split: Value | None) -> list[int] | None:
    """The sizes of the parts, where they are known at conversion."""
    if split is not None and split.rank == 1:
        known = integers(split)
        return None if known is None else list(known)
    if not isinstance(dim, int):
        return None
    if split is None:
        return [1] * dim if dim <= LONGEST else None
    known = integers(split)
    if known is None:
        return None
    size = known[0] if known else 0
    if size < 1 or -(-dim // size) > LONGEST:
        return None
    return [min(size, dim - start) for start in range(0, dim, size)]


def _parts(b: Builder, value: Value, axis: int, counts: list[int], keepdims: bool) -> Form:
    item = TensorType(value.element, value.shape)
    if not counts:
        shape = tuple(d for i, d in enumerate(value.dims) if keepdims or i != axis)
        return Elements((), TensorType(value.element, shape))
    if len(counts) == 1:
        parts = [value]
    else:
        parts = b.ops("Split", len(counts), value, b.constant(counts), axis=axis)
    if not keepdims:
        parts = [b.op("Squeeze", part, b.constant([axis])) for part in parts]
    return Elements(tuple(parts), TensorType(item.element, (ANY,) * (parts[0].rank or 0)))


@lowers("Optional")
def optional(b: Builder, node: Node, forms: list[Form | None]) -> Form:
    """Optional-15: a flag and its payload; without an input a payload that means nothing."""
    if forms and forms[0] is not None:
        return Maybe(b.constant(True), forms[0])
    return Maybe(b.constant(False), _dummy(b, node.attributes.get("type")))


def _dummy(b: Builder, type: Type | None) -> Form | None:
    """What stands for the absent element of an optional of this type, where it is known."""
    if isinstance(type, OptionalType):
        type = type.item
    if isinstance(type, SequenceType) and isinstance(type.item, TensorType):
        return Elements((), type.item)
    if isinstance(type, TensorType) and type.element is not None and type.shape is not None:
        shape = [dim if isinstance(dim, int) else 1 for dim in type.shape]
        return b.filled(0, shape, type.element)
    return None


@lowers("OptionalHasElement")
def optional_has_element(b: Builder, node: Node, forms: list[Form | None]) -> Form:
    """OptionalHasElement (15 to 18): the flag; true of what is no optional."""
    if not forms or forms[0] is None:
        return b.constant(False)
    form = forms[0]
    return form.present if isinstance(form, Maybe) else b.constant(True)


@lowers("OptionalGetElement")
def optional_get_element(b: Builder, node: Node, forms: list[Form | None]) -> Form:
    """OptionalGetElement (15 to 18): the payload, or the value itself."""
    form = forms[0] if forms else None
    if isinstance(form, Maybe):
        form = None if integers(form.present) == (0,) else form.payload
    if form is None:
        raise Fails("the optional that it takes has no element")
    return form


@lowers("Identity")
def identity(b: Builder, node: Node, forms: list[Form | None]) -> Form:
    """Identity (1 to 25) of a sequence or an optional."""
    assert forms[0] is not None
    return forms[0]
