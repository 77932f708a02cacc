"""The record of a specialization in a model's metadata: inputs that became constants, and the new
shapes of inputs.

With this record a check feeds the original model the values that its specialized form holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from bridge.neutral.extras import Size
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import ANY, ELEMENTS, Dim, Interval
from bridge.records.boundary import ElementName
from bridge.records.entry import Entry

MOST_RECORDED = 1 << 16
"""Elements of a fixed value beyond which the record does not hold them."""


@dataclass
class FixedValue:
    """The constant that an input became. `elements` are flattened, None if they are many."""

    element: ElementName
    shape: list[Size]
    elements: list[bool | int | float | str] | None

    @classmethod
    def of(cls, tensor: Tensor) -> FixedValue:
        """The record of a tensor."""
        held = tensor.size <= MOST_RECORDED and tensor.element.kind != "complex"
        elements = tensor.array().reshape(-1).tolist() if held else None
        return cls(tensor.element.name, list(tensor.shape), elements)

    def array(self) -> np.ndarray | None:
        """The constant, None if the record does not hold its elements."""
        if self.elements is None:
            return None
        return np.array(self.elements, ELEMENTS[self.element].dtype).reshape(self.shape)


@dataclass
class SpecializedRecord:
    """Values and shapes by the names of the original's inputs. A dimension is a size, a symbol, or
    a range as `str(Interval)` writes it."""

    values: dict[str, FixedValue] = field(default_factory=dict)
    shapes: dict[str, list[Size | str]] = field(default_factory=dict)

    def dims(self, name: str) -> tuple[Dim, ...]:
        """The shape that an input was given."""
        return tuple(_dim(dim) for dim in self.shapes[name])


def recorded_shape(shape: Sequence[Dim]) -> list[int | str]:
    """A shape as the record holds it."""
    return [str(dim) if isinstance(dim, Interval) else dim for dim in shape]


def _dim(recorded: int | str) -> Dim:
    if not isinstance(recorded, str) or recorded.isidentifier():
        return recorded
    low, _, high = recorded.partition("..")
    return Interval(int(low), int(high) if high.isdecimal() else None) if low.isdecimal() else ANY


SPECIALIZED: Entry[SpecializedRecord] = Entry(
    "bridge.specialized", SpecializedRecord, "fixed values and shapes"
)
"""The metadata entry for the specialization of a model."""
