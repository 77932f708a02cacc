"""LSTM, GRU and RNN of ONNX as IR: every attribute, dynamic sizes, lengths, absent inputs. OpenVINO
computes the same as onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino
import pytest
from onnx import TensorProto, helper

import bridge
from bridge.check.engines import OnnxRuntime, OpenVino

SEQ, BATCH, INPUT, HIDDEN = 5, 3, 4, 6
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
STATES = {"LSTM": 2, "GRU": 1, "RNN": 1}

Options = dict[str, Any]

CASES: dict[str, tuple[str, Options]] = {}
for op in GATES:
    CASES[f"{op} plain"] = op, {}
    CASES[f"{op} without bias and states"] = op, {"bare": True}
    CASES[f"{op} dynamic"] = op, {"dynamic": True, "direction": "bidirectional"}
    CASES[f"{op} dynamic without states"] = op, {"dynamic": True, "bare": True}
    for direction in ("forward", "reverse", "bidirectional"):
        CASES[f"{op} {direction} with lengths"] = op, {"lengths": True, "direction": direction}
        CASES[f"{op} {direction} dynamic with lengths"] = op, {
            "lengths": True, "direction": direction, "dynamic": True,
        }  # fmt: skip
    CASES[f"{op} reverse, clipped"] = op, {"clip": 0.2, "direction": "reverse"}
    CASES[f"{op} weights as inputs"] = op, {"weights": True}
    CASES[f"{op} weights of open sizes"] = op, {"weights": True, "dynamic": True, "open": True}
    count = {"LSTM": 3, "GRU": 2, "RNN": 1}[op]
    for name in ("Relu", "Softsign", "HardSigmoid", "LeakyRelu", "Elu", "Softplus"):
        CASES[f"{op} {name}"] = op, {"activations": [name, *["Tanh"] * (count - 1)]}
    # onnxruntime has defaults of its own for these.
    for name, alpha, beta in (
        ("ScaledTanh", [1.2], [0.5]), ("Affine", [0.5], [0.1]), ("ThresholdedRelu", [0.3], []),
    ):  # fmt: skip
        CASES[f"{op} {name}"] = (
            op,
            {
                "activations": [name, *["Tanh"] * (count - 1)],
                "activation_alpha": alpha,
                **({"activation_beta": beta} if beta else {}),
            },
        )
    CASES[f"{op} unlike directions"] = (
        op,
        {
            "direction": "bidirectional",
            "activations": ["Sigmoid"] * count + ["HardSigmoid"] + ["Tanh"] * (count - 1),
            "activation_alpha": [0.3],
            "activation_beta": [0.4],
        },
    )
    CASES[f"{op} unlike directions, clipped"] = (
        op,
        {
            "direction": "bidirectional",
            "activations": ["Tanh"] * count + ["Sigmoid"] * count,
            "clip": 0.2,
        },
    )
CASES["GRU linear"] = "GRU", {"linear_before_reset": 1}
CASES["GRU linear, lengths"] = "GRU", {
    "linear_before_reset": 1, "lengths": True, "dynamic": True, "direction": "bidirectional",
}  # fmt: skip
CASES["GRU linear without bias"] = "GRU", {"linear_before_reset": 1, "bare": True}
CASES["LSTM peepholes"] = "LSTM", {"peepholes": True, "direction": "bidirectional"}
CASES["LSTM peepholes, clipped"] = "LSTM", {"peepholes": True, "clip": 0.2, "lengths": True}
CASES["LSTM coupled"] = "LSTM", {"input_forget": 1}


def model_and_feeds(op: str, options: Options) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model of one layer; the weights are initializers unless `weights`."""
    options = dict(options)
    rng = np.random.default_rng(5)
    ways = 2 if options.get("direction") == "bidirectional" else 1
    gates = GATES[op] * HIDDEN

    def random(*shape: int) -> np.ndarray:
        return (0.4 * rng.normal(size=shape)).astype(np.float32)

    values: dict[str, np.ndarray | None] = {
        "X": random(SEQ, BATCH, INPUT),
        "W": random(ways, gates, INPUT),
        "R": random(ways, gates, HIDDEN),
    }
    bare = options.pop("bare", False)
    values["B"] = None if bare else random(ways, 2 * gates)
    values["lens"] = np.array([3, 0, 4], np.int32) if options.pop("lengths", False) else None
    for name in ("h", "c")[: STATES[op]]:
        values[name] = None if bare else random(ways, BATCH, HIDDEN)
    if options.pop("peepholes", False):
        values["P"] = random(ways, 3 * HIDDEN)
    constants = set() if options.pop("weights", False) else {"W", "R", "B", "P"}
    sizes: dict[str, tuple[Any, ...]] = {"X": ("seq", "batch", INPUT), "lens": ("batch",)}
    sizes |= {name: (ways, "batch", HIDDEN) for name in "hc"}
    if options.pop("open", False):
        sizes |= {name: (None,) * rank for name, rank in (("W", 3), ("R", 3), ("B", 2))}
    dynamic = options.pop("dynamic", False)
    feeds = {n: v for n, v in values.items() if v is not None and n not in constants}
    outputs = ["Y", "Y_h", "Y_c"][: 1 + STATES[op]]
    names = [name if value is not None else "" for name, value in values.items()]
    node = helper.make_node(op, names, outputs, hidden_size=HIDDEN, **options)
    graph = helper.make_graph(
        [node],
        "layer",
        [
            helper.make_tensor_value_info(
                n,
                helper.np_dtype_to_tensor_dtype(v.dtype),
                sizes[n] if dynamic and n in sizes else v.shape,
            )
            for n, v in feeds.items()
        ],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs],
        [
            onnx.numpy_helper.from_array(v, n)
            for n, v in values.items()
            if v is not None and n in constants
        ],
    )
    opsets = [helper.make_opsetid("", 21)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), feeds


@pytest.mark.parametrize("name", CASES)
def test_layer(name: str, tmp_path: Path) -> None:
    op, options = CASES[name]
    model, feeds = model_and_feeds(op, options)
    expected = OnnxRuntime(threads=1).load(model).run(feeds)
    bridge.convert(model, tmp_path / "layer.xml")
    actual = OpenVino(threads=1).load(tmp_path / "layer.xml").run(feeds)
    for output, wanted in expected.items():
        np.testing.assert_allclose(actual[output], wanted, rtol=1e-4, atol=1e-5, err_msg=output)


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_gates_that_openvino_reordered(direction: str, tmp_path: Path) -> None:
    """OpenVINO reorders gates of given weights by a Split and a Concat; ONNX has no such parts."""
    model, feeds = model_and_feeds("LSTM", {"weights": True, "direction": direction})
    onnx.save(model, tmp_path / "layer.onnx")
    core = openvino.Core()
    openvino.save_model(core.read_model(tmp_path / "layer.onnx"), tmp_path / "layer.xml")
    bridge.convert(tmp_path / "layer.xml", tmp_path / "back.onnx")
    back = onnx.load(tmp_path / "back.onnx")
    assert not {node.op_type for node in back.graph.node} & {"Add", "Concat", "Split"}
    expected, actual = (OnnxRuntime(threads=1).load(m).run(feeds) for m in (model, back))
    for output, wanted in expected.items():
        np.testing.assert_allclose(actual[output], wanted, rtol=1e-6, atol=1e-6, err_msg=output)
