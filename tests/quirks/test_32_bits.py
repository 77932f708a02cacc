"""Integers of 32 bits on OpenVINO's CPU plugin: threefry, the random numbers of `jax.random`, and
all operators of u32 that onnxruntime has, with numbers on both sides of 2^31."""

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

import bridge
from tests.support.running import OnnxRuntime, OpenVino

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry(size: int | str) -> ModelProto:
    """threefry2x32 with 20 rounds (Salmon et al., 2011), as jax.random writes it, and the uniform
    numbers made of its bits."""
    nodes, constants = [], []

    def number(value: int) -> str:
        constants.append(numpy_helper.from_array(np.array(value, np.uint32), f"c{len(constants)}"))
        return constants[-1].name

    def op(name: str, *inputs: str, **attributes: object) -> str:
        nodes.append(helper.make_node(name, inputs, [f"v{len(nodes)}"], **attributes))
        return nodes[-1].output[0]

    def rotated(x: str, by: int) -> str:
        left = op("BitShift", x, number(by), direction="LEFT")
        return op("BitwiseOr", left, op("BitShift", x, number(32 - by), direction="RIGHT"))

    parity = op("BitwiseXor", op("BitwiseXor", "k0", "k1"), number(0x1BD11BDA))
    keys = ["k0", "k1", parity]
    x, y = op("Add", "x", keys[0]), op("Add", "y", keys[1])
    for step in range(5):
        for by in ROTATIONS[step % 2]:
            x = op("Add", x, y)
            y = op("BitwiseXor", x, rotated(y, by))
        x = op("Add", x, keys[(step + 1) % 3])
        y = op("Add", op("Add", y, keys[(step + 2) % 3]), number(step + 1))
    bits = op("Cast", op("BitShift", x, number(9), direction="RIGHT"), to=TensorProto.FLOAT)
    constants.append(numpy_helper.from_array(np.float32(2.0**-23), "step"))
    uniform, below = op("Mul", bits, "step"), op("Mod", y, number(1000))
    u32 = TensorProto.UINT32
    kinds = {x: u32, y: u32, uniform: TensorProto.FLOAT, below: u32}
    inputs = {"k0": [], "k1": [], "x": [size], "y": [size]}
    graph = helper.make_graph(
        nodes,
        "threefry",
        [helper.make_tensor_value_info(name, u32, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, kind, [size]) for name, kind in kinds.items()],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.mark.parametrize("size", ["n", 16])
def test_threefry(size: int | str, tmp_path: Path) -> None:
    model = threefry(size)
    numbers = np.random.default_rng(0).integers(0, 2**32, (2, 16), dtype=np.uint32)
    keys = [np.array(part, np.uint32) for part in (0x13198A2E, 0xF3707344)]
    feed = dict(zip(("k0", "k1", "x", "y"), (*keys, *numbers), strict=True))
    bridge.convert(model, tmp_path / "m.xml", debug=True)
    engine = OpenVino(tmp_path / "m.xml")
    expected = OnnxRuntime(model).run(feed)
    for got, wanted in zip(engine.run([*feed.values()]), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


U32 = np.array([0, 1, 31, 2**31 - 1, 2**31, 2**31 + 1, 3000000019, 2**32 - 2, 2**32 - 1], np.uint32)
OPERATORS = (
    *("Add", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Max", "Min", "Mod", "Mul", "Sub"),
    *("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"),
)


@pytest.mark.parametrize("size", ["n", U32.size**2])
@pytest.mark.parametrize("operator", OPERATORS)
def test_operators_of_u32(operator: str, size: int | str, tmp_path: Path) -> None:
    """Of two inputs, and of an input and each constant."""
    x, y = (part.reshape(-1) for part in np.meshgrid(U32, U32, indexing="ij"))
    if operator in ("Div", "Mod"):
        y = np.maximum(y, 1)
    kind = "bool" if operator in OPERATORS[-5:] else "uint32"
    constants = ", ".join(f"uint32 c{i} = {{{n}}}" for i, n in enumerate(U32[1:]))
    nodes = "".join(f"y{i} = {operator} (x, c{i}) " for i in range(U32.size - 1))
    outputs = "".join(f", {kind}[{size}] y{i}" for i in range(U32.size - 1))
    model = parser.parse_model(
        f'<ir_version: 9, opset_import: ["": 18]> g (uint32[{size}] x, uint32[{size}] y) => '
        f"({kind}[{size}] z{outputs}) <{constants}> {{ z = {operator} (x, y) {nodes} }}"
    )
    bridge.convert(model, tmp_path / "m.xml", debug=True)
    expected = OnnxRuntime(model).run({"x": x, "y": y})
    for got, wanted in zip(OpenVino(tmp_path / "m.xml").run([x, y]), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
