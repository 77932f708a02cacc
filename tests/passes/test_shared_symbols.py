"""An If that asks whether sizes of two inputs are equal stays, though they declare one symbol."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import parser

import bridge
from tests.support.running import OnnxRuntime, OpenVino, assert_close

ASKS = {
    "equal": "same = Equal (one, other)",
    "not less": "less = Less (one, other) same = Not (less)",
    "difference": "apart = Sub (one, other) some = Cast <to = 9> (apart) same = Not (some)",
}
MODEL = """<ir_version: 8, opset_import: ["" : 17]>
g (float[b, 2] x, float[2, b] state) => (float[c, d] y) <int64 zero = {{0}}, int64 first = {{1}}> {{
  sizes = Shape (x) others = Shape (state)
  one = Gather (sizes, zero) other = Gather (others, first)
  {asks}
  y = If (same) <then_branch = then () => (float[e, f] kept) {{ kept = Identity (state) }},
    else_branch = otherwise () => (float[e, f] fresh) {{ fresh = Transpose (x) }}>
}}"""


@pytest.mark.parametrize("asks", ASKS.values(), ids=list(ASKS))
def test_comparison_of_sizes(asks: str, tmp_path: Path) -> None:
    model = parser.parse_model(MODEL.format(asks=asks))
    there = tmp_path / "there.xml"
    bridge.convert(model, there)
    back = bridge.to_onnx(there)
    for count in (2, 3):
        feed = {
            "x": np.arange(6, dtype=np.float32).reshape(3, 2),
            "state": np.ones((2, count), np.float32),
        }
        expected = OnnxRuntime(model).run(feed)
        assert_close(OpenVino(there).run(list(feed.values())), expected)
        assert_close(OnnxRuntime(back).run(feed), expected)


def test_trusted_symbols_decide(tmp_path: Path) -> None:
    model = parser.parse_model(MODEL.format(asks=ASKS["equal"]))
    bridge.convert(model, tmp_path / "trusted.xml", trust_symbols=True)
    assert '"If"' not in (tmp_path / "trusted.xml").read_text(encoding="utf-8")
