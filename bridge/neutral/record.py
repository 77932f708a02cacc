"""The record, in a model's metadata, of the sequences, optionals and tensors of open rank at its
boundary.

IR has tensors of known rank alone; the record says which of them stand for what, so that they can
be packed and unpacked (`bridge/boundary.py`) and the way back to ONNX can restore them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

from bridge.elements import ELEMENTS
from bridge.metadata import broken, read_record
from bridge.neutral.types import I64_MAX

KEY = "boundary"
"""The entry of `Model.metadata` that holds a Record, in JSON."""

CONSTANTS = "constant_inputs"
"""The entry that holds the names, in JSON, of the inputs that became constants."""


@dataclass
class Port:
    """One sequence, optional or tensor of open rank. `kind`: "ragged" (`.data` and `.shapes`),
    "elements" (`.0` to `.count-1`), "tensor" (an optional tensor, under its own name) or "open" (a
    tensor whose rank is known at run time alone: `.data`, its elements in their order, and
    `.shape`). `element` is the element type's name, `shape` that of a tensor or of each element,
    or what an ONNX model declared of one of open rank: sizes, symbols, and None for any size; None
    as a whole where ranks differ. Where the elements of a ragged sequence differ in rank (`mixed`),
    it is as long as the longest, and the rows of `.shapes` of the others end in -1s."""

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
        if self.kind == "open":
            return [*own, f"{name}.data", f"{name}.shape"]
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
        """From JSON; InvalidModelError where it is no such record."""
        data = read_record(text, _WHAT)
        inputs, outputs, order = (
            data.get(key) if isinstance(data, dict) else None
            for key in ("inputs", "outputs", "input_order")
        )
        if not (isinstance(inputs, dict) and isinstance(outputs, dict)):
            raise broken(_WHAT, "it has no inputs or no outputs")
        if not (isinstance(order, list) and all(isinstance(name, str) for name in order)):
            raise broken(_WHAT, "it has no order of the inputs")
        return cls(
            {name: _read_port(name, given, ("ragged", "tensor")) for name, given in inputs.items()},
            {name: _read_port(name, given, _KINDS) for name, given in outputs.items()},
            order,
        )

    def owner(self, part: str) -> str:
        """The input that the tensor `part` stands for; itself, where it is one of its own."""
        for name, port in self.inputs.items():
            if part in port.parts(name):
                return name
        return part


_WHAT = "sequences"
_KINDS = ("ragged", "elements", "tensor", "open")
_MOST_ELEMENTS = 1 << 20


def _read_port(name: str, given: Any, kinds: Sequence[str]) -> Port:
    """A Port from JSON, for which only some `kinds` make sense."""
    known = {field.name for field in fields(Port)}
    if not isinstance(given, dict) or not {"kind", "element", "shape"} <= set(given) <= known:
        raise broken(_WHAT, f'what it says of "{name}" is not what Bridge writes')
    port = Port(**given)
    right = (
        port.kind in kinds,
        isinstance(port.element, str)
        and port.element in ELEMENTS
        and ELEMENTS[port.element].onnx is not None,
        isinstance(port.shape, list | None) and all(
            dim is None or isinstance(dim, str) or (type(dim) is int and 0 <= dim <= I64_MAX)
            for dim in port.shape or ()
        ),
        isinstance(port.optional, bool) and isinstance(port.mixed, bool),
        type(port.count) is int and 0 <= port.count <= _MOST_ELEMENTS,
    )  # fmt: skip
    if not all(right):
        wrong = ("kind", "element", "shape", "optional or mixed", "count")[right.index(False)]
        raise broken(_WHAT, f'its {wrong} of "{name}" is none')
    return port
