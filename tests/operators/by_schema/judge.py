"""The outcome of a program: what the engines expect, and what each route of Bridge gives."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import onnx.reference
import openvino
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NotImplemented_

import bridge
from bridge.check.isolation import Worker
from tests.conformance.bodies import NoFormError
from tests.conformance.cases import Case
from tests.control_flow.apart import alone
from tests.control_flow.judge import NO_PROGRAM, Verdicts, line, run_ir, said
from tests.control_flow.suite import Entry, feeds_of, placed
from tests.operators.by_schema import ir_programs
from tests.operators.by_schema.programs import ROWS, case_of, declared, schemas
from tests.operators.by_schema.values import dtype_of
from tests.support.running import OnnxRuntime, OpenVino, assert_close, flat

Outputs = list[list[Any]]
Engine = Callable[[onnx.ModelProto | Path, Sequence[Mapping[str, Any]]], Outputs]

UNDECIDED = "undecided"
"""The verdict's route if the engines differ and no row says who is right."""
TOLERANCES = {2: 4e-3, 4: 1e-4, 8: 1e-4}
"""Of f16, OpenVINO computes chains in f32."""


def runtime(model: onnx.ModelProto | Path, feeds: Sequence[Mapping[str, Any]]) -> Outputs:
    session = OnnxRuntime(model)
    return [list(session.run(feed)) for feed in feeds]


def reference(model: onnx.ModelProto | Path, feeds: Sequence[Mapping[str, Any]]) -> Outputs:
    """The standard's reference implementation."""
    with np.errstate(all="ignore"):
        evaluator = onnx.reference.ReferenceEvaluator(
            str(model) if isinstance(model, Path) else model
        )
        found = [evaluator.run(None, dict(feed)) for feed in feeds]
    return [[_of_objects(item) for item in row] for row in found]


def _of_objects(made: Any) -> Any:
    """Strings as objects, as onnxruntime gives them."""
    is_text = isinstance(made, np.ndarray) and made.dtype.kind in "UT"
    return made.astype(object) if is_text else made


def either(model: onnx.ModelProto | Path, feeds: Sequence[Mapping[str, Any]]) -> Outputs:
    """onnxruntime, or the reference if it lacks an operator or cannot run it."""
    try:
        return runtime(model, feeds)
    except Exception:
        return reference(model, feeds)


def judge(entry: Entry) -> Verdicts:
    """The verdicts on an entry by route."""
    with warnings.catch_warnings(), np.errstate(all="ignore"), TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        return (_judge_ir if entry.kind.startswith("IR.") else _judge_onnx)(entry, Path(folder))


def placed_case(entry: Entry) -> tuple[Case, Engine | None]:
    """The case of an entry in its place, and an engine for what comes back, if one is right."""
    case, engine = _expected(entry)
    place = dict(entry.levels)["place"]
    if place == "top":
        return case, engine
    if engine not in (runtime, either):
        raise UndecidedError("onnxruntime is wrong")
    # The reference implementation runs no Loop reliably.
    return _computed(placed(case, place)), runtime


def _judge_onnx(entry: Entry, folder: Path) -> Verdicts:
    try:
        case, engine = placed_case(entry)
    except NoFormError:
        return {}
    except Exception as error:
        return {NO_PROGRAM: line(error)}
    verdicts: Verdicts = {}
    feeds, wanted = feeds_of(case), [flat(outputs) for _, outputs in case.data_sets]
    names = [item.name for item in case.model.graph.output]
    ir, back = folder / "a.xml", folder / "b.onnx"
    try:
        bridge.convert(case.model, ir)
        verdicts["IR"] = said(run_ir, ir, names, feeds, wanted)
        bridge.convert(ir, back)
        if engine is not None:
            verdicts["back"] = _said_of(back, engine, feeds, wanted)
    except Exception as error:
        verdicts["back" if "IR" in verdicts else "to IR"] = line(error)
    return verdicts


def _said_of(
    model: Path,
    engine: Engine,
    feeds: Sequence[Mapping[str, Any]],
    wanted: Sequence[Sequence[np.ndarray]],
) -> str:
    """What an engine says of a model that came back."""

    def run() -> None:
        found = engine(model, feeds)
        for actual, expected in zip(found, wanted, strict=True):
            assert_close(flat(actual), expected, TOLERANCES)

    return said(run)


def _require_types(entry: Entry, outputs: Outputs) -> None:
    """Raises TypeError for tensors of other types than the schema's: the reference may give
    them."""
    levels = dict(entry.levels)
    schema = schemas(entry.kind)[int(levels["version"])]
    for port, made in zip(schema.outputs, outputs[0], strict=False):
        fixed = re.fullmatch(r"tensor\((\w+)\)", port.type)
        type_ = fixed[1] if fixed else levels.get(f"type_{port.type}")
        if type_ is not None and isinstance(made, np.ndarray) and made.dtype != dtype_of(type_):
            raise TypeError(f"the reference gives {made.dtype} for {type_}")


class UndecidedError(Exception):
    """Raised where the engines differ and no row decides."""


def _computed(case: Case) -> Case:
    """The case with onnxruntime's outputs."""
    outputs = runtime(case.model, feeds_of(case))
    sets = zip((inputs for inputs, _ in case.data_sets), map(tuple, outputs), strict=True)
    return replace(case, data_sets=tuple(sets))


