"""How tensors, sequences and optionals are held in tensors of a known rank.

A form is a tree whose leaves are such tensors. Two forms of one structure have leaves that
correspond, so an If, a Loop or a graph boundary carries a form by carrying its leaves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.types import ContainerType, Element, Shape, TensorType, is_static
from bridge.operators import Refused
from bridge.options.spoken import keyword

if TYPE_CHECKING:
    from bridge.passes.sequences.ragged import Ragged
    from bridge.passes.sequences.tensors import TensorForm


def is_compound(value: Value | None) -> bool:
    """Whether a value is a sequence or an optional."""
    return value is not None and isinstance(value.type, ContainerType)


class Fails(Refused):
    """Raised for an operator that fails whenever it runs, in ONNX too."""


@dataclass(frozen=True)
class Form(ABC):
    """The way a value is held. `parts` are the fields with its leaves, unless it holds other
    forms."""

    parts: ClassVar[tuple[str, ...]]

    def leaves(self) -> tuple[Value, ...]:
        """The tensors, in a fixed order."""
        return tuple(getattr(self, part) for part in self.parts)

    def with_leaves(self, values: Iterator[Value]) -> Self:
        """The form with other leaves, in the order of `leaves`."""
        return replace(self, **{part: next(values) for part in self.parts})

    def leaf_names(self) -> tuple[str, ...]:
        """The names of the leaves, in the order of `leaves`."""
        return self.parts

    @abstractmethod
    def leaf_types(self) -> list[TensorType]:
        """The types of the leaves as inputs of a body."""

    @abstractmethod
    def structure(self, exact: bool = False) -> object:
        """A key that is equal for two forms with corresponding leaves. If `exact`, their tensors of
        open rank have the same possible shapes, too."""

    @abstractmethod
    def hold(self, b: Builder, form: Form, name: str) -> Form:
        """Another form of the value `name`, in the structure of this one."""

    @abstractmethod
    def dummy(self, b: Builder) -> Form:
        """A value of this structure, for an absent optional."""


class Sequence(Form):
    """A sequence of tensors. `name` is for messages; positions may be negative."""

    @property
    @abstractmethod
    def item_element(self) -> Element:
        """The element type of the tensors."""

    @property
    @abstractmethod
    def item_ranks(self) -> set[int]:
        """The ranks that the tensors have, as far as anything determines them."""

    def item_shapes(self) -> set[Shape]:
        """The shapes of the tensors; None stands for an unknown shape."""
        return {None}

    @abstractmethod
    def length(self, b: Builder) -> Value:
        """The number of tensors, an i64 scalar."""

    @abstractmethod
    def at(self, b: Builder, index: Value, name: str) -> TensorForm:
        """The tensor at a position."""

    @abstractmethod
    def insert(self, b: Builder, value: TensorForm, index: Value | None, name: str) -> Sequence:
        """The sequence with `value` before a position, or at its end."""

    @abstractmethod
    def erase(self, b: Builder, index: Value | None, name: str) -> Sequence:
        """The sequence without the tensor at a position, or without its last."""

    @abstractmethod
    def concat(self, b: Builder, axis: int, name: str) -> TensorForm:
        """The tensors joined along an axis that they have."""

    @abstractmethod
    def stack(self, b: Builder, axis: int, name: str) -> TensorForm:
        """The tensors, which have one shape, joined along a new axis."""

    @abstractmethod
    def to_ragged(self, b: Builder, name: str, like: Ragged | None = None) -> Ragged:
        """The sequence as a ragged pair. Its rows are as long as the rows of `like`, if `like` is
        given."""


def only_shape(*sequences: Sequence) -> tuple[int, ...] | None:
    """The one known shape that all tensors of sequences have, None if there is none. Not one
    of size 0: in OpenVINO's Loops a state of no elements loses its number of rows."""
    shapes = {shape for sequence in sequences for shape in sequence.item_shapes()}
    shape = shapes.pop() if len(shapes) == 1 else None
    return shape if is_static(shape) and 0 not in shape else None


def undetermined(name: str) -> Refused:
    """The refusal of a sequence if nothing determines the rank of its tensors."""
    return Refused(
        f'nothing determines the rank of the elements of the sequence "{name}"; give the shape of '
        "the elements of the sequence inputs, for example "
        + keyword("input_shapes", {name: [None, 3]})
    )


def rank_not_known(name: str, role: str) -> Refused:
    """The refusal of a tensor of unknown rank that takes part in a sequence."""
    return Refused(
        f'the rank of "{name}", which {role}, is not known; give the inputs\' shapes with '
        "`input_shapes`"
    )
