"""The rule for a verdict with real files: what differs, what is within the noise, and what the
first line says was not shown. `test_rule` has the rule itself, as a table of arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino as ov
import pytest

import bridge
from bridge.check import CheckReport, check
from tests.support.reports import feeds_of

ABOVE = float(np.nextafter(np.float32(1), np.float32(2)))

GREATER = "g = Greater (t, limit) d = Cast <to = 1> (g)"


def model(path: Path, body: str, outputs: str = "float[n] y", inputs: str = "float[2] x") -> Path:
    text = (
        f'<ir_version: 10, opset_import: ["": 21]> m ({inputs}) => ({outputs}) '
        "<float[1] limit = {1}, float[1] five = {5}, float[1] hundred = {100}, "
        "float[1] less = {0.9999999}, float[1] million = {1000000}, float[1] more = {1.03}, "
        f"float[1] large = {{1e8}}, float[1] step = {{2}}> {{ {body} }}"
    )
    onnx.save(onnx.parser.parse_model(text), path)
    return path


def first_line(report: CheckReport) -> str:
    return report.summary().splitlines()[0]


def scored(path: Path, factor: float, decision: str, added: str = "five") -> Path:
    """A model of x, whose second element is `factor` times as large when a decision is taken."""
    scores = f"f = Constant <value_floats = [3.0, {3 * factor!r}]> () t = Mul (x, f)"
    return model(path, f"{scores} {decision} y = Add (d, {added})")


def thirds(folder: Path) -> dict[str, Any]:
    np.savez(folder / "x.npz", x=np.full(2, 1 / 3, np.float32))
    return {"inputs": folder / "x.npz", "samples": 0}


DECISIONS = {
    "ArgMax": "i = ArgMax <axis = 0> (t) d = Cast <to = 1> (i)",
    "Greater": GREATER,
    "Floor": "n = Neg (t) d = Floor (n)",
    "QuantizeLinear": "q = QuantizeLinear (t, step) d = Cast <to = 1> (q)",
}


@pytest.mark.parametrize("added", ["hundred", "five"])
@pytest.mark.parametrize("name", DECISIONS)
def test_a_difference_within_the_noise_is_told(name: str, added: str, tmp_path: Path) -> None:
    files = [
        scored(tmp_path / f"{place}.onnx", factor, DECISIONS[name], added)
        for place, factor in enumerate((1.0, ABOVE))
    ]
    report = check(*files, **thirds(tmp_path))
    assert report.ok and report.as_json()["verdict"] == "within noise", str(report)
    (output,) = report.as_json()["outputs"]
    if added == "hundred":
        assert first_line(report).startswith("OK within the original's noise (output y, ")
    else:  # A step is a large part of the output.
        assert "; 'y' is not shown: the original's noise is " in first_line(report)
    assert output["state"] == ("noise" if added == "hundred" else "unshown") and output["equal"]
    # The user's own tolerance decides alone.
    assert check(*files, **thirds(tmp_path), rtol=1e-3).different


ROUNDED = {
    "QuantizeLinear": "q = QuantizeLinear (x, step) d = Cast <to = 1> (q) y = Mul (d, step)",
    "Round": "h = Div (x, step) r = Round (h) y = Mul (r, step)",
}


@pytest.mark.parametrize("name", ROUNDED)
def test_halves_that_are_exact_are_no_noise(name: str, tmp_path: Path) -> None:
    away = """h = Div (x, step) a = Abs (h) s = Sign (h) o = Constant <value_float = 0.5> ()
        u = Add (a, o) f = Floor (u) r = Mul (f, s) y = Mul (r, step)"""
    inputs: dict[str, Any] = {"inputs": {"x": np.array([1, 5], np.float32)}, "samples": 0}
    files = [model(tmp_path / f"{len(b)}.onnx", b) for b in (ROUNDED[name], away)]
    assert check(*files, **inputs).different
    bridge.convert(files[0], tmp_path / "m.xml")
    right = check(files[0], tmp_path / "m.xml", **inputs)
    assert right.ok and "noise" not in str(right), str(right)


def test_where_noise_is_large_smaller_inputs_are_sought(tmp_path: Path) -> None:
    """A sum loses what is small beside a million squares: less of it, if all is smaller."""
    squares = "p = Mul (x, x) q = Mul (p, million) o = Mul (x, million) r = Mul (o, x) "
    one, other = (f"{squares} s = Add ({a}, x) d = Sub (s, {b})" for a, b in ("qr", "rq"))
    bodies = [f"{one} y = Identity (d)", f"{other} y = Identity (d)", f"{other} y = Mul (d, more)"]
    first, right, fault = (
        model(tmp_path / f"{n}.onnx", body, "float[99] y", "float[99] x")
        for n, body in enumerate(bodies)
    )
    report = check(first, right, samples=1, quick=True)
    assert report.ok and "'y' is not shown by " in first_line(report), str(report)
    assert check(first, fault, samples=1, quick=True).different
    report = check(first, fault, inputs={"x": np.full(99, 1.7, np.float32)}, samples=0)
    assert report.ok and "'y' is not shown: " in first_line(report), str(report)


@pytest.mark.parametrize("low", [-20.0, -19.6])
def test_steps_of_a_fake_quantize_may_count_from_zero(low: float, tmp_path: Path) -> None:
    """OpenVINO moves them by up to a tenth of a step, so that one of them is 0."""
    op = ov.opset13
    x = op.parameter([64, 8], np.float32, name="x")
    ends = np.float32(low), np.float32(19.84)
    weights = np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32)
    y = op.fake_quantize(op.matmul(x, weights, False, False), *ends, *ends, 256)
    ov.save_model(ov.Model([y], [x]), tmp_path / "m.xml", False)
    assert check(tmp_path / "m.xml").ok
    z = op.add(y, np.float32(0.02))
    ov.save_model(ov.Model([z], [x]), tmp_path / "n.xml", False)
    assert check(tmp_path / "m.xml", tmp_path / "n.xml").different


def test_a_small_sigmoid_is_off_by_units_of_1(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=np.array([-14, -13.5], np.float32))
    inputs = {"inputs": tmp_path / "x.npz", "samples": 0}
    original = model(tmp_path / "a.onnx", "y = Sigmoid (x)")
    exact = "n = Neg (x) e = Exp (n) o = Constant <value_float = 1.0> () d = Add (o, e) "
    report = check(original, model(tmp_path / "b.onnx", exact + "y = Div (o, d)"), **inputs)
    assert report.ok and report.as_json()["verdict"] == "within noise", str(report)
    twice = model(tmp_path / "c.onnx", "s = Sigmoid (x) y = Add (s, s)")
    assert check(original, twice, **inputs).different


def test_steps_from_the_lowest_number_are_off_by_its_units(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=np.array([1e-4, -2e-4], np.float32))
    inputs = {"inputs": tmp_path / "x.npz", "samples": 0}

    def opened(zero: int, form: str) -> Path:
        step = f"s = Constant <value = float {{1.1e-4}}> () q = QuantizeLinear (x, s, z) {form}"
        zero_point = f"z = Constant <value = uint16 {{{zero}}}> ()"
        return model(tmp_path / f"{len(form)}.onnx", f"{zero_point} {step}")

    exact = "y = DequantizeLinear (q, s, z)"
    steps = (
        "i = Cast <to = 1> (q) n = Cast <to = 1> (z) m = Mul (i, s) l = Mul (n, s) y = Sub (m, l)"
    )
    report = check(opened(60001, exact), opened(60001, steps), **inputs)
    assert report.ok and report.as_json()["verdict"] == "within noise", str(report)
    moved = "d = DequantizeLinear (q, s, z) o = Constant <value_float = 2e-7> () y = Add (d, o)"
    assert check(opened(30, exact), opened(30, moved), **inputs).different


@pytest.mark.parametrize("decision", [GREATER, GREATER.replace("Greater", "Less")])
def test_a_fault_does_not_hide_behind_noise(decision: str, tmp_path: Path) -> None:
    one = scored(tmp_path / "a.onnx", 1.0, GREATER)
    other = scored(tmp_path / "b.onnx", ABOVE, decision, "step")
    report = check(one, other, **thirds(tmp_path))
    assert report.different and first_line(report).startswith("NOT OK: "), str(report)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s = Add (x, large) y = Sub (s, large)", "y = Mul (x, large)"),
        ("y = Identity (x)", "s = Add (x, large) y = Sub (s, large)"),
    ],
)
def test_what_rounds_differs_from_what_does_not(one: str, other: str, tmp_path: Path) -> None:
    files = [model(tmp_path / f"{n}.onnx", body) for n, body in enumerate((one, other))]
    feed = {"x": np.array([0.1, 0.7], np.float32)}
    assert check(*files, inputs=feed, samples=0).different


def test_outputs_that_only_one_file_has_are_told(tmp_path: Path) -> None:
    both = model(tmp_path / "a.onnx", "y = Neg (x) z = Exp (x)", "float[2] y, float[2] z")
    alone = model(tmp_path / "b.onnx", "y = Neg (x)")
    for files in ((both, alone), (alone, both)):
        report = check(*files, samples=1)
        told = "output 'z' is only in a.onnx"
        assert report.ok and told in first_line(report), str(report)
        assert told in report.as_json()["told"]


def test_outputs_of_nan_or_nothing_are_told(tmp_path: Path) -> None:
    body = (
        "n = Abs (x) m = Neg (n) p = Sub (m, five) y = Sqrt (p) c = Less (x, x) z = Compress (x, c)"
    )
    path = model(tmp_path / "a.onnx", body, "float[2] y, float[k] z")
    line = first_line(check(path, path, samples=2))
    assert "'y' is NaN alone" in line and "'z' is without elements" in line


BRANCHES = """y = If (c) <then_branch = t () => (float[2] p) { p = Neg (x) },
    else_branch = e () => (float[2] q) { q = Abs (x) }>"""


def test_quick_seeks_no_branches_and_says_which_were_not_shown(tmp_path: Path) -> None:
    never = "s = ReduceSum <keepdims = 0> (x) c = Greater (s, s) " + BRANCHES
    report = check(model(tmp_path / "m.onnx", never), quick=True)
    assert report.ok and len(feeds_of(report)) == 2, str(report)
    assert ", but 1 of 2 branches not shown" in first_line(report)
    assert not report.branches.forced and not report.defaults


def test_an_operator_whose_results_depend_on_threads(tmp_path: Path) -> None:
    """onnxruntime quantises the states of a whole batch with one thread alone."""
    rng = np.random.default_rng(0)
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 18, "com.microsoft": 1]> m (float[s, 3, 8] x) => '
        "(float[s, 1, 3, 16] y) <int8[1, 8, 64] w = {}, int8[1, 16, 64] r = {}, "
        "float[1] k = {0.01}, int8[1] z = {0}> { y = com.microsoft.DynamicQuantizeLSTM "
        "<hidden_size = 16> (x, w, r, , , , , , k, z, k, z) }"
    )
    for tensor in model.graph.initializer[:2]:
        drawn = rng.integers(-90, 90, tuple(tensor.dims)).astype(np.int8)
        tensor.CopyFrom(onnx.numpy_helper.from_array(drawn, tensor.name))
    onnx.save(model, tmp_path / "m.onnx")
    bridge.convert(tmp_path / "m.onnx", tmp_path / "m.xml")
    report = check(tmp_path / "m.onnx", tmp_path / "m.xml", sizes={"s": 5})
    assert report.ok and not report.notes, str(report)
    cases = report.inputs.cases
    drawn = [one for one in report.verdict.comparisons if not cases[one.case].recipe.scales]
    assert max(one.difference.absolute for one in drawn) < 1e-6


@pytest.mark.parametrize(
    ("body", "names"),
    [("y = Less (t, u)", '"t", "u"'), ("y = Gather (t, u)", "")],
)
def test_integers_beyond_32_bits_are_said(body: str, names: str, tmp_path: Path) -> None:
    kind = "bool" if names else "int64"
    text = f"(int64[n] t, int64[1] u) => ({kind}[m] y) {{ {body} }}"
    if not names:
        text = text.replace("int64[n] t", "float[n] t").replace("int64[m]", "float[m]")
    onnx.save(
        onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 18]> m {text}'),
        tmp_path / "m.onnx",
    )
    line = first_line(check(tmp_path / "m.onnx", quick=True))
    said = f", but not for integers beyond 32 bits ({names})"
    assert line.startswith("OK: ") and (said in line) == bool(names), line
    assert "32 bits" not in first_line(check(tmp_path / "m.onnx", tmp_path / "m.onnx", quick=True))
