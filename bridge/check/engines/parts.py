"""A large IR, run in parts: OpenVINO's time to open a model grows faster than the model does.

A chain of 20,000 layers with matrix products takes OpenVINO 2026.4 three minutes where one of 6,000
takes five seconds. The parts follow one another as the layers do; what one leaves for later ones is
kept between them. They are what Bridge has read of the file and written again, so that a report
must say that they were run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import finalize

import bridge
from bridge.check.cut import cut
from bridge.check.engines.protocol import (
    EngineError,
    Feeds,
    Results,
    Session,
    ValueInfo,
    feed_of,
)
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


class PartsSession(Session):
    """The model in an IR, whose parts `load` opens. `inputs` and `outputs` are named as
    `bridge.load` does."""

    keeps = True

    def __init__(self, model: Model, load: Callable[[Path], Session]) -> None:
        graph = model.graph
        self._graph = graph
        self._parts = _cut(graph)
        self._last = {v: i for i, part in enumerate(self._parts) for v in part.inputs}
        self.inputs = tuple(_info(value, value.name) for value in graph.inputs)
        self.outputs = tuple(map(_info, graph.outputs, names_of_outputs(graph)))
        # An engine that loses its process opens the files again.
        self._folder = ExitStack()
        folder = self._folder.enter_context(scratch_folder())
        finalize(self, self._folder.close)
        self._sessions = list[Session]()
        for number, part in enumerate(self._parts):
            file = folder / f"{number}.xml"
            bridge.save(Model(cut(part.nodes, part.inputs, part.outputs, part.names), "ir"), file)
            self._sessions.append(load(file))

    @property
    def count(self) -> int:
        """How many parts there are."""
        return len(self._parts)

    def renew(self) -> None:
        """See `Session.renew`."""
        for session in self._sessions:
            session.renew()

    def run_each(self, feeds: Sequence[Feeds], fresh: bool = False) -> list[Results | EngineError]:
        """See `Session.run_each`."""
        pairs = [*zip(self._graph.inputs, self.inputs, strict=True)]
        running: dict[int, dict[Value, Any]] = {}
        failed: dict[int, EngineError] = {}
        for place, feed in enumerate(feeds):
            try:
                running[place] = {value: feed_of(port, feed) for value, port in pairs}
            except EngineError as error:
                failed[place] = error
        for number, (part, session) in enumerate(zip(self._parts, self._sessions, strict=True)):
            names = part.names
            given = [{names[v]: known[v] for v in part.inputs} for known in running.values()]
            found = session.run_each(given, fresh)
            for place, results in zip([*running], found, strict=True):
                if isinstance(results, EngineError):
                    failed[place] = results
                    del running[place]
                    continue
                known = running[place]
                known.update((v, results[names[v]]) for v in part.outputs)
                for value in part.inputs:
                    if self._last[value] == number and value not in self._graph.outputs:
                        del known[value]
        outputs = [*zip(self.outputs, self._graph.outputs, strict=True)]
        return [
            failed[place]
            if place in failed
            else {port.name: running[place][value] for port, value in outputs}
            for place in range(len(feeds))
        ]


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
