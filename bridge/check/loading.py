"""What the stages of a check that are still to move call; see `bridge.check.engines.sessions`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bridge.check.engines.openvino import OpenVino
from bridge.check.engines.protocol import Engine, Session
from bridge.check.engines.remote import RemoteEngine
from bridge.check.engines.sessions import (
    IN_FLOATS,
    PLAIN,
    Sessions,
    Settings,
    current,
    owning,
)


def engine(kind: type[Engine], settings: Settings = PLAIN) -> RemoteEngine:
    """See `Sessions.engine`."""
    return current().engine(kind, settings)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """What engines do ends after so many seconds."""
    with owning(Sessions(seconds=seconds)):
        yield


@contextmanager
def running_on(name: str, threads: int | None = None) -> Iterator[None]:
    """OpenVINO's plugin for this device runs all IRs that are loaded meanwhile."""
    with owning(Sessions(name, threads, current().seconds)):
        yield


def plugin() -> type[OpenVino]:
    """The plugin that runs IRs."""
    return current().plugin


def load(path: Path, settings: Settings = PLAIN) -> tuple[Session, str]:
    """The file, opened anew."""
    session = current().opened(path, settings)
    return session, session.engine


def load_in_floats(path: Path) -> Session:
    """As `load`. OpenVINO computes quantised models in floats."""
    return load(path, IN_FLOATS if path.suffix.lower() == ".xml" else PLAIN)[0]
