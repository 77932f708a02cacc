"""The product of a matrix of unknown size and a constant stack of matrices. OpenVINO converts it to
a FullyConnected."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import is_static
from bridge.operators import Result
from bridge.quirks.known import KnownAt, when_known
from bridge.quirks.quirk import Place, Quirk, rewriting
from bridge.quirks.undo import behind


def with_stack_of_stacks(b: Builder, node: Node, place: Place) -> Result:
    """The product with one more axis in front of the constant. A Squeeze removes the axis."""
    matrix, stack = node.inputs
    if matrix is None or is_static(matrix.shape) or matrix.rank not in (2, 3):
        return None
    if matrix.rank == 3 and matrix.dims[0] != 1:
        return None
    if stack is None or stack.rank != 3 or stack.dims[0] == 1:
        return None
    if when_known(stack, place) > KnownAt.COMPUTED:
        return None
    first = b.constant([0])
    product = b.op("MatMul", matrix, b.op("Unsqueeze", stack, first), **node.attributes)
    return b.op("Squeeze", product, first)


def _products(b: Builder, node: Node) -> Iterator[Value]:
    """The product with the stack without the added axis."""
    product = behind(node.inputs[0], "MatMul")
    stack = behind(product.inputs[1], "Unsqueeze") if product is not None else None
    if product is not None and stack is not None:
        yield b.op("MatMul", product.inputs[0], stack.inputs[0], **product.attributes)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A MatMul of a matrix of unknown size and a constant of rank 3 does not compile or "
    "does not run. OpenVINO converts it to a FullyConnected, which gives one matrix.",
    fires="At a MatMul of a matrix of open size and a stack of several matrices, if OpenVINO knows "
    "the stack.",
    safe="A product broadcasts leading axes of size 1. The added axis is removed again.",
    cost="an Unsqueeze of the constant and a Squeeze",
    run=rewriting("MatMul", by=with_stack_of_stacks),
    guess={"Squeeze": _products},
)
