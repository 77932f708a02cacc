"""What a check says beside equal and different: what defaults cost, and what is not shown."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import openvino
import pytest

from bridge.check import check
from bridge.check.as_run import HalvedOriginal, Runs, run_as_people_do
from bridge.check.bench import Bench
from bridge.check.engines import OnnxRuntime
from bridge.check.loading import load
from bridge.check.noise import outside
from bridge.check.outputs import Comparison
from bridge.check.pair import Pair
from bridge.check.report import CheckReport, Version
from bridge.check.results import Compared


def one_branch(path: Path, body: str) -> Path:
    text = f'<ir_version: 9, opset_import: ["": 18]> m (float[2] x, bool c) => (float[2] y) {body}'
    onnx.save(onnx.parser.parse_model(text), path)
    return path


BRANCHES = """{ y = If (c) <then_branch = t () => (float[2] p) { p = Neg (x) },
    else_branch = e () => (float[2] q) { q = Abs (x) }> }"""


def test_quick_seeks_no_branches(tmp_path: Path) -> None:
    report = check(one_branch(tmp_path / "m.onnx", BRANCHES), quick=True)
    assert report.ok and len(report.feeds) == 2 and not report.sites, str(report)


@pytest.mark.parametrize(("factor", "is_found"), [(1.0, False), (1.5, True)])
def test_defaults_that_cost_a_conversion_alone(
    factor: float, is_found: bool, tmp_path: Path
) -> None:
    """Here another model stands for a conversion that defaults make wrong."""
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
    """OpenVINO's reference functions say who is at fault for an IR."""
    x = openvino.opset13.parameter([64, 48], np.float32, name="x")
    low, high = np.float32(-5.2), np.float32(6.3)
    y = openvino.opset13.fake_quantize(x, low, high, low, high, 256)
    openvino.save_model(openvino.Model([y], [x]), tmp_path / "m.xml", False)
    report = check(tmp_path / "m.xml")
    assert report.ok or (report.fault is not None and report.fault.engine == "OpenVINO")


def test_what_lies_within_samples() -> None:
    samples = [np.array([1.0, 5.0, np.nan]), np.array([2.0, 5.0, 1.0])]
    assert outside(np.array([1.5, 5.0, np.nan]), samples, 0, 0) == 0
    assert outside(np.array([9.0, 5.1, 3.0]), samples, 0, 0) == 3
    choices = [np.array([3, 40]), np.array([3, 7])]
    assert outside(np.array([3, 7]), choices, 0, 0) == 0
    assert outside(np.array([4, 20]), choices, 0, 0) == 2
