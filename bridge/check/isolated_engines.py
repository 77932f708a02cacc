"""Engines in a process of their own, so that a crash is an error like others."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from bridge.check.engines import (
    CallResults,
    Contents,
    EndlessError,
    Engine,
    EngineError,
    Loadable,
    OpenVino,
    Session,
    ValueInfo,
    is_empty,
)
from bridge.check.isolation import LostProcessError, TooLongError, Worker

PATIENCE = 5.0
"""Seconds that a run may take, however short those before it were."""


class IsolatedEngine:
    """An engine that loads and runs models in the process of `worker`. It is made with `options`.

    A run that takes longer than `worker.seconds` is an EngineError. Loading has the same limit,
    because engines fold and compile then. A Loop may never end for some inputs. So a run is an
    EngineError, too, if it takes a hundred times as long as the longest run that ended, and longer
    than PATIENCE.
    """

    def __init__(self, kind: type[Engine], worker: Worker, **options: Any) -> None:
        self.name = kind.name
        self.kind, self.options = kind, options
        self.made: _Kind = kind, tuple(options.items())
        self.worker = worker
        self.unused: list[int] = []  # sessions that nobody here has any more
        self.version: str = self.call(_version, self.made)

    def load(self, source: Loadable) -> IsolatedSession:
        """See `Engine.load`."""
        return IsolatedSession(self, source)

    def device(self) -> str:
        """The full name of the device that an engine of OpenVINO runs on."""
        return str(self.call(_device, self.made))

    def call(self, *call: Any, seconds: float | None = None) -> Any:
        """As `Worker.call`; a lost process is an EngineError."""
        try:
            return self.worker.call(*call, seconds=seconds)
        except TooLongError as error:
            raise EndlessError(f"{self.name}: {error} (--timeout)") from error
        except LostProcessError as error:
            raise EngineError(f"{self.name}: {error}") from error


class IsolatedSession:
    """A model in the process of an engine. If the process was lost, the model is loaded again.

    A run without elements spoils a session of OpenVINO: kernels keep sizes, so that later runs may
    fail or give other numbers. Then the model is loaded again, too."""

    def __init__(self, engine: IsolatedEngine, source: Loadable) -> None:
        self._engine = engine
        # The process may have started in another working directory.
        self._source = Path(source).absolute() if isinstance(source, str | Path) else source
        self._key = next(_keys)
        self._longest: float | None = None  # of the runs that ended, in seconds
        self._spoilt = False
        self.inputs: tuple[ValueInfo, ...]
        self.outputs: tuple[ValueInfo, ...]
        self.metadata: Mapping[str, str]
        self.inputs, self.outputs, self.metadata = self._load()

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """See `Session.run`."""
        whole = not is_empty(feeds)
        if self._spoilt and whole:
            self._load()
        self._spoilt = not whole and issubclass(self._engine.kind, OpenVino)
        return self._named(self._call(_run, feeds))

    def run_row(self, feeds: Sequence[Mapping[str, Any]], states: Contents) -> list[CallResults]:
        """See `StatefulSession.run_row`."""
        return [(self._named(one), after) for one, after in self._call(_run_row, feeds, states)]

    def _named(self, results: Sequence[Any]) -> dict[str, Any]:
        """The outputs by the names that they have here; `load` gives some another name."""
        return {port.name: value for port, value in zip(self.outputs, results, strict=True)}

    def _load(self) -> _Loaded:
        engine = self._engine
        unused = [engine.unused.pop() for _ in range(len(engine.unused))]
        engine.call(_version, engine.made)  # A process that starts only now imports it.
        call = (_load, self._key, engine.made, self._source, unused)
        try:
            loaded: _Loaded = engine.call(*call, seconds=engine.worker.seconds)
        except EndlessError as error:
            raise EndlessError(f"{error}, while it loaded the model") from error
        self._process = engine.worker.process
        return loaded

    def __del__(self) -> None:
        self._engine.unused.append(self._key)

    def _call(self, function: Any, *arguments: Any) -> Any:
        engine = self._engine
        if self._process is not engine.worker.process:
            self._load()
        seconds = engine.worker.seconds
        if seconds is not None and self._longest is not None:
            seconds = min(seconds, max(PATIENCE, 100 * self._longest))
        began = time.monotonic()
        results = engine.call(function, self._key, *arguments, seconds=seconds)
        self._longest = max(time.monotonic() - began, self._longest or 0.0)
        return results


_keys = count()

_Loaded = tuple[tuple[ValueInfo, ...], tuple[ValueInfo, ...], Mapping[str, str]]
"""Inputs, outputs and metadata of a session."""


# What runs in the other process. -----------------------------------------------------------------

_Kind = tuple[type[Engine], tuple[tuple[str, Any], ...]]
"""An engine's class, and the options that it is made with."""

_engines: dict[_Kind, Engine] = {}
_sessions: dict[int, Any] = {}


def _version(kind: _Kind) -> str:
    if kind not in _engines:
        _engines[kind] = kind[0](**dict(kind[1]))
    return _engines[kind].version


def _device(kind: _Kind) -> str:
    _version(kind)
    return str(getattr(_engines[kind], "device", ""))


def _load(key: int, kind: _Kind, source: Loadable, unused: Sequence[int]) -> _Loaded:
    for one in unused:
        _sessions.pop(one, None)
    _version(kind)
    session = _sessions[key] = _engines[kind].load(source)
    return session.inputs, session.outputs, dict(session.metadata)


def _run(key: int, feeds: Mapping[str, Any]) -> list[Any]:
    return _in_order(_sessions[key], _sessions[key].run(feeds))


def _run_row(
    key: int, feeds: Sequence[Mapping[str, Any]], states: Contents
) -> list[tuple[list[Any], Contents]]:
    found = _sessions[key].run_row(feeds, states)
    return [(_in_order(_sessions[key], results), after) for results, after in found]


def _in_order(session: Session, results: Mapping[str, Any]) -> list[Any]:
    """One result for each output; a model may list one output twice."""
    return [results[port.name] for port in session.outputs]
