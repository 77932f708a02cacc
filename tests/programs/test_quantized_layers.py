"""Quantised networks as tools write them keep their layers there and back. A FakeQuantize becomes a
pair of QuantizeLinear and DequantizeLinear; weights of 8 bits become one DequantizeLinear."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import openvino as ov
import pytest
from openvino import opset13 as ops

import bridge
from tests.support.running import EXACT, OnnxRuntime

RANDOM = np.random.default_rng(11)
PADS = [1, 1]


def floats(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def real(*values: float) -> ov.Node:
    return ops.constant(np.array(values, np.float32).reshape(-1, *[1] * 3 * (len(values) > 1)))


def fake(x: ov.Node, low: float, high: float, levels: int = 256) -> ov.Node:
    limits = [ops.constant(np.float32(limit)) for limit in (low, high)]
    return ops.fake_quantize(x, *limits, *limits, levels)


def weights(*shape: int, scales: int = 1) -> ov.Node:
    """Integers of 7 bits: without VNNI, kernels add products of 8 bits in 16. `scales` is the
    number of axes with scales of their own."""
    stored = ops.constant(RANDOM.integers(-60, 60, shape).astype(np.int8))
    per = shape[:scales] + (1,) * (len(shape) - scales)
    scale = ops.constant((RANDOM.random(per) * 0.01 + 0.005).astype(np.float32))
    return ops.multiply(ops.convert(stored, "f32"), scale)


def convolution(x: ov.Node, w: ov.Node) -> ov.Node:
    return ops.convolution(x, w, [1, 1], PADS, PADS, [1, 1])


def groups(x: ov.Node, w: ov.Node) -> ov.Node:
    return ops.group_convolution(x, w, [1, 1], PADS, PADS, [1, 1])


def pooled(x: ov.Node) -> ov.Node:
    return ops.max_pool(x, [1, 1], [1, 1], [0, 0], [0, 0], [2, 2], "floor", None, "i64").output(0)


def behind_pool(x: ov.Node) -> ov.Node:
    return convolution(pooled(fake(x, -1.28, 1.27)), weights(6, 4, 3, 3))


def joined(x: ov.Node) -> ov.Node:
    parts = [fake(x, -1.28, 1.27), fake(ops.relu(x), -1.28, 1.27)]
    return convolution(ops.concat(parts, 1), weights(6, 8, 3, 3))


def depthwise(x: ov.Node) -> ov.Node:
    return groups(fake(x, -1.28, 1.27), weights(4, 1, 1, 3, 3))


def in_groups(x: ov.Node) -> ov.Node:
    return groups(fake(x, -1.28, 1.27), weights(2, 3, 2, 3, 3, scales=2))


def signed(x: ov.Node) -> ov.Node:
    return convolution(fake(x, -1.5, 1.5 * 127 / 128), weights(6, 4, 3, 3))


def gated(x: ov.Node) -> ov.Node:
    gate = ops.hsigmoid(ops.reduce_mean(x, [2, 3], keep_dims=True))
    return ops.multiply(fake(x, -1.28, 1.27), fake(gate, 0, 1))


def weights_of_floats(x: ov.Node) -> ov.Node:
    kernel = fake(ops.constant(floats(6, 4, 3, 3)), -1.5, 1.5, 255)
    return convolution(fake(x, -1.28, 1.27), kernel)


def weights_as_levels(x: ov.Node) -> ov.Node:
    stored = ops.convert(
        ops.constant(RANDOM.integers(-60, 60, (6, 4, 3, 3)).astype(np.int8)), "f32"
    )
    ends = (RANDOM.random((6, 1, 1, 1)) + 0.5).astype(np.float32)
    limits = [real(-127.0), real(127.0), ops.constant(-ends), ops.constant(ends)]
    return convolution(fake(x, -1.28, 1.27), ops.fake_quantize(stored, *limits, 255))


FEW = {"QuantizeLinear": 1, "DequantizeLinear": 2, "Conv": 1}
OF_IR: dict[Callable[[ov.Node], ov.Node], tuple[dict[str, int], int]] = {
    behind_pool: ({**FEW, "MaxPool": 1}, 0),
    joined: (
        {"QuantizeLinear": 2, "DequantizeLinear": 3, "Relu": 1, "Concat": 1, "Conv": 1}, 0
    ),
    depthwise: (FEW, 1),
    in_groups: (FEW, 1),
    signed: (FEW, 0),
    gated: (
        {
            "QuantizeLinear": 2, "DequantizeLinear": 2, "ReduceMean": 1, "HardSigmoid": 1,
            "Mul": 1,
        }, 0,
    ),
    weights_of_floats: (
        {"Max": 1, "Min": 1, "QuantizeLinear": 2, "DequantizeLinear": 2, "Conv": 1}, 0
    ),
    weights_as_levels: (FEW, 1),
}  # fmt: skip
"""The nodes in ONNX, and how many layers more come back."""


@pytest.mark.parametrize("make", OF_IR, ids=lambda make: make.__name__)
def test_layers(make: Callable[[ov.Node], ov.Node], tmp_path: Path) -> None:
    x = ops.parameter([1, 4, 6, 6], np.float32)
    ov.save_model(ov.Model([make(x)], [x]), tmp_path / "a.xml", compress_to_fp16=False)
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx", debug=True)
    bridge.convert(tmp_path / "b.onnx", tmp_path / "c.xml", debug=True)
    nodes, more = OF_IR[make]
    back = onnx.load(tmp_path / "b.onnx")
    assert Counter(node.op_type for node in back.graph.node) == nodes
    assert layers(tmp_path / "c.xml") <= layers(tmp_path / "a.xml") + more
    feed = floats(1, 4, 6, 6)
    expected = run(tmp_path / "a.xml", feed)
    np.testing.assert_allclose(run(tmp_path / "c.xml", feed), expected, 1e-4, 1e-5)
    (found,) = OnnxRuntime(back).run({back.graph.input[0].name: feed})
    np.testing.assert_allclose(found, expected, 1e-4, 1e-5)


def layers(file: Path) -> int:
    kinds = [op.get_type_name() for op in ov.Core().read_model(file).get_ops()]
    return sum(kind not in ("Constant", "Parameter", "Result") for kind in kinds)


def run(file: Path, x: np.ndarray) -> np.ndarray:
    return ov.Core().compile_model(file, "CPU", EXACT)(x)[0]


PAIR = "q = QuantizeLinear (x, s, z) y = DequantizeLinear (q, s, z)"
KERNEL = "out = Add (y, x)"
"""A reader of the pair with an integer kernel; otherwise the pair becomes arithmetic."""

OF_ONNX = {
    "one scale": ("float s = {0.5}, int8 z = {3}", PAIR, True),
    "a scale for each channel": ("float[2] s = {0.5, 0.25}, uint8[2] z = {3, 4}", PAIR, True),
    "equal scales of two names": (
        "float s = {0.5}, int8 z = {3}, float t = {0.5}", PAIR.replace("q, s", "q, t"), True,
    ),
    "another scale": (
        "float s = {0.5}, int8 z = {3}, float t = {0.25}", PAIR.replace("q, s", "q, t"), False,
    ),
    "integers of 16 bits": ("float s = {0.5}, int16 z = {3}", PAIR, False),
    "a scale below 0": ("float s = {-0.5}, int8 z = {3}", PAIR, False),
}  # fmt: skip
"""Constants, nodes, and whether one layer stands for both."""


@pytest.mark.parametrize("name", OF_ONNX)
def test_pairs(name: str, tmp_path: Path) -> None:
    constants, body, is_one = OF_ONNX[name]
    opset = '<ir_version: 10, opset_import: ["": 21]>'
    text = f"{opset} g (float[2,2,3] x) => (float[2,2,3] out) <{constants}> {{ {body} {KERNEL} }}"
    model = onnx.parser.parse_model(text)
    for i, node in enumerate(model.graph.node):
        node.name = f"node {i}"
    bridge.convert(model, tmp_path / "a.xml")
    assert (layers(tmp_path / "a.xml") == 2) == is_one
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx")
    again = onnx.load(tmp_path / "b.onnx").graph.node
    if is_one:
        assert [node.op_type for node in again] == ["QuantizeLinear", "DequantizeLinear", "Add"]
        assert [node.name for node in again] == ["node 0", "node 1", "node 2"]
        assert [node.output for node in again] == [["q"], ["y"], ["out"]]
    feed = {"x": floats(2, 2, 3) * 9}
    (expected,) = OnnxRuntime(model).run(feed)
    np.testing.assert_array_equal(OnnxRuntime(tmp_path / "b.onnx").run(feed)[0], expected)
