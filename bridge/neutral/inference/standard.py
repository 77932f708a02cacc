"""Inference of ONNX's operators by the standard's own functions (`onnx.shape_inference`)."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.neutral.graph import Node
from bridge.neutral.types import Type


def infer_by_schema(node: Node) -> Sequence[Type]:
    """Types by the inference function of the operator's newest schema; [] where there is none."""
    from bridge.onnx_format.inference import infer_node

    return infer_node(node)
