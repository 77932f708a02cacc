"""Stateful models, with the inputs and outputs of the ONNX model that they were made of. Variables
are inputs and outputs, and there are inputs that say whether there are states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

import numpy as np

from bridge.check.engines import (
    Session,
    StatefulSession,
    UndefinedCallError,
    ValueInfo,
    feed_of,
)
from bridge.check.outputs import Comparison
from bridge.check.variables import Variables, dtype_of
from bridge.neutral.graph import Value
from bridge.passes.state.records import BEAMS, PLACES, FirstCall


class RowSession(Session, Protocol):
    """A session that keeps states from call to call."""

    def run_row(self, feeds: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The outputs of calls in a row. The first call starts without states. Fed states are
        ignored. Raises EngineError."""


def keeps_states(session: Session) -> RowSession | None:
    """The session, if it keeps states from call to call."""
    if isinstance(session, FirstCallsSession):
        return session if keeps_states(session.session) else None
    return session if isinstance(session, PairsSession) else None


class PairsSession:
    """Sets the variables of `session` before each run to the states in the feeds of the ONNX model.
    Gives the variables' contents after the run as outputs. Sequences keep their order."""

    def __init__(self, session: StatefulSession, variables: Variables) -> None:
        self._session = session
        self._states = {
            pair.variable: (_info(pair.input, variables.hold[pair.input]), pair.output)
            for pair in variables.pairs
        }
        self._types = {
            pair.variable: tuple(
                map(dtype_of, (variables.read[pair.input].outputs[0], variables.hold[pair.input]))
            )
            for pair in variables.pairs
        }
        self._beams, self._told = variables.beams, variables.told
        self._begun = variables.begun
        ports = tuple(port for port, _ in self._states.values())
        self._names = {port.name for port in ports}
        added = {BEAMS: self._beams, PLACES: self._told is not None}
        given = [port for port in session.inputs if not added.get(port.name)]
        self.inputs = (*given, *ports)
        after = (ValueInfo(name) for _, name in self._states.values())
        self.outputs = (*session.outputs, *after)

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """See `Session.run`. A state that is not fed, or has no elements, may start by itself."""
        states = {
            variable: np.asarray(feed_of(port, feeds)).astype(self._types[variable][0])
            for variable, (port, _) in self._states.items()
            if port.name in feeds and (port.name not in self._begun or np.size(feeds[port.name]))
        }
        (call,) = self._session.run_row([self._with_added(feeds)], states)
        return self._named(*call)

    def run_row(self, feeds: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """See `RowSession.run_row`."""
        found = self._session.run_row([self._with_added(feed) for feed in feeds], {})
        return [self._named(results, after) for results, after in found]

    def _named(self, results: dict[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
        states = {
            name: self._as_held(key, port, after[key]) for key, (port, name) in self._states.items()
        }
        return {**results, **states}

    def _as_held(self, variable: str, port: ValueInfo, value: np.ndarray) -> np.ndarray:
        """A state as the ONNX model has it: OpenVINO may show a scalar as [1]."""
        held = value.astype(self._types[variable][1], copy=False)
        return held.reshape(()) if port.shape == () and held.size == 1 else held

    def _with_added(self, feeds: Mapping[str, Any]) -> Mapping[str, Any]:
        """The feeds, with inputs that the ONNX model does not have: the order of the sequences, and
        the places of the new words."""
        if self._told is not None:
            cache = feeds.get(self._told.cache)
            past = 0 if cache is None else np.shape(cache)[2]
            batch, count = np.shape(feeds[self._told.words])[:2]
            feeds = {**feeds, PLACES: np.tile(np.arange(past, past + count), (batch, 1))}
        if not self._beams:
            return feeds
        sizes = [
            len(feed_of(port, feeds))
            for port in self.inputs
            if port.shape and port.shape[0] is None and port.name not in self._names
        ]
        return {**feeds, BEAMS: np.arange(sizes[0] if sizes else 1, dtype=np.int32)}


class FirstCallsSession:
    """Adds inputs that say whether there are states, to a model whose states say it."""

    def __init__(self, session: Session, calls: Sequence[FirstCall]) -> None:
        self.session = session
        self.inputs = session.inputs
        self.outputs = session.outputs
        self._calls = calls

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """See `Session.run`. In a first call states are empty: the original looks at none."""
        told = [call for call in self._calls if call.flag in feeds]
        states = dict(feeds)
        for call in told:
            if not _is_later(call, feeds):
                for name, axis in call.empty.items():
                    states[name] = np.delete(np.asarray(feeds[name]), np.s_[:], axis)
                continue
            for name in dict.fromkeys([*call.once, *([call.state] if call.state else [])]):
                if not np.size(feeds[name]):
                    why = f'"{call.flag}" says that "{name}" is there, which is empty'
                    raise UndefinedCallError(why)
        return self._as_before(feeds, self.session.run(states))

    def run_row(self, feeds: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """See `RowSession.run_row`."""
        found = cast(RowSession, self.session).run_row(feeds)
        return [self._as_before(feed, results) for feed, results in zip(feeds, found, strict=True)]

    def _as_before(self, feeds: Mapping[str, Any], results: dict[str, Any]) -> dict[str, Any]:
        """The results. If later calls gave an empty output for a kept state, it is empty here."""
        for call in self._calls:
            if call.flag in feeds and _is_later(call, feeds):
                for name, kept in call.kept.items():
                    value = results[name]
                    if np.array_equal(value, feeds[kept.state], equal_nan=True):
                        results[name] = np.zeros(kept.shape, value.dtype)
        return results


class AgreedSession:
    """Runs `session` only with inputs that the other sessions take, too. OpenVINO takes a mask that
    does not fit the states, and its results are then meaningless."""

    def __init__(self, session: Session, others: Sequence[Session], comparison: Comparison) -> None:
        self._session, self._others, self._comparison = session, others, comparison
        self.inputs = session.inputs
        self.outputs = session.outputs

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """See `Session.run`."""
        for other in self._others:
            other.run(self._comparison.renamed(feeds, other))
        return self._session.run(feeds)


def _is_later(call: FirstCall, feeds: Mapping[str, Any]) -> bool:
    """Whether a call is not the first."""
    return bool(np.all(feeds[call.flag])) is call.later


def _info(name: str, value: Value) -> ValueInfo:
    if value.shape is None:
        return ValueInfo(name)
    return ValueInfo(name, tuple(dim if isinstance(dim, int) else None for dim in value.shape))
