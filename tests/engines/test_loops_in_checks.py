"""Loops count as branches do in a check, and what was not shown is said first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import pytest

import bridge
from bridge.check import CheckReport, check
from bridge.check.branches import BranchResults, Forced
from bridge.check.surgery.sites import Site
from tests.support.layer_changes import changes
from tests.support.model_files import FOLDER
from tests.support.reports import feeds_of
from tests.support.sample import thinned

HEAD = '<ir_version: 9, opset_import: ["" : 18]> '
TIMEOUT = 2.0
"""Seconds for a run: with some inputs, and some changes, a Loop has no end."""

WHILE = """g (float[N] x, float lim) => (float[N] y) {
  most = ReduceMax<keepdims = 0>(x)
  starts = Less(most, lim)
  y = Loop ("", starts, x) <body = b (int64 i, bool c, float[N] v) => (bool more, float[N] w) {
    w = Exp(v)
    m = ReduceMax<keepdims = 0>(w)
    more = Less(m, lim)
  }>
}"""
SCAN = """g (float[1,2] s, float[N,1,2] xs) => (float[1,2] y) {
  y = Scan<num_scan_inputs = 1, body = b (float[1,2] a, float[1,2] x) => (float[1,2] t) {
    t = Add(a, x)
  }>(s, xs)
}"""
FOUR_TIMES = """g (float[2] x) => (float[2] y) <int64 n = {4}> {
  y = Loop (n, "", x) <body = b (int64 i, bool c, float[2] v) => (bool c1, float[2] w) {
    c1 = Identity(c)
    w = Exp(v)
  }>
}"""
CASES = {
    "a condition": (WHILE, {"none": "reached", "one": "reached", "several": "reached"}),
    "slices": (SCAN, {"one": "reached", "several": "reached"}),
    "a constant": (FOUR_TIMES, {"none": "failing", "one": "failing", "several": "reached"}),
}


def states(report: CheckReport) -> dict[str, str]:
    (loop,) = report.as_json()["loops"]
    return {role: loop[role]["state"] for role in ("none", "one", "several")}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("suffix", [".onnx", ".xml"])
def test_inputs_are_sought_for_numbers_of_iterations(
    name: str, suffix: str, tmp_path: Path
) -> None:
    text, wanted = CASES[name]
    bridge.convert(onnx.parser.parse_model(HEAD + text), tmp_path / f"m{suffix}")
    report = check(tmp_path / f"m{suffix}", budget=8, timeout=TIMEOUT)
    assert report.ok, str(report)
    assert states(report).items() >= wanted.items(), str(report)
    unknown = "unknown" in states(report).values()
    assert ("numbers of iterations not shown" in report.summary().splitlines()[0]) == unknown


PLANTED = [
    ("loop_condition_rank_2.onnxtxt", "Less"),
    ("loop_fibonacci.onnxtxt", "Add"),
    ("if_captures_condition.onnxtxt", "Subtract"),
    ("loop_while.xml", "Less"),
]


@pytest.mark.parametrize(("model", "layer"), thinned(PLANTED, 2))
def test_a_change_in_a_body_is_found(model: str, layer: str, tmp_path: Path) -> None:
    bridge.convert(FOLDER / model, tmp_path / "m.xml")
    first = next(changes((tmp_path / "m.xml").read_text(encoding="utf-8"), layer))
    (tmp_path / "m.xml").write_text(first, encoding="utf-8")
    report = check(FOLDER / model, tmp_path / "m.xml", budget=40, timeout=TIMEOUT)
    assert not report.ok, str(report)
    assert report.summary().startswith("NOT OK")


NEVER = """g (float[N] x) => (float[N] y) {
  square = Mul(x, x)
  least = ReduceMin<keepdims = 0>(square)
  below = Constant<value = float {-1}>()
  starts = Less(least, below)
  y = Loop ("", starts, x) <body = b (int64 i, bool c, float[N] v) => (bool more, float[N] w) {
    w = Add(v, v)
    top = ReduceMin<keepdims = 0>(w)
    more = Less(top, below)
  }>
}"""


@pytest.mark.parametrize(
    ("suffix", "operator", "state"), [(".onnx", "Add", "forced"), (".xml", "Mul", "different")]
)
def test_numbers_of_iterations_without_an_input_are_forced(
    suffix: str, operator: str, state: str, tmp_path: Path
) -> None:
    """In both models alike: a change in the body is found though no input runs it."""
    bridge.convert(onnx.parser.parse_model(HEAD + NEVER), tmp_path / f"m{suffix}")
    changed = onnx.parser.parse_model(HEAD + NEVER.replace("Add(", f"{operator}("))
    bridge.convert(changed, tmp_path / "other.xml")
    report = check(tmp_path / f"m{suffix}", tmp_path / "other.xml", budget=8, timeout=TIMEOUT)
    assert states(report) == {"none": "reached", "one": state, "several": state}, str(report)
    assert report.ok == (state == "forced")


EXCHANGED = """g (float[N] x, float[M] v, int64 trips) => (float[K] y) {
  other, y = Loop (trips, "", v, x) <
    body = b (int64 i, bool c, float[a] p, float[b] q) => (bool again, float[b] r, float[a] s) {
      again = Identity(c) r = Identity(q) s = Identity(p)
    }>
}"""
ONCE = """g (float[N] x, float[M] v, int64 trips) => (float[K] y) {
  zero = Constant<value = int64 {0}>()
  never = Equal(trips, zero)
  y = If (never) <
    then_branch = t () => (float[a] first) { first = Identity(x) },
    else_branch = e () => (float[b] second) { second = Identity(v) }>
}"""


def test_even_and_odd_numbers_of_iterations_are_tried(tmp_path: Path) -> None:
    bridge.convert(onnx.parser.parse_model(HEAD + EXCHANGED), tmp_path / "m.onnx")
    bridge.convert(onnx.parser.parse_model(HEAD + ONCE), tmp_path / "other.onnx")
    report = check(tmp_path / "m.onnx", tmp_path / "other.onnx")
    assert {int(feed["trips"]) % 2 for feed in feeds_of(report) if feed["trips"] > 1} == {0, 1}
    assert not report.ok


def test_a_conversion_is_held_to_forced_iterations(tmp_path: Path) -> None:
    source = onnx.parser.parse_model(HEAD + NEVER)
    report = check(source, budget=8, timeout=TIMEOUT)
    assert report.ok and "not shown" not in report.summary(), str(report)
    assert states(report) == {"none": "reached", "one": "forced", "several": "forced"}


def test_what_fails_in_the_other_model_alone_is_not_shown() -> None:
    """The number of iterations may be one that never is, so that it is no difference either."""
    failing = Forced((0, 0), "m.xml fails: no", {})
    forced = {(0, 0): failing, (0, 1): Forced((0, 1), "the model itself fails there: no")}
    branches = BranchResults([Site(0, "graph / Loop", (), True)], forced=forced)
    assert [branches.state((0, count)).state for count in range(2)] == ["unknown", "failing"]
    assert not branches.different


EXTREME = """g (float[N] x) => (float[N] y) {
  s = ReduceSum<keepdims = 0>(x)
  big = Constant<value = float {1e8}>()
  c = Greater(s, big)
  y = If (c) <
    then_branch = a () => (float[N] t) { t = THEN(x) },
    else_branch = b () => (float[N] u) { u = Neg(x) }>
}"""


@pytest.mark.parametrize(("then", "ok"), [("Round", True), ("Sin", True), ("Abs", False)])
def test_an_extreme_input_alone_is_no_verdict(then: str, ok: bool, tmp_path: Path) -> None:
    """Sin of large numbers differs among libraries, and so may any rounding. A branch that only
    such an input takes is forced with others."""
    for name, operator in (("m.onnx", then), ("other.xml", then if ok else "Relu")):
        text = HEAD + EXTREME.replace("THEN", operator)
        bridge.convert(onnx.parser.parse_model(text), tmp_path / name)
    report = check(tmp_path / "m.onnx", tmp_path / "other.xml", budget=20)
    assert report.ok == ok, str(report)
    assert {report.branches.state((0, b)).state for b in (True, False)} <= {
        "reached",
        "forced",
        "different",
    }


def test_a_model_of_fixed_sizes_is_held_to_one_of_open_sizes(tmp_path: Path) -> None:
    source = onnx.parser.parse_model(HEAD + WHILE)
    bridge.convert(source, tmp_path / "open.onnx")
    bridge.convert(source, tmp_path / "fixed.xml", input_shapes={"x": [3]})
    for pair in (("open.onnx", "fixed.xml"), ("fixed.xml", "open.onnx")):
        report = check(*(tmp_path / name for name in pair))
        assert report.ok, str(report)
        assert all(np.shape(feeds["x"]) == (3,) for feeds in feeds_of(report))


def test_branches_that_the_other_file_lacks_are_accounted_for(tmp_path: Path) -> None:
    """With fixed sizes the condition is known, and the If is not in the file."""
    text = """g (float[N,M] x) => (float[N,M] y) {
  size = Shape<start = 1, end = 2>(x)
  four = Constant<value = int64[1] {4}>()
  c = Equal(size, four)
  y = If (c) <
    then_branch = a () => (float[N,M] t) { t = Abs(x) },
    else_branch = b () => (float[N,M] u) { u = Neg(x) }>
}"""
    source = onnx.parser.parse_model(HEAD + text)
    bridge.convert(source, tmp_path / "m.onnx")
    bridge.convert(source, tmp_path / "m.xml", input_shapes={"x": [2, 4]})
    report = check(tmp_path / "m.onnx", tmp_path / "m.xml")
    assert report.ok and "not shown" not in report.summary(), str(report)
    assert report.branches.state((0, True)).state == "reached"
    assert report.branches.state((0, False)).state == "pruned", str(report)
