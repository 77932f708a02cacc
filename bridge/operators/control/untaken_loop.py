"""A Loop in a branch that is not taken."""

from bridge.neutral.ports import Sliced, Stacked
from bridge.operators import Builder, Node, Value
from bridge.operators.guarding import SafeInputs, Unsafe, guards, if_taken


def runs_in_full(node: Node) -> bool:
    """Whether a Loop runs all its iterations even if its branch is not taken. Data must not decide
    the number, and its stacks keep their sizes. Raises Unsafe."""
    sliced = [port for port in node.body.inputs if isinstance(port, Sliced)]
    counted = node.inputs[0] is not None and node.inputs[0].constant is not None
    if sliced:
        shapes = [(node.inputs[port.input], port.axis) for port in sliced]
        sizes = {value.dims[axis] for value, axis in shapes if value is not None and value.shape}
        if len(sizes) != 1 or not all(isinstance(size, int | str) for size in sizes):
            raise Unsafe("its sliced inputs may have several sizes")
        return True
    return counted and any(isinstance(port, Stacked) for port in node.body.outputs)


@guards("Loop")
def _loop(b: Builder, node: Node, counts: Value) -> SafeInputs:
    """Loop: it runs no iteration. A constant trip count stays: some devices take no other."""
    trips, condition, *others = [*node.inputs, None, None][: max(len(node.inputs), 2)]
    if trips is not None and trips.constant is None:
        trips = if_taken(b, counts, trips, 0)
    else:
        condition = counts if condition is None else condition & counts
    return [trips, condition, *others]
