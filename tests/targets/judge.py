"""The outcome of a model for a device that is missing here, as far as other engines can show it.

A model may be refused with a way to help. Otherwise the file must fit the device's table, and no
branch may get wrong inputs. OpenVINO's CPU plugin and onnxruntime must compute the same as for the
default device. `python -m tests.targets FILE ...` prints the outcomes of files or, without any, of
`roundtrip_models/`. The inputs come from the `.npz` beside a file, if there is one.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino

import bridge
from bridge.check.isolation import LostProcessError, isolated
from bridge.errors import UnsupportedError
from bridge.targets.limits import refusals
from tests.releases.worker import asked, run_ir, run_onnx
from tests.support.model_files import INPUT_SETS, feeds, ir_inputs, load_onnx
from tests.support.running import assert_close

HELP = (
    "`values`",
    "`input_shapes`",
    "--value",
    "--input-shape",
    "`ifs=",
    "elsewhere",
    "does not compute with",
)
"""Words of a reason that offer help, or say that no help exists."""

KNOWN = " with known shapes"

GOOD = ("refused", "right", "right as ONNX")


def judge(path: Path, device: str, call: Callable[..., Any] = lambda run, *a: run(*a)) -> str:
    """`refused`, `right`, `right as ONNX`, or the fault.

    If a file is refused for open sizes and its inputs are known, it is written with their shapes.

    A file for another device has no workarounds for faults of the CPU plugin. If plain meaning is
    wrong there too, onnxruntime runs the ONNX that comes back from the file. `call` calls the
    function that runs a file.
    """
    found = _judge(path, device, {}, call)
    if found == "refused" and path.with_suffix(".npz").is_file():
        (given,), _ = _given(path)
        shapes = {name: value.shape for name, value in given.items()}
        found = _judge(path, device, shapes, call)
        found += KNOWN if found.startswith("right") else ""
    return found


def _judge(path: Path, device: str, shapes: dict[str, Any], call: Callable[..., Any]) -> str:
    source = load_onnx(path) if path.suffix == ".onnxtxt" else path
    with tempfile.TemporaryDirectory() as name:
        default, written, plain, back = (
            Path(name) / file for file in ("default.xml", "device.xml", "plain.xml", "back.onnx")
        )
        try:
            bridge.convert(source, written, device=device, input_shapes=shapes)
        except UnsupportedError as error:
            lost = [one for one in error.findings if not any(word in one.why for word in HELP)]
            return f"refused without help: {lost[0]}" if lost else "refused"
        for fault in refusals(bridge.load(written), {"device": device}):
            return f"not in the table: {fault}"
        bridge.convert(source, default, input_shapes=shapes)
        given, names = _given(path)
        expected = call(_run, default, given, names)

        def fault(file: Path) -> str | None:
            """The fault of a file's engine, if any."""
            try:
                for actual, wanted in zip(call(_run, file, given, names), expected, strict=True):
                    assert_close(actual, wanted)
            except Exception as error:
                return " ".join(str(error).split())[:200]
            return None

        if (wrong := fault(written)) is None:
            return "right"
        bridge.convert(source, plain, device="ANY", input_shapes=shapes)
        if fault(plain) is None:
            return f"wrong: {wrong}"
        bridge.convert(written, back)
        wrong = fault(back)
    return "right as ONNX" if wrong is None else f"wrong as ONNX: {wrong}"


def _run(file: Path, given: list[dict[str, Any]], names: list[str]) -> list[list[np.ndarray]]:
    run = run_onnx if file.suffix == ".onnx" else run_ir
    return list(run(file, given, names))


def _given(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Inputs of a model, and the names of the outputs of an ONNX model."""
    if path.suffix == ".xml":
        inputs, names = ir_inputs(openvino.Core().read_model(path)), []
    else:
        model = load_onnx(path) if path.suffix == ".onnxtxt" else onnx.load(path)
        inputs, names = asked(model), [value.name for value in model.graph.output]
    beside = path.with_suffix(".npz")
    if beside.is_file():
        arrays = dict(np.load(beside))
        if arrays.keys() != {item.name for item in inputs}:  # Then their order decides.
            known = [item.name for item in inputs]
            arrays = dict(zip(known, arrays.values(), strict=True))
        return [arrays], names
    return [feeds(path, inputs, index) for index in range(INPUT_SETS)], names


def judge_all(paths: Sequence[Path], device: str) -> list[str]:
    """The verdicts on several models."""
    return [_safely(path, device) for path in paths]


def _safely(path: Path, device: str) -> str:
    try:
        return judge(path, device)
    except Exception as error:
        return f"fails: {type(error).__name__}: {' '.join(str(error).split())[:300]}"


def apart(paths: Sequence[Path], device: str) -> list[str]:
    """The verdicts, found in a process of their own. If it crashes, each model gets a process of
    its own; if that crashes, each run does."""
    try:
        found = isolated(judge_all, paths, device, seconds=60 + 60 * len(paths))
        assert isinstance(found, list)
        return found
    except LostProcessError:
        if len(paths) > 1:
            return [apart([path], device)[0] for path in paths]
        return [judge(paths[0], device, isolated)]
