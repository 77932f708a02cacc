"""A check for another device, which runs on the CPU plugin."""

from __future__ import annotations

from pathlib import Path

import onnx.parser
import pytest

import bridge
from bridge.check import check
from bridge.errors import UsageError
from tests.support.command_line import bridge as command
from tests.support.model_files import FOLDER
from tests.targets.test_devices import BRANCHES, HEADER

OPEN = "(float[n] x) => (float[n] y) { y = Relu(x) }"
MISSING = "(float[4] x) => (float[4] y) { a = Relu (x) y, b, c, d = Unique (a) }"
SHIFT = '(uint8[4] x, uint8[4] n) => (uint8[4] y) { y = BitShift <direction="LEFT"> (x, n) }'


@pytest.mark.parametrize(
    ("text", "options", "wrong"),
    [
        (BRANCHES, {"device": "NPU"}, "gives its branches other inputs"),
        (BRANCHES, {"device": "GPU"}, "gives its branches other inputs"),
        (BRANCHES, {"device": "CPU"}, ""),
        (OPEN, {"device": "NPU"}, "--input-shape 'x=[1..8]'"),
        (OPEN, {"device": "GPU"}, ""),
        (MISSING, {"device": "NPU"}, "has no Unique"),
        (SHIFT, {"openvino": "2024.3"}, "read from 2024.4 on"),
        (SHIFT, {"openvino": "2024.4"}, ""),
    ],
)
def test_a_written_file(text: str, options: dict[str, str], wrong: str, tmp_path: Path) -> None:
    """A file for the CPU plugin, and the findings of a check for another device."""
    model = onnx.parser.parse_model(HEADER + text)
    bridge.convert(model, tmp_path / "m.xml")
    report = check(model, tmp_path / "m.xml", samples=1, **options)  # type: ignore[arg-type]
    assert report.compared and not report.different
    assert report.ok is not bool(wrong)
    assert any(wrong in failure for failure in report.failures) is bool(wrong)
    assert f"for {options.get('device', 'CPU')}" in report.summary().splitlines()[0]
    assert bool(report.as_json()["device"]["findings"]) is bool(wrong)


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(onnx.parser.parse_model(HEADER + OPEN).SerializeToString())
    converted = (tmp_path / "m.onnx", tmp_path / "m.xml", "--device", "NPU", "--check")
    assert "--input-shape 'x=[1..8]'" in command("convert", *converted).err
    fits = ("--input-shape", "x=[1..8]")
    for said in (
        command("convert", *converted, *fits),
        command("check", tmp_path / "m.onnx", "--device", "NPU", *fits),
        command("check", tmp_path / "m.xml", "--device", "NPU"),
    ):
        assert "for NPU, but run on the CPU plugin" in said.out, said.err
        assert "by default it computes in f16" in said.out


def test_faults_of_the_plugin_that_ran_it() -> None:
    """A file for GPU has no workarounds for faults of the CPU plugin."""
    report = check(FOLDER / "scan_in_scan.onnxtxt", device="GPU", samples=1)
    assert report.ok, str(report)
    assert any("runs with workarounds for the CPU plugin" in note for note in report.notes)


def test_choices_that_make_no_sense() -> None:
    with pytest.raises(UsageError, match="`device` is one of"):
        check(FOLDER / "if_bool.onnxtxt", device="TPU")
