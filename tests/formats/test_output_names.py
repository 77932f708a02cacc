"""The names of outputs: each output keeps its own name alone in an IR that is read and compiled,
and again in ONNX."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import openvino
import pytest

import bridge

MODELS = Path(__file__).parents[2] / "roundtrip_models"

CASES = {
    "an Identity of a value": "(float[2] y) { h = Relu (x) y = Identity (h) }",
    "a Dropout of a value": "(float[2] y) { h = Relu (x) y = Dropout (h) }",
    "two of one value": "(float[2] b, float[2] a) { b = Relu (x) a = Identity (b) }",
    "three of one value": "(float[2] b, float[2] a, float[2] c)"
    " { h = Relu (x) b = Identity (h) a = Dropout (h) c = Identity (a) }",
    "a constant": "(float[2] y, float[2] r)"
    " { k = Constant <value = float[2] {1, 2}> () y = Identity (k) r = Relu (x) }",
    "two of one constant": "(float[2] y, float[2] a, float[2] r)"
    " { y = Constant <value = float[2] {1, 2}> () a = Identity (y) r = Relu (x) }",
    "an input": "(float[2] y, float[2] r) { y = Identity (x) r = Relu (x) }",
    "an input twice": "(float[2] y, float[2] a) { y = Identity (x) a = Identity (x) }",
    "an input under its name": "(float[2] x, float[2] a) { a = Identity (x) }",
    "a constant of a body": "(float[2] r, float[2] y) { q = Constant <value = float[2] {1, 2}> ()"
    " go = Constant <value = bool {1}> () s = ReduceSum <keepdims = 0> (x) c = Cast <to = 9> (s)"
    " r = If (c) <then_branch = t () => (float[2] a) { a = Add (x, q) },"
    " else_branch = e () => (float[2] b) { b = Identity (q) }> y = Identity (q) }",
}


def test_the_flag_of_an_optional_has_its_own_name(tmp_path: Path) -> None:
    bridge.convert(MODELS / "optional_output.onnxtxt", tmp_path / "m.xml")
    compiled = openvino.compile_model(tmp_path / "m.xml", "CPU")
    assert [value.get_names() for value in compiled.outputs] == [{"maybe.present"}, {"maybe"}]
    assert [value.get_names() for value in compiled.inputs] == [{"choose"}, {"x"}]


@pytest.mark.parametrize("what", CASES)
def test_outputs_answer_to_their_own_names(what: str, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : 19]> g (float[2] x) => {CASES[what]}'
    )
    onnx.checker.check_model(model, full_check=True)
    own = [value.name for value in model.graph.output]
    xml, copy, back, again = (tmp_path / name for name in ("m.xml", "c.xml", "b.onnx", "a.onnx"))
    bridge.convert(model, xml)
    bridge.convert(xml, copy)
    x = np.float32([1, -2])
    for path in (xml, copy):
        read = openvino.Core().read_model(path)
        compiled = openvino.compile_model(read, "CPU")
        assert [value.any_name for value in read.outputs] == own
        assert [value.any_name for value in compiled.outputs] == own
        assert [value.get_names() for value in read.inputs] == [{"x"}]
        assert [value.get_names() for value in compiled.inputs] == [{"x"}]
        results = compiled({"x": x})
        for name, expected in zip(own, expected_of(model, x), strict=True):
            np.testing.assert_array_equal(results[name], expected)
    bridge.convert(xml, back)
    assert [value.name for value in onnx.load(back).graph.output] == own
    bridge.convert(back, copy)
    bridge.convert(copy, again)
    assert again.read_bytes() == back.read_bytes()


def expected_of(model: onnx.ModelProto, x: np.ndarray) -> list[np.ndarray]:
    import onnxruntime

    session = onnxruntime.InferenceSession(model.SerializeToString())
    return list(session.run(None, {"x": x}))


def test_a_result_of_several_names_keeps_them(tmp_path: Path) -> None:
    x = openvino.opset13.parameter([2], np.float32, name="x")
    y = openvino.opset13.relu(x)
    y.output(0).set_names({"a", "b"})
    result = openvino.opset13.result(y)
    openvino.save_model(openvino.Model([result], [x], "m"), tmp_path / "m.xml")
    bridge.convert(tmp_path / "m.xml", tmp_path / "c.xml")
    read = openvino.Core().read_model(tmp_path / "c.xml")
    assert read.output(0).get_names() == {"a", "b"}
