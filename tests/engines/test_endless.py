"""Loops that no engine ends, which a check tells before it runs them."""

from __future__ import annotations

import time
from pathlib import Path

import onnx
import pytest

import bridge
from bridge.check import check
from bridge.check.endless import endless_loop

HEAD = '<ir_version: 9, opset_import: ["": 18]> g (float[2] x, int64 m, bool d) => (float[2] y) '
BODY = "<body = b (int64 i, bool c, float[2] v) => (bool e, float[2] w) { e = %s w = Neg (v) }>"
SAME, OTHER = BODY % "Identity (c)", BODY % "Identity (d)"
NESTED = """<body = b (int64 i, bool c, float[2] v) => (bool e, float[2] w) {
  e = Identity (c)
  w = Loop (k, "", v) <body = q (int64 j, bool p, float[2] s) => (bool r, float[2] t) {
    r = Identity (p) t = Neg (s)
  }>
}>"""
MANY = 1 << 62
CASES = {
    "many iterations": (f"<int64 n = {{{MANY}}}> {{ y = Loop (n, '', x) {SAME} }}", str(MANY)),
    "no limit": (f"{{ t = Constant <value = bool {{1}}> () y = Loop ('', t, x) {SAME} }}", "never"),
    "a Loop in another": (
        f"<int64 n = {{100000}}, int64 k = {{200000}}> {{ y = Loop (n, '', x) {NESTED} }}",
        "20000000000 iterations",
    ),
    "a count that is computed": (
        f"<int64 n = {{{MANY // 2}}}> {{ k = Add (n, n) y = Loop (k, '', x) {SAME} }}", str(MANY)
    ),
    "few iterations": (f"<int64 n = {{1000}}> {{ y = Loop (n, '', x) {SAME} }}", ""),
    "a condition that is data": (f"<int64 n = {{{MANY}}}> {{ y = Loop (n, d, x) {SAME} }}", ""),
    "one that may turn false": (f"<int64 n = {{{MANY}}}> {{ y = Loop (n, '', x) {OTHER} }}", ""),
    "a count that is data": (f"{{ y = Loop (m, '', x) {SAME} }}", ""),
    "no iteration": (f"<int64 n = {{-1}}> {{ y = Loop (n, '', x) {SAME} }}", ""),
}  # fmt: skip


def model_of(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(HEAD + text.replace("'", '"'))


@pytest.mark.parametrize("name", CASES)
def test_which_loops_never_end(name: str) -> None:
    text, says = CASES[name]
    said = endless_loop(bridge.load(model_of(text)), {}, 60)
    assert (says in said, bool(said)) == (True, bool(says)), said


def test_a_value_can_make_a_loop_endless() -> None:
    model = bridge.load(model_of(CASES["a count that is data"][0]))
    assert "whatever the input" in endless_loop(model, {"m": MANY}, 60)
    assert len(model.graph.inputs) == 3  # The model itself stays.


@pytest.mark.parametrize("suffix", [".onnx", ".xml"])
def test_a_check_tells_it_at_once(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"m{suffix}"
    bridge.convert(model_of(CASES["many iterations"][0]), path)
    began = time.monotonic()
    report = check(path, timeout=20)
    assert time.monotonic() - began < 10
    assert not report.ok and not report.different
    assert f"runs {MANY} iterations, whatever the input" in str(report)
