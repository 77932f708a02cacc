"""Constants of f32 stored as f16, as OpenVINO's `compress_to_fp16` stores them.

Each becomes a Constant of f16 and a Cast with OpenVINO's mark of a decompression. OpenVINO's
plugins fold such a Cast or keep the constant compressed.
"""

from collections.abc import Iterator

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.extras import NodeExtras
from bridge.neutral.graph import Model, Node
from bridge.neutral.rewrite import Pattern, Result, Rewriter
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import F16, F32
from bridge.passes.context import Context
from bridge.passes.decompress import Widened

LARGEST = float(np.finfo(np.float16).max)
SMALLEST = float(np.finfo(np.float16).smallest_subnormal)

KEPT_FROM = 0.75
"""The share of values outside f16's range from which OpenVINO keeps a constant in f32."""

DECOMPRESSION = '<attribute name="decompression" version="0" />'


class Halves:
    """The packed bytes of an f32 tensor in f16, made a bounded piece at a time."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def chunks(self) -> Iterator[memoryview]:
        """The bytes, in pieces."""
        for piece in self.tensor.chunks():
            values = np.frombuffer(piece, np.float32)
            halves = np.clip(values, -LARGEST, LARGEST).astype(np.float16)
            yield memoryview(halves).cast("B")  # type: ignore[arg-type]


def compress(model: Model, context: Context | None = None) -> bool:
    """Compresses, in place, every f32 constant of more than one element, unless most of its values
    lie outside f16's range. It may be stored as bf16."""
    halves: dict[int, Tensor | None] = {}

    def compressed(b: Builder, node: Node, rewriter: Rewriter) -> Result:
        half = _half(node, halves)
        if half is None:
            return None
        name = node.name or node.outputs[0].name
        stored = b.tensor(half, name=f"{name}_compressed" if name else "")
        extras: NodeExtras = {**(node.extras or {}), "rt_info": DECOMPRESSION}
        attributes = {"to": F32, "saturate": True, "round_mode": "up"}
        b.nodes.append(Node("Cast", [stored], node.outputs, attributes, (), name, extras))
        return node.outputs

    return Rewriter(model.graph).run(Pattern(compressed, frozenset({"Constant"})))


def _half(node: Node, halves: dict[int, Tensor | None]) -> Tensor | None:
    """The tensor in f16, the same for the same tensor; None if it stays as it is."""
    tensor: Tensor = node.attributes["value"]
    stored = tensor.source.tensor if isinstance(tensor.source, Widened) else tensor
    if tensor.element is not F32 or stored.element is F16 or tensor.size <= 1:
        return None
    key = id(tensor)
    if key not in halves:
        outside = sum(_outside(piece) for piece in tensor.chunks())
        keep = outside >= KEPT_FROM * tensor.size
        halves[key] = None if keep else Tensor(F16, tensor.shape, Halves(tensor))
    return halves[key]


def _outside(piece: memoryview) -> int:
    size = np.abs(np.frombuffer(piece, np.float32))
    return int(np.count_nonzero((size > LARGEST) | ((size < SMALLEST) & (size != 0))))
