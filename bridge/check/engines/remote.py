"""Engines in a process of their own, so that a crash is an error like others."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from bridge.check.engines.onnxruntime import OnnxRuntime
from bridge.check.engines.openvino import OpenVino
from bridge.check.engines.protocol import (
    CALL,
    EndlessError,
    Engine,
    EngineError,
    Feeds,
    Loadable,
    RunResults,
    Session,
    ValueInfo,
    is_empty,
)
from bridge.check.isolation import LostProcessError, TooLongError, Worker

WORKER = Worker(quiet=True)
"""The process of the engines, for all checks: importing engines takes longer than a small check."""

PATIENCE = 5.0
"""Seconds that a run may take, however short those before it were."""


class RemoteEngine:
    """An engine that loads and runs models in the process of `worker`. It is made with `options`.

    A run that takes longer than `seconds` is an EngineError. Loading has the same limit, because
    engines fold and compile then. A Loop may never end for some inputs. So a run is an EngineError,
    too, if it takes a hundred times as long as the longest run that ended, and longer than
    PATIENCE.
    """

    def __init__(
        self, kind: type[Engine], worker: Worker, seconds: float | None = None, **options: Any
    ) -> None:
        self.name = kind.name
        self.worker, self.seconds = worker, seconds
        self.made: _Made = kind, tuple(options.items())
        self.unused = _unused.setdefault(worker, [])
        self.version, self.device = self.call(_about, self.made)

    def load(self, source: Loadable) -> RemoteSession:
        """See `Engine.load`."""
        return RemoteSession(self, source)

    def call(self, function: Any, *arguments: Any, seconds: float | None = None) -> Any:
        """As `Worker.call`; a lost process is an EngineError, a spoilt one is replaced."""
        spoilt = self.worker.process in _spoilt
        try:
            return self.worker.call(function, *arguments, seconds=seconds)
        except LostProcessError as error:
            if spoilt and not isinstance(error, TooLongError):
                return self.call(function, *arguments, seconds=seconds)
            raise self.lost(error) from error

    def lost(self, error: LostProcessError) -> EngineError:
        """What a session says where the process is lost."""
        if isinstance(error, TooLongError):
            return EndlessError(f"{self.name}: {error} (--timeout)")
        return EngineError(f"{self.name}: {error}")


class RemoteSession(Session):
    """A model in the process of an engine. If the process was lost, the model is loaded again.

    A run without elements spoils a session that `keeps` something: kernels keep sizes, so that
    later runs may fail or give other numbers. Then the session is renewed."""

    def __init__(self, engine: RemoteEngine, source: Loadable) -> None:
        self._engine = engine
        # The process may have started in another working directory.
        self._source = Path(source).absolute() if isinstance(source, str | Path) else source
        self._key = next(_keys)
        self._longest: float | None = None  # of the runs that ended, in seconds
        self._most = engine.seconds
        self._spoilt = False
        self.inputs, self.outputs, self.metadata, self.keeps = self._load()

    def run_each(
        self, feeds: Sequence[Feeds], fresh: bool = False
    ) -> list[RunResults | EngineError]:
        """See `Session.run_each`. Each run is one call to the process. The model is loaded again if
        that was lost; if it does not load any more, no further input runs."""
        found: list[RunResults | EngineError] = []
        for feed in feeds:
            try:
                if self._process is not self._engine.worker.process:
                    self._load()
            except EngineError as error:
                return found + [error] * (len(feeds) - len(found))
            try:
                values, more = self._run(feed, fresh)
                named = zip(self.outputs, values, strict=True)
                found.append({port.name: value for port, value in named} | more)
            except EngineError as error:
                found.append(error)
        return found

    def _load(self) -> _Loaded:
        engine = self._engine
        unused = [engine.unused.pop() for _ in range(len(engine.unused))]
        engine.call(_about, engine.made)  # A process that starts only now imports it.
        call = (_load, self._key, engine.made, self._source, unused)
        try:
            loaded: _Loaded = engine.call(*call, seconds=engine.seconds)
        except EndlessError as error:
            raise EndlessError(f"{error}, while it loaded the model") from error
        self._process, self._spoilt = engine.worker.process, False
        return loaded

    def __del__(self) -> None:
        self._engine.unused.append(self._key)

    def _run(self, feed: Feeds, fresh: bool) -> _Answer:
        """The answer of the process to an input. It is asked again if a spoilt process ends."""
        engine, process = self._engine, self._engine.worker.process
        spoils = is_empty(feed)
        anew = fresh or (self._spoilt and not spoils and not feed.get(CALL))
        self._spoilt = self.keeps and spoils
        began = time.monotonic()
        try:
            if anew:
                engine.worker.call(_renew, self._key, seconds=engine.seconds)
                began = time.monotonic()
            answer: _Answer = engine.worker.call(_run, self._key, feed, seconds=self._patience())
            return answer
        except TooLongError as error:
            if self._longest is None and self._most:
                self._most = min(self._most, PATIENCE)  # Others may take as long again.
            raise engine.lost(error) from error
        except LostProcessError as error:
            if process not in _spoilt:
                raise engine.lost(error) from error
            self._load()
            return self._run(feed, fresh)
        finally:
            if spoils and process is not None:
                _spoilt.add(process)
            if engine.worker.process is process:
                self._longest = max(time.monotonic() - began, self._longest or 0.0)

    def _patience(self) -> float | None:
        if self._most is None or self._longest is None:
            return self._most
        return min(self._most, max(PATIENCE, 100 * self._longest))


def start(suffixes: Iterable[str]) -> None:
    """Begins to import the engines of files that end so, while this process does other things."""
    kinds = dict.fromkeys(OpenVino if suffix == ".xml" else OnnxRuntime for suffix in suffixes)

    def begin() -> None:
        with suppress(Exception):  # which opening meets again, and tells
            for kind in kinds:
                WORKER.call(_about, (kind, ()))

    if not multiprocessing.current_process().daemon:
        WORKER.start()  # Not in the thread: the process complains if this one ends meanwhile.
        threading.Thread(target=begin, daemon=True).start()


_keys = count()
_unused: WeakKeyDictionary[Worker, list[int]] = WeakKeyDictionary()
"""Sessions in a process that nobody here has any more, whichever engine they are of."""

_spoilt: WeakSet[BaseProcess] = WeakSet()
"""Processes with a run without elements: kernels of either engine may have written where they must
not, which may end the process long after, in a run of the other engine."""

_Answer = tuple[Sequence[Any], RunResults]
"""The outputs by their places, and results that are none."""

_Loaded = tuple[tuple[ValueInfo, ...], tuple[ValueInfo, ...], Mapping[str, str], bool]
"""Inputs, outputs and metadata of a session, and whether it keeps something."""


# What runs in the other process. -----------------------------------------------------------------

_Made = tuple[type[Engine], tuple[tuple[str, Any], ...]]
"""An engine's class, and the options that it is made with."""

_engines: dict[_Made, Engine] = {}
_sessions: dict[int, Session] = {}


def _engine(made: _Made) -> Engine:
    if made not in _engines:
        kind, options = made
        _engines[made] = kind(**dict(options))
    return _engines[made]


def _about(made: _Made) -> tuple[str, str]:
    """The version of an engine, and the full name of its device."""
    engine = _engine(made)
    return engine.version, str(getattr(engine, "device", ""))


def _load(key: int, made: _Made, source: Loadable, unused: Sequence[int]) -> _Loaded:
    for one in unused:
        _sessions.pop(one, None)
    session = _sessions[key] = _engine(made).load(source)
    return session.inputs, session.outputs, dict(session.metadata), session.keeps


def _renew(key: int) -> None:
    _sessions[key].renew()


def _run(key: int, feed: Feeds) -> _Answer:
    """The results of a run. A model may list one output twice."""
    session = _sessions[key]
    results = session.run(feed)
    names = [port.name for port in session.outputs]
    more = {name: value for name, value in results.items() if name not in names}
    return [results[name] for name in names], more
