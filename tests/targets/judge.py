"""What becomes of a model for a device that is not here, as far as that shows without it.

It is refused with what would help, or it is written within the device's table, no branch gets other
inputs than it should, and OpenVINO's CPU plugin and onnxruntime give what the default gives.
`python -m tests.targets FILE ...` prints that of files and, without any, of `roundtrip_models/`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import bridge
from bridge.check.isolation import LostProcessError, isolated
from bridge.errors import BridgeError, UnsupportedError
from bridge.targets import DEVICES
from bridge.targets.limits import misplaced, refusals
from tests.support.model_files import (
    INPUT_SETS,
    feeds,
    ir_inputs,
    load_onnx,
)
from tests.support.running import OnnxRuntime, OpenVino, assert_close, flat

HELP = ("--value", "--input-shape", "--ifs select", "elsewhere", "does not compute with")
"""Words that say what would help, or that nothing does."""


GOOD = ("right", "right as ONNX", "refused")


def judge(path: Path, device: str) -> str:
    """`refused`, `right`, `right as ONNX`, or what is wrong.

    A file for another device has no workarounds for faults of the CPU plugin. Where plain meaning
    is wrong there too, onnxruntime runs what the way back makes of the file.
    """
    import openvino

    source = load_onnx(path) if path.suffix == ".onnxtxt" else path
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written = folder / "device.xml"
        try:
            bridge.convert(source, written, device=device)
        except UnsupportedError as error:
            lost = [one for one in error.findings if not any(word in one.why for word in HELP)]
            return f"refused without help: {lost[0]}" if lost else "refused"
        model = bridge.load(written)
        for fault in (*misplaced(model, DEVICES[device]), *refusals(model, {"device": device})):
            return f"not in the table: {fault}"
        default, plain, back = (folder / n for n in ("default.xml", "plain.xml", "back.onnx"))
        bridge.convert(source, default)
        inputs = ir_inputs(openvino.Core().read_model(default))
        given = [list(feeds(path, inputs, index).values()) for index in range(INPUT_SETS)]
        expected = [OpenVino(default).run(feed) for feed in given]
        if (wrong := _fault(written, given, expected)) is None:
            return "right"
        bridge.convert(source, plain, device="ANY")
        if _fault(plain, given, expected) is None:
            return f"wrong: {wrong}"
        bridge.convert(written, back)
        there = OnnxRuntime(back)
        names = [port.name for port in there.session.get_inputs()]
        try:
            for feed, outputs in zip(given, expected, strict=True):
                assert_close(flat(there.run(dict(zip(names, feed, strict=True)))), outputs)
        except Exception as error:
            return f"wrong as ONNX: {_line(error)}"
    return "right as ONNX"


def _fault(path: Path, given: Sequence[Any], expected: Sequence[Any]) -> str | None:
    """What the CPU plugin does wrong with a file."""
    try:
        engine = OpenVino(path)
        for feed, outputs in zip(given, expected, strict=True):
            assert_close(engine.run(feed), outputs)
    except Exception as error:
        return _line(error)
    return None


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def judge_all(paths: Sequence[Path], device: str) -> list[str]:
    """The verdicts on several models."""
    return [judge(path, device) for path in paths]


def apart(paths: Sequence[Path], device: str) -> list[str]:
    """The same in a process of their own, and each in one where one of them ends it."""
    try:
        found = isolated(judge_all, paths, device, seconds=60 + 60 * len(paths))
        assert isinstance(found, list)
        return found
    except (LostProcessError, BridgeError) as error:
        if len(paths) == 1:
            return [f"lost: {error}"]
        return [apart([path], device)[0] for path in paths]
