"""States of a Loop that start with the states of the outer Loop: their sizes are hidden once, in
the outer Loop."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import onnx
import openvino
import pytest

import bridge
from tests.support.running import EXACT, OnnxRuntime, assert_close, run_request

CHANGES = {
    "grows": "n = Concat <axis = 0> (m, one)",
    "shrinks": "n = Slice (m, first, far, zero)",
    "doubles": "n = Concat <axis = 0> (m, m)",
}
ASKS = {
    "its size as a number": "z = Shape (q) f = Cast <to = 1> (z) m = Mul (q, f)",
    "its size as a shape": "z = Shape (q) e = Expand (one, z) m = Add (q, e)",
}
MODEL = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[n0] x, int64 outer, int64 inner) => (float[z1] y)
    <float[1] one = {1}, int64[1] first = {1}, int64[1] zero = {0}, int64[1] far = {99999}> {
      y = Loop (outer, , x) <body = around (int64 i, bool d, float[k] s) => (bool d2, float[l] t) {
        d2 = Identity (d)
        w = Loop (inner, , s) <body = within (int64 j, bool c, float[k2] q)
          => (bool c2, float[l2] n) { c2 = Identity (c) ASK CHANGE }>
        sizes = Shape (w) number = Cast <to = 1> (sizes) t = Add (w, number) }>
    }"""


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("ask", ASKS)
def test_sizes_are_hidden_once(change: str, ask: str, tmp_path: Path) -> None:
    text = MODEL.replace("ASK", ASKS[ask]).replace("CHANGE", CHANGES[change])
    model = onnx.parser.parse_model(text)
    bridge.convert(model, tmp_path / "a.xml")
    # One hides the sizes. One keeps the output of the If that guards the inner Loop.
    assert (tmp_path / "a.xml").read_text().count('type="VariadicSplit"') == 2
    engine = OnnxRuntime(model)
    compiled = openvino.Core().compile_model(tmp_path / "a.xml", "CPU", EXACT)
    used, rng = compiled.create_infer_request(), np.random.default_rng(0)
    for size, outer, inner in product((1, 3), (1, 2, 0, 3), (2, 0, 1)):
        x = rng.normal(size=size).astype(np.float32)
        given = [x, np.array(outer), np.array(inner)]
        expected = engine.run(dict(zip(("x", "outer", "inner"), given, strict=True)))
        for request in (used, compiled.create_infer_request()):
            assert_close(run_request(request, given), expected)
