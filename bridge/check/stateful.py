"""A stateful IR, seen as the ONNX model is: with its variables among the inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bridge.check.engines import EngineError, StatefulSession, ValueInfo, feed_of
from bridge.neutral.graph import Model
from bridge.passes.state.records import BEAMS, FIRST_CALLS, FirstCall, StatefulRecord


class PairsSession:
    """Sets the variables of `session` before each run to what the ONNX model is fed, and gives what
    they hold after it. Sequences keep their order."""

    def __init__(self, session: StatefulSession, model: Model, record: StatefulRecord) -> None:
        held = {
            node.attributes["variable_id"]: node
            for node in model.graph.nodes
            if node.op == "ReadValue"
        }
        self._session = session
        self._states = {
            pair.variable: (_info(pair.input, held[pair.variable].outputs[0]), pair.output)
            for pair in record.pairs
        }
        self._beams = record.beams
        self._first_calls = FIRST_CALLS.read(model.metadata) or []
        self._variables = {port.name: key for key, (port, _) in self._states.items()}
        self._empty = {
            key: start.dims.index(0)
            for key in self._states
            if (start := held[key].input(0)) is not None and 0 in (start.shape or ())
        }
        ports = tuple(port for port, _ in self._states.values())
        given = [port for port in session.inputs if not (self._beams and port.name == BEAMS)]
        self.inputs = (*given, *ports)
        after = (ValueInfo(name) for _, name in self._states.values())
        self.outputs = (*session.outputs, *after)

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """See `Session.run`."""
        once = {state for call in self._first_calls for state in call.once}
        states = {
            variable: feed_of(port, feeds)
            for variable, (port, _) in self._states.items()
            if port.name not in once or np.size(feeds.get(port.name, ()))
        }
        told = [call for call in self._first_calls if call.flag in feeds]
        later = [call for call in told if self._is_later(call, states, feeds)]
        if self._beams:
            feeds = {**feeds, BEAMS: np.arange(self._sequences(feeds), dtype=np.int32)}
        results, after = self._session.run_from(states, feeds)
        for state, shape in (item for call in later for item in call.kept.items()):
            variable = self._variables[state]
            held = states.get(variable)
            if held is not None and np.array_equal(held, after[variable], equal_nan=True):
                after[variable] = np.zeros(shape, after[variable].dtype)
        return {**results, **{name: after[key] for key, (_, name) in self._states.items()}}

    def _is_later(
        self, call: FirstCall, states: dict[str, np.ndarray], feeds: Mapping[str, Any]
    ) -> bool:
        """Whether a call is not the first. If it is, states that have nothing in them at first
        become empty, and others start: the ONNX model does not look at them."""
        later = bool(np.all(feeds[call.flag])) is call.later
        decisive = {self._variables[call.state]: call.axis} if call.state else {}
        if not later:
            for key, axis in {**self._empty, **decisive}.items():
                states[key] = np.delete(states[key], np.s_[:], axis)
            for state in call.once:
                states.pop(self._variables[state], None)
        elif not all(states[key].size for key in decisive):
            raise EngineError(f'"{call.flag}" says that "{call.state}" is there, which is empty')
        return later

    def _sequences(self, feeds: Mapping[str, Any]) -> int:
        """How many there are: what the first axis of the inputs has that is open."""
        sizes = [
            len(feed_of(port, feeds))
            for port in self.inputs
            if port.shape and port.shape[0] is None and port.name not in self._variables
        ]
        return sizes[0] if sizes else 1


def _info(name: str, value: Any) -> ValueInfo:
    return ValueInfo(name, tuple(dim if isinstance(dim, int) else None for dim in value.dims))
