"""`convert --check` and `check` say the same of the same files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import openvino
import pytest

from bridge.check import check
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.operators import legalizations, load_all
from tests.support.command_line import bridge as command

HEAD = '<ir_version: 9, opset_import: ["": 21]> m '

TEXTS = {
    "an If": """(float[n] x, bool c) => (float[n] y) {
        y = If (c) <then_branch = t () => (float[n] a) { a = Relu (x) },
                    else_branch = e () => (float[n] b) { b = Neg (x) }> }""",
    "a sequence": "(seq(float[n]) s, int64 i) => (float[n] y) { y = SequenceAt (s, i) }",
    "QOperators": """(float[4,16] x) => (float[4,8] y)
        <float s = {0.0437}, uint8 z = {128}, float t = {0.0121}, int8 u = {0}, float r = {0.31},
         int8[16,8] w = {}> {
        q = QuantizeLinear (x, s, z)
        p = QLinearMatMul (q, s, z, w, t, u, r, z)
        y = DequantizeLinear (p, r, z) }""",
    "a wrong rule": "(float[3,3] x) => (float[3,3] y) { y = Flatten (x) }",
    "a Loop": """(float[n] x, int64 k) => (float[n] y) {
        on = Constant <value = bool {1}> ()
        y = Loop (k, on, x) <body = b (int64 i, bool c, float[n] s) => (bool d, float[n] u) {
          d = Identity (c) u = Add (s, x) }> }""",
}  # fmt: skip


def written(name: str, folder: Path) -> Path:
    if name == "FakeQuantize":
        op = openvino.opset13
        x = op.parameter([256, 48], np.float32, name="x")
        weights = np.random.default_rng(0).normal(size=(48, 48)).astype(np.float32)
        low, high = np.float32(-10), np.float32(9.92)
        y = op.fake_quantize(op.matmul(x, weights, False, False), low, high, low, high, 256)
        openvino.save_model(openvino.Model([y], [x]), folder / "m.xml", False)
        return folder / "m.xml"
    model = onnx.parser.parse_model(HEAD + TEXTS[name])
    for tensor in model.graph.initializer:
        if tensor.name == "w":
            drawn = np.random.default_rng(0).integers(-99, 99, tuple(tensor.dims)).astype(np.int8)
            tensor.CopyFrom(onnx.numpy_helper.from_array(drawn, "w"))
    onnx.save(model, folder / "m.onnx")
    return folder / "m.onnx"


def wrong_rule(b: Builder, node: Node) -> Value:
    return b.op("Reshape", b.op("Transpose", node.inputs[0]), [0, -1])


@pytest.mark.parametrize("name", [*TEXTS, "FakeQuantize"])
def test_one_verdict(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "a wrong rule":
        load_all()
        monkeypatch.setitem(legalizations, ("ir", "Flatten"), wrong_rule)
    model = written(name, tmp_path)
    other = tmp_path / ("n.onnx" if model.suffix == ".xml" else "n.xml")
    converted = command("convert", model, other, "--check", "--json")
    checked = command("check", model, other, "--json")
    # OpenVINO's plugin moves the zero point of the FakeQuantize, which is within its noise.
    assert converted.code == checked.code == int(name == "a wrong rule")
    pair = json.loads(checked.out)
    assert json.loads(converted.out)["check"] == pair

    alone = check(model).as_json()
    label = pair["versions"][1]["label"]
    assert alone["verdict"] == pair["verdict"]
    assert alone["inputs"] == pair["inputs"]
    assert str(alone["fault"]).replace(alone["versions"][1]["label"], label) == str(pair["fault"])
