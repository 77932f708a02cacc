"""Runs `roundtrip_models/` with the packages of the environment that it is started in.

`python -m tests.releases.worker record FILE` keeps what the engines give for the models as they
are; `python -m tests.releases.worker compare FILE` converts the models, runs them and their
conversions, and prints a line of JSON for each: what became of each version.
"""

from __future__ import annotations

import json
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import openvino

import bridge
from bridge.errors import BridgeError
from tests.support import model_files
from tests.support.alone import apart
from tests.support.model_files import INPUT_SETS, IR_FILES, ONNX_FILES
from tests.support.running import OnnxRuntime, OpenVino, assert_close, flat

Outputs = list[list[np.ndarray]]
"""For each set of inputs."""

Call = Callable[..., Any]
"""Calls a function with arguments, here or elsewhere."""

RIGHT = "right"

TOGETHER = 16
"""How many models run in one process: an engine is slower to load than to run one."""

_OPSET = 20 if onnxruntime.__version__.startswith("1.17.") else None
"""In which operator set IR is written; onnxruntime 1.17 does not take the default one."""

QUIRKS = "default" if openvino.__version__ >= "2026.4" else "old"
"""The faults that conversions work round: those that this release of OpenVINO has."""


def record(path: Path) -> tuple[bytes, Outputs]:
    """The model as bytes, since old releases of onnx do not read all of its text, and what it
    gives in the engine of its own format."""
    is_ir = path.suffix == ".xml"
    data = path.read_bytes() if is_ir else model_files.load_onnx(path).SerializeToString()
    return data, list(_original(path, data))


def _original(path: Path, data: bytes) -> Iterator[list[np.ndarray]]:
    if path.suffix == ".xml":
        model = openvino.Core().read_model(path)
        inputs, engine = model_files.ir_inputs(model), OpenVino(model)
        for index in range(INPUT_SETS):
            yield engine.run(list(model_files.feeds(path, inputs, index).values()))
    else:
        proto = onnx.load_from_string(data)
        inputs, session = _asked(proto), OnnxRuntime(proto)
        for index in range(INPUT_SETS):
            yield flat(session.run(model_files.feeds(path, inputs, index)))


@dataclass(frozen=True)
class Job:
    """A model, what it should give, and the files that it was converted to. `refused` says why
    there are not both."""

    path: Path
    data: bytes
    expected: Outputs
    versions: dict[str, Path]
    refused: dict[str, str]


def compare(paths: Sequence[Path], expected: dict[str, Any]) -> Iterator[dict[str, str]]:
    """What became of some models: of the original, of the conversion and of the way back. They run
    in one process, each in a process of its own where one of them ends it, and each version in one
    where a version does."""
    with tempfile.TemporaryDirectory() as name:
        jobs = [_job(path, *expected[path.name], Path(name) / path.name) for path in paths]
        found = apart(_all, jobs, seconds=60 + 10 * len(jobs))
        for index, job in enumerate(jobs):
            outcomes = found[index] if isinstance(found, list) else apart(_outcomes, job, _here)
            if not isinstance(outcomes, dict):
                outcomes = _outcomes(job, apart)
            yield {"model": job.path.name, **outcomes, **job.refused}


def _job(path: Path, data: bytes, expected: Outputs, folder: Path) -> Job:
    folder.mkdir()
    return Job(path, data, expected, *_conversions(path, data, folder))


def _all(jobs: Sequence[Job]) -> list[dict[str, str]]:
    return [_outcomes(job, _here) for job in jobs]


