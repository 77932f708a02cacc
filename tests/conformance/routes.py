"""The routes of a case from its inputs to its outputs, and the outcomes."""

from __future__ import annotations

import functools
import re
import tempfile
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import bridge
from bridge.check.compare import compare, magnitude
from bridge.check.diagnosis.stages import plain_onnx
from bridge.check.engines import (
    EngineError,
    LacksOperatorError,
    OnnxRuntime,
    OpenVino,
    Reference,
    Session,
)
from bridge.check.engines.adapters import packed
from bridge.errors import BridgeError, UnsupportedError
from bridge.library.packing import Boundary

from . import bodies
from .cases import Case
from .outcome import Outcome


class WrongError(Exception):
    """The outputs of a route differ from the standard's."""


class _AbsentError(Exception):
    pass


def run(case: Case, route: str) -> Outcome:
    """Send one case down one route, in this process."""
    with tempfile.TemporaryDirectory(prefix="bridge-conformance-") as scratch:
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                return Outcome("right", _ALL[route](case, Path(scratch)))
        except WrongError as error:
            return Outcome("wrong", _one_line(error))
        except _AbsentError as error:
            return Outcome("absent", _one_line(error))
        except EngineError as error:
            return Outcome("engine", _one_line(error))
        except BridgeError as error:
            return Outcome("refused", _one_line(error))
        except Exception as error:
            return Outcome("error", f"{type(error).__name__}: {_one_line(error)}{_origin(error)}")


def _origin(error: Exception) -> str:
    frames = []
    trace = error.__traceback__
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    for frame in reversed(frames):
        path = Path(frame.tb_frame.f_code.co_filename)
        if "bridge" in path.parts:
            return f" ({'/'.join(path.parts[-2:])}, {frame.tb_frame.f_code.co_name})"
    return ""


def _one_line(error: Exception) -> str:
    if isinstance(error, UnsupportedError):
        found = (f"{f.operator}: {f.why}" if f.operator else f.why for f in error.findings)
        text = "; ".join(dict.fromkeys(found))
    else:
        text = str(error)
    text = re.sub(r"bridge-conformance-\w+", "", text)
    return re.sub(r"\s+", " ", text).strip()[:300]


# ------------------------------------------------------------------------------------------------


def _through_ir(case: Case, scratch: Path) -> tuple[Session, str]:
    target = scratch / "model.xml"
    convert(case, target)
    return load_ir(case, target, _openvino()), _openvino().name


def load_ir(case: Case, target: Path, engine: OpenVino) -> Session:
    """The IR of a case, which accepts the case's own inputs."""
    session: Session = engine.load(target)
    if any(
        info.type.tensor_type.elem_type in (onnx.TensorProto.UNDEFINED, onnx.TensorProto.STRING)
        for info in _boundary(case.model)
    ):
        session = packed(session, Boundary.of(target))
    return session


def _through_ir_and_back(case: Case, scratch: Path) -> tuple[Session, str]:
    middle, target = scratch / "model.xml", scratch / "model.onnx"
    convert(case, middle)
    bridge.convert(middle, target)
    return _load_onnx(target)


_CONVERTED = {"onnx-ir": _through_ir, "onnx-ir-onnx": _through_ir_and_back}


def _onnx_to_ir(case: Case, scratch: Path) -> str:
    """ONNX → IR, run by OpenVINO, against the standard's outputs.

    If OpenVINO cannot run the IR, its layers run as plain ONNX. The way back would not show a wrong
    rule, because it replays the rules.
    """
    try:
        session, engine = _through_ir(case, scratch)
        against_standard(case, session)
    except EngineError:
        _require_plain_meaning(case, scratch / "model.xml")
        raise
    return engine


def _require_plain_meaning(case: Case, ir: Path) -> None:
    """Raises WrongError if the layers of an IR mean something else than the case. Layers that
    cannot run as plain ONNX prove nothing."""
    with suppress(BridgeError):
        (session, _), boundary = _load_onnx(plain_onnx(bridge.load(ir))), Boundary.of(ir)
        against_standard(case, packed(session, boundary) if boundary else session)


