"""Cuts the smallest part out of a model that still differs.

A part is some nodes of one graph. What they take from elsewhere becomes inputs, with the values
that were seen in the whole model. So a branch, or an iteration of a Loop, is a part without the
nodes around it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import bridge
from bridge.check.diagnosis.values import FirstDifference, Graphs, visible
from bridge.check.diagnosis.walk import fewest
from bridge.check.engines import Session
from bridge.check.inputs.own import save_feed
from bridge.check.surgery.bringing import brought_out, can_come_out, last
from bridge.check.surgery.sites import way_to
from bridge.check.surgery.slices import behind, slice_of
from bridge.check.surgery.surgery import Surgery
from bridge.check.surgery.twins import twin_inputs, twins
from bridge.errors import BridgeError, amount
from bridge.files import companion
from bridge.files.atomic_write import whole
from bridge.files.kinds import ARRAYS, Kind, kind_of_model
from bridge.neutral.graph import Graph, Model, Node, Value

SECONDS = 60.0
"""For the search."""

_AT_ONCE = 100  # values that are looked at in one run

Feed = Mapping[str, Any]

OpenOne = Callable[[Model, bool], Session]
"""Opens one model after a change, in the format that it has: the first model, or else the other."""

Differing = Callable[[Model, Model | None, Feed], Collection[str]]
"""The outputs in which a part, and its conversion or the other model's part, differ."""


@dataclass(frozen=True)
class Reduced:
    """A part that differs, with `nodes` of the model's nodes, and the file of its inputs. If there
    are two models, it has the file of the other model's part, too."""

    model: Path
    inputs: Path
    other: Path | None
    nodes: int
    all: int
    what: str

    def __str__(self) -> str:
        other = "" if self.other is None else f" {self.other}"
        return (
            f"{self.model}: {self.nodes} of {amount(self.all, 'node')} still {self.what}; "
            f"bridge check {self.model}{other} --inputs {self.inputs} --samples 0"
        )


@dataclass(frozen=True)
class _Candidate:
    mine: Model
    its: Model | None
    feed: Feed


def reduce(
    models: tuple[Model, Model | None],
    feed: Feed,
    first: FirstDifference | str,
    open_one: OpenOne,
    differing: Differing,
    target: Path,
) -> Reduced | str:
    """Writes the smallest part of the first model that was found, and its inputs beside it; says
    why there is none. The second model is None where it is converted from the first. `first` is
    the first difference, or why it was not found; "" where a version fails instead."""
    end = time.monotonic() + SECONDS
    levels: tuple[Graphs, ...] = (
        (models[0].graph, None if models[1] is None else models[1].graph),
    )
    numbers: tuple[int, ...] = ()
    if isinstance(first, FirstDifference):
        levels, numbers = first.levels, tuple(number for _, number in first.iterations)
    for graphs in reversed(levels):
        loops = sum(node.op == "Loop" for node, _ in way_to(models[0], graphs[0]))
        iterations = numbers[:loops]
        try:
            level = _Level(models, graphs, feed, iterations, open_one)
        except BridgeError:
            continue
        nodes = _smallest(level, differing, end)
        if nodes:
            part = level.part(nodes)
            assert part is not None
            every = sum(node.op != "Constant" for node in models[0].graph.walk())
            return _written(part, target, every, "differ" if first else "fail")
    return (
        f"no part of the model {'differs' if first else 'fails'} by itself, with the values that "
        "are in it"
    )


def files_of(target: Path, other: str | None) -> dict[Path, Kind | None]:
    """The files that a part is written to. `other` is the suffix of the other model, if any."""
    models = [target] if other is None else [target, _twin(target, other)]
    beside: dict[Path, Kind | None] = {companion(path): None for path in models}
    return {
        **{path: kind_of_model(path) for path in models},
        target.with_suffix(".npz"): ARRAYS,
    } | beside


def _twin(target: Path, suffix: str) -> Path:
    """Where the other model's part goes."""
    return target.with_name(f"{target.stem}-other{suffix}")


def _written(part: _Candidate, target: Path, every: int, what: str) -> Reduced:
    nodes = sum(node.op != "Constant" for node in part.mine.graph.walk())
    bridge.save(part.mine, target)
    other = None
    if part.its is not None:
        other = _twin(target, ".xml" if part.its.format == "ir" else ".onnx")
        bridge.save(part.its, other)
    inputs = target.with_suffix(".npz")
    with whole(inputs, notes=[]) as (made,):
        save_feed(made, part.feed)
    return Reduced(target, inputs, other, nodes, every, what)


def _smallest(level: _Level, differing: Differing, end: float) -> Sequence[Node]:
    """The fewest nodes of a graph that still differ; none where not even all do."""
    wrong: Collection[str] = ()

    def differ(nodes: Sequence[Node]) -> bool:
        nonlocal wrong
        part = level.part(nodes) if nodes and time.monotonic() < end else None
        found = differing(part.mine, part.its, part.feed) if part is not None else ()
        wrong = found or wrong
        return bool(found)

    nodes = fewest([node for node in level.graph.nodes if node.op != "Constant"], differ)
    needed = level.behind(nodes, wrong)
    return needed if len(needed) < len(nodes) and differ(needed) else nodes


