"""The counts of `inspect --cost`."""

from __future__ import annotations

from pathlib import Path

import onnx.parser
import pytest

import bridge
from bridge.neutral.cost import Cost, costs
from tests.support.command_line import bridge as command

HEAD = '<ir_version: 8, opset_import: ["": 17]>\n'
CASES = {
    "MatMul": (
        "(float[5,2,3] x, float[3,4] w) => (float[5,2,4] y) { y = MatMul (x, w) }",
        120, 160,
    ),
    "Gemm": (
        "(float[3,2] x, float[3,4] w) => (float[2,4] y) { y = Gemm <transA = 1> (x, w) }",
        24, 32,
    ),
    "Conv": (
        "(float[1,4,8,8] x, float[6,2,3,3] w) => (float[1,6,6,6] y) "
        "{ y = Conv <group = 2> (x, w) }",
        6 * 36 * 18, 6 * 36 * 4,
    ),
    "ConvTranspose": (
        "(float[1,2,4] x, float[2,3,5] w) => (float[1,3,8] y) { y = ConvTranspose (x, w) }",
        8 * 15, 3 * 8 * 4,
    ),
    "LSTM": (
        "(float[7,2,3] x, float[1,16,3] w, float[1,16,4] r) => (float[7,1,2,4] y) "
        "{ y = LSTM <hidden_size = 4> (x, w, r) }",
        14 * (48 + 64), 7 * 2 * 4 * 4,
    ),
    "an open rank": (
        "(float[] x, float[1,16,3] w, float[1,16,4] r) => (float[s,1,b,4] y) "
        "{ y = LSTM <hidden_size = 4> (x, w, r) }",
        48 + 64, 4 * 4,
    ),
    "an open dimension": ("(float16[n,6] x) => (float16[n,6] y) { y = Mul (x, x) }", 6, 12),
    "no multiplication": ("(float[4] x) => (float[4] y) { y = Exp (x) }", 0, 16),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_node(name: str) -> None:
    text, multiplications, activations = CASES[name]
    model = onnx.parser.parse_model(f"{HEAD}g {text}")
    (part,) = costs(bridge.load(model).graph)
    assert part.cost == Cost(multiplications, 0, activations)


NESTED = """g (bool c, float[4] x) => (float[4] y) <float[4] w = {1, 2, 3, 4}, int64 three = {3}> {
  y = If (c) <
    then_branch = t () => (float[4] a) { a = Mul (x, w) },
    else_branch = e () => (float[4] b) {
      b = Loop (three, , x) <
        body = l (int64 i, bool go, float[4] h) => (bool go_on, float[4] k) {
          go_on = Identity (go)
          m = Mul (h, w)
          k = Mul (m, m)
        }
      >
    }
  >
}"""


def test_branches_and_loops(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(HEAD + NESTED), path)
    parts = costs(bridge.load(path).graph)
    found = {part.where: (part.cost.multiplications, part.larger) for part in parts}
    assert found == {
        "graph": (24, None),
        "If y / then_branch": (4, False),
        "If y / else_branch": (24, True),
        "Loop b / body": (8, None),
    }
    lines = command("inspect", path, "--cost").out.splitlines()
    assert lines[1].split()[:2] == ["graph", "24"]
    assert any("If y / else_branch (larger)" in line for line in lines)


def test_the_tree_has_formulas(tmp_path: Path) -> None:
    text = """g (float[n] x) => (float[n] y) <int64 one = {1}, float[1] w = {3}> {
      s = Size (x)
      c = Greater (s, one)
      y = If (c) <
        then_branch = t () => (float[n] a) { a = Mul (x, w) },
        else_branch = e () => (float[n] b) { b = Identity (x) }
      >
    }"""
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(HEAD + " ".join(text.split())), path)
    lines = command("inspect", path).out.splitlines()
    assert '  If "y": size(x) > 1' in lines
