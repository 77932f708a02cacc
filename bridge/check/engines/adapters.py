"""Sessions seen otherwise: inputs changed before a run, and outputs changed after it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bridge.check.engines.protocol import (
    CALL,
    EngineError,
    Feeds,
    RunResults,
    Session,
    ValueInfo,
    feed_of,
)
from bridge.errors import BridgeError
from bridge.library.packing import Boundary, pack, unpack

Before = Callable[[Feeds], Feeds]
After = Callable[[Feeds, RunResults], RunResults]


class Adapter(Session):
    """`session` with other `inputs` and `outputs`. `before` gives it its feeds, `after` makes of
    the feeds and its results what it gives here. An EngineError of `before` is that input's."""

    def __init__(
        self,
        session: Session,
        inputs: Sequence[ValueInfo] | None = None,
        outputs: Sequence[ValueInfo] | None = None,
        before: Before = lambda feeds: feeds,
        after: After = lambda _, results: results,
    ) -> None:
        self._session, self._before, self._after = session, before, after
        self.inputs = session.inputs if inputs is None else tuple(inputs)
        self.outputs = session.outputs if outputs is None else tuple(outputs)
        self.metadata, self.engine = session.metadata, session.engine
        self.keeps, self.has_states = session.keeps, session.has_states
        self.notes, self.missing, self.extra = session.notes, session.missing, session.extra

    def run_each(
        self, feeds: Sequence[Feeds], fresh: bool = False
    ) -> list[RunResults | EngineError]:
        """See `Session.run_each`."""
        given = [_tried(self._before, feed) for feed in feeds]
        taken = [feed for feed in given if not isinstance(feed, EngineError)]
        found = iter(self._session.run_each(taken, fresh))
        answers = [feed if isinstance(feed, EngineError) else next(found) for feed in given]
        return [
            answer if isinstance(answer, EngineError) else _tried(self._after, feed, answer)
            for feed, answer in zip(feeds, answers, strict=True)
        ]


def _tried(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function gives, or why it gives nothing, as an EngineError."""
    try:
        return function(*arguments)
    except EngineError as error:
        return error
    except BridgeError as error:  # values that the packed boundary of an IR cannot hold
        return EngineError(str(error))


def agreed_on(session: Session, others: Sequence[Session]) -> Adapter:
    """Runs `session` only with inputs that the others take, too. OpenVINO takes a mask that does
    not fit the states, and its results are then meaningless."""

    def before(feeds: Feeds) -> Feeds:
        for other in others:
            other.run(feeds)
        return feeds

    return Adapter(session, before=before)


# The names of another session. -------------------------------------------------------------------


def named_like(original: Session, session: Session) -> Adapter:
    """The session with the names of `original`, for each input and output that shares a name with
    one there. If there are as many inputs, the others are matched by position; so are as many
    outputs if none shares a name. An output without a match is `missing` or `extra`. Feeds may
    still have the session's own names."""
    notes = list(session.notes)
    by_place = dict(zip(session.inputs, original.inputs, strict=False))
    is_alike = len(session.inputs) == len(original.inputs)
    if is_alike and not all(_match(port, original.inputs) for port in session.inputs):
        notes.append("input names differ between the files; inputs were matched by position")

    def before(feeds: Feeds) -> Feeds:
        known = all(not _names(port).isdisjoint(feeds) for port in session.inputs)
        if known or not is_alike:
            return feeds
        # A state may start by itself; the session tells of other inputs that are missing.
        fed = [port for port in session.inputs if not _names(by_place[port]).isdisjoint(feeds)]
        call = {CALL: feeds[CALL]} if CALL in feeds else {}
        return {port.name: feed_of(by_place[port], feeds) for port in fed} | call

    pairs = [(port, _match(port, session.outputs)) for port in original.outputs]
    if len(original.outputs) == len(session.outputs) and not any(other for _, other in pairs):
        notes.append("output names differ between the files; outputs were matched by position")
        pairs = [*zip(original.outputs, session.outputs, strict=True)]
    matched = [(port, other) for port, other in pairs if other is not None]
    used = {name for port, other in matched for name in _names(port) | _names(other)}
    found = Adapter(
        session,
        # What only this one takes stays.
        [_match(port, original.inputs) or (by_place[port] if is_alike else port)
         for port in session.inputs],
        [port for port, _ in matched],
        before,
        lambda _, results: {port.name: results[other.name] for port, other in matched},
    )  # fmt: skip
    found.notes = tuple(dict.fromkeys(notes))
    found.missing = tuple(port.name for port, other in pairs if other is None)
    found.extra = tuple(p.name for p in session.outputs if used.isdisjoint(_names(p)))
    return found


def _names(port: ValueInfo) -> set[str]:
    return {port.name, *port.aliases}


def _match(port: ValueInfo, others: Sequence[ValueInfo]) -> ValueInfo | None:
    """The one of the same name, or else the first that shares a name."""
    named = (other for other in others if other.name == port.name)
    shared = (other for other in others if not _names(port).isdisjoint(_names(other)))
    return next(named, None) or next(shared, None)


# Sequences, optionals and strings. ---------------------------------------------------------------


def packed(session: Session, boundary: Boundary) -> Adapter:
    """An IR that takes and gives lists, None, strings and maps where its tensors stand for them."""
    outputs = _unpacked_infos(session.outputs, boundary.outputs)

    def after(_: Feeds, results: RunResults) -> RunResults:
        # A tensor may have the names of several parts; each part asks for its own.
        named = {name: results[port.name] for port in session.outputs for name in _names(port)}
        unpacked = unpack(boundary, named)
        return {port.name: unpacked[port.name] for port in outputs}

    inputs = _unpacked_infos(session.inputs, boundary.inputs)
    return Adapter(session, inputs, outputs, lambda feeds: pack(boundary, feeds), after)


def _unpacked_infos(ports: Sequence[ValueInfo], packed: Mapping[str, Any]) -> tuple[ValueInfo, ...]:
    """The ports as the ONNX model has them, each in the place of the first tensor it stands for."""
    owners = {part: name for name, own in packed.items() for part in own.parts(name)}
    parts = set(owners)
    seen: dict[str, ValueInfo] = {}
    for port in ports:
        names = (port.name, *sorted(port.aliases))
        # Ports that are one tensor share their names: a part is the first of them.
        part = next((name for name in names if name in owners), None)
        if part is None:
            own_name = next((name for name in names if name not in parts), port.name)
            seen[own_name] = replace(port, name=own_name)
        else:
            owner = owners.pop(part)
            seen.setdefault(owner, ValueInfo(owner))
    # A sequence without elements has no tensor at all.
    for name, own in packed.items():
        if not own.parts(name):
            seen[name] = ValueInfo(name)
    return tuple(seen.values())
