"""A mismatch is traced to the first value that differs, into Ifs and the iterations of Loops, and
to who is at fault."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import openvino
import pytest

import bridge
from bridge import quirks
from bridge.check import check
from bridge.check.diagnosis import values
from tests.quirks.canaries import CANARIES
from tests.quirks.test_canaries import proto_of
from tests.support.sample import thinned

from .test_check import saved

HEADER = '<ir_version: 9, opset_import: ["" : 18]>'
BUDGET = 20
"""How many runs look for inputs by chance; the first inputs show the damage."""

# From iteration 3 on `late` is true.
LATE = """g (float[4] x, int64 n) => (float[4] y, float[k,4] every)
<int64 three = {3}, float one = {1}, float ten = {10}> {
  scaled = Mul (x, one)
  y, every = Loop (n, "", scaled) <body = body (int64 i, bool going, float[4] v)
      => (bool still, float[4] w, float[4] copy) {
    s = Sin (v)
    late = GreaterOrEqual (i, three)
    picked = Where (late, one, one)
    w = Add (s, picked)
    copy = Identity (w)
    still = Identity (going)
  }>
}"""

# The inner If is asked in each iteration of the inner Loop of each of the outer one.
DEEP = """g (float[4] x, int64 n) => (float[4] y)
<int64 two = {2}, int64 one = {1}, int64 four = {4}> {
  y = Loop (n, "", x) <body = outer (int64 i, bool ci, float[4] v) => (bool di, float[4] w) {
    w = Loop (four, "", v) <body = inner (int64 j, bool cj, float[4] a) => (bool dj, float[4] b) {
      at = Equal (i, two)
      on = Equal (j, one)
      both = And (at, on)
      b = If (both) <
        then_branch = t () => (float[4] p) { half = Sin (a) p = Cos (half) },
        else_branch = e () => (float[4] q) { q = Tanh (a) }>
      dj = Identity (cj)
    }>
    di = Identity (ci)
  }>
}"""

# A Scan has no iteration number, and what it stacks is all that comes out of some of it.
SCAN = """g (float[5,2] rows, float[2] start) => (float[2] y, float[5,2] sums) {
  y, sums = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] row)
      => (float[2] t, float[2] part) {
    t = Add (s, row)
    big = Abs (t)
    part = Mul (big, row)
  }> (start, rows)
}"""

# The shape of the state grows, so that no two iterations could be stacked.
GROWING = """g (float[N] x, int64 n) => (float[M] y) <float zero = {0}> {
  y = Loop (n, "", x) <body = b (int64 i, bool c, float[A] s) => (bool d, float[B] t) {
    d = Identity (c)
    f = Cast <to = 1> (i)
    e = Add (s, f)
    t = Concat <axis = 0> (e, x)
  }>
}"""

ENDS = """g (float[2] x, int64 n) => (float[2] y) <int64 three = {3}> {
  y = Loop (n, "", x) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
    t = Sin (s)
    d = Less (i, three)
  }>
}"""


@dataclass(frozen=True)
class Damage:
    """A model, what is put in the place of what, and what the report then says."""

    model: str
    old: str
    new: str
    says: str
    fills: dict[str, float] = field(default_factory=lambda: {"n": 7})


DAMAGES = {
    "a Loop's body": Damage(LATE, "Sin (v)", "Cos (v)", "'s', which Loop \"y\" / body / Sin \"s\" "
        'makes in iteration 0 (from 0) of Loop "y" ('),
    "a Loop's body, from one iteration on": Damage(LATE, "Where (late, one, one)",
        "Where (late, ten, one)", "'picked', which Loop \"y\" / body / Where \"picked\" makes in "
        'iteration 3 (from 0) of Loop "y" ('),
    "before a Loop": Damage(LATE, "Mul (x, one)", "Add (x, one)",
        "'scaled', which Mul \"scaled\" makes ("),
    "an If in a Loop in a Loop": Damage(DEEP, "Cos (half)", "Exp (half)",
        '\'p\', which Loop "y" / body / Loop "w" / body / If "b" / then_branch / Cos "p" makes in '
        'iteration 2 (from 0) of Loop "y" in iteration 1 (from 0) of Loop "w" ('),
    "a Scan": Damage(SCAN, "Abs (t)", "Neg (t)", "'big', which Loop \"y\" / body / Abs \"big\" "
        'makes in iteration ', fills={"start": 10, "rows": 1}),
    "a state that grows": Damage(GROWING, "Add (s, f)", "Sub (s, f)", "'e', which Loop \"y\" / "
        'body / Add "e" makes in iteration 1 (from 0) of Loop "y" ('),
    "how long a Loop goes on": Damage(ENDS, "Less (i, three)", "LessOrEqual (i, three)",
        "'d', which Loop \"y\" / body / Less \"d\" makes in iteration 3 (from 0) of Loop \"y\" ("),
}  # fmt: skip


def damaged(case: Damage, folder: Path) -> tuple[Path, Path]:
    """The model, and an IR made of it with the damage."""
    assert case.old in case.model
    wrong = f"{HEADER} {case.model.replace(case.old, case.new)}"
    bridge.convert(onnx.parser.parse_model(wrong), folder / "m.xml")
    return saved(f"{HEADER} {case.model}", folder / "m.onnx"), folder / "m.xml"


@pytest.mark.parametrize("name", thinned(DAMAGES, 2))
def test_a_damaged_ir(name: str, tmp_path: Path) -> None:
    case = DAMAGES[name]
    right, wrong = damaged(case, tmp_path)
    report = check(right, wrong, fills=case.fills, budget=BUDGET)
    assert f"the first value that differs is {case.says}" in str(report), str(report)
    assert report.diagnosis.blame is not None and report.diagnosis.blame.who == "file", str(report)
    assert "at fault: m.xml: m.xml, as ONNX, run by onnx" in str(report)
    assert "convert the original anew" in report.diagnosis.blame.advice
    assert {label for label, around in report.diagnosis.around.items() if around} == {
        "original",
        "m.xml",
    }


@pytest.mark.parametrize("name", thinned(DAMAGES, 2, first=1))
def test_a_damaged_model_beside_an_ir(name: str, tmp_path: Path) -> None:
    """The same the other way round: the IR is the original, and ONNX is held to it."""
    case = DAMAGES[name]
    model, _ = damaged(case, tmp_path)
    right = onnx.parser.parse_model(f"{HEADER} {case.model}")
    bridge.convert(right, tmp_path / "right.xml")
    wrong = f"{HEADER} {case.model.replace(case.old, case.new)}"
    saved(wrong, model)
    report = check(tmp_path / "right.xml", model, fills=case.fills, budget=BUDGET)
    assert isinstance(report.diagnosis.first, values.FirstDifference), str(report)
    assert report.diagnosis.first.name == case.says.split("'")[1]
    assert report.diagnosis.blame is not None and report.diagnosis.blame.who == "file", str(report)


def test_few_values_at_once_find_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "_AT_ONCE", 2)
    case = DAMAGES["an If in a Loop in a Loop"]
    report = check(*damaged(case, tmp_path), fills=case.fills, budget=BUDGET)
    assert case.says in str(report)


# Quirks that are left out, and inputs that then show the fault.
FAULTS: dict[str, dict[str, float]] = {
    "absolute_value_of_shape": {},
    "bias_of_lrn": {},
    "saturating_bytes": {"x": 200, "z": 100},
    "sizes_of_states": {"n": 3},
    "memory_inside": {},
}


@pytest.mark.parametrize("path", FAULTS)
def test_a_fault_of_an_engine(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an engine computes wrongly of a right file is not put down to the conversion."""
    canary = CANARIES[path]
    model = proto_of(canary)
    onnx.save(model, tmp_path / "m.onnx")
    left_out = {path, *canary.hidden_by}
    with monkeypatch.context() as patch:
        rest = tuple(name for name in quirks.order() if name not in left_out)
        patch.setattr(quirks, "order", lambda: rest)
        bridge.convert(model, tmp_path / "m.xml")
    report = check(tmp_path / "m.onnx", tmp_path / "m.xml", fills=FAULTS[path])
    assert report.different, str(report)
    assert report.diagnosis.blame is not None, str(report)
    assert (report.diagnosis.blame.who, report.diagnosis.blame.engine) == ("engine", "OpenVINO"), (
        str(report)
    )
    why = r"at fault: OpenVINO: m.xml, as ONNX, run by onnx(runtime|.reference), gives what the"
    assert re.search(why, str(report)), str(report)


