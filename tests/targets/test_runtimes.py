"""A model of ONNX keeps operators without a kernel in onnxruntime. Models of IR get other forms;
`tests/operators` runs them."""

import onnx
import onnx.parser
import pytest

import bridge

HEAD = '<ir_version: 9, opset_import: ["" : 18]> '

KEPT = {
    "a sum in f16": """g (float16[4] x, int64[2] i, float16[2] u) => (float16[4] y) {
        y = ScatterElements <reduction = "add"> (x, i, u) }""",
    "values of f64": """g (int64[3] i, double[2] v) => (double[3, 4] y) {
        d = Constant <value = int64 {4}> ()
        y = OneHot (i, d, v) }""",
    "exponents of bytes": """g (float[4] x, uint8[4] e) => (float[4] y) { y = Pow (x, e) }""",
    "dilations and SAME": """g (float[1, 1, 9, 9] x, float[1, 1, 3, 3] w) => (float[1, 1, 9, 9] y) {
        y = Conv <auto_pad = "SAME_UPPER", dilations = [2, 2]> (x, w) }""",
}


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT)
def test_a_model_of_onnx_keeps_its_operators(text: str) -> None:
    model = onnx.parser.parse_model(HEAD + text)
    written = bridge.to_onnx(model, opset=18)
    assert sorted(n.op_type for n in written.graph.node if n.op_type != "Constant") == sorted(
        n.op_type for n in model.graph.node if n.op_type != "Constant"
    )
