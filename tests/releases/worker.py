"""Runs `roundtrip_models/` with the packages of its own environment.

`record FILE` keeps the engines' outputs for the original models. `compare FILE RELEASE` converts
the models, runs them and their conversions, and prints a line of JSON for each, with the outcome of
each version. For each quirk for old releases it prints the outcome of its canary with and without
the quirk. It also prints the verdict of `bridge check` on one model.
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
from unittest import mock

import numpy as np
import onnx.parser
import onnxruntime
import openvino

import bridge
from bridge import quirks
from bridge.check import check
from bridge.check.isolation import LostProcessError, isolated
from bridge.errors import BridgeError, UnsupportedError
from bridge.options import OLDEST, ConvertOptions
from tests.quirks.canaries import CANARIES, Feed
from tests.support import model_files
from tests.support.model_files import INPUT_SETS, IR_FILES, ONNX_FILES
from tests.support.running import OnnxRuntime, OpenVino, assert_close, flat

Outputs = list[list[np.ndarray]]
"""The outputs for each set of inputs."""

Call = Callable[..., Any]
"""Calls a function with arguments, here or elsewhere."""

RIGHT = "right"

CHECKED = "if_nested_captures_every_scope.onnxtxt"
"""The model for `bridge check`."""

TOGETHER = 16
"""The number of models in one process: loading an engine takes longer than running a model."""

_OPSET = 20 if onnxruntime.__version__.startswith("1.17.") else None
"""The operator set of ONNX made from IR; onnxruntime 1.17 does not read the default one."""


def apart(run: Call, *arguments: Any, seconds: float = 120) -> Any:
    """The result of a call in a process of its own, or how that process was lost."""
    try:
        return isolated(run, *arguments, seconds=seconds)
    except LostProcessError as error:
        return str(error)


def record(path: Path) -> tuple[bytes, Outputs]:
    """The model as bytes, and its outputs in the engine of its own format. Old releases of onnx
    cannot read all of its text."""
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
        inputs, session = asked(proto), OnnxRuntime(proto)
        for index in range(INPUT_SETS):
            yield flat(session.run(model_files.feeds(path, inputs, index)))


@dataclass(frozen=True)
class Job:
    """A model, its expected outputs, and its converted files. `refused` says why a file is
    missing."""

    path: Path
    data: bytes
    expected: Outputs
    versions: dict[str, Path]
    refused: dict[str, str]


def compare(
    paths: Sequence[Path], expected: dict[str, Any], chosen: str | None
) -> Iterator[dict[str, str]]:
    """The outcomes of some models: of the original, of the conversion and of the way back.

    They run in one process. If it crashes, each model runs in a process of its own; if that
    crashes, each version does.
    """
    with tempfile.TemporaryDirectory() as name:
        jobs = [_job(path, *expected[path.name], chosen, Path(name)) for path in paths]
        found = apart(_all, jobs, seconds=60 + 10 * len(jobs))
        for index, job in enumerate(jobs):
            outcomes = found[index] if isinstance(found, list) else apart(_outcomes, job, _here)
            if not isinstance(outcomes, dict):
                outcomes = _outcomes(job, apart)
            yield {"model": job.path.name, **outcomes, **job.refused}


def _job(path: Path, data: bytes, expected: Outputs, chosen: str | None, folder: Path) -> Job:
    place = folder / path.name
    place.mkdir()
    return Job(path, data, expected, *_conversions(path, data, chosen, place))


def _all(jobs: Sequence[Job]) -> list[dict[str, str]]:
    return [_outcomes(job, _here) for job in jobs]


def _conversions(
    path: Path, data: bytes, chosen: str | None, folder: Path
) -> tuple[dict[str, Path], dict[str, str]]:
    """The files of the conversion and of the way back, and the reason if one is missing."""
    suffixes = (".onnx", ".xml") if path.suffix == ".xml" else (".xml", ".onnx")
    files: dict[str, Path] = {}
    source: Path | bytes = path if path.suffix == ".xml" else data
    for version, suffix in zip(("there", "back"), suffixes, strict=True):
        target = folder / f"{version}{suffix}"
        try:
            options: ConvertOptions = (
                {"opset": _OPSET} if suffix == ".onnx" else {"openvino": chosen}
            )
            bridge.convert(source, target, **options)
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
        return {**found, "there": f"its inputs are not known: {inputs}"}
    feeds = [model_files.feeds(path, inputs, index) for index in range(INPUT_SETS)]
    names: list[str] = []
    if path.suffix != ".xml":
        names = [value.name for value in onnx.load_from_string(data).graph.output]
    for version, file in job.versions.items():
        run = run_onnx if file.suffix == ".onnx" else run_ir
        found[version] = call(_outcome, expected, run, file, feeds, names)
    return found


def _inputs(path: Path, data: bytes) -> list[model_files.Input] | str:
    """The inputs of a model; or the reason if this release cannot read it."""
    if path.suffix == ".xml":
        try:
            return model_files.ir_inputs(openvino.Core().read_model(path))
        except RuntimeError as error:
            return str(error).strip()
    return asked(onnx.load_from_string(data))


def asked(model: onnx.ModelProto) -> list[model_files.Input]:
    """The inputs without a default; an input with a default is a constant in IR."""
    return [input for input in model_files.onnx_inputs(model) if not input.has_default]


def run_onnx(path: Path, feeds: Sequence[dict[str, Any]], names: list[str]) -> Iterator[Any]:
    """The outputs of an ONNX file for inputs of its original, which may be an IR."""
    session = OnnxRuntime(path)
    known = [port.name for port in session.session.get_inputs()]
    for feed in feeds:
        if set(known) <= set(feed):
            yield flat(session.run({name: feed[name] for name in known}))
        else:
            yield flat(session.run(dict(zip(known, feed.values(), strict=True))))


def run_ir(path: Path, feeds: Sequence[dict[str, Any]], names: list[str]) -> Iterator[Any]:
    """The outputs of an IR for inputs of its original, in the original's order. `names` are the
    outputs of an ONNX original."""
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


def record_canary(path: str) -> tuple[bytes, list[Feed], list[np.ndarray]]:
    """The model of a canary, its inputs, and its outputs for the last of them."""
    canary = CANARIES[path]
    header = f'<ir_version: 8, opset_import: ["": {min(canary.opset, 17)}]>'
    model = onnx.parser.parse_model(f"{header} g {canary.model}")
    feeds = [feed for feed in (canary.before, canary.feed) if feed is not None]
    return model.SerializeToString(), feeds, OnnxRuntime(model).run(canary.feed)


def sing(path: str, data: bytes, feeds: list[Feed], expected: list[np.ndarray]) -> dict[str, str]:
    """The outcome of a canary with its quirk, and without it."""
    found = {"quirk": path}
    without = tuple(name for name in quirks.order() if name != path)
    for title, chosen in (("with", quirks.order()), ("without", without)):
        with tempfile.TemporaryDirectory() as name:
            file = Path(name) / "canary.xml"
            try:
                with mock.patch.object(quirks, "order", lambda chosen=chosen: chosen):
                    bridge.convert(data, file, openvino=OLDEST)
            except UnsupportedError:  # The release cannot read one of its layers.
                found[title] = "refused"
                continue
            found[title] = apart(_outcome, [expected], _run_last, file, feeds)
    return found


def _run_last(path: Path, feeds: Sequence[Feed]) -> Iterator[list[np.ndarray]]:
    engine = OpenVino(path)
    yield [engine.run(list(feed.values())) for feed in feeds][-1]


def checked(data: bytes, chosen: str) -> str:
    """The verdict of `bridge check` on a model and its conversion."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "model.onnx"
        file.write_bytes(data)
        report = check(file, openvino=chosen)
        return RIGHT if report.ok else str(report)


def main() -> None:
    """See the module."""
    command, file = sys.argv[1], Path(sys.argv[2])
    paths = [*ONNX_FILES, *IR_FILES]
    if command == "record":
        models = {path.name: apart(record, path) for path in paths}
        old = [quirk.name for quirk in map(quirks.named, quirks.order()) if quirk.until]
        canaries = {path: apart(record_canary, path) for path in old}
        file.write_bytes(pickle.dumps((models, canaries)))
        return
    chosen = sys.argv[3]
    models, canaries = pickle.loads(file.read_bytes())
    print(json.dumps({"checked": checked(models[CHECKED][0], chosen)}), flush=True)
    for path, canary in canaries.items():
        print(json.dumps(sing(path, *canary)), flush=True)
    known = [path for path in paths if not isinstance(models[path.name], str)]
    for first in range(0, len(known), TOGETHER):
        for outcomes in compare(known[first : first + TOGETHER], models, chosen):
            print(json.dumps(outcomes), flush=True)
