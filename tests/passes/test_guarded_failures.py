"""A node that would fail does not stop a conversion if it never runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import parser

import bridge
from tests.support.running import OnnxRuntime, OpenVino, assert_close

HEAD = '<ir_version: 8, opset_import: ["" : 18]>'
EMPTY = "s = SequenceEmpty <dtype = 1> () zero = Constant <value = int64 {0}> () "
X = np.array([[1, 2, 3], [4, -5, 6]], np.float32)


def branch(nodes: str, before: str = "") -> str:
    """`y` is the result of `nodes` if `go` is true, else -x."""
    return f"""{HEAD} g (float[2,3] x, bool go) => (float[m,n] y) {{
      {before}
      y = If (go) <
        then_branch = t () => (float[m,n] a) {{ {nodes} }},
        else_branch = e () => (float[m,n] b) {{ b = Neg(x) }}>
    }}"""


FAILING = {
    "element of none": (branch("a = SequenceAt(s, zero)", EMPTY), "position 0 is outside"),
    "element behind the end": (
        branch(
            "three = Constant <value = int64 {3}> () a = SequenceAt(s, three)",
            "s = SequenceConstruct(x, x)",
        ),
        "position 3 is outside the sequence of 2 elements",
    ),
    "joined none": (
        branch("a = ConcatFromSequence <axis = 0> (s)", EMPTY),
        "an empty sequence has no elements to concatenate",
    ),
    "erased from none": (
        branch("r = SequenceErase(s) a = SequenceAt(r, zero)", EMPTY),
        "position -1 is outside the sequence of 0 elements",
    ),
    "opened none": (
        branch("o = Optional <type = float[2,3]> () a = OptionalGetElement(o)"),
        "the optional that it takes has no element",
    ),
    "both ways within": (
        branch(
            """f = SequenceLength(s) c = Cast <to = 9> (f) other = And(c, go)
            a = If (other) <
              then_branch = tt () => (float[m,n] p) { p = SequenceAt(s, zero) },
              else_branch = ee () => (float[m,n] q) { q = ConcatFromSequence <axis = 0> (s) }>""",
            EMPTY,
        ),
        "fails, an empty sequence has no elements to concatenate",
    ),
}


@pytest.mark.parametrize("name", FAILING)
def test_branch(name: str, tmp_path: Path) -> None:
    text, why = FAILING[name]
    report = bridge.convert(parser.parse_model(text), tmp_path / "a.xml")
    assert any("then_branch fails" in line and why in line for line in report.pruned)
    feed = {"x": X, "go": np.array(False)}
    _same(text, feed, tmp_path)
    with pytest.raises(Exception, match=r"onnxruntime|ONNXRuntimeError"):
        OnnxRuntime(parser.parse_model(text)).run(feed | {"go": np.array(True)})


# A Loop over an empty sequence; Loops whose body fails and whose trip count is an input.
LOOPS = {
    "as many as there are": f"""{HEAD}
g (float[2,3] x, int64 n) => (float[2,3] y, float[k,2,3] z) {{
      {EMPTY} count = SequenceLength(s)
      y, z = Loop (count, "", x) <body = b (int64 i, bool c, float[2,3] t)
          => (bool c, float[2,3] u, float[2,3] w)
        {{ e = SequenceAt(s, i) u = Add(t, e) w = Neg(x) }}>
    }}""",
    "as many as an input says": f"""{HEAD} g (float[2,3] x, int64 n) => (float[2,3] y) {{
      {EMPTY}
      y = Loop (n, "", x) <body = b (int64 i, bool c, float[2,3] t) => (bool c, float[2,3] u)
        {{ e = SequenceAt(s, zero) u = Add(t, e) }}>
    }}""",
    "shapes that do not go together": f"""{HEAD} g (float[2,3] x, int64 n)
        => (float[2,3] y, float[k,2,3] z) {{
      five = Constant <value = float[5] {{1, 1, 1, 1, 1}}> ()
      y, z = Loop (n, "", x) <body = b (int64 i, bool c, float[2,3] t)
          => (bool c, float[2,3] u, float[2,3] w)
        {{ u = Abs(t) w = LayerNormalization(t, five) }}>
    }}""",
}


@pytest.mark.parametrize("name", LOOPS)
def test_loop(name: str, tmp_path: Path) -> None:
    text = LOOPS[name]
    report = bridge.convert(parser.parse_model(text), tmp_path / "a.xml")
    known = name == "as many as there are"
    assert known or "its body fails" in report.pruned[0]
    assert len(report.pruned) == (not known)
    _same(text, {"x": X, "n": np.array(0)}, tmp_path)


def _same(text: str, feed: dict[str, np.ndarray], folder: Path) -> None:
    expected = OnnxRuntime(parser.parse_model(text)).run(feed)
    bridge.convert(folder / "a.xml", folder / "b.onnx")
    assert_close(OpenVino(folder / "a.xml").run(list(feed.values())), expected)
    assert_close(OnnxRuntime(folder / "b.onnx").run(feed), expected)


def test_what_surely_runs_is_refused(tmp_path: Path) -> None:
    for text in (
        branch("a = Abs(x)", EMPTY + "e = SequenceAt(s, zero)").replace("b = Neg(x)", "b = Neg(e)"),
        LOOPS["as many as an input says"]
        .replace("(n, ", "(one, ")
        .replace(EMPTY, EMPTY + "one = Constant <value = int64 {1}> () "),
    ):
        with pytest.raises(
            bridge.UnsupportedError, match="position 0 is outside the sequence of 0"
        ):
            bridge.convert(parser.parse_model(text), tmp_path / "a.xml")