def _onnx_to_ir_to_onnx(case: Case, scratch: Path) -> str:
    """ONNX → IR → ONNX, run by onnxruntime, against the standard's outputs."""
    session, engine = _through_ir_and_back(case, scratch)
    against_standard(case, session)
    return engine


def _ir_to_onnx(case: Case, scratch: Path) -> str:
    """OpenVINO's own IR file → ONNX, run by onnxruntime, against OpenVINO on that file."""
    source, target = scratch / "openvino.xml", scratch / "model.onnx"
    try:
        _write_ir(case.model, source)
        original = _openvino().load(source)
        feeds = [_feeds(case, original, inputs) for inputs, _ in case.data_sets]
        expectations = [original.run(feed) for feed in feeds]
    except Exception as error:
        raise _AbsentError(str(error)) from error
    bridge.convert(source, target)
    session, engine = _load_onnx(target)
    for feed, expected in zip(feeds, expectations, strict=True):
        if len(feed) != len(session.inputs):
            raise WrongError(f"{len(session.inputs)} inputs, expected {len(feed)}")
        renamed = {
            port.name: value for port, value in zip(session.inputs, feed.values(), strict=True)
        }
        actual = session.run(renamed)
        _same(case, list(expected.values()), actual)
    return engine


def _openvino_alone(case: Case, scratch: Path) -> str:
    """ONNX → OpenVINO's own converter, against the standard's outputs. For information."""
    session = _openvino().load(case.model)
    against_standard(case, session, by_position=len(session.inputs) == len(case.model.graph.input))
    return _openvino().name


def _onnxruntime_alone(case: Case, scratch: Path) -> str:
    """The plain case in onnxruntime: it shows that the tests feed and compare correctly."""
    session, engine = _load_onnx(case.model)
    against_standard(case, session)
    return engine


def _in_body(body: str, route: str, case: Case, scratch: Path) -> str:
    """A case inside a body, against the standard's outputs. If the case outside gives other outputs
    on the same route, these are the expected ones."""
    try:
        wrapped = bodies.wrap(case, body)
    except bodies.NoFormError as error:
        raise _AbsentError(str(error)) from error
    load = _CONVERTED[route]
    try:
        session, engine = load(wrapped, scratch)
    except UnsupportedError:
        _refused_outside(case, scratch)
        raise
    try:
        against_standard(wrapped, session)
    except WrongError:
        own = _as_run(case, load(case, scratch)[0])
        against_standard(bodies.wrap(own, body), session)
    return engine


def _refused_outside(case: Case, scratch: Path) -> None:
    try:
        convert(case, scratch / "outside.xml")
    except UnsupportedError as error:
        raise _AbsentError(f"refused outside too: {_one_line(error)}") from error


def _as_run(case: Case, session: Session) -> Case:
    """The case with the session's outputs as the expected ones."""
    data_sets = tuple(
        (inputs, tuple(session.run(_feeds(case, session, inputs)).values()))
        for inputs, _ in case.data_sets
    )
    return replace(case, data_sets=data_sets)


ROUTES: dict[str, Callable[[Case, Path], str]] = {
    "onnx-ir": _onnx_to_ir,
    "onnx-ir-onnx": _onnx_to_ir_to_onnx,
    "ir-onnx": _ir_to_onnx,
    "openvino": _openvino_alone,
    "onnxruntime": _onnxruntime_alone,
}
TESTED = ("onnx-ir", "onnx-ir-onnx", "ir-onnx")
BODY_ROUTES: dict[str, Callable[[Case, Path], str]] = {
    f"{body} {route}": functools.partial(_in_body, body, route)
    for body in bodies.BODIES
    for route in _CONVERTED
}
_ALL = ROUTES | BODY_ROUTES

