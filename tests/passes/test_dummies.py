"""Unread dummies get the rank of the real value; read dummies keep theirs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import parser

import bridge
from tests.support.model_files import FOLDER, load_onnx
from tests.support.running import OnnxRuntime, OpenVino, assert_close

FIRST = """chosen, held = If (c) <
    then_branch = t () => (bool s, float p) {
        s = Constant <value = bool {1}> () p = Constant <value = float {7}> () },
    else_branch = e () => (bool r, float[n,3] q) { r = Identity (d) q = Neg (x) }>"""


def picked(condition: str, otherwise: str = "Identity (x)") -> str:
    """A model that reads the output `held` of `FIRST` if this condition is false."""
    return f"""<ir_version: 8, opset_import: ["": 17]>
    g (float[n,3] x, bool c, bool d) => (float[] y) {{ {FIRST}
        y = If ({condition}) <then_branch = t2 () => (float[] a) {{ a = {otherwise} }},
            else_branch = e2 () => (float[] b) {{ b = Identity (held) }}> }}"""


NESTED = f"""<ir_version: 8, opset_import: ["": 17]>
g (float[n,3] x, bool c, bool d) => (float[] y) {{ {FIRST}
    y = If (chosen) <then_branch = t2 () => (float[] a) {{ a = Exp (x) }},
        else_branch = e2 () => (float[] b) {{
            b = If (d) <then_branch = t3 () => (float[] u) {{ u = Abs (held) }},
                else_branch = e3 () => (float[] v) {{ v = Sin (held) }}> }}> }}"""

UNREAD = {
    "by the same condition": picked("c"),
    "by what the branch says": picked("chosen"),
    "within": NESTED,
}
READ = {
    "by another condition": picked("d"),
    "by its opposite": picked("c").replace("t2 ()", "e9 ()").replace("then_branch = e9",
        "else_branch = e9").replace("else_branch = e2", "then_branch = e2"),
    "and handed out": picked("c").replace("=> (float[] y)", "=> (float[] y, float[] held)"),
}  # fmt: skip


def outcome(text: str, folder: Path) -> bool:
    """Whether a value travels as elements and shape. The numbers must be right in any case."""
    model = parser.parse_model(text)
    bridge.convert(model, folder / "a.xml")
    boundary = bridge.Boundary.of(folder / "a.xml")
    engine, original = OpenVino(folder / "a.xml"), OnnxRuntime(model)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for c in (False, True):
        for d in (False, True):
            feed = {"x": x, "c": np.array(c), "d": np.array(d)}
            found = engine.run_packed(boundary, feed)
            assert_close([found[v.name] for v in model.graph.output], original.run(feed))
    return any(
        name.endswith((".data", ".shape"))
        for node in bridge.load(folder / "a.xml").graph.walk()
        for value in node.outputs
        for name in value.names
    )


@pytest.mark.parametrize("name", UNREAD)
def test_unread(name: str, tmp_path: Path) -> None:
    assert not outcome(UNREAD[name], tmp_path)


@pytest.mark.parametrize("name", READ)
def test_read(name: str, tmp_path: Path) -> None:
    assert outcome(READ[name], tmp_path)


def test_break_and_continue_of_an_exporter(tmp_path: Path) -> None:
    source = FOLDER / "exporter_break_and_continue.onnxtxt"
    bridge.convert(load_onnx(source), tmp_path / "a.xml")
    assert len(list(bridge.load(tmp_path / "a.xml").graph.walk())) < 50
