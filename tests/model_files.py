"""Models of `roundtrip_models/` and seeded inputs for them, as their comments describe."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import openvino

FOLDER = Path(__file__).parents[1] / "roundtrip_models"
ONNX_FILES = sorted(p for p in FOLDER.iterdir() if p.suffix in (".onnxtxt", ".textproto"))
IR_FILES = sorted(FOLDER.glob("*.xml"))

INPUT_SETS = 8
_SIZES = (2, 3, 1, 4)
_FEED = re.compile(r"^\W*feed (\S+) (-?[\d.]+?)\.\.(-?[\d.]+)(?: -->)?$", re.MULTILINE)
_DIMS = re.compile(r"^\W*dims (\S+) = ([\d, ]+?)(?: -->)?$", re.MULTILINE)
_ONE_WAY = re.compile(r"^\W*one-way: ", re.MULTILINE)


@dataclass(frozen=True)
class Input:
    """A graph input: its dimensions are sizes, symbols, or None where nothing is known."""

    name: str
    dtype: np.dtype
    dims: tuple[int | str | None, ...]
    has_default: bool = False


def load_onnx(path: Path) -> onnx.ModelProto:
    """Reads a model in ONNX's text syntax or protobuf's."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The onnxtxt format is experimental")
        return onnx.load(path)


def onnx_inputs(model: onnx.ModelProto) -> list[Input]:
    """The inputs of an ONNX graph, in order."""
    defaults = {tensor.name for tensor in model.graph.initializer}
    return [
        Input(
            value.name,
            np.dtype(onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)),
            tuple(_onnx_dim(dim) for dim in value.type.tensor_type.shape.dim),
            value.name in defaults,
        )
        for value in model.graph.input
    ]


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


def feeds(path: Path, inputs: list[Input], index: int) -> dict[str, np.ndarray]:
    """The input set `index` of the model at `path`, by input name."""
    text = path.read_text(encoding="utf-8")
    ranges = {name: (float(low), float(high)) for name, low, high in _FEED.findall(text)}
    sizes = {name: [int(s) for s in listed.split(",")] for name, listed in _DIMS.findall(text)}
    symbols: list[int | str | None] = []
    rng = np.random.default_rng(index)
    switches = 0
    result = {}
    for item in inputs:
        shape = []
        for dim in item.dims:
            if isinstance(dim, int):
                shape.append(dim)
                continue
            if dim is None or dim not in symbols:
                symbols.append(dim)
            choices = sizes.get(dim or "", _SIZES)
            shape.append(choices[(index + symbols.index(dim)) % len(choices)])
        if item.dtype == np.bool_ and np.prod(shape) == 1:
            values = np.full(shape, index >> switches & 1)
            switches += 1
        elif item.dtype == np.bool_:
            values = rng.integers(0, 2, shape)
        elif np.issubdtype(item.dtype, np.integer):
            low, high = ranges.get(item.name, (0, 3))
            values = rng.integers(int(low), int(high) + 1, shape)
        else:
            values = rng.uniform(*ranges.get(item.name, (-2, 2)), shape)
        result[item.name] = np.asarray(values).astype(item.dtype)
    return result


def is_one_way(path: Path) -> bool:
    """Whether the model says that its inputs cannot reach both branches."""
    return bool(_ONE_WAY.search(path.read_text(encoding="utf-8")))


def _onnx_dim(dim: onnx.TensorShapeProto.Dimension) -> int | str | None:
    return dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None
