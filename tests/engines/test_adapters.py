"""Sessions under the names of another, opened once, and run afresh."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import bridge
from bridge import quirks
from bridge.check import check
from bridge.check.engines import EngineError, Session, ValueInfo
from bridge.check.engines.adapters import named_like
from bridge.check.engines.protocol import message
from bridge.check.engines.sessions import Sessions
from tests.support.reports import feeds_of

from .test_calls_in_a_row import CASES, written
from .test_check import saved


class Named(Session):
    """Gives to each output the number of its place, and more where inputs are fed."""

    def __init__(self, inputs: str, outputs: str) -> None:
        self.inputs = tuple(map(ValueInfo, inputs.split()))
        self.outputs = tuple(map(ValueInfo, outputs.split()))

    def run(self, feeds: object) -> dict[str, object]:
        """See `Session.run`."""
        assert isinstance(feeds, dict)
        return {port.name: (i, dict(feeds)) for i, port in enumerate(self.outputs)}


@pytest.mark.parametrize(
    ("outputs", "places", "missing", "extra", "noted"),
    [
        ("y z", {"y": 0, "z": 1}, "", "", False),
        ("z y", {"y": 1, "z": 0}, "", "", False),
        ("z w y", {"y": 2, "z": 0}, "", "w", False),
        ("z", {"z": 0}, "y", "", False),
        ("a b", {"y": 0, "z": 1}, "", "", True),
        ("a z", {"z": 1}, "y", "a", False),
        ("a z b", {"z": 1}, "y", "a b", False),
    ],
)
def test_outputs_under_other_names(
    outputs: str, places: dict[str, int], missing: str, extra: str, noted: bool
) -> None:
    session = named_like(Named("x", "y z"), Named("x", outputs))
    assert {name: place for name, (place, _) in session.run({"x": 1}).items()} == places
    assert [port.name for port in session.outputs] == [*places]
    assert (" ".join(session.missing), " ".join(session.extra)) == (missing, extra)
    assert any("outputs were matched by position" in note for note in session.notes) is noted


def test_inputs_under_other_names() -> None:
    session = named_like(Named("x k", "y"), Named("a b", "y"))
    assert session.run({"x": 1, "k": 2})["y"][1] == {"a": np.array(1), "b": np.array(2)}
    assert [port.name for port in session.inputs] == ["x", "k"]
    assert "inputs were matched by position" in session.notes[0]
    # A default that the original does not list is fed under its own name.
    session = named_like(Named("x", "y"), Named("x d", "y"))
    assert session.run({"x": 1, "d": 2})["y"][1] == {"x": 1, "d": 2} and not session.notes


IDENTITY = '<ir_version: 9, opset_import: ["": 18]> g (float[N] x) => (float[N] y) { y = Neg (x) }'


def test_a_file_is_opened_once(tmp_path: Path) -> None:
    path = saved(IDENTITY, tmp_path / "m.onnx")
    sessions = Sessions()
    first = sessions.open(path)
    assert sessions.open(path) is first and Sessions().open(path) is not first
    saved(IDENTITY.replace("Neg", "Abs"), path)
    second = sessions.open(path, like=first)
    (result,) = second.run({"x": np.array([-1], np.float32)}).values()
    assert result == [1]


def test_a_fresh_run_of_openvino_keeps_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the quirk, constants are scaled in each run. A new request does not help."""
    from tests.quirks.canaries import CANARIES
    from tests.quirks.test_canaries import proto_of

    canary = CANARIES["scaled_in_place"]
    rest = tuple(name for name in quirks.order() if name != "scaled_in_place")
    monkeypatch.setattr(quirks, "order", lambda: rest)
    bridge.convert(proto_of(canary), tmp_path / "m.xml")
    onnx.save(proto_of(canary), tmp_path / "m.onnx")
    sessions = Sessions()
    original = sessions.open(tmp_path / "m.onnx")
    assert sessions.open(tmp_path / "m.xml").keeps and not original.keeps
    expected = original.run(canary.feed)
    for fresh, right in ((True, [True, True, True]), (False, [True, False, False])):
        session = Sessions().open(tmp_path / "m.xml", like=original)
        found = session.run_each([canary.feed] * 3, fresh)
        assert [
            not isinstance(one, EngineError)
            and all(np.allclose(value, one[name]) for name, value in expected.items())
            for one in found
        ] == right


@pytest.mark.parametrize("name", CASES)
def test_fresh_runs_with_states(name: str, tmp_path: Path) -> None:
    source = written(name, tmp_path)
    bridge.convert(source, tmp_path / "b.xml", stateful=True, beam_idx=True)
    report = check(source, tmp_path / "b.xml", quick=True)
    sessions = Sessions()
    bridge.convert(source, tmp_path / "a.onnx")
    original = sessions.open(tmp_path / "a.onnx")
    session = sessions.open(tmp_path / "b.xml", like=original)
    assert session.has_states and not session.missing and not session.extra
    for fresh in (False, True):
        found = session.run_each(feeds_of(report), fresh)
        for expected, results in zip(original.run_each(feeds_of(report)), found, strict=True):
            assert not isinstance(expected, EngineError) and not isinstance(results, EngineError)
            for output, value in expected.items():
                np.testing.assert_allclose(results[output], value, rtol=1e-5)


def test_messages_without_places_in_sources() -> None:
    text = "[ONNXRuntimeError] : 1 : FAIL : Non-zero status code returned while running Add: "
    text += "/onnxruntime_src/onnxruntime/core/framework/a.cc:12 bool f(int) failed"
    says = "Non-zero status code returned while running Add: bool f(int) failed"
    assert message(RuntimeError(text)) == says
    assert (
        message(RuntimeError("Exception from src/a/b.cpp:12:\nCheck failed\n\n")) == "Check failed"
    )
    assert message(RuntimeError("Exception from src/a/b.cpp:12:\n")) == "RuntimeError"
    message(RuntimeError("/a/onnxruntime/core" * 200_000))


SEQUENCE = """<ir_version: 9, opset_import: ["": 18]>
g (seq(float[2]) s, int64 at) => (float[2] y) { y = SequenceAt (s, at) }"""


def test_what_a_packed_boundary_cannot_hold_is_an_error_of_that_input(tmp_path: Path) -> None:
    bridge.convert(onnx.parser.parse_model(SEQUENCE), tmp_path / "m.xml")
    session = Sessions().open(tmp_path / "m.xml")
    part, at = np.ones(2, np.float32), np.array(0)
    right, wrong = {"s": [part, part], "at": at}, {"s": None, "at": at}
    first, second = session.run_each([right, wrong])
    assert not isinstance(first, EngineError) and isinstance(second, EngineError)
    assert "it a list of arrays" in str(second) or "cannot be None" in str(second)