# ------------------------------------------------------------------------------------------------


@functools.cache
def _openvino() -> OpenVino:
    return OpenVino(threads=1)


@functools.cache
def _onnxruntime() -> OnnxRuntime:
    return OnnxRuntime(threads=1)


@functools.cache
def _reference() -> Reference:
    return Reference()


def convert(case: Case, target: Path, **options: Any) -> None:
    """Converts. If the model declares no rank for an input's elements, the data give it."""
    try:
        bridge.convert(case.model, target, **options)
    except UnsupportedError as error:
        if "`input_shapes" not in str(error):
            raise
        shapes = {}
        for info, value in zip(case.model.graph.input, case.data_sets[0][0], strict=True):
            element = value[0] if isinstance(value, list) and value else value
            if not info.type.HasField("tensor_type"):
                shapes[info.name] = [None] * (0 if element is None else np.ndim(element))
        bridge.convert(case.model, target, input_shapes=shapes, **options)


def _boundary(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    return [*model.graph.input, *model.graph.output]


def _write_ir(model: onnx.ModelProto, path: Path) -> None:
    import openvino

    openvino.save_model(
        openvino.Core().read_model(model.SerializeToString()), path, compress_to_fp16=False
    )


def _load_onnx(source: Path | onnx.ModelProto) -> tuple[Session, str]:
    """onnxruntime, or onnx.reference where onnxruntime lacks an operator or type."""
    model = onnx.load(source) if isinstance(source, Path) else source
    if isinstance(source, Path):
        try:
            onnx.checker.check_model(model, full_check=True)
        except Exception as error:
            raise WrongError(f"not valid ONNX: {error}") from error
    try:
        return _onnxruntime().load(source), _onnxruntime().name
    except LacksOperatorError:
        return _reference().load(model), _reference().name


def _feeds(case: Case, session: Session, inputs: Sequence[Any]) -> dict[str, Any]:
    """The case's inputs under the session's names, in the session's order."""
    given = {info.name: value for info, value in zip(case.model.graph.input, inputs, strict=True)}
    feeds = {}
    for port in session.inputs:
        names = [name for name in (port.name, *sorted(port.aliases)) if name in given]
        if not names:
            raise WrongError(f"the model asks for an input '{port.name}' that the case has not")
        feeds[port.name] = given[names[0]]
    return feeds


def against_standard(case: Case, session: Session, by_position: bool = False) -> None:
    """Runs the case's data sets; raises WrongError for other outputs.

    `by_position` ignores the names of inputs, which OpenVINO sometimes changes. A model that Bridge
    converts must keep them.
    """
    names = [info.name for info in case.model.graph.output]
    for inputs, expected in case.data_sets:
        if by_position:
            own = (port.name for port in session.inputs)
            actual = session.run(dict(zip(own, inputs, strict=True)))
        else:
            actual = session.run(_feeds(case, session, inputs))
        for name, port in zip(names, session.outputs, strict=False):
            if name != port.name and name not in port.aliases:
                raise WrongError(f"output '{name}' is called '{port.name}'")
        _same(case, expected, actual)


def _same(case: Case, expected: Sequence[Any], actual: dict[str, Any]) -> None:
    if len(expected) != len(actual):
        raise WrongError(f"{len(actual)} outputs, expected {len(expected)}")
    for wanted, (name, found) in zip(expected, actual.items(), strict=True):
        # The standard's own runner allows two bfloat16 units in the last place.
        bfloat16 = getattr(getattr(wanted, "dtype", None), "name", "") == "bfloat16"
        rtol = max(case.rtol, 2**-6) if bfloat16 else case.rtol
        # The standard's tolerance is absolute, that of `compare` a part of the output's magnitude.
        difference = compare(wanted, found, rtol, case.atol / (magnitude(wanted) or 1.0))
        if not difference.ok:
            raise WrongError(f"output '{name}': {difference}")