def _expected(entry: Entry) -> tuple[Case, Engine | None]:
    """The case with its outputs, and an engine for what comes back, if one is right."""
    case, row = case_of(entry), ROWS[entry.kind]
    feeds = feeds_of(case)
    found: dict[Engine, Outputs] = {}
    errors: list[Exception] = []
    sizes = dict(entry.levels)["sizes"]
    for engine in (runtime, reference):
        if engine is reference and found:
            model = declared(case, found[runtime], sizes).model
        else:
            model = case.model
        try:
            outputs = engine(model, feeds)
            if engine is reference:
                _require_types(entry, outputs)
            found[engine] = outputs
        except Exception as error:
            errors.append(error)
    if not found and (row.expected is None or not isinstance(errors[0], NotImplemented_)):
        raise errors[0]
    decided = None if row.expected is None else _decided(case, row.expected)
    if decided is not None and not (found and all(_agree(it, decided) for it in found.values())):
        found = {engine: it for engine, it in found.items() if _agree(it, decided)}
        return declared(case, decided, sizes), next(iter(found), None)
    if len(found) == 2 and not _agree(*found.values()):
        raise UndecidedError(f"the engines differ: {_difference(*found.values())}")
    engine = runtime if runtime in found else either
    return declared(case, next(iter(found.values())), sizes), engine


def _decided(case: Case, expected: Callable[..., Sequence[Any]]) -> Outputs:
    """The outputs that a row says, for each of the inputs."""
    (node,), known = case.model.graph.node, case.model.graph.initializer
    constants = {item.name: onnx.numpy_helper.to_array(item) for item in known}
    attributes = {item.name: onnx.helper.get_attribute_value(item) for item in node.attribute}
    return [
        list(expected(*({**constants, **feed}.get(name) for name in node.input), **attributes))
        for feed in feeds_of(case)
    ]


def _difference(one: Outputs, other: Outputs) -> str:
    try:
        for a, b in zip(one, other, strict=True):
            assert_close(flat(a), flat(b), TOLERANCES)
    except (AssertionError, Exception) as error:
        return line(error)
    return ""


def _agree(one: Outputs, other: Outputs) -> bool:
    return not _difference(one, other)


def ended_by(entry: Entry, verdicts: Verdicts, worker: Worker) -> Verdicts:
    """The verdicts, where a process ended: no program if the engine ends it without Bridge, or
    fails in another way, as it may by unset memory."""
    if "process" not in verdicts:
        return verdicts
    found = alone(worker, _without_bridge, entry)
    if found:
        return {NO_PROGRAM: f"the engine: {next(iter(found.values()))}"}
    return verdicts


def _without_bridge(entry: Entry) -> Verdicts:
    try:
        if entry.kind.startswith("IR."):
            with TemporaryDirectory() as folder:
                _, choices = _source(entry, Path(folder) / "a.xml")
            return {NO_PROGRAM: "OpenVINO differs from itself"} if len(choices) > 1 else {}
        placed_case(entry)
    except Exception as error:
        return {NO_PROGRAM: line(error)}
    return {}


def _source(entry: Entry, path: Path) -> tuple[list[list[np.ndarray]], list[Outputs]]:
    """Writes a program as OpenVINO saves it. Returns its inputs, and its outputs by the layer alone
    in its plain form; behind them those of the program, if they differ."""

    def run(feed: Sequence[np.ndarray]) -> list[np.ndarray]:
        try:
            model, feeds = ir_programs.plain(entry, feed)
            return list(OpenVino(model).run(feeds[0]))
        except Exception:
            return list(OpenVino(built[0]).run(feed))

    built, where = ir_programs.build(entry), dict(entry.levels)["place"]
    (model, feeds), wanted = ir_programs.place(built, where, run)
    openvino.save_model(model, path, compress_to_fp16=False)
    engine = OpenVino(path)
    found = [list(engine.run(feed)) for feed in feeds]
    return feeds, [wanted, *[found] * (not _agree(found, wanted))]


def _judge_ir(entry: Entry, folder: Path) -> Verdicts:
    """A program of OpenVINO's, saved by OpenVINO, to ONNX and back to IR."""
    source, onnx_path, again = folder / "a.xml", folder / "b.onnx", folder / "c.xml"
    try:
        feeds, choices = _source(entry, source)
    except Exception as error:
        return {NO_PROGRAM: line(error)}
    verdicts: Verdicts = {}
    try:
        bridge.convert(source, onnx_path)
        names = [item.name for item in onnx.load(onnx_path).graph.input]
        named = [dict(zip(names, feed, strict=True)) for feed in feeds]
        # The reference implementation runs no body reliably.
        engine = either if dict(entry.levels)["place"] == "top" else runtime
        verdicts["ONNX"] = _best(lambda: engine(onnx_path, named), choices)
        if engine is runtime and verdicts["ONNX"].startswith("NotImplemented"):
            del verdicts["ONNX"]
        bridge.convert(onnx_path, again)
        model = OpenVino(again)
        verdicts["IR again"] = _best(lambda: [model.run(feed) for feed in feeds], choices)
    except (AssertionError, Exception) as error:
        verdicts["IR again" if onnx_path.exists() else "to ONNX"] = line(error)
    wrong = [it for it in verdicts.values() if it != "right" and not it.startswith("refused")]
    if wrong and len(choices) > 1:
        return {NO_PROGRAM: f"OpenVINO differs from itself, and {verdicts}"}
    return verdicts


def _best(run: Callable[[], Outputs], choices: Sequence[Outputs]) -> str:
    """Right, if a run gives one of the choices; otherwise its difference from the first."""
    try:
        found = run()
    except (AssertionError, Exception) as error:
        return line(error)
    differences = [_difference(found, wanted) for wanted in choices]
    return "right" if "" in differences else differences[0]
