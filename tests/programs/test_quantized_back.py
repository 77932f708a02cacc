"""Quantised operators and trees have many layers in IR and come back as the one original node."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import bridge
from tests.support.running import OnnxRuntime

HIDDEN, WIDTH, ROWS = 40, 12, 2
RANDOM = np.random.default_rng(3)


def whole(*shape: int) -> np.ndarray:
    return RANDOM.integers(-90, 90, shape).astype(np.int8)


def model(
    node: onnx.NodeProto, constants: dict[str, np.ndarray], sizes: list[str | int]
) -> onnx.ModelProto:
    """A model of one node, with an input x of floats."""
    elements = {"label": TensorProto.INT64, "y": TensorProto.FLOAT}
    graph = helper.make_graph(
        [node],
        "one",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes)],
        [helper.make_tensor_value_info(name, elements[name], None) for name in node.output],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    version = 3 if node.domain == "ai.onnx.ml" else 1
    sets = [helper.make_opsetid("", 17), helper.make_opsetid(node.domain, version)]
    return helper.make_model(graph, opset_imports=sets, ir_version=8)


def lstm(ways: int) -> onnx.ModelProto:
    """An LSTM of int8 weights, with a bias that IR holds in another form."""
    scales = np.full(ways, 0.01, np.float32)
    constants = {
        "w": whole(ways, WIDTH, 4 * HIDDEN), "r": whole(ways, HIDDEN, 4 * HIDDEN),
        "b": RANDOM.standard_normal((ways, 8 * HIDDEN)).astype(np.float32),
        "s": scales, "z": np.zeros(ways, np.int8),
    }  # fmt: skip
    node = helper.make_node(
        "DynamicQuantizeLSTM", ["x", "w", "r", "b", "", "", "", "", "s", "z", "s", "z"], ["y"],
        domain="com.microsoft", hidden_size=HIDDEN,
        direction="bidirectional" if ways == 2 else "forward",
    )  # fmt: skip
    return model(node, constants, ["N", 1, WIDTH])


def forest(kind: str, depth: int = 6, trees: int = 4) -> onnx.ModelProto:
    """Whole trees of more nodes than a record writes down number by number."""
    inner, count = 2**depth - 1, 2 ** (depth + 1) - 1
    each = [(tree, node) for tree in range(trees) for node in range(count)]
    leaves = [(tree, node) for tree, node in each if node >= inner]
    prefix = "target" if kind == "Regressor" else "class"
    attributes = {
        "nodes_treeids": [tree for tree, _ in each],
        "nodes_nodeids": [node for _, node in each],
        "nodes_featureids": [int(RANDOM.integers(WIDTH)) for _ in each],
        "nodes_values": RANDOM.standard_normal(len(each)).astype(np.float32).tolist(),
        "nodes_modes": ["BRANCH_LEQ" if node < inner else "LEAF" for _, node in each],
        "nodes_truenodeids": [2 * node + 1 if node < inner else 0 for _, node in each],
        "nodes_falsenodeids": [2 * node + 2 if node < inner else 0 for _, node in each],
        f"{prefix}_treeids": [tree for tree, _ in leaves],
        f"{prefix}_nodeids": [node for _, node in leaves],
        f"{prefix}_ids": [node % 3 for _, node in leaves],
        f"{prefix}_weights": RANDOM.random(len(leaves)).astype(np.float32).tolist(),
    }
    attributes |= {"n_targets": 3} if kind == "Regressor" else {"classlabels_int64s": [0, 1, 2]}
    outputs = ["y"] if kind == "Regressor" else ["label", "y"]
    node = helper.make_node(
        f"TreeEnsemble{kind}", ["x"], outputs, domain="ai.onnx.ml", **attributes
    )
    return model(node, {}, ["N", WIDTH])


MODELS = {
    "LSTM": lambda: lstm(1),
    "LSTM of two directions": lambda: lstm(2),
    "regressor": lambda: forest("Regressor"),
    "classifier": lambda: forest("Classifier"),
}


@pytest.mark.parametrize("name", MODELS)
def test_one_node(name: str, tmp_path: Path) -> None:
    original = MODELS[name]()
    bridge.convert(original, tmp_path / "a.xml")
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx")
    back = onnx.load(tmp_path / "b.onnx")
    (node,) = back.graph.node
    assert node.op_type == original.graph.node[0].op_type
    sizes = [size.dim_value or ROWS for size in original.graph.input[0].type.tensor_type.shape.dim]
    feed = {"x": RANDOM.standard_normal(sizes).astype(np.float32)}
    for wanted, found in zip(
        OnnxRuntime(original).run(feed), OnnxRuntime(back).run(feed), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)
