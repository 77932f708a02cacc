"""The form that can hold a value from two places, or a state of a Loop in all iterations."""

from dataclasses import replace

from bridge.neutral.graph import Value
from bridge.neutral.inference.control import widen
from bridge.neutral.types import ANY
from bridge.operators import Refused
from bridge.passes.sequences.elements import Elements
from bridge.passes.sequences.form import Form, Sequence, only_shape
from bridge.passes.sequences.maybe import Maybe, content_of
from bridge.passes.sequences.ragged import Ragged
from bridge.passes.sequences.tensors import Open, Plain, TensorForm
from bridge.passes.sequences.uniform import Uniform


def common(a: Form, b: Form, name: str) -> Form:
    """A form of the structure that both can be brought into (its leaves are of no use)."""
    match a, b:
        case TensorForm(), TensorForm():
            return a.either(b)
        case Maybe(), Maybe():
            return Maybe(a.present, _common_content(a.payload, b.payload, name))
        case Maybe(), _:
            return Maybe(a.present, _common_content(a.payload, b, name))
        case _, Maybe():
            return Maybe(b.present, _common_content(a, b.payload, name))
        case Sequence(), Sequence():
            return _sequence(a, b)
    raise Refused(f'"{name}" is a sequence in one place and an optional or a tensor in another')


def _common_content(a: Form | None, b: Form | None, name: str) -> Form | None:
    """The form for two contents of optionals; None for a content of unknown type."""
    if a is None or b is None:
        return b if a is None else a
    return common(a, b, name)


def _sequence(a: Sequence, b: Sequence) -> Sequence:
    if isinstance(a, Elements) and isinstance(b, Elements) and a.structure() == b.structure():
        pairs = zip(a.items, b.items, strict=True)
        return Elements(tuple(x.either(y) for x, y in pairs), a.item)
    leaf = next(iter((*a.leaves(), *b.leaves())), Value())
    shape = only_shape(a, b)
    if shape is not None:
        return Uniform(leaf, a.item_element, shape)
    ranks = a.item_ranks | b.item_ranks
    mixed = len(ranks) > 1 or any(isinstance(x, Ragged) and x.mixed for x in (a, b))
    return Ragged(leaf, leaf, a.item_element, max(ranks) if ranks else None, mixed)


def same_form(a: Form, b: Form) -> bool:
    """Whether two forms have one structure, and leaves of the same types."""
    return a.structure(exact=True) == b.structure(exact=True) and a.leaf_types() == b.leaf_types()


def widened(state: Form, again: Form, bounded: bool, name: str) -> Form:
    """A form that can hold a state before and after an iteration. If not `bounded`, a rank that is
    open to more after it has no bound."""
    wide = common(state, again, name)
    match state, again, wide:
        case TensorForm(), TensorForm(), _:
            return _wide_tensor(state, again, bounded)
        case Elements(), Elements(), Elements():
            pairs = zip(state.items, again.items, strict=True)
            return Elements(tuple(_wide_tensor(a, b, bounded) for a, b in pairs), state.item)
        case _, _, Maybe():
            # The value in place of an absent element has sizes without meaning.
            before, after = content_of(state), content_of(again)
            if before is not None and after is not None:
                return Maybe(wide.present, widened(before, after, bounded, name))
    return wide


def _wide_tensor(state: TensorForm, again: TensorForm, bounded: bool) -> TensorForm:
    wide = state.either(again)
    if not isinstance(wide, Open):
        before, after = state.leaves()[0], again.leaves()[0]
        type = widen(before.type, after.type)
        return state if type == before.type else Plain(Value(type, before.names))
    if wide.shapes is None or not (bounded or wide.ranks == state.ranks):
        return replace(wide, shapes=None)
    known = {len(shape): shape for shape in state.known_shapes() or ()}
    shapes = (
        tuple(d if d == o else ANY for d, o in zip(s, known.get(len(s), s), strict=True))
        for s in wide.shapes
    )
    return replace(wide, shapes=tuple(shapes))
