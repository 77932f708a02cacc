"""Opens files in the engines of their formats. A check has one owner of its sessions."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from bridge.check.engines.adapters import named_like, packed
from bridge.check.engines.onnxruntime import OnnxRuntime
from bridge.check.engines.openvino import OpenVino
from bridge.check.engines.protocol import Engine, EngineError, LacksOperatorError, Session
from bridge.check.engines.reference import Reference
from bridge.check.engines.remote import WORKER, RemoteEngine
from bridge.check.engines.variables import Variables, paired, with_flags
from bridge.check.files import read
from bridge.errors import shortened
from bridge.library.packing import Boundary
from bridge.records.state import FIRST_CALLS

TIMEOUT = 60.0
"""Seconds that a run may take, and the loading of a model, so that a Loop that never ends ends."""


BY_THREADS = frozenset({"com.microsoft::DynamicQuantizeLSTM"})
"""Operators to which onnxruntime gives other results with several threads, for a batch above 1. The
results with one thread are the meaning."""


PLUGINS = frozenset({"GPU", "NPU"})
"""The plugins of OpenVINO beside the CPU plugin."""


@dataclass
class Sessions:
    """The sessions of one check. A file that is open is not opened again, unless it has changed.
    IRs run on the `device`'s plugin of OpenVINO, or on the CPU plugin. Engines run as little
    optimised as possible and in 32 bits, or with their `defaults`; with so many `threads`, if it is
    not left to them. What they do ends after so many `seconds`. If `filled`, they use memory that
    `memory_filled` fills."""

    device: str = "CPU"
    threads: int | None = None
    seconds: float = TIMEOUT
    defaults: bool = False
    filled: bool = False
    _engines: dict[Any, RemoteEngine] = field(default_factory=dict, init=False)
    _opened: WeakValueDictionary[Any, Session] = field(
        default_factory=WeakValueDictionary, init=False
    )

    def engine(self, kind: type[Engine]) -> RemoteEngine:
        """An engine. Raises EngineError where it is not installed."""
        if kind not in self._engines:
            options: dict[str, Any] = {}
            if (self.defaults or self.threads) and kind in (OnnxRuntime, OpenVino):
                options = {"threads": self.threads, "plain": not self.defaults}
            if self.filled and kind is OnnxRuntime:
                options["arena"] = False
            if kind is OpenVino and self.device in PLUGINS:
                options["plugin"] = self.device
            self._engines[kind] = RemoteEngine(kind, WORKER, self.seconds, **options)
        return self._engines[kind]

    def open(self, path: Path, like: Session | None = None) -> Session:
        """The file, opened by the engine of its format. If `like` is another session, it has the
        names of that one; see `named_like`.

        An ONNX model that onnxruntime lacks operators for runs in the reference evaluator, or else
        as OpenVINO itself reads it. Where onnxruntime is not installed, it runs in the reference
        evaluator.

        Raises EngineError if no engine opens the file, LacksOperatorError if engines lack an
        operator, and BridgeError for an IR that Bridge cannot read."""
        written = path.stat() if path.is_file() else None
        key = path, written and (written.st_ino, written.st_size, written.st_mtime_ns)
        session = self._opened.get(key)
        if session is None:
            session = (self._ir if path.suffix.lower() == ".xml" else self._onnx)(path)
            self._opened[key] = session
        return session if like is None else named_like(like, session)

    def _ir(self, path: Path) -> Session:
        model = read(path)
        openvino = self.engine(OpenVino)
        said = f"{openvino.name} {openvino.version} ({OpenVino.precision}"
        if self.device in PLUGINS:
            said += f" on {self.device}, {openvino.device}"
        variables = Variables.of(model)
        session: Session = openvino.load(path)
        # Under the names that Bridge gives them everywhere; OpenVINO has names in no order.
        session.outputs = tuple(
            replace(port, name=name or port.name, aliases=port.aliases | {port.name})
            for port, name in zip(session.outputs, model.graph.output_names, strict=True)
        )
        session.metadata, session.engine = model.metadata, f"{said})"
        if variables is not None:
            session = paired(session, variables)
        boundary = Boundary.of(model)
        session = _with_flags(session)
        return packed(session, boundary) if boundary else session

    def _onnx(self, path: Path) -> Session:
        others: tuple[type[Engine], ...] = (Reference,)
        try:
            engine = self.engine(OnnxRuntime)
            others = (Reference, OpenVino)
            return _told(engine, engine.load(path))
        except EngineError as error:
            if len(others) > 1 and not isinstance(error, LacksOperatorError):
                raise
            reasons = [error]
        for kind in others:
            try:
                engine = self.engine(kind)
                return _told(engine, engine.load(path), f" ({shortened(str(reasons[0]), 80)})")
            except EngineError as failure:
                reasons.append(failure)
        raise type(reasons[0])("; ".join(map(str, reasons)))


def _told(engine: RemoteEngine, session: Session, why: str = "") -> Session:
    session.engine = f"{engine.name} {engine.version}{why}"
    return _with_flags(session)


def _with_flags(session: Session) -> Session:
    """The session, which takes the inputs that said whether there are states."""
    calls = FIRST_CALLS.read(session.metadata)
    return with_flags(session, calls) if calls else session


@contextmanager
def memory_filled(byte: int) -> Iterator[None]:
    """Memory that engines take from the system meanwhile holds this byte, where the C library can
    do that; else what was in it."""
    WORKER.call(_fill, byte)
    try:
        yield
    finally:
        WORKER.call(_fill, 0)


def _fill(byte: int) -> None:
    with suppress(AttributeError, OSError, TypeError):  # another C library than GNU's
        ctypes.CDLL(None).mallopt(_PERTURB, byte)


_PERTURB = -6
"""glibc's M_PERTURB, the byte that allocated memory is filled with; 0 is none."""


def has_device(name: str) -> bool:
    """Whether OpenVINO has such a device here."""
    try:
        return name in PLUGINS and bool(Sessions(name).engine(OpenVino))
    except EngineError:
        return False
