"""Loads the versions of a model: the original, and its conversions or the other file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bridge.check.bench import Bench
from bridge.check.engines import EngineError, LacksOperatorError, Session
from bridge.check.engines.remote import start
from bridge.check.files import FileFacts, facts
from bridge.check.lines import shortened
from bridge.check.loading import load
from bridge.check.report import CONVERSION, Version
from bridge.errors import BridgeError

Sessions = Sequence[tuple[str, Session]]
"""Loaded versions with their labels, the original first."""

_REWRITTEN = "original, rewritten"


def load_versions(bench: Bench) -> tuple[Sessions, Mapping[str, int]]:
    """The versions that load, none without the original. The second part has the others' labels,
    "" if there is no conversion, each with 0, the number of an input with which it fails."""
    report, pair = bench.report, bench.pair
    files = [("original", pair.source, pair.facts["source"])]
    failed: dict[str, int] = {}
    other = pair.other_suffix if pair.against is None else pair.against.suffix.lower()
    start([pair.source.suffix.lower(), other])
    if pair.against is not None:
        files.append((pair.against.name, pair.against, pair.facts["against"]))
    else:
        bench.tell("converting")
        try:
            for label, path in pair.converted("model"):
                files.append((label, path, facts(path)))
        except BridgeError as error:
            report.failures.append(f"{CONVERSION}{error}")
            failed[""] = 0
    sessions: list[tuple[str, Session]] = []
    for label, path, of_file in files:
        try:
            sessions.append((label, _loaded(bench, label, path, of_file)))
        except BridgeError as error:
            is_rewritten = bool(sessions) and report.versions[0].label == _REWRITTEN
            if not sessions or is_rewritten:
                session = _stand_in(bench, label, path, of_file, error)
                if session is not None:
                    sessions.append((label, session))
                    continue
            report.failures.append(f"{label}: {shortened(str(error), 500)}")
            failed[label] = 0
            note_way_back(bench, path)
            if not sessions:
                break
    return sessions, failed


def _loaded(bench: Bench, label: str, path: Path, files: tuple[FileFacts, ...]) -> Session:
    bench.tell(f"loading {label}")
    if path.suffix == ".xml" and bench.report.device is not None:
        bench.report.failures += bench.report.device.look_at(label, bench.pair.loaded(path))
    try:
        session, engine = load(path)
    except EngineError as error:
        twin = bench.pair.worked_round(path)
        if twin is None:
            raise
        session, engine = load(twin)
        note_workarounds(bench, label, f"fails ({shortened(str(error), 300)})")
    bench.report.versions.append(Version(label, path, engine, files))
    return session


def _stand_in(
    bench: Bench, label: str, path: Path, files: tuple[FileFacts, ...], error: BridgeError
) -> Session | None:
    """The same model, rewritten by Bridge, for an ONNX model with operators that no engine has.
    None if Bridge cannot rewrite it."""
    pair = bench.pair
    if not isinstance(error, LacksOperatorError) or path.suffix == ".xml":
        return None
    try:
        if path != pair.source:
            return _loaded(bench, label, pair.in_standard_operators(path), files)
        session = _loaded(bench, _REWRITTEN, pair.stand_in(), files)
    except BridgeError:
        return None
    bench.report.note(
        "no engine runs the original, so that it is run as Bridge rewrites it in operators of "
        "the standard: this shows that the conversions and the engines agree, not that Bridge "
        f"reads those operators rightly ({shortened(str(error), 300)})"
    )
    return session


def note_way_back(bench: Bench, path: Path) -> None:
    """Notes that the way back is not shown, if an IR that the check made does not run."""
    if bench.pair.against is None and path.suffix == ".xml" and path != bench.pair.source:
        bench.report.note(
            "no engine ran the IR: the way back proves nothing by itself, since it replays "
            "the rules, and a wrong rule is right there and back"
        )


def twin_of(bench: Bench, label: str) -> Session | None:
    """A version that is an IR for another device, with workarounds for the faults of the CPU
    plugin."""
    try:
        twin = bench.pair.worked_round(bench.report.path(label))
        return None if twin is None else load(twin)[0]
    except BridgeError:
        return None


def note_workarounds(bench: Bench, label: str, what: str) -> None:
    """Notes that a version is right with workarounds alone. `what` it does without them."""
    bench.report.note(
        f"{label} {what} on the CPU plugin as it is, and right with what works round the "
        "faults of that plugin, which files for other devices do not have"
    )
