"""Recurrent layers that read one another, or share weights and inputs, come back from IR. Each
graph is drawn: kinds of layers, the outputs that later nodes read, and their form between."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import bridge

SIZE = 4
GATES = {"DynamicQuantizeLSTM": 4, "LSTM": 4, "GRU": 3, "RNN": 1}


class Drawing:
    """A graph of recurrent layers over x [time, 1, 4] with states from h0 [3, 1, 4]."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}
        self.weights: dict[str, list[str]] = {}

    def node(self, op: str, *inputs: str, outputs: int = 1, **attributes: object) -> list[str]:
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        domain = "com.microsoft" if op.startswith("Dynamic") else ""
        self.nodes.append(helper.make_node(op, inputs, names, domain=domain, **attributes))
        return names

    def constant(self, value: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    def weights_of(self, op: str) -> list[str]:
        """New weights, or those of an earlier layer of the kind."""
        if op in self.weights and self.rng.random() < 0.4:
            return self.weights[op]
        gates, quantized = GATES[op] * SIZE, op.startswith("Dynamic")
        shapes = [(1, SIZE, gates)] * 2 if quantized else [(1, gates, SIZE)] * 2
        pairs = [self.rng.integers(-9, 9, shape) for shape in shapes]
        kinds = [x.astype(np.int8) if quantized else (x / 20).astype(np.float32) for x in pairs]
        bias = self.rng.normal(size=(1, 2 * gates)).astype(np.float32)
        self.weights[op] = [self.constant(x) for x in (*kinds, bias)]
        return self.weights[op]

    def state(self, states: list[str]) -> str:
        """No state, a part of the input, or the last state of an earlier layer."""
        kind = self.rng.integers(4)
        if kind == 0:
            return ""
        if kind == 1 and states:
            return str(self.rng.choice(states))
        begin = int(self.rng.integers(3))
        ends = [self.constant(np.array([i], np.int64)) for i in (begin, begin + 1, 0)]
        return self.node("Slice", "h0", *ends)[0]

    def layer(self, data: str, states: list[str]) -> tuple[str, list[str]]:
        op = str(self.rng.choice(list(GATES), p=[0.55, 0.15, 0.15, 0.15]))
        cell = "LSTM" in op
        inputs = [data, *self.weights_of(op), "", self.state(states)]
        if cell:
            inputs.append(self.state(states))
        if op.startswith("Dynamic"):
            scale, zero = (np.array([x], t) for x, t in ((0.01, np.float32), (0, np.int8)))
            inputs += ["", *[self.constant(x) for x in (scale, zero, scale, zero)]]
        y, *last = self.node(op, *inputs, outputs=3 if cell else 2, hidden_size=SIZE)
        return self.node("Squeeze", y, self.constant(np.array([1], np.int64)))[0], last

    def used(self, results: list[str]) -> list[onnx.NodeProto]:
        """The nodes that lead to the results."""
        needed, found = set(results), []
        for node in reversed(self.nodes):
            if needed & set(node.output):
                needed |= set(node.input)
                found.append(node)
        return found[::-1]

    def model(self) -> onnx.ModelProto:
        data, states = ["x"], []
        for _ in range(self.rng.integers(2, 5)):
            y, last = self.layer(data[-1 if self.rng.random() < 0.7 else 0], states)
            if self.rng.random() < 0.3:
                y = self.node("Add", y, data[-1])[0]
            data.append(y)
            states += last
        y = self.node("Transpose", data[-1], perm=[1, 0, 2])[0]
        kept = [x for x in states if self.rng.random() < 0.6] or states[:1]
        results = [y, self.node("Concat", *kept, axis=0)[0]]
        graph = helper.make_graph(
            self.used(results),
            "g",
            [
                helper.make_tensor_value_info("x", TensorProto.FLOAT, ["time", 1, SIZE]),
                helper.make_tensor_value_info("h0", TensorProto.FLOAT, [3, 1, SIZE]),
            ],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in results],
            [numpy_helper.from_array(value, name) for name, value in self.constants.items()],
        )
        domains = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=domains, ir_version=8)


@pytest.mark.parametrize("seed", range(25))
def test_layers_come_back(seed: int, tmp_path: Path) -> None:
    model = Drawing(seed).model()
    bridge.convert(model, tmp_path / "a.xml")
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx")
    back = onnx.load(tmp_path / "b.onnx")
    assert layers(back) == layers(model)
    rng = np.random.default_rng(seed)
    given = {
        name: rng.normal(size=shape).astype(np.float32)
        for name, shape in (("x", (5, 1, SIZE)), ("h0", (3, 1, SIZE)))
    }
    for one, other in zip(run(back, given), run(model, given), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def layers(model: onnx.ModelProto) -> list[str]:
    """The recurrent layers of a model; no Loop may stand for one."""
    return sorted(node.op_type for node in model.graph.node if node.op_type in (*GATES, "Loop"))


def run(model: onnx.ModelProto, given: dict[str, np.ndarray]) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, given))
