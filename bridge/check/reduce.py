"""Cuts the smallest part out of a model that still differs: delta debugging over its nodes.

The method is that of A. Zeller and R. Hildebrandt, "Simplifying and Isolating Failure-Inducing
Input", 2002. A part is some nodes of one graph. What they take from elsewhere becomes inputs, with
the values that were seen in the whole model. So a branch, or an iteration of a Loop, is a part
without the nodes around it.
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
from bridge.check.bisect import FirstDifference, Look, visible
from bridge.check.cut import behind, cut
from bridge.check.inputs.own import save_feed
from bridge.check.taps import (
    GraphPath,
    Spot,
    can_be_seen,
    graph_at,
    seen,
    spot_of,
    value_at,
    way_to,
)
from bridge.errors import BridgeError, amount
from bridge.files import companion
from bridge.files.atomic_write import whole
from bridge.files.kinds import ARRAYS, Kind, kind_of_model
from bridge.neutral.graph import Graph, Model, Node, Value

SECONDS = 60.0
"""For the search."""

_AT_ONCE = 100  # values that are looked at in one run

Feed = Mapping[str, Any]

Observe = Callable[[Look, Look, Sequence[int]], tuple[Feed, Feed]]
"""What values at places of both models are (`taps.seen`), in these iterations of the Loops around
them."""

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


def reduced(
    models: tuple[Model, Model | None],
    feed: Feed,
    first: FirstDifference | str,
    observe: Observe,
    differing: Differing,
    target: Path,
) -> Reduced | str:
    """Writes the smallest part of the first model that was found, and its inputs beside it; says
    why there is none. The second model is None where it is converted from the first. `first` is
    the first difference, or why it was not found; "" where a version fails instead."""
    end = time.monotonic() + SECONDS
    places: tuple[GraphPath, GraphPath] = ((), ())
    iterations: tuple[int, ...] = ()
    if isinstance(first, FirstDifference):
        places, iterations = first.places, tuple(number for _, number in first.iterations)
    for depth in range(len(places[0]), -1, -1):
        mine, its = (place[:depth] for place in places)
        loops = sum(node.op == "Loop" for node, _ in way_to(models[0], mine))
        try:
            level = _Level(models, (mine, its), feed, iterations[:loops], observe)
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


def _smallest(level: _Level, differing: Differing, end: float) -> list[Node]:
    """The fewest nodes of a graph that still differ; none where not even all do."""
    wrong: Collection[str] = ()

    def differ(nodes: Sequence[Node]) -> bool:
        nonlocal wrong
        part = level.part(nodes) if nodes and time.monotonic() < end else None
        found = differing(part.mine, part.its, part.feed) if part is not None else ()
        wrong = found or wrong
        return bool(found)

    nodes = [node for node in level.graph.nodes if node.op != "Constant"]
    if not differ(nodes):
        return []
    pieces = 2
    while len(nodes) > 1:
        size = -(-len(nodes) // pieces)
        some = [nodes[at : at + size] for at in range(0, len(nodes), size)]
        others = [[n for n in nodes if n not in piece] for piece in some]
        found = next((part for part in (*some, *others) if differ(part)), None)
        if found is not None:
            nodes, pieces = found, 2 if found in some else max(pieces - 1, 2)
        elif size == 1 or time.monotonic() >= end:
            break
        else:
            pieces = min(2 * pieces, len(nodes))
    needed = level.behind(nodes, wrong)
    return needed if len(needed) < len(nodes) and differ(needed) else nodes


class _Level:
    """A graph of the first model, its twin in the other, and what is known of their values."""

    def __init__(
        self,
        models: tuple[Model, Model | None],
        places: tuple[GraphPath, GraphPath],
        feed: Feed,
        iterations: Sequence[int],
        observe: Observe,
    ) -> None:
        self.model, self.other = models
        self.graph = graph_at(self.model, places[0])
        self.its = None if self.other is None else graph_at(self.other, places[1])
        self.names = _names(self.graph)
        self.known: dict[Value, Any] = {}
        """Values of the first graph."""
        self.twins: dict[Value, Value] = {}
        """Values of the first graph by those of the other."""
        nested, other = bool(places[0]), self.its

        def look(graph: Graph, mine: bool) -> dict[Value, Any]:
            spots = [*visible(graph, nested)] if mine else []
            spots += [spot_of(graph, v) for v in graph.inputs if can_be_seen(v)] if nested else []
            found = dict[Spot, Any]()
            waiting = [spots[at : at + _AT_ONCE] for at in range(0, len(spots), _AT_ONCE)]
            while waiting:
                some = waiting.pop()
                try:
                    looks = (places[0], some if mine else []), (places[1], [] if mine else some)
                    results = observe(*looks, iterations)[0 if mine else 1]
                    named = {spot: seen(index) for index, spot in enumerate(some)}
                    found |= {s: results[name] for s, name in named.items() if name in results}
                except BridgeError:
                    half = len(some) // 2
                    waiting += [some[:half], some[half:]] if half else []
            return {value_at(graph, spot): value for spot, value in found.items()}

        self.known = look(self.graph, True)
        if not nested:
            self.known |= {v: feed[v.name] for v in self.graph.inputs if v.name in feed}
        if other is not None:
            inputs = look(other, False) if nested else {}
            self.twins = _twins(self.graph, other, self.known, inputs)

    def part(self, nodes: Sequence[Node]) -> _Candidate | None:
        """The part of these nodes; None where something that it takes is not known."""
        taken = dict.fromkeys(v for node in nodes for v in node.inputs if v is not None)
        made = dict.fromkeys(v for node in nodes for v in node.outputs)
        needed = [v for v in taken if v not in made and v.constant is None]
        ends = [
            v for v in made if (v not in taken and v.shape is not None) or v in self.graph.outputs
        ]
        if self.its is not None:
            ends = [v for v in ends if v in self.twins.values()]
        if not ends or any(v not in self.known for v in needed):
            return None
        named = {v: self.names[v] for v in (*needed, *ends)}
        its = None
        if self.its is not None and self.other is not None:
            own = {twin: named[v] for twin, v in self.twins.items() if v in named}
            outputs = [next(t for t, v in self.twins.items() if v is end) for end in ends]
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


def _twins(
    graph: Graph, other: Graph, known: Mapping[Value, Any], its: Mapping[Value, Any]
) -> dict[Value, Value]:
    """Values of a graph, by the values of the other graph that stand for them. Names match. Inputs
    of a body match by the values that they had in a run."""
    names = {name: v for v in _names(graph) for name in v.names}
    found: dict[Value, Value] = {}
    for value in _names(other):
        mine = next((names[name] for name in value.names if name in names), None)
        if value in its and value in other.inputs:
            values = {v: known[v] for v in graph.inputs if v in known}
            same = [v for v, x in values.items() if _equal(x, its[value])]
            same = same or [v for v, x in values.items() if _equal(x, its[value], _ROUNDING)]
            mine = mine if mine in same else next(iter(same), None)
        if mine is not None and mine not in found.values():
            found[value] = mine
    return found


_ROUNDING = 1e-5
"""How far engines may be apart in a number of floats, relative to its size."""


def _equal(one: Any, other: Any, rtol: float = 0.0) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    floats = one.dtype.kind == "f"
    if rtol and floats:
        return np.allclose(one, other, rtol, 0.0, equal_nan=True)
    return np.array_equal(one, other, equal_nan=floats)


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
    graph = cut(nodes, [value for value in named if value not in outputs], outputs, named)
    return Model(graph, model.format, model.opset, dict(model.opsets), files=dict(model.files))
