"""Loads a file by the engine of its format."""

from __future__ import annotations

import functools
import multiprocessing
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from bridge.check.engines import (
    Engine,
    EngineError,
    LacksOperatorError,
    OnnxRuntime,
    OpenVino,
    OpenVinoGpu,
    OpenVinoNpu,
    Reference,
    Session,
    StatefulSession,
)
from bridge.check.files import read
from bridge.check.isolated_engines import IsolatedEngine
from bridge.check.isolation import Worker
from bridge.check.lines import shortened
from bridge.check.packed import PackedSession
from bridge.check.parts import PartsSession, is_too_large
from bridge.check.stateful import FirstCallsSession, PairsSession
from bridge.check.variables import Variables
from bridge.errors import amount
from bridge.library.boundary import Boundary
from bridge.passes.state.records import FIRST_CALLS

TIMEOUT = 60.0
"""Seconds that a run may take, and the loading of a model, so that a Loop that never ends ends."""


@dataclass(frozen=True)
class Settings:
    """How engines run: whether onnxruntime optimises, whether OpenVINO has its defaults in place of
    hints to compute in 32 bits, and how many threads each has, if it is not left to them. OpenVINO
    computes quantised models in `integers` or in floats."""

    optimised: bool = False
    defaults: bool = False
    threads: int | None = None
    integers: bool = True


PLAIN = Settings()
"""As little as possible is optimised, and all is computed in 32 bits."""
DEFAULTS = Settings(optimised=True, defaults=True)
"""As people run a model."""
ONE_THREAD = Settings(threads=1)
IN_FLOATS = Settings(integers=False)
OPTIMISED = Settings(optimised=True)
"""All optimisations that keep 32 bits."""

BY_THREADS = frozenset({"com.microsoft::DynamicQuantizeLSTM"})
"""Operators to which onnxruntime gives other results with several threads, for a batch above 1. The
results with one thread are the meaning."""

_worker = Worker()
_worker.seconds = TIMEOUT


@functools.cache
def engine(kind: type[Engine], settings: Settings = PLAIN) -> IsolatedEngine:
    """An engine in the process that all checks share. Raises EngineError where it is not
    installed."""
    if settings == PLAIN or not issubclass(kind, OnnxRuntime | OpenVino):
        return IsolatedEngine(kind, _worker)
    is_plain = not (settings.optimised if issubclass(kind, OnnxRuntime) else settings.defaults)
    more = {"integers": settings.integers} if issubclass(kind, OpenVino) else {}
    return IsolatedEngine(kind, _worker, threads=settings.threads, plain=is_plain, **more)


def start_engines(suffixes: Collection[str]) -> None:
    """Imports the engines of files that end so, while this process does other things."""

    def start() -> None:
        for suffix in suffixes:
            with suppress(EngineError):  # which loading tells
                engine(OpenVino if suffix == ".xml" else OnnxRuntime)

    if not multiprocessing.current_process().daemon:
        threading.Thread(target=start, daemon=True).start()


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """What engines do in the process that all checks share ends after so many seconds."""
    before, _worker.seconds = _worker.seconds, seconds
    try:
        yield
    finally:
        _worker.seconds = before


@contextmanager
def hushed() -> Iterator[None]:
    """Nothing that the engines print in the process that all checks share is seen."""
    _worker.hushed = True
    try:
        yield
    finally:
        _worker.hushed = False


PLUGINS: Mapping[str, type[OpenVino]] = {"GPU": OpenVinoGpu, "NPU": OpenVinoNpu}
"""The plugins of OpenVINO beside the CPU plugin, by the device."""

_running: list[tuple[str, int | None]] = []
"""The device whose plugin runs IRs, and the number of threads, in each `running_on`."""


def has_device(name: str) -> bool:
    """Whether OpenVINO has such a device here."""
    try:
        return name in PLUGINS and bool(engine(cast(type[Engine], PLUGINS[name])))
    except EngineError:
        return False


