"""Numbers halfway between two integers, and their neighbours, round as in onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import bridge
from tests.support.running import OnnxRuntime, OpenVino

TYPES = {
    name: (getattr(TensorProto, name), low, high)
    for name, low, high in (
        ("UINT8", 0, 255), ("INT8", -128, 127), ("UINT16", 0, 65535), ("INT16", -32768, 32767),
        ("UINT4", 0, 15), ("INT4", -8, 7),
    )
}  # fmt: skip
FORMS = ("one scale", "an axis", "blocks", "a scale that is given")
COUNT = 100
SPECIAL = np.float32([0, -0.0, np.inf, -np.inf, 3e38, -3e38])


def _ties(random: np.random.Generator, scale: float, zero: int, low: int, high: int) -> np.ndarray:
    """Products of halves with the scale, their neighbours, and other numbers."""
    halves = random.integers(low - zero - 3, high - zero + 3, COUNT).astype(np.float32) + 0.5
    ties = (halves * np.float32(scale)).astype(np.float32)
    near = (ties.view(np.int32) + random.integers(-3, 4, COUNT)).astype(np.int32)
    return np.concatenate([ties, near.view(np.float32), SPECIAL])


def _parameters(
    random: np.random.Generator, form: str, low: int, high: int
) -> tuple[np.ndarray, ...]:
    """Data, scales and zero points for a type."""
    places = {"one scale": (), "blocks": (3, 2)}.get(form, (3,))
    scales = random.uniform(0.001, 1, places).astype(np.float32)
    zeros = random.integers(low, high + 1, places)
    drawn = [
        _ties(random, float(scale), int(zero), low, high)
        for scale, zero in zip(scales.reshape(-1), zeros.reshape(-1), strict=True)
    ]
    return np.stack(drawn).reshape(places[0] if places else 1, -1), scales, zeros


@pytest.mark.parametrize("form", FORMS)
def test_ties(form: str, tmp_path: Path) -> None:
    random = np.random.default_rng(FORMS.index(form))
    nodes, inputs, outputs, constants, feed = [], [], [], [], {}
    for type, (element, low, high) in TYPES.items():
        x, scales, zeros = _parameters(random, form, low, high)
        further = {"axis": 1, "block_size": x.shape[1] // 2} if form == "blocks" else {"axis": 0}
        names = [f"{name}_{type}" for name in ("x", "s", "z")]
        made = [f"q_{type}", f"y_{type}"]
        nodes.append(helper.make_node("QuantizeLinear", names, made[:1], **further))
        nodes.append(helper.make_node("Cast", made[:1], made[1:], to=TensorProto.INT32))
        sizes = [3, "b"] if form == "an axis" else ["a", "b"] if form == FORMS[0] else x.shape
        inputs.append(helper.make_tensor_value_info(names[0], TensorProto.FLOAT, sizes))
        outputs.append(helper.make_tensor_value_info(made[1], TensorProto.INT32, sizes))
        constants.append(helper.make_tensor(names[2], element, zeros.shape, zeros.reshape(-1)))
        feed[names[0]] = x
        if form == FORMS[-1]:
            inputs.append(helper.make_tensor_value_info(names[1], TensorProto.FLOAT, [3]))
            feed[names[1]] = scales
        else:
            constants.append(onnx.numpy_helper.from_array(scales, names[1]))
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    paths = [tmp_path / name for name in ("a.xml", "b.onnx", "c.xml")]
    for source, target in zip([model, *paths], paths, strict=False):
        bridge.convert(source, target)
    expected, back = (OnnxRuntime(m).run(feed) for m in (model, paths[1]))
    given = OpenVino(paths[0]).run(list(feed.values()))
    for name, *results in zip(TYPES, expected, given, back, strict=True):
        assert all(np.array_equal(results[0], result) for result in results), name
    operators = [node.op_type for node in onnx.load(paths[1]).graph.node]
    assert operators == [node.op_type for node in nodes]
    assert paths[2].read_bytes() == paths[0].read_bytes()
