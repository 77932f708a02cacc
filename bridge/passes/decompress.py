"""Constants of f32 and f64 that an IR stores as f16 or bf16, behind a Cast.

OpenVINO saves all constants so by default, even constants whose values operators need. While passes
run, each is one Constant. At the end the remaining ones are stored in few bits again.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bridge.neutral.builder import Builder, stored_short
from bridge.neutral.graph import Model, Node
from bridge.neutral.rewrite import Pattern, Result, Rewriter
from bridge.neutral.tensor import Tensor
from bridge.passes.context import Context

PLAIN = 64
"""Elements of a vector that ONNX gets plain: it is no weight, and other readers ask for its
values."""


@dataclass(eq=False)
class Widened:
    """The packed bytes of a tensor in more bits, made a bounded piece at a time. `made` is the
    Constant and the Cast that it comes from."""

    tensor: Tensor
    dtype: np.dtype
    made: tuple[Node, Node]

    def chunks(self) -> Iterator[memoryview]:
        """The bytes, in pieces."""
        for piece in self.tensor.chunks():
            wide = np.frombuffer(piece, self.tensor.element.dtype).astype(self.dtype)
            yield memoryview(wide.view(np.uint8))  # type: ignore[arg-type]


def decompress(model: Model, context: Context | None = None) -> bool:
    """Makes, in place, one Constant of each such pair; whether there was any."""
    wide: dict[tuple[int, str], Tensor] = {}

    def widened(b: Builder, node: Node, rewriter: Rewriter) -> Result:
        value = node.outputs[0]
        stored = stored_short(value)
        if stored is None or value.element is None:
            return None
        short = node.operand(0)
        key = (id(stored), value.element.name)
        if key not in wide:
            source = Widened(stored, value.element.dtype, (short.node, node))
            wide[key] = Tensor(value.element, stored.shape, source)
        value.names = value.names or list(short.names)
        b.nodes.append(Node("Constant", [], [value], {"value": wide[key]}, (), node.name))
        return node.outputs

    return Rewriter(model.graph).run(Pattern(widened, frozenset({"Cast"})))


def store_short(model: Model, context: Context) -> bool:
    """Stores, in place, the remaining Constants of this kind in few bits again; returns whether
    there were any. ONNX gets scalars and short vectors plain."""
    stored: dict[tuple[int, tuple[int, ...]], Tensor] = {}

    def narrowed(b: Builder, node: Node, rewriter: Rewriter) -> Result:
        tensor: Tensor = node.attributes["value"]
        source = tensor.source
        if not isinstance(source, Widened):
            return None
        short = tensor.size <= (1 if len(tensor.shape) > 1 else PLAIN)
        if short and context.target.format == "onnx":
            return None
        key = (id(source), tensor.shape)
        if key not in stored:
            stored[key] = Tensor(source.tensor.element, tensor.shape, source.tensor.source)
        constant, cast = source.made
        few = b.tensor(stored[key], list(constant.outputs[0].names), constant.name)
        b.nodes[-1].extras = constant.extras
        b.nodes.append(
            Node("Cast", [few], node.outputs, cast.attributes, (), node.name, cast.extras)
        )
        return node.outputs

    return Rewriter(model.graph).run(Pattern(narrowed, frozenset({"Constant"})))
