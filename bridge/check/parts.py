"""A large IR, run in parts: OpenVINO's time to open a model grows faster than the model does.

Twenty thousand layers take it minutes where twenty times a thousand take seconds. The parts follow
one another as the layers do; what one leaves for later ones is kept between them. They are what
Bridge has read of the file and written again, so that a report must say that they were run.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bridge
from bridge.check.engines import EngineError, Session, ValueInfo, feed_of
from bridge.check.surgery.slices import slice_of
from bridge.files.atomic_write import scratch_folder
from bridge.neutral.graph import Graph, Model, Node, Value, names_of_outputs

LARGEST = 6_000
"""Nodes of a model that is opened as a whole."""

_PART = 400  # nodes


@dataclass(frozen=True)
class _Segment:
    """Consecutive nodes, their inputs from earlier parts, and their outputs for later parts."""

    nodes: list[Node]
    inputs: list[Value]
    outputs: list[Value]

    @functools.cached_property
    def names(self) -> dict[Value, str]:
        """A name for each value that goes in or out, whatever names these have of their own."""
        return {value: f"bridge.{i}" for i, value in enumerate((*self.inputs, *self.outputs))}


def is_too_large(model: Model) -> bool:
    """Whether a model is better run in parts, and can be: variables keep it together."""
    ops = [node.op for node in model.graph.walk() if node.op != "Constant"]
    return len(ops) > LARGEST and not {"ReadValue", "Assign"} & set(ops)


class PartsSession:
    """The model in an IR, whose parts `loads` open in turn. `inputs` and `outputs` are named as
    `bridge.load` does."""

    def __init__(self, model: Model, loads: Sequence[Callable[[Path], Session]]) -> None:
        graph = model.graph
        self._model, self._graph = model, graph
        self._loads = loads
        self._parts = _cut(graph)
        self._last = {v: i for i, part in enumerate(self._parts) for v in part.inputs}
        self.inputs = tuple(_info(value, value.name) for value in graph.inputs)
        self.outputs = tuple(map(_info, graph.outputs, names_of_outputs(graph)))

    @property
    def count(self) -> int:
        """How many parts there are."""
        return len(self._parts)

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """See `Session.run`."""
        (result,) = self.run_each([feeds])
        if isinstance(result, EngineError):
            raise result
        return result

    def run_each(self, feeds: Sequence[Mapping[str, Any]]) -> list[dict[str, Any] | EngineError]:
        """The outputs for each of several inputs, or why there are none."""
        states: list[dict[Value, Any] | EngineError] = []
        for feed in feeds:
            pairs = zip(self._graph.inputs, self.inputs, strict=True)
            states.append({value: feed_of(port, feed) for value, port in pairs})
        kept = set(self._graph.outputs)
        for number, (part, session) in enumerate(self._opened()):
            names = part.names
            for index, state in enumerate(states):
                if isinstance(state, EngineError):
                    continue
                try:
                    results = session.run({names[v]: state[v] for v in part.inputs})
                except EngineError as error:
                    states[index] = error
                    continue
                state.update((v, results[names[v]]) for v in part.outputs)
                for value in part.inputs:
                    if self._last[value] == number and value not in kept:
                        del state[value]
        return [
            state
            if isinstance(state, EngineError)
            else {
                port.name: state[value]
                for port, value in zip(self.outputs, self._graph.outputs, strict=True)
            }
            for state in states
        ]

    def _opened(self) -> Iterator[tuple[_Segment, Session]]:
        """The parts, opened. While one is run the next are opened."""
        at_once = len(self._loads)
        with scratch_folder() as folder, ThreadPoolExecutor(at_once) as pool:

            def file(number: int) -> Path:
                return folder / f"{number}.xml"

            def opened(number: int) -> Session:
                part = self._parts[number]
                model = slice_of(self._model, part.nodes, part.inputs, part.outputs, part.names)
                bridge.save(model, file(number))
                return self._loads[number % at_once](file(number))

            def begun(number: int) -> Future[Session]:
                return pool.submit(copy_context().run, opened, number)

            waiting = deque(begun(number) for number in range(min(at_once, self.count)))
            for number, part in enumerate(self._parts):
                session = waiting.popleft().result()
                if number + at_once < self.count:
                    waiting.append(begun(number + at_once))
                yield part, session
                file(number).unlink()
                file(number).with_suffix(".bin").unlink()


def _info(value: Value, name: str) -> ValueInfo:
    return ValueInfo(name, aliases=frozenset(value.names) | {name})


def _cut(graph: Graph) -> list[_Segment]:
    """The parts of a graph. A constant is in each part that asks for it."""
    groups = _groups(graph)
    place = {v: i for i, nodes in enumerate(groups) for node in nodes for v in node.outputs}
    inputs: list[dict[Value, None]] = [{} for _ in groups]
    outputs: list[dict[Value, None]] = [{} for _ in groups]
    for index, nodes in enumerate(groups):
        for value in (v for node in nodes for v in node.inputs if v is not None):
            if place.get(value) != index and value.constant is None:
                inputs[index][value] = None
                if value in place:
                    outputs[place[value]][value] = None
    for value in graph.outputs:
        if value.constant is not None:
            groups.append([])
            inputs.append({})
            outputs.append({value: None})
        elif value in place:
            outputs[place[value]][value] = None
    return [
        _Segment(nodes, list(takes), list(leaves))
        for nodes, takes, leaves in zip(groups, inputs, outputs, strict=True)
        if leaves
    ]


def _groups(graph: Graph) -> list[list[Node]]:
    """The nodes that compute, in groups of about as many as a part may have."""
    groups: list[list[Node]] = [[]]
    weight = 0
    for node in graph.nodes:
        if node.op == "Constant":
            continue
        size = 1 + sum(1 for body in node.bodies for _ in body.graph.walk())
        if groups[-1] and weight + size > _PART:
            groups.append([])
            weight = 0
        groups[-1].append(node)
        weight += size
    return groups
