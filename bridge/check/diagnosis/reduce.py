"""Cuts the smallest part out of a model that a conversion of the check still makes differ or fail.

A part is some nodes of one graph. What they take from elsewhere becomes inputs, with the values
that were seen in the whole model. So a branch, or an iteration of a Loop, is a part without the
nodes around it.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import bridge
from bridge.check.diagnosis.values import FirstDifference, visible
from bridge.check.diagnosis.walk import fewest
from bridge.check.engines import Session
from bridge.check.inputs.own import save_feed
from bridge.check.surgery.bringing import brought_out, can_come_out, last
from bridge.check.surgery.sites import way_to
from bridge.check.surgery.slices import behind, slice_of
from bridge.check.surgery.surgery import Surgery
from bridge.errors import BridgeError, amount
from bridge.files import companion
from bridge.files.atomic_write import whole
from bridge.files.kinds import ARRAYS, Kind, kind_of_model
from bridge.neutral.graph import Graph, Model, Node, Value

SECONDS = 60.0
"""For the search."""

_AT_ONCE = 100  # values that are looked at in one run

Feed = Mapping[str, Any]

OpenSession = Callable[[Model], Session]
"""Opens the model after a change, in the format that it has."""

Differing = Callable[[Model, Feed], Collection[str]]
"""The outputs in which a part and its conversion differ."""


@dataclass(frozen=True)
class Reduced:
    """A part that differs, with `nodes` of the model's nodes, and the file of its inputs."""

    model: Path
    inputs: Path
    nodes: int
    all: int
    what: str

    def __str__(self) -> str:
        return (
            f"{self.model}: {self.nodes} of {amount(self.all, 'node')} still {self.what}; "
            f"bridge check {self.model} --inputs {self.inputs} --samples 0"
        )


def reduce(
    model: Model,
    feed: Feed,
    first: FirstDifference | str,
    opened: OpenSession,
    differing: Differing,
    target: Path,
) -> Reduced | str:
    """Writes the smallest part of a model that was found, and its inputs beside it; says why there
    is none. `first` is the first difference, or why it was not found; "" where a version fails
    instead."""
    end = time.monotonic() + SECONDS
    graphs, numbers = [model.graph], list[int]()
    if isinstance(first, FirstDifference):
        graphs = [mine for mine, _ in first.levels]
        numbers = [number for _, number in first.iterations]
    for graph in reversed(graphs):
        loops = sum(node.op == "Loop" for node, _ in way_to(model, graph))
        lasts = {last(depth): np.array(number) for depth, number in enumerate(numbers[:loops])}
        level = _Level(model, graph, _known(model, graph, {**feed, **lasts}, opened))
        found = level.smallest(differing, end)
        if found is not None:
            part, taken = found
            nodes, every = (
                sum(node.op != "Constant" for node in one.graph.walk()) for one in (part, model)
            )
            bridge.save(part, target)
            inputs = target.with_suffix(".npz")
            with whole(inputs, notes=[]) as (made,):
                save_feed(made, taken)
            return Reduced(target, inputs, nodes, every, "differ" if first else "fail")
    return (
        f"no part of the model {'differs' if first else 'fails'} by itself, with the values that "
        "are in it"
    )


def files_of(target: Path) -> dict[Path, Kind | None]:
    """The files that a part is written to."""
    return {
        target: kind_of_model(target), target.with_suffix(".npz"): ARRAYS, companion(target): None
    }  # fmt: skip


def _known(model: Model, graph: Graph, feed: Feed, opened: OpenSession) -> dict[Value, Any]:
    """What the values of a graph are in a run."""
    nested = graph is not model.graph
    found: dict[Value, Any] = {
        v: feed[v.name] for v in graph.inputs if not nested and v.name in feed
    }
    values = [v for v in graph.inputs if nested and can_come_out(v, True)]
    values += visible(graph, nested)
    waiting = [values[at : at + _AT_ONCE] for at in range(0, len(values), _AT_ONCE)]
    while waiting:
        some = waiting.pop()
        named = {f"bridge.seen.{index}": value for index, value in enumerate(some)}
        surgery = Surgery(model)
        surgery.bring_out(graph, named)
        try:
            results = opened(surgery.model).run(feed)
        except BridgeError:
            half = len(some) // 2
            waiting += [some[:half], some[half:]] if half else []
            continue
        seen = {value: brought_out(results, name) for name, value in named.items()}
        found |= {value: known for value, known in seen.items() if known is not None}
    return found


class _Level:
    """A graph of the model, and what is known of its values."""

    def __init__(self, model: Model, graph: Graph, known: Mapping[Value, Any]) -> None:
        self._model, self._graph, self._known = model, graph, known
        values = [*graph.inputs, *(v for node in graph.nodes for v in node.outputs)]
        counts = Counter(value.name for value in values)
        self._names = {
            value: value.name if value.name and counts[value.name] == 1 else f"bridge.{number}"
            for number, value in enumerate(values)
        }

    def smallest(self, differing: Differing, end: float) -> tuple[Model, Feed] | None:
        """The part of the fewest nodes that still differs, with its inputs; None where not even
        that of all does."""
        wrong: Collection[str] = ()

        def differ(nodes: Sequence[Node]) -> bool:
            nonlocal wrong
            part = self._part(nodes) if nodes and time.monotonic() < end else None
            found = differing(*part) if part is not None else ()
            wrong = found or wrong
            return bool(found)

        nodes = fewest([node for node in self._graph.nodes if node.op != "Constant"], differ)
        ends = (v for node in nodes for v in node.outputs if self._names[v] in wrong)
        needed = behind(nodes, ends)
        return self._part(needed if len(needed) < len(nodes) and differ(needed) else nodes)

    def _part(self, nodes: Sequence[Node]) -> tuple[Model, Feed] | None:
        """The part of these nodes; None where something that it takes is not known."""
        taken = dict.fromkeys(v for node in nodes for v in node.inputs if v is not None)
        made = dict.fromkeys(v for node in nodes for v in node.outputs)
        needed = [v for v in taken if v not in made and v.constant is None]
        ends = [
            v for v in made if (v not in taken and v.shape is not None) or v in self._graph.outputs
        ]
        if not ends or any(v not in self._known for v in needed):
            return None
        named = {v: self._names[v] for v in (*needed, *ends)}
        part = slice_of(self._model, nodes, needed, ends, named)
        return part, {named[v]: self._known[v] for v in needed}
