"""Loops that run too often for any engine, whatever the input: no run shows more than the file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bridge.check.surgery.sites import Way, path_of
from bridge.neutral.clone import clone_model
from bridge.neutral.graph import Graph, Model, Node, Value
from bridge.neutral.inference.control import trip_count
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Carried, Condition, Invariant, Sliced
from bridge.passes.specialize import fix_values, settle

FASTEST = 1e7
"""Iterations of a Loop that an engine computes in a second, at most. With one node in the body,
onnxruntime computes several times fewer."""


def endless_loop(model: Model, values: Mapping[str, Any], seconds: float) -> str:
    """Says which Loop no engine ends in `seconds`, where inputs have these values; "" for none.

    Only Loops that always run are examined, and Loops in their bodies."""
    if not any(node.op == "Loop" for node in model.graph.walk()):
        return ""
    model = clone_model(model)
    fix_values(model, values)
    settle(model.graph)
    why = f"no engine does that within {seconds:g} s (--timeout)"
    return _IterationCount(seconds * FASTEST, why).look(model.graph, (), 1)


class _IterationCount:
    def __init__(self, most: float, why: str) -> None:
        self._most, self._why = most, why
        # The value of a body's input in all iterations, and conditions that are not given.
        self._outside: dict[Value, Value] = {}
        self._true: set[Value] = set()

    def look(self, graph: Graph, way: Way, times: int) -> str:
        """The same for a graph that runs so many times."""
        for node in (node for node in graph.nodes if node.op == "Loop"):
            count = self._iterations(node)
            if count is None or count * times > self._most:
                says = "never ends" if count is None else f"runs {count * times} iterations"
                return f"graph / {path_of(way, node)} {says}, whatever the input: {self._why}"
            if count > 0:
                inner = self.look(node.body.graph, (*way, (node, node.body)), times * count)
                if inner:
                    return inner
        return ""

    def _iterations(self, node: Node) -> int | None:
        """The known least number of iterations of a Loop, None for an endless Loop."""
        graph = node.body.graph
        for value, port in node.body.entries():
            if isinstance(port, Invariant) or (
                isinstance(port, Carried) and self._source(graph.outputs[port.output]) is value
            ):
                outer = None if port.input is None else node.inputs[port.input]
                if outer is None:
                    self._true.add(value)
                else:
                    self._outside[value] = outer
        going = [v for v, port in node.body.exits() if isinstance(port, Condition)]
        going += [] if node.condition is None else [node.condition]
        if not all(self._number(value) for value in going):
            return 0
        counts: list[int | None] = []
        if node.trip_count is not None:
            counts.append(self._number(node.trip_count))
        if any(isinstance(port, Sliced) for port in node.body.inputs):
            slices = trip_count(node)
            counts.append(slices if isinstance(slices, int) else None)
        known = [max(0, count) for count in counts if count is not None]
        if len(known) < len(counts):
            return 0
        return min(known, default=None)

    def _number(self, value: Value) -> int | None:
        """The number of a value that is the same in all runs, if it is known."""
        source = self._source(value)
        if source in self._true:
            return 1
        known = known_of(source).ints
        return known[0] if known is not None and len(known) == 1 else None

    def _source(self, value: Value) -> Value:
        """Where a value is from, out of bodies and past what changes nothing."""
        return value.behind("Identity", outside=self._outside)
