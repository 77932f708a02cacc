"""Each sequence and optional operator on forms."""

from collections.abc import Callable

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import (
    ANY,
    F32,
    I64,
    Dim,
    OptionalType,
    SequenceType,
    TensorType,
    Type,
    format_shape,
    is_static,
)
from bridge.operators import Refused
from bridge.operators.sequence.sequences import drops_axis
from bridge.passes.sequences.elements import Elements
from bridge.passes.sequences.form import Fails, Form, Sequence, rank_not_known
from bridge.passes.sequences.maybe import Maybe, content_of
from bridge.passes.sequences.ragged import Ragged, chunks, split
from bridge.passes.sequences.tensors import Plain, TensorForm, tensor
from bridge.passes.sequences.uniform import Uniform

LONGEST = 64
"""The most parts for which a split of known sizes gives single values, not a ragged pair."""

Lowered = Callable[[Builder, Node, list[Form | None]], Form]


def _sequence(form: Form | None) -> Sequence:
    sequence = content_of(form)
    if isinstance(sequence, Sequence):
        return sequence
    raise Refused(f"its input is no sequence but {sequence}")


def _item(form: Form | None) -> TensorForm:
    return tensor(content_of(form))


def _tensor(form: Form | None) -> Value:
    item = _item(form)
    if isinstance(item, Plain):
        return item.value
    raise Refused("its input may have several ranks, and one is expected")


def _optional_input(forms: list[Form | None], place: int) -> Value | None:
    """A tensor that may be left out."""
    return _tensor(forms[place]) if len(forms) > place and forms[place] is not None else None


def _name(node: Node) -> str:
    """The name of a node's sequence in messages."""
    value = node.input(0)
    return value.name if value is not None and value.name else node.name


def _construct(b: Builder, node: Node, forms: list[Form | None]) -> Form:
    """SequenceConstruct-11: its inputs are the elements."""
    items = tuple(_item(form) for form in forms)
    return Elements(items, TensorType(items[0].leaves()[0].element if items else None))


def _sequence_empty(b: Builder, node: Node, forms: list[Form | None]) -> Form:
    """SequenceEmpty-11: no elements."""
    return Elements((), TensorType(node.attributes["dtype"] or F32))


def _sequence_length(b: Builder, node: Node, forms: list[Form | None]) -> Form:
    """SequenceLength-11: known, or the number of rows."""
    return Plain(_sequence(forms[0]).length(b))


def _sequence_at(b: Builder, node: Node, forms: list[Form | None]) -> Form:
    """SequenceAt-11: a known element, or a row of all elements joined."""
    return _sequence(forms[0]).at(b, _tensor(forms[1]), _name(node))


def _sequence_insert(b: Builder, node: Node, forms: list[Form | None]) -> Form:
    """SequenceInsert-11: without a position at the end."""
    form, value = _sequence(forms[0]), _item(forms[1])
    return form.insert(b, value, _optional_input(forms, 2), _name(node))


def _sequence_erase(b: Builder, node: Node, forms: list[Form | None]) -> Form:
    """SequenceErase-11: without a position the last one."""
    return _sequence(forms[0]).erase(b, _optional_input(forms, 1), _name(node))


def _concat_from_sequence(b: Builder, node: Node, forms: list[Form | None]) -> Form:
    """ConcatFromSequence-11: joined along an axis that the elements have, or stacked along a new
    one."""
    form = _sequence(forms[0])
    axis, new = node.attributes["axis"], node.attributes["new_axis"]
    ranks = form.item_ranks
    if ranks and not any(-(rank + new) <= axis < rank + new for rank in ranks):
        raise Fails(f"elements of rank {max(ranks)} cannot be joined along axis {axis}")
    joined = (form.stack if new else form.concat)(b, axis, _name(node))
    shape = node.outputs[0].shape or ()
    sizes = [dim if isinstance(dim, int) and dim > 0 else 0 for dim in shape]
    if any(sizes) and isinstance(form, Ragged) and isinstance(joined, Plain):
        # OpenVINO has the shape from the elements, which it does not know.
        return Plain(b.op("Reshape", joined.value, sizes))
    return joined


def _split_to_sequence(b: Builder, node: Node, forms: list[Form | None]) -> Form:
    """SplitToSequence (11 to 24): elements if their number is known, else ragged parts."""
    value, sizes = _tensor(forms[0]), _optional_input(forms, 1)
    if value.rank is None:
        raise rank_not_known(value.name, "is split into a sequence")
    axis = node.attributes["axis"]
    if not -value.rank <= axis < value.rank:
        raise Fails(f"{format_shape(value.shape)} has no axis {axis}")
    axis %= value.rank
    keepdims = not drops_axis(node)
    counts = _known_counts(value.dims[axis], sizes)
    if counts is not None and len(counts) <= LONGEST:
        return _parts(b, value, axis, counts, keepdims)
    parts = node.outputs[0].type
    item = parts.item if isinstance(parts, SequenceType) else None
    shape = item.shape if isinstance(item, TensorType) else None
    if shape is not None and 0 not in shape and (is_static(shape) or not keepdims):
        return _equal_parts(b, value, axis, shape, keepdims)
    dim = b.op("Slice", b.op("Shape", value), [axis], [axis + 1])
    if sizes is None:
        sizes = b.op("Expand", 1, dim)
    elif sizes.rank == 0:
        sizes = chunks(b, dim, b.scalar(b.cast(sizes, I64)))
    else:
        sizes = b.cast(sizes, I64)
    return split(b, value, axis, sizes, keepdims)


