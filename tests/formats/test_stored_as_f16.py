"""IR with constants stored as f16 behind a Convert, as OpenVINO saves it by default."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import openvino
import pytest
from openvino import opset13 as op

import bridge
from tests.support.running import OnnxRuntime, OpenVino, assert_close

X = np.random.default_rng(0).standard_normal((1, 4, 8, 8)).astype(np.float32)
WEIGHTS = np.random.default_rng(1).standard_normal((4, 4, 3, 3)).astype(np.float32)


def convolution(folder: Path) -> Path:
    """A group convolution and a number for each channel, as OpenVINO saves them by default."""
    x = op.parameter([1, 4, 8, 8], np.float32, name="x")
    filters = op.constant(WEIGHTS.reshape(2, 2, 4, 3, 3)[:, :, :2].copy())
    y = op.group_convolution(x, filters, [1, 1], [1, 1], [1, 1], [1, 1])
    model = openvino.Model([op.result(op.add(y, op.constant(WEIGHTS[:1, :, :1, :1])))], [x], "m")
    openvino.save_model(model, folder / "m.xml")
    return folder / "m.xml"


def _size(tensor: onnx.TensorProto) -> int:
    return int(np.prod(tensor.dims))


def elements(model: onnx.ModelProto) -> list[int]:
    return [tensor.data_type for tensor in sorted(model.graph.initializer, key=_size)]


F16, F32 = onnx.TensorProto.FLOAT16, onnx.TensorProto.FLOAT


@pytest.mark.parametrize(("decompress", "stored"), [(False, F16), (True, F32)])
def test_weights_come_back(decompress: bool, stored: int, tmp_path: Path) -> None:
    """The weights come back in f16 behind a Cast alone, or plain."""
    xml, made = convolution(tmp_path), tmp_path / "m.onnx"
    bridge.convert(xml, made, decompress=decompress, external_data=True)
    model = onnx.load(made)
    assert elements(model) == [F32, stored]  # The bias, of four elements, is plain.
    operators = [node.op_type for node in model.graph.node]
    assert operators == (["Conv"] if decompress else ["Cast", "Conv"])
    assert_close(OnnxRuntime(made).run({"x": X}), OpenVino(xml).run([X]))


def test_onnx_is_decompressed_too(tmp_path: Path) -> None:
    made, plain = tmp_path / "m.onnx", tmp_path / "plain.onnx"
    bridge.convert(convolution(tmp_path), made)
    bridge.convert(made, plain, decompress=True)
    assert elements(onnx.load(plain)) == [F32] * 2
    assert_close(OnnxRuntime(plain).run({"x": X}), OnnxRuntime(made).run({"x": X}))


def test_ir_keeps_its_layers(tmp_path: Path) -> None:
    xml, copy = convolution(tmp_path), tmp_path / "copy.xml"
    bridge.convert(xml, copy)
    kinds = [
        [(layer.get_type_name(), layer.get_friendly_name()) for layer in model.get_ordered_ops()]
        for model in map(openvino.Core().read_model, (xml, copy))
    ]
    assert kinds[0] == kinds[1]


def test_there_and_back_is_stored_alike(tmp_path: Path) -> None:
    made, again, last = (tmp_path / name for name in ("m.onnx", "a.xml", "l.onnx"))
    bridge.convert(convolution(tmp_path), made)
    bridge.convert(made, again)
    bridge.convert(again, last)
    assert elements(onnx.load(last)) == elements(onnx.load(made))
    assert_close(OpenVino(again).run([X]), OnnxRuntime(made).run({"x": X}))


@pytest.mark.parametrize("softness", [0.0, 0.25])
def test_thresholds_of_non_max_suppression(softness: float, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    corners = rng.random((1, 6, 2), np.float32)
    boxes = np.concatenate([corners, corners + 0.5], 2).astype(np.float32)
    scores = rng.random((1, 1, 6), np.float32)
    first = op.parameter([1, 6, 4], np.float32, name="boxes")
    second = op.parameter([1, 1, 6], np.float32, name="scores")
    limits = [op.constant(np.float32(number)) for number in (0.3, 0.1, softness)]
    kept = op.non_max_suppression(first, second, op.constant(np.int64(3)), *limits)
    result = op.result(kept.output(0))
    openvino.save_model(openvino.Model([result], [first, second], "m"), tmp_path / "m.xml")
    assert "decompression" in (tmp_path / "m.xml").read_text()
    bridge.convert(tmp_path / "m.xml", tmp_path / "m.onnx")
    expected = OpenVino(tmp_path / "m.xml").run([boxes, scores])
    found = OnnxRuntime(tmp_path / "m.onnx").run({"boxes": boxes, "scores": scores})
    np.testing.assert_array_equal(found[0], expected[0][: len(found[0])])


def test_channels_behind_a_reduction(tmp_path: Path) -> None:
    """A quirk recognises a constant behind a Cast."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[N, 3, 4] x) => (float[N, 3] y)
        <float[1, 3] row = {0.5, -2, 30}, int64[1] last = {2}> {
          few = Cast <to = 10> (row)  wide = Cast <to = 1> (few)
          total = ReduceSum <keepdims = 0> (x, last)  y = Sub (wide, total) }"""
    )
    row = onnx.numpy_helper.from_array(np.float16([[0.5, -2, 30]]), "few")
    model.graph.initializer[0].CopyFrom(row)
    del model.graph.node[0]
    bridge.convert(model, tmp_path / "m.xml")
    x = np.random.default_rng(4).standard_normal((2, 3, 4)).astype(np.float32)
    assert_close(OpenVino(tmp_path / "m.xml").run([x]), OnnxRuntime(model).run({"x": x}))
