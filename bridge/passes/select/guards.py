"""Whether a node is safe in a branch that is not taken: by the guard beside its rules, or by its
row, if it has none."""

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.constraints import contradiction, equal_sizes, sizes_that_suit
from bridge.neutral.inference.known import known_of
from bridge.operators import load
from bridge.operators.guarding import (
    FURTHER,
    GUARDS,
    SafeInputs,
    Unsafe,
    is_one_size,
    made_broadcastable,
)
from bridge.vocabulary import Operator, operator

SIZE_FREE = frozenset({"activation", "elementwise", "matmul", "reduction"})
"""Families of operators that take any sizes, as long as these go together."""

SIZED = frozenset({"image", "nn", "quantization", "recurrent", "signal", "spatial"})
"""Families of operators that fail for some sizes, and for no elements: their sizes are known, but
for the batch."""


def guarded(b: Builder, node: Node, counts: Value) -> SafeInputs:
    """The inputs that make a node safe if its branch is not taken; None if it is safe without.
    Raises Unsafe."""
    if node.op == "Constant":
        return None
    load(node.op)
    guard = GUARDS.get(node.op)
    if guard is not None:
        return guard(b, node, counts)
    row = _require_known(node)
    if "broadcasts" in row.traits:
        return made_broadcastable(b, node, counts)
    _require_sizes(node, row)
    further = FURTHER.get(node.op)
    return None if further is None else further(b, node, counts)


def _require_known(node: Node) -> Operator:
    """The row of a node; raises Unsafe if data may decide whether it fails."""
    row = operator(node.op)
    if row is None or row.family == "random":
        raise Unsafe("it draws numbers" if row else "it is not known when it fails")
    if row.family not in SIZE_FREE | SIZED and "never_fails" not in row.traits:
        raise Unsafe("it may fail, or has an effect")
    why = contradiction(node)
    if why:
        raise Unsafe(f"it fails when it runs: {why}")
    if any(v is not None and v.rank is None for v in node.inputs) and not _any_rank(node, row):
        raise Unsafe("the rank of its input is not known")
    for place, value in enumerate(node.inputs[1:], start=1):
        known = known_of(value).parts
        if value is None or row.family in ("elementwise", "matmul") or node.op == "Concat":
            continue
        if place in row.shaped_by and (known is None or None in known):
            raise Unsafe("data decide the shape of its output")
        if known is None and (value.element is None or value.element.is_integer):
            raise Unsafe("data decide its integers, and some may not be allowed")
    return row


def _any_rank(node: Node, row: Operator) -> bool:
    reduces_all = row.family == "reduction" and len(node.inputs) == 1
    return reduces_all or not row.traits.isdisjoint({"by_element", "reads_shape"})


def _require_sizes(node: Node, row: Operator) -> None:
    """Raises Unsafe if sizes may not fit each other."""
    is_sized = row.family in SIZED
    pairs = [*equal_sizes(node), *sizes_that_suit(node)]
    if not all(map(is_one_size, pairs)):
        raise Unsafe("sizes may not go together there")
    if is_sized or "fails_for_sizes" in row.traits:
        for index, value in enumerate(node.inputs):
            dims = () if value is None or value.shape is None else value.shape
            if not all(isinstance(dim, int) for dim in dims[index == 0 and is_sized :]):
                raise Unsafe("it fails for some values of its open sizes")
