"""HannWindow, HammingWindow, BlackmanWindow."""

from __future__ import annotations

from bridge.neutral.inference import infers
from bridge.neutral.types import TensorType
from bridge.operators import Node
from bridge.operators.signal.fourier import size_in


@infers("HannWindow", "HammingWindow", "BlackmanWindow")
def infer_window(node: Node) -> list[TensorType]:
    """HannWindow, HammingWindow, BlackmanWindow: a vector of the size that input 0 holds."""
    return [TensorType(node.attributes["output_datatype"], (size_in(node, 0),))]
