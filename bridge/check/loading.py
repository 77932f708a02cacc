"""Loads a file by the engine of its format."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import cast

import bridge
from bridge.boundary import Boundary
from bridge.check.engines import (
    Engine,
    EngineError,
    LacksOperatorError,
    OnnxRuntime,
    OpenVino,
    Reference,
    Session,
    StatefulSession,
)
from bridge.check.packed import PackedSession
from bridge.check.parts import PartsSession, is_too_large
from bridge.check.report import shortened
from bridge.check.stateful import PairsSession
from bridge.neutral.graph import Model
from bridge.passes.stateful import KEY as STATEFUL
from bridge.passes.stateful import Record

_SECONDS = 60.0  # for one run, so that a Loop that never ends ends


def load(path: Path, known: Model | None = None) -> tuple[Session, str]:
    """The file, loaded by the engine of its format, and which engine that is; `known` is what
    Bridge has read of an IR, if it has. An ONNX model that
    onnxruntime lacks operators for, or where it is not installed, runs in the reference evaluator.

    Raises EngineError where the engine does not take the file, BridgeError for an IR that Bridge
    cannot read."""
    if path.suffix.lower() == ".xml":
        openvino, model = _engine(OpenVino), known or bridge.load(path)
        said = f"{openvino.name} {openvino.version} ({OpenVino.precision}"
        session: Session
        pairs = model.metadata.get(STATEFUL)
        if is_too_large(model) and pairs is None:
            session = parts = PartsSession(model, openvino.load)
            said += f", in {parts.count} parts"
        else:
            session = openvino.load(path)
            # Under the names that Bridge gives them everywhere; OpenVINO has names in no order.
            named = zip(session.outputs, model.graph.output_names, strict=True)
            session.outputs = tuple(
                replace(port, name=name or port.name, aliases=port.aliases | {port.name})
                for port, name in named
            )
        if pairs is not None:
            session = PairsSession(cast(StatefulSession, session), model, Record.loads(pairs))
        boundary = Boundary.of(model)
        if boundary:
            session = PackedSession(session, boundary)
        return session, f"{said})"
    try:
        engine = _engine(OnnxRuntime)
        return engine.load(path), f"{engine.name} {engine.version}"
    except LacksOperatorError as error:
        engine = _engine(Reference)
        return engine.load(path), f"{engine.name} {engine.version} ({shortened(str(error), 80)})"
    except EngineError as absent:
        if _engine_is_there(OnnxRuntime):
            raise
        engine = _engine(Reference)
        try:
            return engine.load(path), f"{engine.name} {engine.version} ({absent})"
        except EngineError as error:
            raise EngineError(f"{error}; {absent}") from error


def _engine_is_there(kind: type[Engine]) -> bool:
    try:
        _engine(kind)
    except EngineError:
        return False
    return True


@functools.cache
def _engine(kind: type[Engine]) -> Engine:
    return OnnxRuntime(seconds=_SECONDS) if kind is OnnxRuntime else kind()
