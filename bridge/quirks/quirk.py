"""What a quirk is, and how one that rewrites single nodes runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bridge.neutral.builder import Builder
from bridge.neutral.dataflow import Analysis, Fact, Facts
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.rewrite import Pattern, Rewriter
from bridge.neutral.types import STRING, Element, is_static, size_of
from bridge.operators import Refused, Result
from bridge.options import release_number
from bridge.passes.context import Context
from bridge.passes.legalize import Legalizer, remember
from bridge.passes.uses import Uses

Run = Callable[[Graph, Context], bool | None]
"""Changes a graph and all that is nested in it, in place; whether it did, None where it may have
done so."""

Undo = Callable[[Builder, Node, Uses], Value | None]
"""What a node gave before a quirk wrote it, or None where the quirk did not write it."""

Guess = Callable[[Builder, Node], Iterable[Value]]
"""What may have been there before a quirk wrote a node, made with the builder."""


@dataclass(eq=False)
class Quirk:
    """A fault of an engine and the pass that works round it.

    `releases` are those in which the fault was seen, `symptom` says in one sentence what the engine
    does. `fires` says at which nodes the quirk rewrites a graph, `safe` why that means the same
    afterwards, `cost` what it adds to the file. `issue` is upstream's, where there is one.
    `run` writes a graph and all that is nested in it otherwise. `undo` gives back what it found, on
    the way to ONNX, by the operator that is the last of what it writes. `guess` gives what may have
    been there; a guess is believed if `run` makes of it the nodes that are there.
    """

    releases: str
    symptom: str
    fires: str
    safe: str
    cost: str
    run: Run
    issue: str = ""
    undo: Mapping[str, Undo] = field(default_factory=dict)
    guess: Mapping[str, Guess] = field(default_factory=dict)


class Place(Rewriter):
    """Where a node stands: the rewriter of its graph, which knows what analyses find."""

    def __init__(self, graph: Graph, *around: Any) -> None:
        super().__init__(graph, *around)
        self._facts: dict[type[Any], Facts[Any]] = {}
        self.guards: bool = self.outer.guards if self.outer is not None else True
        """Whether a clause may guard a Loop: not where Ifs become selections, nor in older
        releases, where one guards all that may not run."""
        self.fired: list[tuple[str, str]] = self.outer.fired if self.outer is not None else []
        """The modules of quirks that rewrote a node, with the path to it."""
        self.ifs: bool = self.outer.ifs if self.outer is not None else True
        """Whether a quirk may write an If: not where Ifs become selections."""

    def facts(self, analysis: type[Analysis[Fact]]) -> Facts[Fact]:
        """What an analysis finds in the outermost graph, as it is when first asked."""
        if self.outer is not None:
            return self.outer.facts(analysis)
        if analysis not in self._facts:
            self._facts[analysis] = Facts(analysis(), self.graph)
        return self._facts[analysis]


ARITHMETIC = ("Add", "Div", "Max", "Min", "Mul", "Pow", "Sub")
"""Arithmetic that OpenVINO makes parts of activations and of normalizations."""

RECURRENT = (
    "GRUCell", "GRUSequence", "LSTMCell", "LSTMSequence", "RNNCell", "RNNSequence",
)  # fmt: skip
"""The recurrent layers that IR has."""


def may_hold(value: Value, output: Value) -> bool:
    """Whether the memory of a value is right for an output that is computed of it."""
    if value.element is not output.element:
        return False
    if is_static(value.shape) and is_static(output.shape):
        return size_of(value.shape) == size_of(output.shape)
    return True


def is_computed_in(element: Element) -> bool:
    """Whether the CPU plugin computes in this type: the others it stores and converts alone."""
    return (
        element.bits >= 8 and element is not STRING and (element.bits, element.kind) != (8, "float")
    )


GUARDED = "2026.3"
"""The last release for which every Loop is guarded that may not run: the clause
`states_of_no_iteration`."""

ROOT = "bridge.quirks."
"""The package of the quirks."""

Rewrite = Callable[[Builder, Node, Place], Result]
"""What takes the place of a node's outputs, or None where the fault does not show."""


def rewriting(*ops: str, by: Rewrite, uses: bool = False, told: bool = True) -> Run:
    """A pass that asks `by` about each node of these operators, innermost bodies first, and expands
    what it makes. `uses` says that it asks who uses a value. The report tells where it fired; if
    not `told`, `by` adds that to `Place.fired` itself."""

    def run(graph: Graph, context: Context) -> bool:
        legalizer = Legalizer(context.target, "neutral")

        def rewritten(b: Builder, node: Node, place: Place) -> Result:
            try:
                result = by(b, node, place)
            except Refused as refused:
                legalizer.report(node, place, str(refused))
                return None
            if result is None:
                return None
            if told:
                place.fired.append((by.__module__, place.path(node)))
            results = [result] if isinstance(result, Value) else list(result)
            legalizer.expand(b, node, place)
            made = [result and place.of(result) for result in results]
            remember(node, made, b.nodes, lambda: node.outputs)
            return results

        place = Place(graph)
        options = context.options
        asked = options.get("openvino")
        old = asked is not None and release_number(asked) <= release_number(GUARDED)
        place.ifs = options.get("ifs", "keep") == "keep"
        place.guards = place.ifs and not old
        changed = place.run(Pattern(rewritten, frozenset(ops), context.target, uses=uses))
        legalizer.finish()
        context.report.quirks += [(module.removeprefix(ROOT), path) for module, path in place.fired]
        return changed

    return run
