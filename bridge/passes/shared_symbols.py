"""Symbols that several inputs of a model declare.

Exporters give one symbol to sizes that may differ: {"x": {0: "b"}, "state": {1: "b"}}. An If that
asks whether the two are equal would be decided by that promise, which no runtime checks.
"""

from __future__ import annotations

from collections import Counter

from bridge.neutral.graph import Model
from bridge.neutral.inference import infer_graph
from bridge.neutral.types import SharedSymbol, TensorType, with_dims
from bridge.passes.context import Context


def distrust_symbols(model: Model, context: Context) -> bool:
    """Marks, in place, symbols that several inputs share, so that no comparison is decided by one;
    whether there are any."""
    if context.options.get("trust_symbols"):
        return False
    inputs = [value for value in model.graph.inputs if isinstance(value.type, TensorType)]
    sizes = (size for value in inputs for size in {*(value.shape or ())})
    declared = Counter(size for size in sizes if isinstance(size, str))
    shared = {symbol for symbol, count in declared.items() if count > 1}
    for value in inputs if shared else ():
        value.type = with_dims(value.type, lambda d: SharedSymbol(d) if d in shared else d)
    if shared:
        infer_graph(model.graph)
    return bool(shared)