class _Level:
    """A graph of the first model, its twin in the other, and what is known of their values."""

    def __init__(
        self,
        models: tuple[Model, Model | None],
        graphs: Graphs,
        feed: Feed,
        iterations: Sequence[int],
        open_one: OpenOne,
    ) -> None:
        self.model, self.other = models
        self.graph, self.its = graphs
        self.names = _names(self.graph)
        self._feed = {**feed, **{last(d): np.array(number) for d, number in enumerate(iterations)}}
        self._open = open_one
        nested = self.graph is not self.model.graph
        values = visible(self.graph, nested)
        inputs = [v for v in self.graph.inputs if nested and can_come_out(v, True)]
        self.known = self._look(self.model, self.graph, [*inputs, *values])
        """Values of the first graph."""
        if not nested:
            self.known |= {v: feed[v.name] for v in self.graph.inputs if v.name in feed}
        self.twins: Mapping[Value, Value] = {}
        """Values of the other graph by those of the first, each once."""
        if self.its is not None and self.other is not None:
            named = twins(self.graph, self.its).values
            if nested and self.its is not self.other.graph:
                others = [v for v in self.its.inputs if can_come_out(v, True)]
                its = self._look(self.other, self.its, others)
                mine = {v: self.known[v] for v in inputs if v in self.known}
                inner = twin_inputs(mine, its, named)
                named = {v: t for v, t in named.items() if t not in its} | inner
            once = {twin: value for value, twin in named.items()}
            self.twins = {value: twin for twin, value in once.items()}

    def _look(self, model: Model, graph: Graph, values: Sequence[Value]) -> dict[Value, Any]:
        """What values of a graph are in a run."""
        found = dict[Value, Any]()
        waiting = [values[at : at + _AT_ONCE] for at in range(0, len(values), _AT_ONCE)]
        while waiting:
            some = waiting.pop()
            named = {f"bridge.seen.{index}": value for index, value in enumerate(some)}
            surgery = Surgery(model)
            surgery.bring_out(graph, named)
            try:
                results = self._open(surgery.model, model is self.model).run(self._feed)
            except BridgeError:
                half = len(some) // 2
                waiting += [some[:half], some[half:]] if half else []
                continue
            seen = {value: brought_out(results, name) for name, value in named.items()}
            found |= {value: known for value, known in seen.items() if known is not None}
        return found

    def part(self, nodes: Sequence[Node]) -> _Candidate | None:
        """The part of these nodes; None where something that it takes is not known."""
        taken = dict.fromkeys(v for node in nodes for v in node.inputs if v is not None)
        made = dict.fromkeys(v for node in nodes for v in node.outputs)
        needed = [v for v in taken if v not in made and v.constant is None]
        ends = [
            v for v in made if (v not in taken and v.shape is not None) or v in self.graph.outputs
        ]
        if self.its is not None:
            ends = [v for v in ends if v in self.twins]
        if not ends or any(v not in self.known for v in needed):
            return None
        named = {v: self.names[v] for v in (*needed, *ends)}
        its = None
        if self.its is not None and self.other is not None:
            own = {self.twins[v]: name for v, name in named.items() if v in self.twins}
            outputs = [self.twins[v] for v in ends]
            inputs = [twin for twin in own if twin not in outputs]
            between = _between(self.its, inputs, outputs)
            if between is None:
                return None
            its = _model(self.other, between, own, outputs)
        return _Candidate(
            _model(self.model, nodes, named, ends), its, {named[v]: self.known[v] for v in needed}
        )

    def behind(self, nodes: Sequence[Node], names: Collection[str]) -> list[Node]:
        """The nodes that outputs of these names depend on."""
        outputs = (v for node in nodes for v in node.outputs)
        return behind(nodes, (v for v in outputs if self.names[v] in names))


def _names(graph: Graph) -> dict[Value, str]:
    """A name for each value of a graph: its own, if no other value has it."""
    values = [*graph.inputs, *(v for node in graph.nodes for v in node.outputs)]
    counts = Counter(value.name for value in values)
    return {
        value: value.name if value.name and counts[value.name] == 1 else f"bridge.{number}"
        for number, value in enumerate(values)
    }


def _between(graph: Graph, inputs: Sequence[Value], outputs: Sequence[Value]) -> list[Node] | None:
    """The nodes that lead from inputs to outputs; None where something else is needed."""
    nodes = [n for n in behind(graph.nodes, outputs, {*inputs}) if n.op != "Constant"]
    needed = {*outputs, *(v for node in nodes for v in node.inputs if v is not None)}
    given = {*inputs, *(v for node in nodes for v in node.outputs)}
    return None if any(v.constant is None for v in needed - given) else nodes


def _model(
    model: Model, nodes: Sequence[Node], named: Mapping[Value, str], outputs: Sequence[Value]
) -> Model:
    """A model of copies of these nodes. What is `named` and no output is an input."""
    return slice_of(model, nodes, [v for v in named if v not in outputs], outputs, named)
