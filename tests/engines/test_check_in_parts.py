"""A large IR is run in parts, and gives what it gives as a whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import openvino
import pytest
from openvino import opset6

import bridge
from bridge.check import check
from bridge.check.engines import EngineError, OpenVino, parts
from tests.support.sample import few

from ..benchmark.processes import ifs
from .test_check import GATE, LOOP, saved

# A value that is used much later, a constant that several parts ask for, one that is an output.
LONG = """
<ir_version: 9, opset_import: ["" : 18]>
g (float[N, 2] x, float[2] early) => (float[N, 2] y, float[2] same, float[N, 2] first, float[2] w)
<float[2] w = {2, 3}> {
  first = Mul(x, w)
  a = Sin(first)
  same = Identity(early)
  b = Add(a, w)
  c = Cos(b)
  d = Mul(c, early)
  y = Add(d, first)
}
"""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "LARGEST", 2)
    monkeypatch.setattr(parts, "_PART", 2)


def test_parts_give_what_the_whole_gives(small: None, tmp_path: Path) -> None:
    bridge.convert(onnx.parser.parse_model(LONG), tmp_path / "m.xml")
    model = bridge.load(tmp_path / "m.xml")
    engine = OpenVino()
    session = parts.PartsSession(model, engine.load)
    assert len(session.parts) > 3
    feeds = [
        {"x": np.full((n, 2), n, np.float32), "early": np.array([n, 1], np.float32)}
        for n in (1, 2, 3)
    ]
    whole = engine.load(tmp_path / "m.xml")
    for feed, results in zip(feeds, session.run_each(feeds), strict=True):
        assert not isinstance(results, EngineError)
        assert list(results) == ["y", "same", "first", "w"]
        expected = whole.run(feed)
        for port in whole.outputs:
            names = [name for name in results if name in {port.name, *port.aliases}]
            np.testing.assert_allclose(results[names[0]], expected[port.name], rtol=1e-6)


def test_a_part_that_fails_spoils_no_other_input(small: None, tmp_path: Path) -> None:
    bridge.convert(onnx.parser.parse_model(LONG), tmp_path / "m.xml")
    session = parts.PartsSession(bridge.load(tmp_path / "m.xml"), OpenVino().load)
    right = {"x": np.ones((1, 2), np.float32), "early": np.ones(2, np.float32)}
    wrong = {**right, "early": np.ones((3, 3), np.float32)}
    first, second, third = session.run_each([right, wrong, right])
    assert isinstance(second, EngineError)
    assert not isinstance(first, EngineError) and not isinstance(third, EngineError)
    with pytest.raises(EngineError):
        session.run(wrong)


@pytest.mark.parametrize("text", [GATE, LOOP, LONG])
def test_a_check_says_that_it_ran_parts(small: None, text: str, tmp_path: Path) -> None:
    report = check(saved(text, tmp_path / "m.onnx"))
    assert report.ok, str(report)
    assert "(f32, in " in str(report) and " parts)" in str(report)
    assert len(report.branches.reached) == len(report.branches.all)


def test_a_difference_is_found_in_parts(small: None, tmp_path: Path) -> None:
    bridge.convert(onnx.parser.parse_model(GATE.replace("Relu", "Sigmoid")), tmp_path / "m.xml")
    report = check(saved(GATE, tmp_path / "m.onnx"), tmp_path / "m.xml")
    assert report.different
    assert "the first value that differs is 'positive'" in str(report)


def test_variables_keep_a_model_whole(small: None) -> None:
    x = opset6.parameter([1], np.float32, "x")
    before = opset6.read_value(x, "v", np.float32, openvino.PartialShape([1]))
    total = opset6.add(before, x)
    last = opset6.assign(total, "v")
    result = opset6.result(opset6.sin(opset6.cos(total)))
    model = openvino.Model([result], [last], [x], "sum")
    assert not parts.is_too_large(bridge.load(model))


def test_a_large_model_in_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    count = few(100, 4)
    for name in ("LARGEST", "_PART"):
        monkeypatch.setattr(parts, name, 4 * count)
    ifs(tmp_path / "m.onnx", count)
    report = check(tmp_path / "m.onnx", samples=1)
    assert report.ok, str(report)
    assert " (f32, in 3 parts)" in str(report).splitlines()[2]
    assert len(report.branches.reached) == 2 * count
