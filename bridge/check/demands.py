"""Sizes that a model's operators demand of its inputs: what is multiplied by a matrix of four rows
has four columns. Engines do not always ask: some read what lies behind a tensor instead."""

from __future__ import annotations

from bridge.neutral.clone import clone_model
from bridge.neutral.graph import Model
from bridge.neutral.inference import infer_graph
from bridge.neutral.inference.constraints import equal_sizes, sizes_that_suit
from bridge.neutral.types import innermost, with_symbols


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
        for sizes, pairs in ((asked, equal_sizes(node)), (suits, sizes_that_suit(node))):
            for a, b in pairs:
                for symbol, size in ((a, b), (b, a)):
                    if isinstance(symbol, str) and isinstance(size, int):
                        sizes.setdefault(symbol, set()).add(size)
    return {key: min(sizes) for key, sizes in (suits | asked).items() if len(sizes) == 1}
