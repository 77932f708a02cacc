"""A conversion names the pass or quirk that changes a number, and a check says what avoids it."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import parser

import bridge
from bridge import quirks
from bridge.check import check
from bridge.check.diagnosis.stages import Watcher
from bridge.errors import UsageError
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.quirks.quirk import quirk
from tests.support.model_files import FOLDER

MODEL = parser.parse_model(
    """<ir_version: 10, opset_import: ["": 21]> g (float[2] x) => (float[2] y, float[2] z)
    { a = Exp (x) b = Neg (a) y = Add (b, x) z = Sin (x) }"""
)


@quirk("Neg", symptom="", cost="")
def broken_negative(b: Builder, node: Node, place: object) -> Value:
    """The absolute value for the negative one."""
    return b.op("Abs", *node.inputs)


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    order = (*quirks.order()[:9], broken_negative.name, *quirks.order()[9:])
    monkeypatch.setattr(quirks, "order", lambda: order)


SAID = 'after the quirk broken_negative, the output "y" differs'


@pytest.mark.usefixtures("broken")
def test_a_conversion_names_the_quirk(tmp_path: Path) -> None:
    watcher = Watcher()
    bridge.convert(MODEL, tmp_path / "a.xml", debug=watcher)
    (note,) = (note for note in watcher.lines() if SAID in note)
    assert note.endswith("convert with --device ANY")


@pytest.mark.usefixtures("broken")
def test_a_check_says_what_avoids_the_quirk() -> None:
    fault = check(MODEL).diagnosis.blame
    assert fault is not None and fault.who == "conversion"
    assert "convert with --device ANY, which is right here" in fault.advice


@pytest.mark.parametrize("name", ["if_in_loop_in_if_in_loop.onnxtxt", "if_in_loop.xml"])
def test_nothing_is_wrong(name: str, tmp_path: Path) -> None:
    source = FOLDER / name
    suffix = ".onnx" if source.suffix == ".xml" else ".xml"
    watcher = Watcher()
    bridge.convert(source, tmp_path / f"a{suffix}", debug=watcher)
    (note,) = (note for note in watcher.lines() if "no number differs" in note)
    assert "could not be run" not in note


def test_other_ways_to_debug_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="`debug` is True, or a function"):
        bridge.convert(MODEL, tmp_path / "a.xml", debug="walk")
