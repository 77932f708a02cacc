"""A large IR, run in parts: OpenVINO's time to open a model grows faster than the model does.

A chain of 20,000 layers with matrix products takes OpenVINO 2026.4 three minutes where one of 6,000
takes five seconds. The parts follow one another as the layers do; what one leaves for later ones is
kept between them. They are what Bridge has read of the file and written again, so that a report
must say that they were run.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from weakref import finalize

import bridge
from bridge.check.engines.protocol import Feeds, RunResults, Session, ValueInfo, feed_of
from bridge.check.surgery.slices import slice_of
from bridge.files.atomic_write import scratch_folder
from bridge.neutral.graph import Graph, Model, Node, Value, names_of_outputs

LARGEST = 6_000
"""Nodes of a model that is opened as a whole."""

_PART = 400  # nodes


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
        self._constants = {v: v.constant.array() for v in graph.outputs if v.constant is not None}
        self.inputs = tuple(_info(value, value.name) for value in graph.inputs)
        self.outputs = tuple(map(_info, graph.outputs, names_of_outputs(graph)))
        self.parts: list[tuple[Session, dict[Value, str], dict[Value, str]]] = []
        """The sessions, with the names of the values that each takes and gives."""
        folder = ExitStack()
        finalize(self, folder.close)  # An engine that loses its process opens the files again.
        path = folder.enter_context(scratch_folder())
        for number, (nodes, takes, gives) in enumerate(_segments(graph)):
            file = path / f"{number}.xml"
            names = {value: f"bridge.{i}" for i, value in enumerate((*takes, *gives))}
            bridge.save(slice_of(model, nodes, takes, gives, names), file)
            ends = [{value: names[value] for value in values} for values in (takes, gives)]
            self.parts.append((load(file), ends[0], ends[1]))

    def run(self, feeds: Feeds) -> RunResults:
        """See `Session.run`."""
        known: dict[Value, Any] = dict(self._constants)
        for value, port in zip(self._graph.inputs, self.inputs, strict=True):
            known[value] = feed_of(port, feeds)
        for session, takes, gives in self.parts:
            results = session.run({name: known[value] for value, name in takes.items()})
            known |= {value: results[name] for value, name in gives.items()}
        outputs = zip(self.outputs, self._graph.outputs, strict=True)
        return {port.name: known[value] for port, value in outputs}

    def renew(self) -> None:
        """See `Session.renew`."""
        for session, _, _ in self.parts:
            session.renew()


def _info(value: Value, name: str) -> ValueInfo:
    return ValueInfo(name, aliases=frozenset(value.names) | {name})


def _segments(graph: Graph) -> list[tuple[list[Node], list[Value], list[Value]]]:
    """Groups of consecutive nodes, each with its inputs from earlier groups and its outputs for
    later ones. A constant is in each group that asks for it."""
    groups = _groups(graph)
    place = {v: i for i, nodes in enumerate(groups) for node in nodes for v in node.outputs}
    takes: list[dict[Value, None]] = [{} for _ in groups]
    wanted = {value: None for value in graph.outputs}
    for index, nodes in enumerate(groups):
        for value in (v for node in nodes for v in node.inputs if v is not None):
            if place.get(value) != index and value.constant is None:
                takes[index][value] = wanted[value] = None
    gives: list[list[Value]] = [[] for _ in groups]
    for value in wanted:
        if value in place:
            gives[place[value]].append(value)
    found = zip(groups, map(list, takes), gives, strict=True)
    return [segment for segment in found if segment[2]]


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
