"""What a check says beside equal and different: what defaults cost, and what is not shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino
import pytest
from bridge.check.as_run import HalvedOriginal, Runs, run_as_people_do
from bridge.check.bench import Bench
from bridge.check.loading import load
from bridge.check.outputs import Comparison
from bridge.check.pair import Pair
from bridge.check.results import Compared

import bridge
from bridge.check import as_run, check
from bridge.check.engines import OnnxRuntime, Session
from bridge.check.noise import outside
from bridge.check.report import CheckReport, Version


def one_branch(path: Path, body: str) -> Path:
    text = f'<ir_version: 9, opset_import: ["": 18]> m (float[2] x, bool c) => (float[2] y) {body}'
    onnx.save(onnx.parser.parse_model(text), path)
    return path


BRANCHES = """{ y = If (c) <then_branch = t () => (float[2] p) { p = Neg (x) },
    else_branch = e () => (float[2] q) { q = Abs (x) }> }"""


def test_quick_seeks_no_branches(tmp_path: Path) -> None:
    report = check(one_branch(tmp_path / "m.onnx", BRANCHES), quick=True)
    assert report.ok and len(report.feeds) == 2 and not report.sites, str(report)


@pytest.mark.parametrize(
    ("factor", "loads", "is_found"),
    [(1.0, [], False), (1.5, [], True), (1.5, ["b", "b", "a"], False)],
)
def test_defaults_that_cost_a_conversion_alone(
    factor: float, loads: list[str], is_found: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here another model stands for a conversion that defaults make wrong. The engine may be wrong
    after some of its loads only."""
    paths = [tmp_path / "a.onnx", tmp_path / "b.onnx"]
    for path, times in zip(paths, (1.0, factor), strict=True):
        one_branch(path, f"{{ h = Constant <value_float = {times:.1f}> () y = Mul (x, h) }}")
    session = load(paths[0])[0]
    feed = {"x": np.ones(2, np.float32), "c": np.array(True)}
    versions = [Version(path.name, path, OnnxRuntime.name) for path in paths]
    report = CheckReport("a.onnx", 1e-3, 1e-5, versions, [feed])
    pair = Pair(*paths, tmp_path, {}, None, report.notes)
    bench = Bench(pair, report, Comparison(1e-3, 1e-5, report.note), lambda step: None)
    sessions = [(path.name, session) for path in paths]
    found = [load(tmp_path / f"{name}.onnx") for name in loads]
    loaded = as_run.load

    def load_next(path: Path, **settings: Any) -> tuple[Session, str]:
        return found.pop(0) if found and path == paths[1] else loaded(path, **settings)

    monkeypatch.setattr(as_run, "load", load_next)
    run_as_people_do(bench, sessions, Compared([session.run(feed)], [""]))
    assert bool(report.findings) == is_found and not report.as_run


@pytest.mark.parametrize(("factor", "is_explained"), [(1.001, True), (1.1, False)])
def test_what_16_bits_explain(factor: float, is_explained: bool, tmp_path: Path) -> None:
    path = one_branch(tmp_path / "a.onnx", "{ h = Exp (x) k = Sqrt (h) y = Mul (k, k) }")
    session = load(path)[0]
    feed = {"x": np.ones(2, np.float32), "c": np.array(True)}
    expected = session.run(feed)
    runs = Runs(session, [feed], [expected], Comparison(1e-3, 1e-5, lambda note: None))
    halves = HalvedOriginal(runs, Pair(path, None, tmp_path, {}, None, []))
    assert bool(halves.explain([{"y": factor * expected["y"]}])) is is_explained


def test_a_plugin_that_moves_a_zero_point(tmp_path: Path) -> None:
    """OpenVINO's reference functions say that the plugin is off, and another model is not right."""
    for levels in (256, 255):
        x = openvino.opset13.parameter([512, 48], np.float32, name="x")
        x.output(0).set_names({"x"})
        weights = np.random.default_rng(0).normal(size=(48, 48)).astype(np.float32)
        low, high = np.float32(-10), np.float32(9.92)  # with a zero point of 128.01
        product = openvino.opset13.matmul(x, weights, False, False)
        y = openvino.opset13.fake_quantize(product, low, high, low, high, levels)
        y.output(0).set_names({"y"})
        openvino.save_model(openvino.Model([y], [x]), tmp_path / f"{levels}.xml", False)
    report = check(tmp_path / "256.xml")
    assert report.ok, str(report)
    assert any("by OpenVINO's reference functions" in note for note in report.notes)
    bridge.convert(tmp_path / "255.xml", tmp_path / "255.onnx")
    assert check(tmp_path / "256.xml", tmp_path / "255.onnx").different


def test_what_lies_within_samples() -> None:
    samples = [np.array([1.0, 5.0, np.nan]), np.array([2.0, 5.0, 1.0])]
    assert outside(np.array([1.5, 5.0, np.nan]), samples, 0, 0) == 0
    assert outside(np.array([9.0, 5.1, 3.0]), samples, 0, 0) == 3
    choices = [np.array([3, 40]), np.array([3, 7])]
    assert outside(np.array([3, 7]), choices, 0, 0) == 0
    assert outside(np.array([4, 20]), choices, 0, 0) == 2


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
    assert max(result.worst.absolute for result in report.results) < 1e-6
