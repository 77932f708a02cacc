"""How the sequences and optionals of an ONNX model look at the boundary of its IR.

IR has tensors alone. `pack` turns Python lists and None into the inputs of such an IR, `unpack`
its outputs back into lists and None. The IR's `rt_info` records what its inputs and outputs were.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bridge.errors import InvalidModelError, UsageError
from bridge.hints import keywords

KEY = "boundary"
"""The entry of `Model.metadata` that holds a Boundary, in JSON."""


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
class Boundary:
    """The sequences and optionals among a model's inputs and outputs, by name. `input_order`
    holds the names of all inputs."""

    inputs: dict[str, Port] = field(default_factory=dict)
    outputs: dict[str, Port] = field(default_factory=dict)
    input_order: list[str] = field(default_factory=list)

    def dumps(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self), separators=(",", ":"), sort_keys=True)

    @classmethod
    def loads(cls, text: str) -> Boundary:
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

    @classmethod
    def of(cls, source: Any) -> Boundary:
        """That of an `.xml`, of an `openvino.Model`, of a `Model`, or of `metadata`.
        InvalidModelError where it cannot be read, UsageError for a source of another kind."""
        if isinstance(source, Boundary):
            return source
        if hasattr(source, "get_rt_info"):
            entry = ["bridge", "metadata", KEY]
            known = source.has_rt_info(entry)
            return cls.loads(source.get_rt_info(entry).astype(str)) if known else cls()
        if isinstance(source, str | os.PathLike):
            from bridge.api import load

            path = Path(source)
            if path.suffix.lower() != ".xml":
                raise UsageError(f"{path}: only an .xml has a packed boundary")
            source = load(path)
        metadata = source if isinstance(source, Mapping) else getattr(source, "metadata", None)
        if not isinstance(metadata, Mapping):
            raise UsageError(
                "the boundary is that of an .xml, of an openvino.Model or of a Model, not of "
                f"{source!r}"
            )
        return cls.loads(metadata[KEY]) if KEY in metadata else cls()

    def owner(self, part: str) -> str:
        """The input that the tensor `part` stands for; itself, where it is one of its own."""
        for name, port in self.inputs.items():
            if part in port.parts(name):
                return name
        return part


@keywords()
def pack(source: Any, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Inputs of an IR from those of the ONNX model that it came from.

    `source` is the `.xml`, the `openvino.Model` that was read from it or that `to_openvino` gave,
    or its Boundary. In `feeds` a sequence is a list of arrays and an absent optional is None; what
    is a plain tensor passes as it is. Sequences become `[total]` and `[length, rank]`.

    Raises UsageError for values of another kind than the input's, InvalidModelError for an IR
    that cannot be read.
    """
    boundary = Boundary.of(source)
    _require_mapping("the inputs", feeds)
    packed: dict[str, np.ndarray] = {}
    for name, value in feeds.items():
        port = boundary.inputs.get(name)
        if port is None:
            packed[name] = value
        else:
            packed.update(zip(port.parts(name), _pack(name, port, value), strict=True))
    return packed


def _pack(name: str, port: Port, value: Any) -> list[np.ndarray]:
    present = [np.array(value is not None)] if port.optional else []
    if value is None and not port.optional:
        raise UsageError(f'the input "{name}" is no optional, so it cannot be None')
    dtype, rank = _dtype(port), port.rank
    if port.kind == "tensor":
        return [*present, np.zeros(port.dummy, dtype) if value is None else np.asarray(value)]
    if not isinstance(value, list | tuple | None):
        raise UsageError(f'the input "{name}" is a sequence: give it a list of arrays')
    try:
        arrays = [np.asarray(item, dtype) for item in value or ()]
    except (TypeError, ValueError) as error:
        raise UsageError(f'an element of the sequence "{name}" is no array: {error}') from error
    wrong = [array.shape for array in arrays if array.ndim != rank]
    if wrong:
        raise UsageError(
            f'the elements of the sequence "{name}" have rank {rank} in this model, one has the '
            f"shape {list(wrong[0])}"
        )
    flat = [array.reshape(-1) for array in arrays]
    data = np.concatenate(flat) if flat else np.zeros(0, dtype)
    shapes = np.array([array.shape for array in arrays], np.int64).reshape(len(arrays), rank)
    return [*present, data, shapes]


def _dtype(port: Port) -> Any:
    from bridge.neutral.types import ELEMENTS

    return ELEMENTS[port.element].dtype


@keywords()
def unpack(source: Any, results: Mapping[str, Any]) -> dict[str, Any]:
    """Outputs of the ONNX model from those of its IR, by name: a sequence as a list of arrays, an
    absent optional as None. `source` as for `pack`, as are the errors; a UsageError also where
    results are missing."""
    boundary = Boundary.of(source)
    _require_mapping("the results", results)
    parts = {part for name, port in boundary.outputs.items() for part in port.parts(name)}
    unpacked = {name: value for name, value in results.items() if name not in parts}
    for name, port in boundary.outputs.items():
        missing = [part for part in port.parts(name) if part not in results]
        if missing:
            raise UsageError(
                f'the output "{name}" is made of {", ".join(port.parts(name))}; of these '
                f"{', '.join(missing)} is not among the results"
            )
        values = [np.asarray(results[part]) for part in port.parts(name)]
        unpacked[name] = _unpack(port, values)
    return unpacked


def _unpack(port: Port, values: list[np.ndarray]) -> Any:
    if port.optional and not values.pop(0).item():
        return None
    if port.kind == "tensor":
        return values[0]
    if port.kind == "elements":
        return values
    data, shapes = values
    result, start = [], 0
    for shape in shapes:
        dims = tuple(int(d) for d in shape if d >= 0)
        count = int(np.prod(dims, dtype=np.int64))
        result.append(data[start : start + count].reshape(dims))
        start += count
    return result


def _require_mapping(what: str, given: Any) -> None:
    if not isinstance(given, Mapping):
        raise UsageError(f"{what} are given by name, as a dict, not as a {type(given).__name__}")
