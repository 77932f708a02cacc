"""Nodes become the one that they were in the ONNX model that an IR was made from, which its record
names (`bridge.neutral.provenance`). The record is a hint. It is believed where that one node, made
into IR once more, gives the very nodes that are there."""

from __future__ import annotations

from bridge.neutral.attributes import fault_of
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Node, Value
from bridge.operators.spelling import choose
from bridge.passes.fuse.replay import IR, becomes
from bridge.passes.fuse.uses import Uses
from bridge.passes.legalize import Legalizer


def recorded_node(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The recorded ONNX node, if expanding it gives the nodes that are there."""
    assert b.target is not None
    provenance, output = (node.extras or {}).get("provenance"), uses.output(node)
    if provenance is None or sum(map(uses.count, node.outputs)) > uses.count(output):
        return None
    inputs = [value for value in provenance.inputs if value is not None]
    missing = [value for value in inputs if not uses.is_before(value, node)]
    if fault_of(provenance.op, provenance.attributes) or any(v.constant is None for v in missing):
        return None
    made = b.node(provenance.op, provenance.inputs, 1, dict(provenance.attributes))
    if choose(made, b.target)[0] is None:
        return None
    if not becomes([made], made.outputs[0], output, _legalize):
        return None
    for value in missing:
        if value.producer is not None:
            uses.prepend(value.producer)
    return made.outputs[0]


def _legalize(graph: Graph) -> None:
    """Rewrites a graph of ONNX for IR, in place."""
    Legalizer(IR, "onnx").legalize(graph)
