"""Sizes that a model's operators demand of its inputs: what is multiplied by a matrix of four rows
has four columns. Engines do not always ask: some read what lies behind a tensor instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise

from bridge.neutral.clone import clone_model
from bridge.neutral.graph import Model, Node
from bridge.neutral.inference import infer_graph
from bridge.neutral.types import Dim, innermost, with_symbols
from bridge.vocabulary import has_trait

Dims = tuple[Dim, ...]
Equal = tuple[Dim, Dim]


def demanded(model: Model) -> dict[str, int]:
    """The sizes of open dimensions of inputs that some operator demands and none contradicts, by
    their keys in `Recipe.sizes`."""
    model = clone_model(model)
    for value in model.graph.inputs:
        shape = innermost(value.type).shape or ()
        symbols = [f"{value.name}.{axis}" for axis in range(len(shape))]
        value.type = value.declared = with_symbols(value.type, symbols)
    infer_graph(model.graph)
    asked: dict[str, set[int]] = {}
    suits: dict[str, set[int]] = {}  # 1 would suit as well
    for node in model.graph.walk():
        for sizes, pairs in ((asked, _equal(node)), (suits, _broadcast(node))):
            for a, b in pairs:
                for symbol, size in ((a, b), (b, a)):
                    if isinstance(symbol, str) and isinstance(size, int):
                        sizes.setdefault(symbol, set()).add(size)
    return {key: min(sizes) for key, sizes in (suits | asked).items() if len(sizes) == 1}


def _equal(node: Node) -> Iterator[Equal]:
    """Dimensions of a node's inputs that are the same."""
    find = _SAME.get(node.op)
    if find is None:
        return
    shapes = [value.shape for value in node.inputs[:2] if value is not None and value.shape]
    if len(shapes) == 2:
        with suppress(IndexError):  # of a rank that the operator does not take
            yield find(node, *shapes)


def _of_matmul(node: Node, a: Dims, b: Dims) -> Equal:
    left, right = node.attributes.get("transpose_a"), node.attributes.get("transpose_b")
    rows = -1 if right or len(b) == 1 else -2
    return a[-2 if left and len(a) > 1 else -1], b[rows]


def _of_gemm(node: Node, a: Dims, b: Dims) -> Equal:
    return a[0 if node.attributes["transA"] else 1], b[1 if node.attributes["transB"] else 0]


def _of_conv(node: Node, x: Dims, w: Dims) -> Equal:
    channels = w[1]
    return x[1], channels * node.attributes["group"] if isinstance(channels, int) else channels


_SAME: dict[str, Callable[[Node, Dims, Dims], Equal]] = {
    "Conv": _of_conv,
    "ConvTranspose": lambda node, x, w: (x[1], w[0]),
    "Gemm": _of_gemm,
    "GRU": lambda node, x, w: (x[2], w[2]),
    "LSTM": lambda node, x, w: (x[2], w[2]),
    "MatMul": _of_matmul,
    "RNN": lambda node, x, w: (x[2], w[2]),
}


def _broadcast(node: Node) -> Iterator[Equal]:
    """Dimensions of a node's inputs that are the same, or one of them is 1."""
    if has_trait(node.op, "broadcasts"):
        shapes = [value.shape for value in node.inputs if value is not None and value.shape]
        for a, b in pairwise(shapes):
            yield from (
                pair for pair in zip(reversed(a), reversed(b), strict=False) if 1 not in pair
            )
