"""The form that can hold a value from two places."""

from __future__ import annotations

from bridge.neutral.graph import Value
from bridge.operators import Refused
from bridge.passes.sequences.elements import Elements
from bridge.passes.sequences.form import Form, Sequence, only_shape
from bridge.passes.sequences.maybe import Maybe
from bridge.passes.sequences.ragged import Ragged
from bridge.passes.sequences.tensors import TensorForm
from bridge.passes.sequences.uniform import Uniform


def common(a: Form | None, b: Form | None, name: str) -> Form | None:
    """A form of the structure that both can be brought into (its leaves are of no use)."""
    if a is None or b is None:
        return b if a is None else a
    match a, b:
        case TensorForm(), TensorForm():
            return a.either(b)
        case Maybe(), Maybe():
            return Maybe(a.present, common(a.payload, b.payload, name))
        case Maybe(), _:
            return Maybe(a.present, common(a.payload, b, name))
        case _, Maybe():
            return Maybe(b.present, common(a, b.payload, name))
        case Sequence(), Sequence():
            return _sequence(a, b)
    raise Refused(f'"{name}" is a sequence in one place and an optional or a tensor in another')


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
