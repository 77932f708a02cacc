"""Records in a model's metadata: the meaning of its inputs and outputs.

IR only has tensors of numbers with a known rank. A sequence, an optional or a tensor of open rank
becomes several tensors. A tensor of strings becomes a tensor of places in a list, its vocabulary.
A map becomes a row of its values, and a list holds the keys. `bridge.pack` and `bridge.unpack`
translate with these records (`bridge/library/packing.py`). The way back to ONNX restores the
originals.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from bridge.neutral.extras import Fits, Size
from bridge.records.entry import Entry
from bridge.vocabulary.elements import ELEMENTS, Element

MOST_ELEMENTS = 1 << 20
"""The most elements that a sequence of known length has at the boundary."""

ElementCount = Annotated[int, Fits(lambda count: 0 <= count <= MOST_ELEMENTS, "length")]

ElementName = Annotated[
    str, Fits(lambda name: name in ELEMENTS and ELEMENTS[name].onnx is not None, "element type")
]


@dataclass
class BoundaryValue:
    """One sequence, optional or tensor of open rank.

    `kind` says which tensors stand for it. "ragged": `.data` and `.shapes`; "elements": `.0` to
    `.count-1`; "tensor": an optional tensor, under its own name; "open": a tensor whose rank is
    only known at run time: `.data` has the elements in their order, `.shape` the shape.

    `element` is the element type's name. `shape` is the shape of the tensor or of each element.
    For a tensor of open rank, `shape` is the declaration in the ONNX model. It has sizes, symbols,
    and None for any size; it is None as a whole if ranks differ. If the elements of a ragged
    sequence differ in rank (`mixed`), `shape` has the largest rank. For the other elements the
    rows of `.shapes` end in -1s.
    """

    kind: Literal["ragged", "elements", "tensor", "open"]
    element: ElementName
    shape: list[Size | str | None] | None
    optional: bool = False
    count: ElementCount = 0
    mixed: bool = False

    @property
    def rank(self) -> int:
        """The length of `shape`, 0 if ranks differ."""
        return len(self.shape or ())

    @property
    def type(self) -> Element:
        """The element type."""
        return ELEMENTS[self.element]

    @property
    def dummy(self) -> list[int]:
        """A shape that the value of an absent optional can have."""
        return [dim if isinstance(dim, int) else 1 for dim in self.shape or ()]

    def parts(self, name: str) -> list[str]:
        """The names of the tensors that stand for it."""
        own = [f"{name}.present"] if self.optional else []
        if self.kind == "tensor":
            return [*own, name]
        if self.kind == "open":
            return [*own, f"{name}.data", f"{name}.shape"]
        if self.kind == "ragged":
            return [*own, f"{name}.data", f"{name}.shapes"]
        return [*own, *(f"{name}.{i}" for i in range(self.count))]


_BoundaryInput = Annotated[
    BoundaryValue, Fits(lambda value: value.kind in ("ragged", "tensor"), "kind of input")
]


@dataclass
class BoundaryRecord:
    """The sequences, optionals and tensors of open rank among a model's inputs and outputs, by
    name. `input_order` holds the names of all inputs."""

    inputs: dict[str, _BoundaryInput]
    outputs: dict[str, BoundaryValue]
    input_order: list[str]

    def owner(self, part: str) -> str:
        """The input that the tensor `part` belongs to, or `part` itself."""
        for name, value in self.inputs.items():
            if part in value.parts(name):
                return name
        return part


Label = str | int
"""A string of a vocabulary, or a key of a map."""

_IS_SET = Fits(lambda labels: 0 < len(labels) == len(set(labels)), "list without repetition")


@dataclass
class LabelRecord:
    """Lists of labels by the names of a model's inputs and outputs."""

    inputs: dict[str, Annotated[tuple[str, ...] | tuple[int, ...], _IS_SET]]
    outputs: dict[str, Annotated[tuple[str, ...] | tuple[int, ...], _IS_SET]]

    def __bool__(self) -> bool:
        return bool(self.inputs or self.outputs)

    def has_strings_alone(self) -> bool:
        """Whether no label is an integer."""
        lists = (*self.inputs.values(), *self.outputs.values())
        return all(isinstance(labels[0], str) for labels in lists)


_SORTED = {"separators": (",", ":"), "sort_keys": True}

BOUNDARY: Entry[BoundaryRecord] = Entry("boundary", BoundaryRecord, "sequences", style=_SORTED)
"""The entry for sequences, optionals and tensors of open rank."""

CONSTANTS: Entry[list[str]] = Entry("constant_inputs", list[str], "constants", style={})
"""The entry for the names of the inputs that became constants."""

VOCABULARIES: Entry[LabelRecord] = Entry(
    "boundary.strings",
    Annotated[LabelRecord, Fits(LabelRecord.has_strings_alone, "record of strings")],
    "strings",
    style=_SORTED,
)
"""The entry for strings: their vocabularies."""

MAP_KEYS: Entry[LabelRecord] = Entry("boundary.maps", LabelRecord, "maps", style=_SORTED)
"""The entry for maps: their keys, strings or integers."""
