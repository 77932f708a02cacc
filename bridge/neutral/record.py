"""The record, in a model's metadata, of the sequences and optionals at its boundary.

IR has tensors alone; the record says which of them stand for what, so that they can be packed and
unpacked (`bridge/boundary.py`) and the way back to ONNX can restore them.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Self

from bridge.errors import InvalidModelError

KEY = "boundary"
"""The entry of `Model.metadata` that holds a Record, in JSON."""

CONSTANTS = "constant_inputs"
"""The entry that holds the names, in JSON, of the inputs that became constants."""


@dataclass
class Port:
    """One sequence or optional. `kind`: "ragged" (`.data` and `.shapes`), "elements" (`.0` to
    `.count-1`) or "tensor" (an optional tensor, under its own name). `element` is the element
    type's name, `shape` that of a tensor or of each element: sizes, symbols, and None for any
    size; None as a whole where ranks differ. Where the elements of a ragged sequence differ in
    rank (`mixed`), it is as long as the longest, and the rows of `.shapes` of the others end in
    -1s."""

    kind: str
    element: str
    shape: list[int | str | None] | None
    optional: bool = False
    count: int = 0
    mixed: bool = False

    @property
    def rank(self) -> int:
        """The length of `shape`, 0 where ranks differ."""
        return len(self.shape or ())

    @property
    def dummy(self) -> list[int]:
        """A shape that the value of an absent optional can have."""
        return [dim if isinstance(dim, int) else 1 for dim in self.shape or ()]

    def parts(self, name: str) -> list[str]:
        """The names of the tensors that stand for it."""
        own = [f"{name}.present"] if self.optional else []
        if self.kind == "tensor":
            return [*own, name]
        if self.kind == "ragged":
            return [*own, f"{name}.data", f"{name}.shapes"]
        return [*own, *(f"{name}.{i}" for i in range(self.count))]


@dataclass
class Record:
    """The sequences and optionals among a model's inputs and outputs, by name. `input_order`
    holds the names of all inputs."""

    inputs: dict[str, Port] = field(default_factory=dict)
    outputs: dict[str, Port] = field(default_factory=dict)
    input_order: list[str] = field(default_factory=list)

    def dumps(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self), separators=(",", ":"), sort_keys=True)

    @classmethod
    def loads(cls, text: str) -> Self:
        """From JSON; InvalidModelError where it is none."""
        try:
            data = json.loads(text)
            return cls(
                {k: Port(**v) for k, v in data["inputs"].items()},
                {k: Port(**v) for k, v in data["outputs"].items()},
                list(data["input_order"]),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidModelError(
                f"the model's record of its sequences cannot be read: {error}"
            ) from error

    def owner(self, part: str) -> str:
        """The input that the tensor `part` stands for; itself, where it is one of its own."""
        for name, port in self.inputs.items():
            if part in port.parts(name):
                return name
        return part
