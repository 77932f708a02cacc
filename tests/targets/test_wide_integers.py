"""Which integers are said to be computed in 32 bits: a table of graphs and names."""

from pathlib import Path

import pytest
from onnx import parser

import bridge

CASES = {
    "a difference": ("(int64[n] t) => (int64[n] y) <int64 c = {1000}> { y = Sub (t, c) }", "t"),
    "a quotient as an index": (
        "(int64[n] t, float[9] x) => (float[n] y) <int64 c = {1000}> "
        "{ i = Mod (t, c) y = Gather (x, i) }",
        "t",
    ),
    "what is handed on": (
        "(int64[n] t, int64[m] i, bool c) => (int64[m] y) { g = Gather (t, i) y = If (c) "
        "<then_branch = a () => (int64[m] u) { u = Identity (g) }, "
        "else_branch = b () => (int64[m] v) { v = Neg (g) }> }",
        "t",
    ),
    "a hash in a Loop": (
        "(int64[n] t, int64 h0) => (int64 y) <int64 p = {31}, bool go = {1}> { k = Shape (t) "
        "m = Squeeze (k) y = Loop (m, go, h0) <body = b (int64 i, bool c, int64 h) => "
        "(bool d, int64 o) { d = Identity (c) e = Gather (t, i) f = Mul (h, p) o = Add (f, e) }> }",
        "t h0",
    ),
    "a large constant": (
        "(int32[n] t) => (bool[n] y) <int64 c = {3000000000}> "
        "{ w = Cast <to = 7> (t) y = Less (w, c) }",
        "c w",
    ),
    "u32 in 64 bits": ("(uint32[n] t) => (int64[n] y) { y = Cast <to = 7> (t) }", "y"),
    "u64": ("(uint64[n] t) => (double[n] y) { y = Cast <to = 11> (t) }", "t"),
    "a time after another": ("(int64[n] t, int64[n] u) => (bool[n] y) { y = Less (t, u) }", "t u"),
    "an index": (
        "(float[9] x, int64[n] i) => (float[n] y) <int64 c = {1}> "
        "{ j = Add (i, c) y = Gather (x, j) }",
        "",
    ),
    "a shape": ("(float[n] x, int64[2] s) => (float[a,b] y) { y = Reshape (x, s) }", ""),
    "a mask": (
        "(int64[n] m, float[n] x) => (float[n] y, bool[n] z) <int64 c = {0}> "
        "{ f = Cast <to = 1> (m) y = Mul (x, f) z = Equal (m, c) }",
        "",
    ),
    "lengths": (
        "(float[n] x, int64[b,1] l) => (bool[b,n] y) <int64 o = {0}, int64 e = {1}> "
        "{ k = Shape (x) m = Squeeze (k) r = Range (o, m, e) y = Less (r, l) }",
        "",
    ),
    "positions of a mask": (
        "(int64[b,n] m, float[99] x) => (float[b,n] y) <int64 a = {1}, int64 c = {1}> "
        "{ s = CumSum (m, a) p = Sub (s, c) y = Gather (x, p) }",
        "",
    ),
    "ends of i64": (
        "(float[n] x) => (float[k] y) <int64[1] o = {0}, int64[1] e = {9223372036854775807}> "
        "{ y = Slice (x, o, e) }",
        "",
    ),
    "u32": ("(uint32[n] t) => (uint32[n] y) { y = Mul (t, t) }", ""),
}


@pytest.mark.parametrize("case", CASES)
def test_note(case: str, tmp_path: Path) -> None:
    text, names = CASES[case]
    model = parser.parse_model(f'<ir_version: 9, opset_import: ["": 18]> g {text}')
    wanted = ", ".join(f'"{name}"' for name in names.split())
    notes = bridge.convert(model, tmp_path / "m.xml", debug=True).notes
    assert notes == ([f"integers are computed in 32 bits: {wanted}"] if names else [])
    assert not bridge.convert(model, tmp_path / "any.xml", device="ANY").notes