def _conversions(path: Path, data: bytes, folder: Path) -> tuple[dict[str, Path], dict[str, str]]:
    """The files of the conversion and of the way back, and why there is none."""
    suffixes = (".onnx", ".xml") if path.suffix == ".xml" else (".xml", ".onnx")
    files: dict[str, Path] = {}
    source: Path | bytes = path if path.suffix == ".xml" else data
    for version, suffix in zip(("there", "back"), suffixes, strict=True):
        target = folder / f"{version}{suffix}"
        try:
            opset = _OPSET if suffix == ".onnx" else None
            bridge.convert(source, target, opset=opset, quirks=QUIRKS)
        except BridgeError as error:
            return files, {version: f"refused: {error}"}
        except Exception as error:
            return files, {version: f"broke: {type(error).__name__}: {error}"}
        source = files[version] = target
    return files, {}


def _outcomes(job: Job, call: Call) -> dict[str, str]:
    path, data, expected = job.path, job.data, job.expected
    found = {"original": call(_outcome, expected, _original, path, data)}
    inputs = call(_inputs, path, data)
    if isinstance(inputs, str):
        return {**found, "there": f"its inputs are not known: the engine {inputs}"}
    feeds = [model_files.feeds(path, inputs, index) for index in range(INPUT_SETS)]
    names: list[str] = []
    if path.suffix != ".xml":
        names = [value.name for value in onnx.load_from_string(data).graph.output]
    for version, file in job.versions.items():
        run = _run_onnx if file.suffix == ".onnx" else _run_ir
        found[version] = call(_outcome, expected, run, file, feeds, names)
    return found


def _inputs(path: Path, data: bytes) -> list[model_files.Input]:
    if path.suffix == ".xml":
        return model_files.ir_inputs(openvino.Core().read_model(path))
    return _asked(onnx.load_from_string(data))


def _asked(model: onnx.ModelProto) -> list[model_files.Input]:
    """The inputs without those that have a default, which is a constant in IR."""
    return [input for input in model_files.onnx_inputs(model) if not input.has_default]


def _run_onnx(path: Path, feeds: Sequence[dict[str, Any]], names: list[str]) -> Iterator[Any]:
    session = OnnxRuntime(path)
    known = [port.name for port in session.session.get_inputs()]
    for feed in feeds:
        if set(known) <= set(feed):
            yield flat(session.run({name: feed[name] for name in known}))
        else:
            yield flat(session.run(dict(zip(known, feed.values(), strict=True))))


def _run_ir(path: Path, feeds: Sequence[dict[str, Any]], names: list[str]) -> Iterator[Any]:
    model = openvino.Core().read_model(path)
    engine, boundary = OpenVino(model), bridge.Boundary.of(path)
    owners = {boundary.owner(name) for port in model.inputs for name in port.get_names()}
    for feed in feeds:
        if not names:
            yield engine.run(list(feed.values()))
            continue
        results = engine.run_packed(boundary, {n: v for n, v in feed.items() if n in owners})
        yield flat([results[name] for name in names])


def _outcome(
    expected: Outputs, run: Callable[..., Iterator[list[np.ndarray]]], *arguments: Any
) -> str:
    try:
        for index, actual in enumerate(run(*arguments)):
            try:
                assert_close(actual, expected[index])
            except AssertionError as error:
                return f"wrong: input {index}: {' '.join(str(error).split())[:300]}"
    except Exception as error:
        return f"fails: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return RIGHT


def _here(run: Callable[..., Any], *arguments: Any) -> Any:
    return run(*arguments)


def main() -> None:
    """See the module."""
    command, file = sys.argv[1], Path(sys.argv[2])
    paths = [*ONNX_FILES, *IR_FILES]
    if command == "record":
        file.write_bytes(pickle.dumps({path.name: apart(record, path) for path in paths}))
        return
    expected = pickle.loads(file.read_bytes())
    known = [path for path in paths if not isinstance(expected[path.name], str)]
    for first in range(0, len(known), TOGETHER):
        for outcomes in compare(known[first : first + TOGETHER], expected):
            print(json.dumps(outcomes), flush=True)


if __name__ == "__main__":
    # What is called in other processes is then found by the module's name.
    from tests.releases import worker

    worker.main()
