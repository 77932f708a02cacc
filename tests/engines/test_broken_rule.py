"""A rule that is wrong is seen, though the way back replays it and is right again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest

from bridge.check import check
from bridge.check.engines import EngineError, Session
from bridge.check.engines.sessions import Sessions
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.operators import legalizations, load_all
from tests.conformance import routes
from tests.conformance.cases import cases


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flatten of reversed axes."""

    def rule(b: Builder, node: Node) -> Value:
        rows = [0] * node.attributes["axis"]
        return b.op("Reshape", b.op("Transpose", node.inputs[0]), [*rows, -1])

    load_all()
    monkeypatch.setitem(legalizations, ("ir", "Flatten"), rule)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    text = '<ir_version: 9, opset_import: ["": 18]> m (float[3, 3] x) => (float[3, 3] y) {'
    onnx.save(onnx.parser.parse_model(f"{text} y = Flatten (x) }}"), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def refuse_ir(sessions: Sessions, path: Path, like: Session | None = None) -> Session:
    if path.suffix == ".xml":
        raise EngineError("OpenVINO: does not run it")
    return _open(sessions, path, like)


_open = Sessions.open


def test_a_check_runs_the_ir(model: Path, broken: None) -> None:
    report = check(model)
    assert report.different and report.diagnosis.blame is not None
    assert report.diagnosis.blame.who == "conversion", str(report)
    assert {result.label for result in report.verdict.results if not result.ok} == {"ONNX → IR"}


def test_a_check_says_that_the_way_back_shows_nothing(
    model: Path, broken: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sessions, "open", refuse_ir)
    report = check(model)
    assert not report.different and not report.ok
    assert any("the way back proves nothing by itself" in note for note in report.notes)


class _NoEngine:
    name = "OpenVINO"

    def load(self, source: Any) -> Any:
        raise EngineError("OpenVINO: does not run it")


@pytest.mark.parametrize("runs", [True, False])
def test_the_conformance_route_finds_it(
    runs: bool, broken: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = cases()["test_flatten_axis1"]
    if not runs:
        monkeypatch.setattr(routes, "_openvino", _NoEngine)
    assert routes.run(case, "onnx-ir").kind == "wrong"
    assert routes.run(case, "onnx-ir-onnx").kind == "right"


def test_a_right_rule_is_right_without_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "_openvino", _NoEngine)
    assert routes.run(cases()["test_flatten_axis1"], "onnx-ir").kind == "engine"
