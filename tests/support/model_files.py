"""Models of `roundtrip_models/` and seeded inputs for them, as their comments describe."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino

from bridge.files import TEXT_SUFFIXES

FOLDER = Path(__file__).parents[2] / "roundtrip_models"
ONNX_FILES = sorted(p for p in FOLDER.iterdir() if p.suffix in TEXT_SUFFIXES)
IR_FILES = sorted(FOLDER.glob("*.xml"))

INPUT_SETS = 8
_SIZES = (2, 3, 1, 4)
_LENGTHS = (2, 1, 3)
"""Lengths of sequences, in turn."""
_FEED = re.compile(r"^\W*feed (\S+) (-?[\d.]+?)\.\.(-?[\d.]+)(?: -->)?$", re.MULTILINE)
_DIMS = re.compile(r"^\W*dims (\S+) = ([\d, ]+?)(?: -->)?$", re.MULTILINE)
_ONE_WAY = re.compile(r"^\W*one-way: ", re.MULTILINE)


@dataclass(frozen=True)
class Input:
    """A graph input. A dimension is a size, a symbol, or None if it is unknown. The dimensions of a
    sequence describe its elements."""

    name: str
    dtype: np.dtype
    dims: tuple[int | str | None, ...]
    has_default: bool = False
    is_sequence: bool = False
    is_optional: bool = False


def load_onnx(path: Path) -> onnx.ModelProto:
    """Reads a model in ONNX's text syntax or protobuf's."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The onnxtxt format is experimental")
        return onnx.load(path)


def onnx_inputs(model: onnx.ModelProto) -> list[Input]:
    """The inputs of an ONNX graph, in order."""
    defaults = {tensor.name for tensor in model.graph.initializer}
    return [_onnx_input(value, defaults) for value in model.graph.input]


def _onnx_input(value: onnx.ValueInfoProto, defaults: set[str]) -> Input:
    type = value.type
    is_optional = type.HasField("optional_type")
    type = type.optional_type.elem_type if is_optional else type
    is_sequence = type.HasField("sequence_type")
    type = type.sequence_type.elem_type if is_sequence else type
    return Input(
        value.name,
        np.dtype(onnx.helper.tensor_dtype_to_np_dtype(type.tensor_type.elem_type)),
        tuple(_onnx_dim(dim) for dim in type.tensor_type.shape.dim),
        value.name in defaults,
        is_sequence,
        is_optional,
    )


def ir_inputs(model: openvino.Model) -> list[Input]:
    """The parameters of an IR model, in order, under the name of their layer."""
    return [
        Input(
            parameter.get_friendly_name(),
            np.dtype(parameter.get_element_type().to_dtype()),
            tuple(
                dim.get_length() if dim.is_static else dim.get_min_length() or None
                for dim in parameter.get_partial_shape()
            ),
        )
        for parameter in model.get_parameters()
    ]


def feeds(path: Path, inputs: list[Input], index: int) -> dict[str, Any]:
    """The input set `index` of the model at `path`, by input name. Sequences are lists of arrays.
    An optional is absent (None) in each third set."""
    feeder = _Feeder(path.read_text(encoding="utf-8"), index)
    return {item.name: feeder.feed(item) for item in inputs}


class _Feeder:
    """Makes the input set `index` of the model in `text`; comments of the text give ranges and
    sizes."""

    def __init__(self, text: str, index: int) -> None:
        self.index = index
        self.ranges = {n: (float(low), float(high)) for n, low, high in _FEED.findall(text)}
        self.sizes = {n: [int(s) for s in listed.split(",")] for n, listed in _DIMS.findall(text)}
        self.symbols: list[int | str | None] = []
        self.rng = np.random.default_rng(index)
        self.switches = 0

    def feed(self, item: Input) -> Any:
        """The value of one input; call it in the order of the inputs."""
        if item.is_optional and self.index % 3 == 2:
            return None
        if item.is_sequence:
            turns = range(self.index, self.index + _LENGTHS[self.index % len(_LENGTHS)])
            return [self._values(item, self._shape(item, turn)) for turn in turns]
        shape = self._shape(item, self.index)
        if item.dtype == np.bool_ and np.prod(shape) == 1:
            self.switches += 1
            return np.full(shape, bool(self.index >> (self.switches - 1) & 1))
        return self._values(item, shape)

    def _shape(self, item: Input, turn: int) -> list[int]:
        shape = []
        for dim in item.dims:
            if isinstance(dim, int):
                shape.append(dim)
                continue
            if dim is None or dim not in self.symbols:
                self.symbols.append(dim)
            choices = self.sizes.get(dim or "", _SIZES)
            shape.append(choices[(turn + self.symbols.index(dim)) % len(choices)])
        return shape

    def _values(self, item: Input, shape: list[int]) -> np.ndarray:
        if item.dtype == np.bool_:
            return self.rng.integers(0, 2, shape).astype(item.dtype)
        if np.issubdtype(item.dtype, np.integer):
            low, high = self.ranges.get(item.name, (0, 3))
            if item.name in self.ranges and np.prod(shape) == 1:
                return np.full(shape, low + self.index % (high - low + 1)).astype(item.dtype)
            return np.asarray(self.rng.integers(int(low), int(high) + 1, shape)).astype(item.dtype)
        values = self.rng.uniform(*self.ranges.get(item.name, (-2, 2)), shape)
        return np.asarray(values).astype(item.dtype)


def is_one_way(path: Path) -> bool:
    """Whether the model says that its inputs cannot reach both branches."""
    return bool(_ONE_WAY.search(path.read_text(encoding="utf-8")))


def _onnx_dim(dim: onnx.TensorShapeProto.Dimension) -> int | str | None:
    return dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None
