"""Nodes and layers out of topological order are sorted; only cycles are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from lxml import etree
from onnx import parser

import bridge
from tests.support.model_files import FOLDER
from tests.support.running import OnnxRuntime, OpenVino, assert_close

# In the graph, in a branch, in a function; bodies may capture values of later nodes.
MODEL = """<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
g (float[3] x, bool c) => (float[3] y) {
  y = If (c) <
    then_branch = t () => (float[3] p) { p = Neg(q) q = local.twice(late) },
    else_branch = e () => (float[3] r) {
      r = If (d) <
        then_branch = tt () => (float[3] z) { z = Abs(late) },
        else_branch = ee () => (float[3] zz) { zz = Neg(x) }>
    }>
  d = Not(c)
  late = Mul(a, b)
  b = Add(a, a)
  a = Abs(x)
}
<domain: "local", opset_import: ["" : 17]>
twice (i) => (o) { o = Add(h, i) h = Neg(k) k = Add(i, i) }"""


def test_onnx(tmp_path: Path) -> None:
    report = bridge.convert(parser.parse_model(MODEL), tmp_path / "a.xml")
    assert 'first graph / If "y" / then_branch / Neg "p"' in report.notes[0]
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx")
    bridge.convert(parser.parse_model(MODEL), tmp_path / "c.onnx")
    onnx.checker.check_model(tmp_path / "c.onnx", full_check=True)
    x = np.array([1, -2, 3], np.float32)
    for c, expected in ((True, 2 * x * x), (False, 2 * x * x)):
        feed = {"x": x, "c": np.array(c)}
        assert_close(OpenVino(tmp_path / "a.xml").run(list(feed.values())), [expected])
        for name in ("b.onnx", "c.onnx"):
            assert_close(OnnxRuntime(tmp_path / name).run(feed), [expected])


def test_reversed_nodes_of_a_large_graph(tmp_path: Path) -> None:
    count = 3000
    lines = [f"v{i} = Neg(v{i - 1})" for i in range(count, 0, -1)]
    text = f"g (float v0) => (float v{count}) {{ {' '.join(lines)} }}"
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')
    bridge.convert(model, tmp_path / "a.onnx")
    assert [node.input[0] for node in onnx.load(tmp_path / "a.onnx").graph.node][:2] == ["v0", "v1"]


def test_what_is_in_order_stays(tmp_path: Path) -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float x) => (float y) '
        "{ late = Neg(x) a = Abs(x) y = Add(b, late) b = Exp(a) }"
    )
    bridge.convert(model, tmp_path / "a.onnx")
    found = [node.op_type for node in onnx.load(tmp_path / "a.onnx").graph.node]
    assert found == ["Neg", "Abs", "Exp", "Add"]


def test_ir(tmp_path: Path) -> None:
    source = FOLDER / "if_nested.xml"
    tree = etree.parse(source)
    for layers in tree.iter("layers"):
        inner = [layer for layer in layers if layer.get("type") not in ("Parameter", "Result")]
        for layer in inner:
            layers.insert(0, layer)
    tree.write(tmp_path / "a.xml")
    bridge.convert(source, tmp_path / "sorted.onnx")
    report = bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx")
    assert (tmp_path / "b.onnx").read_bytes() == (tmp_path / "sorted.onnx").read_bytes()
    assert not report.notes, "Parameters may stand anywhere"
    for layers in tree.iter("layers"):
        if not list(layers.iterancestors("body")):
            layers.insert(0, next(x for x in layers if x.get("type") == "Result"))
    tree.write(tmp_path / "a.xml")
    report = bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx")
    assert "layers stand before others that they need, first" in report.notes[0]
    assert (tmp_path / "b.onnx").read_bytes() == (tmp_path / "sorted.onnx").read_bytes()


def test_cycle(tmp_path: Path) -> None:
    model = parser.parse_model(MODEL.replace("a = Abs(x)", "a = Abs(late)"))
    with pytest.raises(bridge.InvalidModelError, match='Abs "a": is part of a cycle of nodes'):
        bridge.convert(model, tmp_path / "a.xml")


def test_a_name_that_nothing_makes(tmp_path: Path) -> None:
    model = parser.parse_model(MODEL.replace("a = Abs(x)", "aa = Abs(x)"))
    with pytest.raises(bridge.InvalidModelError, match='uses "a", which no node before it comp'):
        bridge.convert(model, tmp_path / "a.xml")


REPEATED = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}, int64 n = {2}> {
  z = Mul(x, w)
  y = If (c) <
    then_branch = t () => (float[2] p) <float[2] w = {1, 2}, int64 n = {2}> {
      p = Loop (n, c, z) <body = b (int64 i, bool k, float[2] s) => (bool ko, float[2] so)
        <float[2] w = {1, 2}> { ko = Identity(k) so = Add(s, w) }> },
    else_branch = e () => (float[2] q) { q = Sub(z, w) }>
}"""


def test_initializers_that_bodies_repeat(tmp_path: Path) -> None:
    """onnxslim writes them."""
    model = parser.parse_model(REPEATED)
    report = bridge.convert(model, tmp_path / "a.xml")
    assert 'first "w" in graph / If "y" / then_branch; they were taken for the same' in str(report)
    back = bridge.to_onnx(tmp_path / "a.xml")
    for c in (True, False):
        feed = {"x": np.array([3, 4], np.float32), "c": np.array(c)}
        expected = OnnxRuntime(model).run(feed)
        assert_close(OpenVino(tmp_path / "a.xml").run(list(feed.values())), expected)
        assert_close(OnnxRuntime(back).run(feed), expected)
    other = parser.parse_model(REPEATED.replace("w = {1, 2}> { ko", "w = {1, 3}> { ko"))
    with pytest.raises(bridge.InvalidModelError, match='body: two values are called "w"'):
        bridge.load(other)
