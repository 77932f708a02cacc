"""Ifs whose branches differ in rank: pruned where only one can be meant, kept where both can."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import bridge
from tests.support.running import OnnxRuntime, OpenVino, assert_close

BRANCHES = """
  y = If (c) <
    then_branch = then () => (float[N, 3] a) { a = Relu (x) },
    else_branch = otherwise () => (float[N] b) {
      axis = Constant <value_ints = [0]> ()
      b = ReduceSum <keepdims = 0> (x, axis)
    }>
"""


def model(body: str, outputs: str, inputs: str = "float[n, 3] x, bool c") -> onnx.ModelProto:
    text = f'<ir_version: 8, opset_import: ["": 17]> g ({inputs}) => ({outputs}) {{ {body} }}'
    return onnx.parser.parse_model(text)


def ifs(path: Path) -> int:
    return sum(node.op == "If" for node in bridge.load(path).graph.walk())


KEPT = {
    "reduced to a scalar": (
        BRANCHES + "z = ReduceMax <keepdims = 0> (y)",
        "float z",
    ),
    "several consumers in a chain": (
        BRANCHES
        + """
        h = Neg (y)
        two = Constant <value_float = 2.0> ()
        d = Mul (h, two)
        s = ReduceSum <keepdims = 0> (x)
        e = Add (d, s)
        flat = Constant <value_ints = [-1]> ()
        z = Reshape (e, flat)
        w = Size (y)
        """,
        "float[k] z, int64 w",
    ),
    "a value of known rank between two consumers": (
        BRANCHES
        + """
        top = ReduceMax <keepdims = 0> (y)
        half = Sqrt (top)
        m = Mul (y, half)
        z = ReduceMean <keepdims = 0> (m)
        """,
        "float z",
    ),
    "an If behind the If": (
        BRANCHES
        + """
        z = If (c) <
          then_branch = t () => (float p) { p = ReduceMin <keepdims = 0> (y) },
          else_branch = e () => (float q) { q = ReduceMax <keepdims = 0> (y) }>
        """,
        "float z",
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_consumers_move_into_the_branches(name: str, tmp_path: Path) -> None:
    source = model(*KEPT[name])
    report = bridge.convert(source, tmp_path / "a.xml")
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx")
    assert not report.pruned
    assert ifs(tmp_path / "a.xml") >= 1
    original = OnnxRuntime(source)
    there, back = OpenVino(tmp_path / "a.xml"), OnnxRuntime(tmp_path / "b.onnx")
    for rows in (1, 2, 4):
        for condition in (True, False):
            x = np.abs(np.random.default_rng(rows).standard_normal((rows, 3), np.float32))
            feed = {"x": x, "c": np.array(condition)}
            expected = original.run(feed)
            assert_close(there.run(list(feed.values())), expected)
            assert_close(back.run(feed), expected)


SQUEEZED = """
  one = Constant <value_ints = [1]> ()
  dim = Shape <start = 1, end = 2> (x)
  is_one = Equal (dim, one)
  axis = Constant <value_ints = [1]> ()
  y = If (is_one) <
    then_branch = then () => (float[N, M] a) { a = Squeeze (x, axis) },
    else_branch = otherwise () => (float[N, K, M] b) { b = Identity (x) }>
"""


def test_branch_that_no_consumer_takes_is_pruned(tmp_path: Path) -> None:
    """Conv with 3-D weights takes rank 3, so only the branch that keeps it can be meant."""
    body = SQUEEZED + "z = Conv (y, w)"
    source = model(body, "float[n, 2, k] z", "float[n, c, m] x, float[2, 4, 3] w")
    report = bridge.convert(source, tmp_path / "a.xml")
    assert len(report.pruned) == 1 and "then_branch" in report.pruned[0]
    assert ifs(tmp_path / "a.xml") == 0
    random = np.random.default_rng(0)
    feed = {
        "x": random.standard_normal((2, 4, 7), np.float32),
        "w": random.standard_normal((2, 4, 3), np.float32),
    }
    expected = OnnxRuntime(source).run(feed)
    assert_close(OpenVino(tmp_path / "a.xml").run(list(feed.values())), expected)


def test_branches_are_kept_on_request(tmp_path: Path) -> None:
    body = SQUEEZED + "z = Conv (y, w)"
    source = model(body, "float[n, 2, k] z", "float[n, c, m] x, float[2, 4, 3] w")
    report = bridge.convert(source, tmp_path / "a.xml", keep_branches=True)
    assert not report.pruned
    assert ifs(tmp_path / "a.xml") == 1


def test_rank_that_stays_open_is_told(tmp_path: Path) -> None:
    source = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[n, 3] x, bool c) => (float y) {'
        + BRANCHES
        + "}"
    )
    source.graph.output[0].type.tensor_type.ClearField("shape")
    report = bridge.convert(source, tmp_path / "a.xml")
    assert any('"y"' in note and "CPU" in note for note in report.notes)
