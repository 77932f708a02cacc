"""The outcome of a program of the suite in each direction, with each choice of quirks."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import openvino

import bridge
from tests.conformance.bodies import NoFormError
from tests.conformance.cases import Case
from tests.control_flow.suite import Entry, feeds_of, placed
from tests.support.choices import CHOICES
from tests.support.running import OnnxRuntime, OpenVino, assert_close, flat

Verdicts = dict[str, str]
"""The outcome of a program by route: "right", or the failure."""

NO_PROGRAM = "no program"
"""The route, and the verdict, if onnxruntime cannot run the program itself."""


def case_of(entry: Entry) -> Case:
    """The program in its place, with onnxruntime's outputs for every combination of its inputs.

    Raises NoFormError if ONNX has no such form. Raises onnxruntime's error if it cannot run the
    program.
    """
    program = entry.program()
    model, feeds = program.model(), program.feeds()
    sets = zip((tuple(f.values()) for f in feeds), _expected(model, feeds), strict=True)
    case = placed(Case(entry.name, model, tuple(sets), 1e-5, 1e-6), entry.place)
    outputs = _expected(case.model, feeds_of(case))
    sets = zip((inputs for inputs, _ in case.data_sets), outputs, strict=True)
    return replace(case, data_sets=tuple(sets))


def _expected(model: onnx.ModelProto, feeds: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    session = OnnxRuntime(model)
    return [tuple(session.run(feed)) for feed in feeds]


def judge(entry: Entry, choices: Sequence[str] = tuple(CHOICES)) -> Verdicts:
    """Runs a program along the routes of these choices. An IR for OpenVINO runs there. The ONNX
    that comes back, from this IR and from plain meaning, runs in onnxruntime."""
    with warnings.catch_warnings(), TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        try:
            case = case_of(entry)
            feeds = feeds_of(case)
            expected = [flat(outputs) for _, outputs in case.data_sets]
        except NoFormError:
            return {}
        except Exception as error:
            return {NO_PROGRAM: line(error)}
        verdicts: Verdicts = {}
        seen: dict[bytes, str] = {}
        for quirks in choices:
            ir = Path(folder) / f"{quirks}.xml"
            _routes(case.model, feeds, expected, ir, quirks, verdicts, seen)
        return verdicts


def _routes(
    model: onnx.ModelProto,
    feeds: Sequence[Mapping[str, Any]],
    expected: Sequence[Sequence[np.ndarray]],
    ir: Path,
    quirks: str,
    verdicts: Verdicts,
    seen: dict[bytes, str],
) -> None:
    """The routes of one choice of quirks. `seen` holds the verdicts on files of other choices, so
    that equal files run once."""
    back = ir.with_suffix(".onnx")
    try:
        bridge.convert(model, ir, **CHOICES[quirks])
    except Exception as error:
        verdicts[f"to IR, {quirks}"] = line(error)
        return
    if quirks != "none":
        written = ir.read_bytes() + ir.with_suffix(".bin").read_bytes()
        if written not in seen:
            names = [output.name for output in model.graph.output]
            seen[written] = said(run_ir, ir, names, feeds, expected)
        verdicts[f"IR, {quirks}"] = seen[written]
    try:
        bridge.convert(ir, back)
    except Exception as error:
        verdicts[f"back, {quirks}"] = line(error)
        return
    written = back.read_bytes()
    if written not in seen:
        seen[written] = said(run_onnx, back, feeds, expected)
    verdicts[f"back, {quirks}"] = seen[written]


def run_ir(
    ir: Path | openvino.Model,
    names: Sequence[str],
    feeds: Sequence[Mapping[str, Any]],
    expected: Sequence[Sequence[np.ndarray]],
) -> None:
    """Runs an IR of Bridge's with each feed in a fresh request. Then one request runs each feed
    twice in a row, and the first feed again. Raises AssertionError for the first wrong output."""
    boundary, engine = bridge.Boundary.of(ir), OpenVino(ir)
    used = engine.compiled.create_infer_request()
    runs = [(engine.compiled.create_infer_request(), number) for number in range(len(feeds))]
    in_a_row = [number for number in range(len(feeds)) for _ in range(2)]
    runs += [(used, number) for number in (*in_a_row, *in_a_row[:1])]
    for request, number in runs:
        outputs = engine.run_once(request, boundary, feeds[number])
        where = f"input {number}, {'a used' if request is used else 'a fresh'} request"
        _compare([outputs[name] for name in names], expected[number], where)


def run_onnx(
    path: Path, feeds: Sequence[Mapping[str, Any]], expected: Sequence[Sequence[np.ndarray]]
) -> None:
    """Runs an ONNX model with each feed. Raises AssertionError for the first wrong output."""
    session = OnnxRuntime(path)
    for number, feed in enumerate(feeds):
        _compare(session.run(feed), expected[number], f"input {number}")


def _compare(actual: Sequence[Any], wanted: Sequence[np.ndarray], where: str) -> None:
    try:
        assert_close(flat(actual), wanted)
    except AssertionError as error:
        raise AssertionError(f"wrong at {where}: {line(error)}") from error


def said(run: Any, *arguments: Any) -> str:
    try:
        run(*arguments)
    except (AssertionError, Exception) as error:
        return line(error)
    return "right"


def line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    kind = "refused" if isinstance(error, bridge.BridgeError) else type(error).__name__
    return f"{kind}: {text}"[:300]
