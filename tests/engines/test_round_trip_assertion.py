"""`bridge.testing` and the fixture of the pytest plugin."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import onnx
import onnx.parser
import pytest

import bridge
from bridge.errors import UsageError
from bridge.testing import assert_round_trip

from .test_check import GATE, NEVER

RIGHT = onnx.parser.parse_model(GATE)
WRONG = onnx.parser.parse_model(GATE.replace("Relu", "Sigmoid"))
# The then branch fails for every input, which nobody knows beforehand.
FAILING = NEVER.replace(
    "t = Exp(x)",
    """nought = Mul(sum, zero) above = Add(nought, two) size = Cast<to = 7>(above)
       shape = Reshape(size, one) t = Reshape(x, shape)""",
).replace("{\n", "<float zero = {0}, float two = {2}, int64[1] one = {1}> {\n", 1)


def test_a_model_that_comes_back() -> None:
    report = assert_round_trip(RIGHT)
    assert report.ok and len(report.versions) == 3
    assert assert_round_trip(bridge.to_openvino(RIGHT)).versions[1].label == "IR → ONNX"
    assert assert_round_trip(RIGHT, bridge.to_openvino(RIGHT)).ok


def test_the_report_is_the_message(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    with pytest.raises(AssertionError, match="the first value that differs is 'positive'") as info:
        assert_round_trip(RIGHT, WRONG, page=page)
    assert str(info.value).startswith("NOT OK: ") and str(page) in str(info.value)
    assert "NOT OK" in page.read_text(encoding="utf-8")


def test_every_branch_can_be_asked_for() -> None:
    model = onnx.parser.parse_model(NEVER)
    assert assert_round_trip(model, every_branch=True, budget=4).ok
    failing = onnx.parser.parse_model(FAILING)
    assert assert_round_trip(failing, budget=4).ok
    with pytest.raises(
        AssertionError, match=r"branches that were not shown to be equal:\n.* then: "
    ):
        assert_round_trip(failing, every_branch=True, budget=4)


def test_options_are_those_of_check() -> None:
    with pytest.raises(TypeError, match="did you mean 'samples'"):
        assert_round_trip(RIGHT, sample=2)
    with pytest.raises(UsageError, match="rtol is -1"):
        assert_round_trip(RIGHT, rtol=-1)


def test_the_fixture(tmp_path: Path) -> None:
    onnx.save(RIGHT, tmp_path / "right.onnx")
    onnx.save(WRONG, tmp_path / "wrong.onnx")
    (tmp_path / "test_it.py").write_text(
        "def test_right(assert_round_trip):\n"
        "    assert assert_round_trip('right.onnx').ok\n"
        "def test_wrong(assert_round_trip):\n"
        "    assert_round_trip('right.onnx', 'wrong.onnx')\n",
        encoding="utf-8",
    )
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "bridge.pytest_plugin",
         "-p", "no:cacheprovider", "--basetemp", tmp_path / "temp"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(bridge.__file__).parents[1])},
    )  # fmt: skip
    assert "1 failed, 1 passed" in finished.stdout, finished.stdout + finished.stderr
    assert "the first value that differs is 'positive'" in finished.stdout
    assert list((tmp_path / "temp").rglob("round_trip.html"))
