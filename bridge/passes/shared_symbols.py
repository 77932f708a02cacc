"""Symbols that several inputs of a model declare.

Exporters give one symbol to sizes that may differ: {"x": {0: "b"}, "state": {1: "b"}}. No runtime
checks that they are equal. An If that tests it must not be decided by the symbol.
"""

from bridge.neutral.graph import Model
from bridge.neutral.inference import infer_graph
from bridge.neutral.symbols import mark_shared_symbols
from bridge.neutral.types import SharedSymbol, TensorType, with_dims
from bridge.passes.applies import applies, concludes
from bridge.passes.context import Context


@applies(concludes)
def distrust_symbols(model: Model, context: Context) -> bool:
    """Marks, in place, symbols that several inputs share, so that no comparison is decided by one.
    With `trust_symbols` none is marked. Returns whether that changed anything.

    The reader of ONNX marked the symbols of the file. Others come from the user's shapes.
    """
    inputs = model.graph.inputs
    trusts = context.options.get("trust_symbols")
    changed = _unmark(model) if trusts else mark_shared_symbols(inputs)
    if changed:
        infer_graph(model.graph)
    return changed


def _unmark(model: Model) -> bool:
    """Makes plain symbols of the marked ones; returns whether there were any."""
    changed = False
    for value in model.graph.inputs:
        if not isinstance(value.type, TensorType):
            continue
        if any(isinstance(dim, SharedSymbol) for dim in value.shape or ()):
            value.type = with_dims(
                value.type, lambda dim: str(dim) if isinstance(dim, SharedSymbol) else dim
            )
            changed = True
    return changed
