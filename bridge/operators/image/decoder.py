"""ImageDecoder."""

from __future__ import annotations

from bridge.neutral.inference import infers
from bridge.neutral.types import ANY, U8, TensorType, Type
from bridge.operators import Node


@infers("ImageDecoder")
def infer_image_decoder(node: Node) -> list[Type]:
    """ImageDecoder: [height, width, channels], u8."""
    return [TensorType(U8, (ANY, ANY, 1 if node.attributes["pixel_format"] == "Grayscale" else 3))]
