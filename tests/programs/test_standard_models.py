"""The standard's whole models, there and back: exports of PyTorch, sequences, and well-known
networks with computed weights. The expected outputs come with the models, else from onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import bridge
from tests.support.running import OnnxRuntime, OpenVino, flat
from tests.support.sample import spread

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
FILES = [*DATA.glob("simple/*/model.onnx"), *DATA.glob("pytorch-*/*/model.onnx")]
MODELS = {path.parent.name: path for path in FILES}
LIGHT = {path.stem: path for path in DATA.glob("light/*.onnx")}
"""Networks with hundreds of the same few operators."""
MODELS |= {name: LIGHT[name] for name in spread(sorted(LIGHT), 3, lambda name: "light")}

REFUSED = {
    "Gradient": "it differentiates the graph around it",
    "StringNormalizer": "no operators on strings",
}
"""Operators that make a conversion refuse a model, and why."""

BEYOND_F32 = {
    "test_operator_add_broadcast", "test_operator_add_size1_right_broadcast",
    "test_operator_add_size1_singleton_broadcast", "test_operator_addconstant",
}  # fmt: skip
"""Models with inputs of f64 that f32 cannot hold; OpenVINO's CPU plugin computes in f32."""


@pytest.mark.parametrize("name", sorted(MODELS))
def test_there_and_back(name: str, tmp_path: Path) -> None:
    path = MODELS[name]
    model = onnx.load(path)
    refused = {node.op_type for node in model.graph.node} & set(REFUSED)
    if refused:
        with pytest.raises(bridge.UnsupportedError, match=REFUSED[refused.pop()]):
            bridge.convert(path, tmp_path / "there.xml")
        return
    feed, expected = _data(path, model)
    there, back = tmp_path / "there.xml", tmp_path / "back.onnx"
    bridge.convert(path, there)
    bridge.convert(there, back)
    again = OnnxRuntime(back)
    kept = {item.name for item in again.session.get_inputs()}
    _assert_same(again.run({name: feed[name] for name in feed if name in kept}), expected)
    found = OpenVino(there).run_packed(bridge.Boundary.of(there), feed)
    outputs = [found[output.name] for output in model.graph.output]
    if name in BEYOND_F32:
        assert [x.shape for x in outputs] == [x.shape for x in expected]
    else:
        _assert_same(outputs, expected)


def test_models_are_there() -> None:
    assert len(MODELS) >= 140
    assert set(MODELS) >= BEYOND_F32


def _data(path: Path, model: onnx.ModelProto) -> tuple[dict[str, Any], list[Any]]:
    """Inputs by name, and expected outputs."""
    constants = {item.name for item in model.graph.initializer}
    inputs = [item for item in model.graph.input if item.name not in constants]
    folder = path.parent / "test_data_set_0"
    if folder.is_dir():
        feed = {x.name: _read(folder / f"input_{i}.pb", x) for i, x in enumerate(inputs)}
        outputs = enumerate(model.graph.output)
        return feed, [_read(folder / f"output_{i}.pb", x) for i, x in outputs]
    rng = np.random.default_rng(0)
    feed = {
        x.name: rng.uniform(size=[d.dim_value for d in x.type.tensor_type.shape.dim]).astype("f4")
        for x in inputs
    }
    return feed, OnnxRuntime(path).run(feed)


def _read(path: Path, info: onnx.ValueInfoProto) -> Any:
    data = path.read_bytes()
    if info.type.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def _assert_same(actual: list[Any], expected: list[Any]) -> None:
    """Within the tolerances of the standard's own runner."""
    for got, want in zip(flat(actual), flat(expected), strict=True):
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-7)
