"""Each operator of the standard comes back from IR as the one node that it was. An operator that a
rule expands has a record (the trait `recorded`) or a pattern."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import openvino
import pytest
from onnx import helper, numpy_helper
from onnx.backend.test.loader import load_model_tests

import bridge

CASES = 2
"""The cases of each operator that run: the first ones with a single node."""

OTHERWISE = {
    "Constant": "it is a constant, not a node",
    "Shape": "a shape that is known is a constant",
    "Size": "a size that is known is a constant",
    "ConstantOfShape": "elements that are known are a constant",
    "If": "its branches are known",
    "Dropout": "without training it is Identity",
    "OptionalGetElement": "of a tensor it is Identity",
    "OptionalHasElement": "of a tensor the answer is known",
    "RegexFullMatch": "of no strings the result is known",
    "SequenceMap": "its body becomes a Loop",
    "Loop": "its trip count is known",
    "SplitToSequence": "its parts are values of their own",
    "Max": "of one input it is Identity",
    "Min": "of one input it is Identity",
    "Sum": "of one input it is Identity",
    "Attention": "engines round f16 at different places",
    "Identity": "of an optional it is a pair of values",
    "DequantizeLinear": "only integers that are constants are of few bits in IR",
    "QuantizeLinear": "IR has no 8-bit floats that saturate",
    "Bernoulli": "it becomes a comparison with RandomUniform, which IR has",
    "LayerNormalization": "its statistics over all axes are products and sums",
    "BatchNormalization": "in training, its statistics are of the batch",
    "Split": "its parts may have any size",
    "GRU": "its layout is in Transposes around it",
    "LSTM": "its layout is in Transposes around it",
    "RNN": "its layout is in Transposes around it",
    "MaxUnpool": "onnxruntime is wrong with an output_shape",
    "MeanVarianceNormalization": "onnx refuses a model in which it has its default axes",
    "Trilu": "of integers and a computed diagonal it is a selection",
    "Tile": "its repeats are computed",
    "TopK": "of u64 it runs in i64, for which onnxruntime has a kernel",
    "EyeLike": "of known sizes it is a constant",
    "ai.onnx.ml::LabelEncoder": "strings of a known vocabulary are places in it",
}
"""Operators that come back in another form, in one of the cases, with the reason."""


def cases() -> dict[str, list[onnx.ModelProto]]:
    found: dict[str, list[onnx.ModelProto]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tests = load_model_tests(kind="node")
    for test in tests:
        if len(test.model.graph.node) == 1 and not test.name.endswith("_expanded"):
            (node,) = test.model.graph.node
            op = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
            found.setdefault(op, []).append(test.model)
    return {op: models[:CASES] for op, models in found.items()}


def test_comes_back_as_one_node(tmp_path: Path) -> None:
    """A model that no IR holds is refused."""
    others = {}
    for op, models in cases().items():
        for model in models if op not in OTHERWISE else ():
            try:
                bridge.convert(model, tmp_path / "a.xml")
                bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx", opset=opset_of(model))
            except bridge.BridgeError:
                continue
            back = [node.op_type for node in onnx.load(tmp_path / "b.onnx").graph.node]
            if back != [op.rpartition("::")[2]]:
                others[op] = back
    assert not others


@pytest.mark.parametrize("in_steps", [False, True])
@pytest.mark.parametrize("hidden", [4, 160])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(
    ("op", "gates", "outputs"),
    [
        *(
            (op, n, outputs)
            for op, n in (("GRU", 3), ("LSTM", 4), ("RNN", 1))
            for outputs in (["y"], ["", "h"], ["y", "h"])
        ),
        *(("LSTM", 4, outputs) for outputs in (["", "", "c"], ["y", "", "c"], ["y", "h", "c"])),
    ],
    ids=str,
)
def test_layer_with_lengths_comes_back(
    op: str,
    gates: int,
    outputs: list[str],
    direction: str,
    hidden: int,
    in_steps: bool,
    tmp_path: Path,
) -> None:
    """A recurrent layer with lengths and open sizes, which OpenVINO needs in another form. Its
    steps are a Loop if it has peepholes or activations that IR lacks."""
    ways, rng = 1 + (direction == "bidirectional"), np.random.default_rng(0)
    shapes = {
        "w": (gates * hidden, hidden),
        "r": (gates * hidden, hidden),
        "b": (2 * gates * hidden,),
        "p": (3 * hidden,),
    }
    weights = [
        numpy_helper.from_array(rng.normal(size=(ways, *shape)).astype(np.float32), name)
        for name, shape in shapes.items()
    ]
    inputs = [
        helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["t", "n", hidden]),
        helper.make_tensor_value_info("l", onnx.TensorProto.INT32, ["n"]),
    ]
    given = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
        for name in outputs
        if name
    ]
    node = helper.make_node(
        op, ["x", "w", "r", "b", "l"], outputs, direction=direction, hidden_size=hidden
    )
    if in_steps and op == "LSTM":
        node.input.extend(["", "", "p"])
    elif in_steps:
        names = ["Softsign", "Elu"][: 1 + (op == "GRU")] * ways
        node.attribute.append(helper.make_attribute("activations", names))
    graph = helper.make_graph([node], "g", inputs, given, weights)
    opset = [helper.make_opsetid("", 16)]
    bridge.convert(helper.make_model(graph, opset_imports=opset), tmp_path / "a.xml")
    if in_steps:  # OpenVINO writes the constants in another order.
        openvino.save_model(
            openvino.Core().read_model(tmp_path / "a.xml"), tmp_path / "s.xml", False
        )
    bridge.convert(tmp_path / ("s.xml" if in_steps else "a.xml"), tmp_path / "b.onnx")
    assert [node.op_type for node in onnx.load(tmp_path / "b.onnx").graph.node] == [op]


SCALED = """<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]>
    g (float16[n, 32] x) => (float16[n, 2] y) <uint8[2, 1, 16] w = {
    0, 17, 34, 51, 68, 85, 102, 119, 136, 153, 170, 187, 204, 221, 238, 255,
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, float16[2] s = {14336, 13312}> {
    y = com.microsoft.MatMulNBits <K = 32, N = 2, bits = 4, block_size = 32> (x, w, s) }"""
VECTORS = """<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 3]>
    g (float[n, 2] x) => (int64[n] y, float[n, 3] p) {
    y, p = ai.onnx.ml.SVMClassifier <kernel_type = "LINEAR", kernel_params = [0.1, 0.0, 3.0],
    vectors_per_class = [1, 1, 1], support_vectors = [1.0, 2.0, 3.0, -1.0, 0.5, 0.2],
    coefficients = [1.0, -1.0, 0.5, 1.0, 0.3, -0.5], rho = [0.1, 0.2, 0.3], post_transform = "NONE",
    prob_a = [-1.0, -1.0, -1.0], prob_b = [0.1, 0.1, 0.1], classlabels_ints = [0, 1, 2]> (x) }"""


@pytest.mark.parametrize("text", [SCALED, VECTORS], ids=["scales of f16", "in a Loop"])
def test_comes_back_alone(text: str, tmp_path: Path) -> None:
    """A constant that is stored in f16, and a Loop that starts without a condition."""
    model = onnx.parser.parse_model(text)
    bridge.convert(model, tmp_path / "a.xml")
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx")
    back = [node.op_type for node in onnx.load(tmp_path / "b.onnx").graph.node]
    assert back == [node.op_type for node in model.graph.node]


def opset_of(model: onnx.ModelProto) -> int | None:
    return next((entry.version for entry in model.opset_import if not entry.domain), None)
