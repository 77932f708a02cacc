"""What an ONNX model of 32-bit floats gives in 64-bit ones: where engines round otherwise, it shows
which of them is off."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, helper, numpy_helper
from onnx.external_data_helper import uses_external_data

from bridge.check.engines import Engine, OnnxRuntime, Reference, Session
from bridge.check.loading import engine
from bridge.check.outputs import Comparison, Results
from bridge.errors import BridgeError

_LARGEST: dict[type[Engine], int] = {OnnxRuntime: 1 << 26, Reference: 1 << 20}
"""Bytes of a file that an engine computes in 64 bits; the reference evaluator is slow."""

_NARROW, _WIDE = TensorProto.FLOAT, TensorProto.DOUBLE

_NAMED = "output_datatype"
_TYPES = ("to", "dtype", _NAMED)
"""Attributes that name an element type."""

_UNNAMED = frozenset({"BlackmanWindow", "HammingWindow", "HannWindow", "MelWeightMatrix"})
"""Operators that make 32-bit floats where that attribute does not name another type."""


@dataclass(frozen=True)
class Wide:
    """What an engine gives in 64-bit floats; the results themselves are 32-bit ones again."""

    engine: str
    results: Results

    def __str__(self) -> str:
        return f"computed in 64 bits by {self.engine}"


class WideModel:
    """An ONNX file of which 64-bit floats are wanted. A file is written into `scratch` when it is
    first run."""

    def __init__(self, path: Path, comparison: Comparison, scratch: Path) -> None:
        self._path, self._comparison, self._scratch = path, comparison, scratch

    def run(self, feed: Results) -> Wide | None:
        """What the file gives for an input; None where no engine computes it so, or the file is
        large."""
        given = {name: _cast(value, np.float32, np.float64) for name, value in feed.items()}
        for name, session in self._sessions:
            try:
                found = session.run(self._comparison.renamed(given, session))
            except BridgeError:
                continue
            return Wide(name, {n: _cast(v, np.float64, np.float32) for n, v in found.items()})
        return None

    @cached_property
    def _sessions(self) -> list[tuple[str, Session]]:
        """The engines that take the wide model, with it."""
        path, found = self._path, list[tuple[str, Session]]()
        kinds = [kind for kind, largest in _LARGEST.items() if path.stat().st_size <= largest]
        if path.suffix.lower() != ".onnx" or not kinds:
            return found
        model = onnx.load(path, load_external_data=False)
        if any(uses_external_data(tensor) for tensor in model.graph.initializer):
            return found
        target = self._scratch / f"{path.stem}.wide.onnx"
        onnx.save(widened(model), target)
        for kind in kinds:
            with suppress(BridgeError):
                found.append((kind.name, engine(kind).load(target)))
        return found


def _cast(value: Any, given: type, wanted: type) -> Any:
    """A tensor of one type of floats in another; all else as it is."""
    if isinstance(value, list):
        return [_cast(item, given, wanted) for item in value]
    return value.astype(wanted) if isinstance(value, np.ndarray) and value.dtype == given else value


def widened(model: ModelProto) -> ModelProto:
    """A copy of the model in which 64-bit floats stand for 32-bit ones; the model itself is left.
    An operator that takes no 64-bit floats makes it a model that no engine loads."""
    wide = ModelProto()
    wide.CopyFrom(model)
    _widen_graph(wide.graph)
    for function in wide.functions:
        del function.value_info[:]
        _widen_nodes(function.node)
    return wide


def _widen_graph(graph: GraphProto) -> None:
    del graph.value_info[:]
    for info in (*graph.input, *graph.output):
        _widen_type(info.type)
    for tensor in graph.initializer:
        tensor.CopyFrom(_widened(tensor))
    _widen_nodes(graph.node)


def _widen_type(type: TypeProto) -> None:
    match type.WhichOneof("value"):
        case "tensor_type" if type.tensor_type.elem_type == _NARROW:
            type.tensor_type.elem_type = _WIDE
        case "sequence_type":
            _widen_type(type.sequence_type.elem_type)
        case "optional_type":
            _widen_type(type.optional_type.elem_type)


def _widened(tensor: TensorProto) -> TensorProto:
    if tensor.data_type != _NARROW:
        return tensor
    return numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name)


def _widen_nodes(nodes: Iterable[NodeProto]) -> None:
    for node in nodes:
        if node.op_type == "Constant":
            _widen_constant(node)
        if node.op_type == "ConstantOfShape" and not node.attribute:
            node.attribute.append(helper.make_attribute("value", _tensor([0.0], [1])))
        if node.op_type in _UNNAMED and all(a.name != _NAMED for a in node.attribute):
            node.attribute.append(helper.make_attribute(_NAMED, _NARROW))
        for attribute in node.attribute:
            if attribute.name in _TYPES and attribute.i == _NARROW:
                attribute.i = _WIDE
            if attribute.HasField("t"):
                attribute.t.CopyFrom(_widened(attribute.t))
            if attribute.HasField("tp"):
                _widen_type(attribute.tp)
            for graph in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
                _widen_graph(graph)


def _widen_constant(node: NodeProto) -> None:
    """Numbers of a Constant become a tensor of 64-bit floats."""
    for place, attribute in enumerate(node.attribute):
        if attribute.name in ("value_float", "value_floats"):
            single = attribute.name == "value_float"
            numbers = [attribute.f] if single else list(attribute.floats)
            tensor = _tensor(numbers, [] if single else [len(numbers)])
            node.attribute[place].CopyFrom(helper.make_attribute("value", tensor))


def _tensor(numbers: list[float], shape: list[int]) -> TensorProto:
    return helper.make_tensor("", _WIDE, shape, numbers)
