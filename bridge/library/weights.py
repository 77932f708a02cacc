"""The element types that a model stores its weights in."""

from collections import Counter

from bridge.neutral.builder import stored_short
from bridge.neutral.graph import Graph

_LEAST = 0.01
"""Types with a smaller share of the bytes are not told."""


def weights_of(graph: Graph) -> str:
    """The types of constants of more than one element, the most bytes first; "" if there are none.
    Integers of more than eight bits are sizes and indices rather than weights."""
    nodes = list(graph.walk())
    casts = (node.outputs[0] for node in nodes if node.op == "Cast")
    short = {id(tensor) for value in casts if (tensor := stored_short(value))}
    sizes: Counter[str] = Counter()
    seen = set()
    for node in nodes:
        tensor = node.attributes["value"] if node.op == "Constant" else None
        if tensor is None or tensor.size <= 1 or id(tensor) in seen:
            continue
        element = tensor.element
        if element.kind == "float" or (element.kind in ("int", "uint") and element.bits <= 8):
            seen.add(id(tensor))
            name = f"{element} (compressed)" if id(tensor) in short else str(element)
            sizes[name] += tensor.nbytes
    total = sizes.total()
    told = [(name, size / total) for name, size in sizes.most_common() if size >= _LEAST * total]
    if len(told) < 2:
        return told[0][0] if told else ""
    return ", ".join(f"{share:.0%} {name}" for name, share in told)
