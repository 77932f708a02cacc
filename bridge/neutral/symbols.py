"""Symbols of sizes that several inputs declare."""

from collections import Counter
from collections.abc import Sequence

from bridge.neutral.graph import Value
from bridge.neutral.types import SharedSymbol, TensorType, with_dims


def mark_shared_symbols(inputs: Sequence[Value]) -> bool:
    """Marks, in place, each symbol that several inputs declare. Returns whether there was one that
    was not marked."""
    tensors = [value for value in inputs if isinstance(value.type, TensorType)]
    sizes = (size for value in tensors for size in {*(value.shape or ())})
    declared = Counter(size for size in sizes if isinstance(size, str))
    shared = {symbol for symbol, count in declared.items() if count > 1}
    changed = False
    for value in tensors if shared else ():
        if any(dim in shared and not isinstance(dim, SharedSymbol) for dim in value.shape or ()):
            value.type = with_dims(value.type, lambda d: SharedSymbol(d) if d in shared else d)
            changed = True
    return changed
