"""Negative trip counts, which end a Loop at once in ONNX and never in OpenVINO.

The reader has already handled constant counts. This pass handles computed counts, such as
`range(len(x) - 2)` on a short input.
"""

from collections.abc import Callable

from bridge.neutral.builder import Builder, Target
from bridge.neutral.graph import Graph, Model, Node, Value
from bridge.neutral.rewrite import Pattern, Result, Rewriter
from bridge.neutral.signs import is_not_negative
from bridge.neutral.types import I64, I64_MAX
from bridge.passes.context import Context


def end_at_once(model: Model, context: Context) -> bool:
    """Makes negative counts 0, in place: from ONNX's meaning to IR's."""
    return _replace(model.graph, context.target, lambda b, trips: b.max(trips, 0))


def never_end(model: Model, context: Context) -> None:
    """Makes negative counts the largest possible one, in place: from IR's meaning to ONNX's."""

    def largest(b: Builder, trips: Value) -> Value:
        if trips.element is not I64:
            trips = b.op("Cast", trips, to=I64)
        return b.where(trips < 0, I64_MAX, trips)

    _replace(model.graph, context.target, largest)


def _replace(graph: Graph, target: Target, bounded: Callable[[Builder, Value], Value]) -> bool:
    """Gives Loops other trip counts if these may be negative; returns whether there were any."""

    def replaced(b: Builder, node: Node, rewriter: Rewriter) -> Result:
        trips = node.trip_count
        if trips is None or is_not_negative(trips):
            return None
        node.inputs = [bounded(b, trips), *node.inputs[1:]]
        b.nodes.append(node)
        return node.outputs

    return Rewriter(graph).run(Pattern(replaced, frozenset({"Loop"}), target))
