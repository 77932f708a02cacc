"""The form of an ONNX model's sequences, optionals, maps, strings and tensors of open rank at the
boundary of its IR.

IR only has tensors of numbers with known rank. `pack` turns lists, None and strings into the inputs
of such an IR. `unpack` turns its outputs back into lists, None, strings, arrays and dicts. The IR's
`rt_info` records the original inputs and outputs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bridge.errors import UsageError
from bridge.library.label_codec import maps_of, places_of, words_at
from bridge.limits import limited, read_limits
from bridge.neutral.arrays import zeros
from bridge.neutral.types import size_of
from bridge.options.keywords import keywords
from bridge.records.boundary import (
    BOUNDARY,
    CONSTANTS,
    MAP_KEYS,
    VOCABULARIES,
    BoundaryRecord,
    BoundaryValue,
    LabelRecord,
)


@dataclass
class Boundary(BoundaryRecord):
    """A record from a file or a model; see `of`. `constants` are the inputs of the ONNX model that
    became constants. `vocabularies` and `map_keys` are the lists of labels for tensors that stand
    for strings and maps.

    >>> list(bridge.Boundary.of("sequence.xml").inputs)
    """

    constants: tuple[str, ...] = ()
    vocabularies: LabelRecord = field(default_factory=lambda: LabelRecord({}, {}))
    map_keys: LabelRecord = field(default_factory=lambda: LabelRecord({}, {}))

    @classmethod
    def of(cls, source: Any) -> Boundary:
        """The boundary of an `.xml`, an `openvino.Model`, a `Model`, or of `metadata`.
        InvalidModelError if it cannot be read, UsageError for a source of another kind."""
        if isinstance(source, Boundary):
            return source
        if hasattr(source, "get_rt_info"):
            keys = [entry.key for entry in (BOUNDARY, CONSTANTS, VOCABULARIES, MAP_KEYS)]
            entries = {key: ["bridge", "metadata", key] for key in keys}
            return cls._from(
                {
                    key: source.get_rt_info(entry).astype(str)
                    for key, entry in entries.items()
                    if source.has_rt_info(entry)
                }
            )
        if isinstance(source, str | os.PathLike):
            from bridge.library.api import load

            path = Path(source)
            if path.suffix.lower() != ".xml":
                raise UsageError(f"{path}: only an .xml has a packed boundary")
            source = load(path)
        metadata = source if isinstance(source, Mapping) else getattr(source, "metadata", None)
        if not isinstance(metadata, Mapping):
            raise UsageError(
                f"a boundary belongs to an .xml, an openvino.Model or a Model, not to {source!r}"
            )
        return cls._from(metadata)

    @classmethod
    def _from(cls, metadata: Mapping[str, str]) -> Boundary:
        record = BOUNDARY.read(metadata) or BoundaryRecord({}, {}, [])
        constants = tuple(CONSTANTS.read(metadata) or ())
        labels = (entry.read(metadata) or LabelRecord({}, {}) for entry in (VOCABULARIES, MAP_KEYS))
        return cls(record.inputs, record.outputs, record.input_order, constants, *labels)

    def __bool__(self) -> bool:
        """Whether any input or output is packed."""
        lists = (self.vocabularies, self.map_keys)
        return bool(self.inputs or self.outputs or any(lists))


@keywords()
def pack(source: Any, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Inputs of an IR from the inputs of its original ONNX model.

    `source` is the `.xml`, the `openvino.Model` read from it or made by `to_openvino`, or its
    Boundary. In `feeds` a sequence is a list of arrays and an absent optional is None; a plain
    tensor stays as it is. Sequences become `[total]` and `[length, rank]`. Strings become their
    places in the model's vocabulary, i64; the last place stands for all other strings.

    Raises UsageError for values of another kind than the input's, InvalidModelError for an IR
    that cannot be read.

    >>> feeds = {"parts": [numpy.ones((1, 2), "f4"), numpy.zeros((3, 2), "f4")], "at": 0}
    >>> bridge.pack("sequence.xml", feeds)  # parts.data and parts.shapes
    """
    boundary = Boundary.of(source)
    _require_mapping("the inputs", feeds)
    packed: dict[str, np.ndarray] = {}
    with limited(read_limits(None)):
        for name, value in feeds.items():
            if name in boundary.constants:
                raise UsageError(
                    f'the input "{name}" became a constant, its default value; to feed it, convert '
                    "the model with its shape given, by `input_shapes`"
                )
            recorded = boundary.inputs.get(name)
            if recorded is None:
                packed[name] = value
            else:
                packed.update(zip(recorded.parts(name), _pack(name, recorded, value), strict=True))
        for name, words in boundary.vocabularies.inputs.items():
            if name in packed:
                packed[name] = places_of(name, packed[name], words)
    return packed