def test_a_fault_of_old_releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is right for old releases is to be converted so."""
    path = "saturating_bytes"
    monkeypatch.setattr(quirks.named(path), "until", "2026.4")
    onnx.save(proto_of(CANARIES[path]), tmp_path / "m.onnx")
    report = check(tmp_path / "m.onnx", fills=FAULTS[path])
    assert report.different, str(report)
    release = ".".join(openvino.__version__.split(".")[:2])
    assert f"next: convert with --openvino {release}, which is right here" in str(report)


def test_a_fault_of_the_engine_of_an_ir(tmp_path: Path) -> None:
    """OpenVINO leaves out the lengths of a layer of open sizes; onnx.reference would, too."""
    layer = onnx.parser.parse_model("""
        <ir_version: 9, opset_import: ["" : 18]>
        layer (float[t,n,2] x, int64[n] lengths) => (float[?,?,?,?] y)
          <float[1,9,2] w = {0.5, 1, -1, 0.2, 0.7, -0.3, 0.4, 0.9, -0.6, 0.1, 0.8, -0.2, 0.3, 0.6,
                             -0.9, 0.35, 0.15, -0.45},
           float[1,9,3] r = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.1, 0.2, 0.3, 0.4, 0.5,
                             0.6, 0.7, 0.8, 0.9, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}> {
          each = Cast <to = 6> (lengths)
          y, last = GRU <hidden_size = 3> (x, w, r, , each)
        }""")
    onnx.save(layer, tmp_path / "m.onnx")
    openvino.save_model(openvino.Core().read_model(tmp_path / "m.onnx"), tmp_path / "m.xml", False)
    x = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 2, 2)
    np.savez(tmp_path / "x.npz", x=x, lengths=np.array([4, 2]))
    report = check(tmp_path / "m.xml", inputs=tmp_path / "x.npz", samples=0)
    assert report.different and report.diagnosis.blame is not None
    assert (report.diagnosis.blame.who, report.diagnosis.blame.engine) == ("engine", "OpenVINO"), (
        str(report)
    )
    assert "let Bridge make an IR" in report.diagnosis.blame.advice


def test_scripts_are_told_where_and_who(tmp_path: Path) -> None:
    case = DAMAGES["an If in a Loop in a Loop"]
    data = check(*damaged(case, tmp_path), fills=case.fills, budget=BUDGET).as_json()
    first = data["first_difference"]
    assert first["name"] == "p" and [one["iteration"] for one in first["iterations"]] == [2, 1]
    assert data["fault"]["who"] == "file" and data["fault"]["advice"]


def test_a_value_that_becomes_elements_and_shape(tmp_path: Path) -> None:
    """The model says a rank of its output that it does not have; the shape is an output, too."""
    text = """g (int64 trips, float[N] x) => (float[] y, int64[R] shape) <int64[1] one = {1}> {
      z = Loop (trips, "", x) <body = b (int64 i, bool again, float[] old)
          => (bool still, float[] new) {
        still = Identity (again)
        sizes = Shape (old)
        longer = Concat <axis = 0> (one, sizes)
        new = Reshape (old, longer)
      }>
      shape = Shape (z)
      y = Neg (z)
    }"""
    report = check(saved(HEADER + text, tmp_path / "m.onnx"), samples=1)
    assert report.ok, str(report)


def test_constants_beside_the_first_difference_show_their_values(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[8] x) => (float[8] y)
    <float[8] w = {1, 2, %s, 4, 5, 6, 7, 8}> { y = Mul (x, w) }"""
    bridge.convert(onnx.parser.parse_model(text % 9), tmp_path / "other.xml")
    report = check(saved(text % 3, tmp_path / "m.onnx"), tmp_path / "other.xml", samples=1)
    first = "f32[8] = 1.0, 2.0, %s, 4.0, 5.0, 6.0, ..."
    said = str(report)
    assert f'takes the constant "w": {first % "3.0"}' in said
    assert said.count("takes the constant") == 2 and first % "9.0" in said