@contextmanager
def running_on(name: str, threads: int | None = None) -> Iterator[None]:
    """OpenVINO's plugin for this device runs all IRs that are loaded meanwhile. What is loaded with
    settings of its own has as many threads as these say."""
    _running.append((name, threads))
    try:
        yield
    finally:
        _running.pop()


def plugin() -> type[OpenVino]:
    """The plugin that runs IRs."""
    return PLUGINS.get(_running[-1][0], OpenVino) if _running else OpenVino


def load(path: Path, settings: Settings = PLAIN) -> tuple[Session, str]:
    """The file, loaded by the engine of its format, and which engine that is.

    An ONNX model that onnxruntime lacks operators for runs in the reference evaluator, or else as
    OpenVINO itself reads it. Where onnxruntime is not installed, it runs in the reference
    evaluator.

    Raises EngineError if no engine loads the file, LacksOperatorError if engines lack an operator,
    and BridgeError for an IR that Bridge cannot read."""
    if settings == PLAIN and _running:
        settings = Settings(threads=_running[-1][1])
    if path.suffix.lower() == ".xml":
        return _load_ir(path, settings)
    try:
        onnxruntime = engine(cast(type[Engine], OnnxRuntime), settings)
    except EngineError as error:
        return _load_elsewhere(path, error, (Reference,), settings)
    try:
        session = onnxruntime.load(path)
        return _with_flags(session, session.metadata), f"{onnxruntime.name} {onnxruntime.version}"
    except LacksOperatorError as error:
        return _load_elsewhere(path, error, (Reference, OpenVino), settings)


def load_in_floats(path: Path) -> Session:
    """As `load`. OpenVINO computes quantised models in floats."""
    return load(path, IN_FLOATS if path.suffix.lower() == ".xml" else PLAIN)[0]


def _load_ir(path: Path, settings: Settings) -> tuple[Session, str]:
    model, kind = read(path), plugin()
    openvino = engine(cast(type[Engine], kind), settings)
    said = f"{openvino.name} {openvino.version} ({OpenVino.precision}"
    said += "" if kind.plugin == "CPU" else f" on {kind.plugin}, {openvino.device()}"
    session: Session
    variables = Variables.of(model)
    if is_too_large(model) and variables is None:
        # A second process opens a part while the first runs the one before.
        beside = Worker()
        beside.seconds = _worker.seconds
        second = IsolatedEngine(kind, beside, **openvino.options)
        session = parts = PartsSession(model, [openvino.load, second.load])
        said += f", in {amount(parts.count, 'part')}"
    else:
        session = openvino.load(path)
        # Under the names that Bridge gives them everywhere; OpenVINO has names in no order.
        named = zip(session.outputs, model.graph.output_names, strict=True)
        session.outputs = tuple(
            replace(port, name=name or port.name, aliases=port.aliases | {port.name})
            for port, name in named
        )
    if variables is not None:
        session = PairsSession(cast(StatefulSession, session), variables)
    session = _with_flags(session, model.metadata)
    boundary = Boundary.of(model)
    if boundary:
        session = PackedSession(session, boundary)
    return session, f"{said})"


def _with_flags(session: Session, metadata: Mapping[str, str]) -> Session:
    """The session, which takes the inputs that said whether there are states."""
    calls = FIRST_CALLS.read(metadata)
    return FirstCallsSession(session, calls) if calls else session


def _load_elsewhere(
    path: Path, error: EngineError, kinds: Sequence[type[Engine]], settings: Settings
) -> tuple[Session, str]:
    """An ONNX model that onnxruntime does not run, loaded by the first of the engines that does."""
    reasons = [str(error)]
    for kind in kinds:
        try:
            other = engine(kind, settings)
            session = other.load(path)
        except EngineError as failure:
            reasons.append(str(failure))
        else:
            said = f"{other.name} {other.version} ({shortened(str(error), 80)})"
            return _with_flags(session, session.metadata), said
    raise type(error)("; ".join(reasons))
