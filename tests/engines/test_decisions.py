"""Decisions between values that are equal but for rounding: nobody is at fault, and no fault hides
behind one."""

from pathlib import Path

import numpy as np
import onnx
import openvino
import pytest

from bridge.check import CheckReport, check

ABOVE = float(np.nextafter(np.float32(1), np.float32(2)))

GREATER = "g = Greater (t, limit) d = Cast <to = 1> (g)"
IN_A_BRANCH = (
    "total = ReduceSum <keepdims = 0> (x) c = Greater (total, limit) d = If (c) "
    f"<then_branch = b () => (float[2] d) {{ {GREATER} }}, "
    "else_branch = e () => (float[2] q) { q = Neg (x) }>"
)
DECISIONS = {
    "ArgMax": "i = ArgMax <axis = 0> (t) d = Cast <to = 1> (i)",
    "TopK": "v, i = TopK (t, one) d = Cast <to = 1> (i)",
    "Greater": GREATER,
    "Floor": "n = Neg (t) d = Floor (n)",
    "Cast": "n = Mul (t, least) i = Cast <to = 7> (n) d = Cast <to = 1> (i)",
    "QuantizeLinear": "q = QuantizeLinear (t, step) d = Cast <to = 1> (q)",
    "DynamicQuantizeLinear": "n = Mul (t, two_and_a_half) c = Concat <axis = 0> (n, top) "
    "q, s, z = DynamicQuantizeLinear (c) w = Cast <to = 1> (q) d = Slice (w, none, two)",
    "in a branch": IN_A_BRANCH,
    "counted in floats": "l = Less (x, five) w = Cast <to = 1> (l) c = Add (w, w) "
    "i = Cast <to = 7> (c) k = Sub (two, i) m = Mul (k, two) j = Add (m, one) "
    "n = Neg (t) r = Floor (n) d = Gather (r, j)",
    "one after another": "g = Greater (t, limit) c = Cast <to = 1> (g) s = Add (c, t) "
    "n = Neg (s) d = Floor (n)",
    "in front of an If": "g = Greater (t, limit) o = Slice (g, one, two) s = Squeeze (o) "
    "d = If (s) <then_branch = b () => (float[2] p) { p = Mul (x, five) }, "
    "else_branch = c () => (float[2] q) { q = Neg (x) }>",
}

FAULTS: dict[str, tuple[str, str, float, float]] = {
    "another decision": (GREATER.replace("Greater", "GreaterOrEqual"), "five", 1.0, 1.0),
    "another decision in a branch": (
        IN_A_BRANCH.replace("g = Greater (t", "g = GreaterOrEqual (t"),
        "five",
        1.0,
        1.0,
    ),
    "another limit": (GREATER.replace("limit", "least"), "five", 1.0, 1.0),
    "beside a decision": (GREATER, "two_and_a_half", ABOVE, 1.0),
    "operands that differ": (GREATER, "five", 1.01, 1.0),
    "a wrong number that decides": (GREATER, "five", 1.0, 2.0),
}
"""What the second model has, and by what its scores are larger."""


def model(path: Path, scores: float, decision: str, added: str = "five", all: float = 1.0) -> Path:
    """A model of x, whose second element is `scores` times as large, and both `all` times."""
    text = (
        '<ir_version: 9, opset_import: ["": 18]> m (float[2] x) => (float[n] y) '
        "<float[1] limit = {1}, float[1] five = {5}, float[1] two_and_a_half = {2.5}, "
        "int64[1] one = {1}, int64[1] two = {2}, float step = {2}, float[1] least = {0.9999999}, "
        "int64[1] none = {0}, float[1] top = {255}> "
        f"{{ t = Mul (x, f) {decision} y = Add (d, {added}) }}"
    )
    proto = onnx.parser.parse_model(text)
    factors = np.array([all, all * scores], np.float32)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(factors, "f"))
    onnx.save(proto, path)
    return path


def compared(folder: Path, *models: Path) -> CheckReport:
    np.savez(folder / "x.npz", x=np.ones(2, np.float32))
    return check(*models, inputs=folder / "x.npz", samples=0)


def told(report: CheckReport) -> list[str]:
    return [note for note in report.notes if "the original's own noise" in note]


@pytest.mark.parametrize("name", DECISIONS)
def test_a_decision_that_rounding_takes_is_a_note(name: str, tmp_path: Path) -> None:
    one = model(tmp_path / "a.onnx", 1.0, DECISIONS[name])
    other = model(tmp_path / "b.onnx", ABOVE, DECISIONS[name])
    report = compared(tmp_path, one, other)
    assert report.ok and len(told(report)) == 1, str(report)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_does_not_hide_behind_a_decision(name: str, tmp_path: Path) -> None:
    decision, added, scores, all = FAULTS[name]
    one = model(tmp_path / "a.onnx", 1.0, GREATER)
    other = model(tmp_path / "b.onnx", scores, decision, added, all)
    report = compared(tmp_path, one, other)
    assert report.different and not told(report), str(report)


def test_engines_that_round_an_exponential_unlike(tmp_path: Path) -> None:
    """Of so many numbers some are a rounding apart where a whole one ends."""
    proto = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 18]> m (float[100000] x) => (float[100000] y) '
        "<float k = {10000}> { e = Exp (x) s = Mul (e, k) r = Round (s) y = Sin (r) }"
    )
    onnx.save(proto, tmp_path / "m.onnx")
    report = check(tmp_path / "m.onnx", samples=1)
    assert report.ok and told(report), str(report)


@pytest.mark.parametrize("element", [np.float32, np.int64])
def test_a_choice_between_equal_elements(element: type, tmp_path: Path) -> None:
    """OpenVINO's TopK that is not stable takes another of them than ONNX's."""
    x = openvino.opset13.parameter([-1], element, name="x")
    largest = openvino.opset13.topk(x, np.int64(2), -1, "max", "value", "i64")
    openvino.save_model(openvino.Model([largest.output(1)], [x]), tmp_path / "m.xml", False)
    np.savez(tmp_path / "x.npz", x=np.ones(3, element))
    report = check(tmp_path / "m.xml", inputs=tmp_path / "x.npz", samples=0)
    assert report.ok and any("rounds or chooses" in note for note in report.notes), str(report)
