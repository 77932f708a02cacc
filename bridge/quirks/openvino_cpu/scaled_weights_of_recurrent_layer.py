"""Weights of a recurrent layer that are stored in 8 bits or fewer, in a model that quantises other
values. OpenVINO keeps such weights scaled, and the layer expects constants."""

from __future__ import annotations

from collections.abc import Iterable

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.types import F16, F32
from bridge.operators import Result
from bridge.passes.context import Context
from bridge.passes.uses import Uses
from bridge.quirks.known import KnownAt, when_known
from bridge.quirks.openvino_cpu.scaled_in_place import EXACT
from bridge.quirks.quirk import RECURRENT, Place, Quirk, rewriting


def widen_twice(graph: Graph, context: Context) -> bool | None:
    """Converts such weights through f16, in place, if the model quantises anything. f16 has all
    numbers of these types, and OpenVINO folds this conversion."""
    nodes = list(graph.walk())
    if not any(node.op == "FakeQuantize" for node in nodes):
        return False
    weights = _leading_to(v for node in nodes if node.op in RECURRENT for v in node.inputs[2:])

    def widened_twice(b: Builder, node: Node, place: Place) -> Result:
        stored = node.inputs[0]
        if stored is None or stored.element not in EXACT or node.attributes["to"] is not F32:
            return None
        if node.outputs[0] not in weights or when_known(stored, place) is not KnownAt.FOLDED:
            return None
        return b.cast(b.cast(stored, F16), F32)

    return bool(weights) and rewriting("Cast", by=widened_twice)(graph, context)


def _leading_to(values: Iterable[Value | None]) -> set[Value]:
    """These values, and all of which they are computed."""
    found: set[Value] = set()
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if value is not None and value not in found:
            found.add(value)
            waiting += value.producer.inputs if value.producer is not None else ()
    return found


def _once(b: Builder, node: Node, uses: Uses) -> Value | None:
    half = node.inputs[0].producer if node.inputs[0] is not None else None
    if half is None or half.op != "Cast" or half.attributes["to"] is not F16:
        return None
    stored = half.inputs[0]
    exact = stored is not None and stored.element in EXACT and node.attributes["to"] is F32
    return b.op("Cast", stored, **node.attributes) if exact else None


QUIRK = Quirk(
    releases="2026.4",
    symptom="A model that quantises values does not compile if a recurrent layer has weights of 8 "
    "bits or fewer: expects Constant.",
    fires="At the Cast of a known value of 8 bits or fewer, if it leads to a weight of a recurrent "
    "layer, in a model with a FakeQuantize.",
    safe="f16 has all numbers of these types. So the conversion through f16 changes none.",
    cost="a Convert, which OpenVINO folds, and memory for the weights in f32",
    run=widen_twice,
    undo={"Cast": _once},
)