def _equal_parts(
    b: Builder, value: Value, axis: int, shape: tuple[Dim, ...], keepdims: bool
) -> Uniform:
    """The parts of a tensor along an axis, which are of one shape."""
    data = b.transpose(value, axis, *(a for a in range(len(value.dims)) if a != axis))
    rank = len(shape)
    if keepdims:
        assert is_static(shape)
        sizes = (shape[axis], *shape[:axis], *shape[axis + 1 :])
        data = b.op("Reshape", data, [-1, *sizes])
        data = b.transpose(data, 0, *range(2, axis + 2), 1, *range(axis + 2, rank + 1))
    return Uniform(data, value.known_element, shape)


def _known_counts(dim: object, split: Value | None) -> list[int] | None:
    """The sizes of the parts, if they are known at conversion."""
    if split is not None and split.rank == 1:
        known = known_of(split).ints
        return None if known is None else list(known)
    if not isinstance(dim, int):
        return None
    if split is None:
        return [1] * dim if dim <= LONGEST else None
    known = known_of(split).ints
    if known is None:
        return None
    size = known[0] if known else 0
    if size < 1 or -(-dim // size) > LONGEST:
        return None
    return [min(size, dim - start) for start in range(0, dim, size)]


def _parts(b: Builder, value: Value, axis: int, counts: list[int], keepdims: bool) -> Form:
    if not counts:
        shape = tuple(d for i, d in enumerate(value.dims) if keepdims or i != axis)
        return Elements((), TensorType(value.element, shape))
    parts = [value] if len(counts) == 1 else b.ops("Split", len(counts), value, counts, axis=axis)
    if not keepdims:
        parts = [b.op("Squeeze", part, [axis]) for part in parts]
    item = TensorType(value.element, (ANY,) * (parts[0].rank or 0))
    return Elements(tuple(map(Plain, parts)), item)


def _optional(b: Builder, node: Node, forms: list[Form | None]) -> Form:
    """Optional-15: a flag and its payload; without an input the payload has no meaning."""
    if forms and forms[0] is not None:
        return Maybe(b.constant(True), forms[0])
    return Maybe(b.constant(False), _dummy(b, node.attributes.get("type")))


def _dummy(b: Builder, type: Type | None) -> Form | None:
    """The value in place of the absent element of an optional of this type, if it is known."""
    if isinstance(type, OptionalType):
        type = type.item
    if isinstance(type, SequenceType) and isinstance(type.item, TensorType):
        return Elements((), type.item)
    if isinstance(type, TensorType) and type.element is not None and type.shape is not None:
        shape = [dim if isinstance(dim, int) else 1 for dim in type.shape]
        return Plain(b.filled(0, shape, type.element))
    return None


def _optional_has_element(b: Builder, node: Node, forms: list[Form | None]) -> Form:
    """OptionalHasElement (15 to 18): the flag, or true if the value is no optional."""
    if not forms or forms[0] is None:
        return Plain(b.constant(False))
    form = forms[0]
    return Plain(form.present if isinstance(form, Maybe) else b.constant(True))


def _optional_get_element(b: Builder, node: Node, forms: list[Form | None]) -> Form:
    """OptionalGetElement (15 to 18): the payload, or the value itself."""
    form = forms[0] if forms else None
    if isinstance(form, Maybe):
        form = None if known_of(form.present).ints == (0,) else form.payload
    if form is None:
        raise Fails("the optional that it takes has no element")
    return form


def _identity(b: Builder, node: Node, forms: list[Form | None]) -> Form:
    """Identity (1 to 25) of a sequence or an optional."""
    assert forms[0] is not None
    return forms[0]


LOWERED: dict[str, Lowered] = {
    "ConcatFromSequence": _concat_from_sequence,
    "Identity": _identity,
    "Optional": _optional,
    "OptionalGetElement": _optional_get_element,
    "OptionalHasElement": _optional_has_element,
    "SequenceAt": _sequence_at,
    "SequenceConstruct": _construct,
    "SequenceEmpty": _sequence_empty,
    "SequenceErase": _sequence_erase,
    "SequenceInsert": _sequence_insert,
    "SequenceLength": _sequence_length,
    "SplitToSequence": _split_to_sequence,
}
"""The rules for operators on sequences and optionals."""
