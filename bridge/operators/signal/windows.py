"""HannWindow, HammingWindow, BlackmanWindow."""

from __future__ import annotations

from bridge.neutral.graph import Node
from bridge.neutral.inference import infers
from bridge.neutral.types import ANY, TensorType
from bridge.operators.signal.fourier import one_of


@infers("HannWindow", "HammingWindow", "BlackmanWindow")
def infer_window(node: Node) -> list[TensorType]:
    """HannWindow, HammingWindow, BlackmanWindow: a vector of the size that input 0 holds."""
    size = one_of(node, 0)
    return [TensorType(node.attributes["output_datatype"], (ANY if size is None else size,))]
