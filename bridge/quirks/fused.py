"""Recomposition on the way to ONNX, of what quirks rewrote on the way to IR, too."""

from __future__ import annotations

from bridge.neutral.builder import Target
from bridge.neutral.graph import Graph, Model
from bridge.passes import fuse
from bridge.passes.context import Context
from bridge.quirks import work_round
from bridge.report import Report


def fuse_ir(model: Model, context: Context) -> None:
    """Recomposes, in place, what rules would expand otherwise, in all nested graphs too."""
    fuse.fuse_ir(model, context, _worked_round)


def _worked_round(graph: Graph) -> None:
    work_round(Model(graph, "onnx"), Context(Target("ir"), Report()))
