"""Which form a Loop can have on OpenVINO's GPU plugin, and which it has."""

from bridge.neutral.graph import Body, Node, Value, loop_kind, producer_of
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Carried, Condition, Sliced, Stacked
from bridge.neutral.types import I64, STRING
from bridge.operators.control.loop_builder import is_positive
from bridge.quirks.opaque import revealed


def known_trips(node: Node) -> int | None:
    """The trip count of a Loop, or the number of its slices, if it is known."""
    if loop_kind(node) == "count":
        known = known_of(node.trip_count).ints
        return known[0] if known is not None and len(known) == 1 and known[0] >= 0 else None
    port, size = node.slices()[0]
    if not isinstance(size, int):
        return None
    first, last = (at if at >= 0 else at + size for at in (port.start, port.end))
    return (abs(last - first) + 1) // abs(port.stride)


def computed_conditions(body: Body) -> list[int]:
    """The body outputs that may end a Loop. A condition does not end it if it is always true, or
    only passes on its own earlier value, which has been true."""
    own = {port.output: value for value, port in body.entries() if isinstance(port, Carried)}
    return [
        index
        for index, (value, exit) in enumerate(body.exits())
        if isinstance(exit, Condition)
        and not is_positive(value)
        and value.behind("Identity") is not own.get(index)
    ]


def is_counted(node: Node) -> bool:
    """Whether no computed condition ends a Loop, but a trip count or its slices."""
    if loop_kind(node) == "count":
        trips = known_of(node.trip_count).ints
        if node.trip_count is None or (trips is not None and trips[0] < 0):
            return False
    return not computed_conditions(node.body)


def is_regular(node: Node) -> bool:
    """Whether a Loop has outputs of numbers or booleans, and slices and stacks of all parts, one in
    each iteration, forwards or backwards."""
    ports = (*node.body.inputs, *node.body.outputs)
    return all(map(has_numbers, node.outputs)) and all(
        port.are_whole for port in ports if isinstance(port, Sliced | Stacked)
    )


def has_numbers(value: Value) -> bool:
    """Whether a value is a tensor of numbers or booleans."""
    return value.element not in (None, STRING)


def has_form(node: Node) -> bool:
    """Whether a Loop has the counted or the conditional form."""
    return is_conditional_form(node) or (is_counted(node) and is_counted_form(node))


def is_counted_form(node: Node) -> bool:
    """Whether a Loop slices a range of numbers."""
    return any(
        producer_of(revealed(node.operand(port.input)), "Range") is not None
        for port in node.body.inputs
        if isinstance(port, Sliced)
    )


def is_conditional_form(node: Node) -> bool:
    """Whether a Loop has a state of open size that counts the iterations."""
    return any(_is_hidden_zero(initial) for _, _, initial in node.states())


def _is_hidden_zero(initial: Value) -> bool:
    first = revealed(initial)
    if first is initial or first.shape != (1,) or first.element is not I64:
        return False
    return known_of(first).ints == (0,)