def _pack(name: str, recorded: BoundaryValue, value: Any) -> list[np.ndarray]:
    present = [np.array(value is not None)] if recorded.optional else []
    if value is None and not recorded.optional:
        raise UsageError(f'the input "{name}" is no optional, so it cannot be None')
    dtype, rank = recorded.type.dtype, recorded.rank
    if recorded.kind == "tensor":
        what = f'the input "{name}", which is absent'
        return [
            *present,
            zeros(recorded.dummy, dtype, what) if value is None else np.asarray(value),
        ]
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


@keywords()
def unpack(source: Any, results: Mapping[str, Any]) -> dict[str, Any]:
    """Outputs of the ONNX model from the outputs of its IR, by name. A sequence is a list of
    arrays, an absent optional None, a tensor of open rank an array. Strings are an array of
    objects, maps a list of dicts. `source` and errors are the same as for `pack`; also a UsageError
    if results are missing.

    >>> results = {"y.data": numpy.ones(6, "f4"), "y.shapes": numpy.array([[1, 2], [2, 2]])}
    >>> bridge.unpack("gives_sequence.xml", results)  # y: arrays of 1 and 2 rows
    """
    boundary = Boundary.of(source)
    _require_mapping("the results", results)
    results = dict(results)
    for name, words in boundary.vocabularies.outputs.items():
        if name in results:
            results[name] = words_at(name, results[name], words)
    parts = {part for name, recorded in boundary.outputs.items() for part in recorded.parts(name)}
    unpacked = {name: value for name, value in results.items() if name not in parts}
    for name, recorded in boundary.outputs.items():
        missing = [part for part in recorded.parts(name) if part not in results]
        if missing:
            raise UsageError(
                f'the output "{name}" is made of {", ".join(recorded.parts(name))}; of these '
                f"{', '.join(missing)} is not among the results"
            )
        values = [np.asarray(results[part]) for part in recorded.parts(name)]
        unpacked[name] = _unpack(recorded, values)
    for name, keys in boundary.map_keys.outputs.items():
        if name in unpacked:
            unpacked[name] = maps_of(name, unpacked[name], keys)
    return unpacked


def _unpack(recorded: BoundaryValue, values: list[np.ndarray]) -> Any:
    if recorded.optional and not values.pop(0).item():
        return None
    if recorded.kind == "tensor":
        return values[0]
    if recorded.kind == "open":
        data, shape = values
        if size_of(shape.tolist()) != data.size:
            raise UsageError(f"the shape {shape.tolist()} does not hold {data.size} elements")
        return data.reshape(shape)
    if recorded.kind == "elements":
        return values
    data, shapes = values
    result, start = [], 0
    for shape in shapes:
        dims = tuple(int(d) for d in shape if d >= 0)
        count = size_of(dims)
        if start + count > data.size:
            raise UsageError(f"the shapes {shapes.tolist()} do not hold {data.size} elements")
        result.append(data[start : start + count].reshape(dims))
        start += count
    return result


def _require_mapping(what: str, given: Any) -> None:
    if not isinstance(given, Mapping):
        raise UsageError(f"{what} are given by name, as a dict, not as a {type(given).__name__}")
