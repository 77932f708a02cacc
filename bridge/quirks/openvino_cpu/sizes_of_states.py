"""Unknown sizes of states: OpenVINO gives that of a state and that of what it starts as one symbol,
and takes one for the other wherever the body asks for a size; and it takes the least size after an
iteration, and the greatest, for certain, though none may run."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.neutral.builder import Builder, integers
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.ports import Carried
from bridge.neutral.rewrite import Uses
from bridge.neutral.types import Interval, high, low
from bridge.operators import Result
from bridge.operators.control.loop_builder import LoopBuilder, is_positive, iteration_number
from bridge.quirks.opaque import hides, opaque, undone
from bridge.quirks.quirk import Place, Quirk, rewriting


def hidden_sizes(b: Builder, node: Node, place: Place) -> Result:
    """Both are hidden from OpenVINO where a size may change."""
    loop_builder = LoopBuilder.of(node)
    graph = loop_builder.body.graph
    nodes: list[Node] = []
    inner = Builder(nodes, node.name, b.target)
    entries: dict[Value, Value] = {}
    exits: dict[int, tuple[list[int], list[Value]]] = {}
    number: Value | None = None
    uses = Uses(graph)
    for value, port, initial in _states(loop_builder):
        dims = enumerate(value.shape or ())
        axes = [axis for axis, dim in dims if isinstance(dim, Interval)]
        unknown = [axis for axis in axes if not isinstance(initial.dims[axis], int)]
        if unknown and _all_hide(value, uses):
            unknown = []
        again = graph.outputs[port.output]
        after = [] if _surely_runs(node) else _to_hide(graph, again, initial, axes)
        if not unknown and not after:
            continue
        exits[port.output] = axes, after
        number = number or inner.op("Reshape", iteration_number(loop_builder.body), [1])
        if unknown:
            entries[value] = opaque(inner, value, "sizes", unknown, number)
    if number is None:
        return None
    for one in graph.nodes:
        one.inputs = [None if v is None else entries.get(v, v) for v in one.inputs]
    graph.prepend(nodes)
    for index, (axes, after) in exits.items():
        value = graph.outputs[index]
        if value in after:
            bounded = any(high(value.dims[axis]) is not None for axis in axes)
            kind = "bounds" if bounded else "sizes"
            graph.outputs[index] = opaque(loop_builder.inside(b), value, kind, axes, number)
        elif after:
            _hide_appended(graph, value, axes, number, after)
    return loop_builder.build(b)


def _states(loop_builder: LoopBuilder) -> Iterator[tuple[Value, Carried, Value]]:
    """The states with what they start with, but the trip count as one, and those whose rank
    differs."""
    for value, port in loop_builder.body.entries():
        initial = loop_builder.initial(port) if isinstance(port, Carried) else None
        if not isinstance(port, Carried) or port.input == 0 or initial is None:
            continue
        if initial.rank == value.rank:
            yield value, port, initial


def _surely_runs(node: Node) -> bool:
    """Whether a Loop runs at least once; slices are taken to have parts."""
    return all(v is None or is_positive(v) for v in (node.trip_count, node.condition))


def _to_hide(graph: Graph, value: Value, initial: Value, axes: list[int]) -> list[Value]:
    """What hides these sizes of a state's next value: that itself or, which is less to copy, what
    it joins. What the body was given need not be hidden, unless it is larger than the initial."""
    if not axes or _is_hidden(value):
        return []
    made, given = value.producer, {*graph.inputs}
    if made is None or made.op != "Concat" or value.rank is None:
        return [value]
    if axes != [made.attributes["axis"] % value.rank] or not given & set(made.inputs):
        return [value]
    (axis,) = axes
    size = initial.dims[axis]
    if isinstance(size, int):
        given = {v for v in given & {*made.inputs} if low(v.dims[axis]) <= size}
    return [v for v in made.inputs if v is not None and v not in given]


def _hide_appended(
    graph: Graph, value: Value, axes: list[int], number: Value, appended: list[Value]
) -> None:
    made = value.producer
    assert made is not None
    nodes: list[Node] = []
    inner = Builder(nodes, made.name)
    made.inputs = [
        opaque(inner, v, "sizes", axes, number) if v in appended else v for v in made.inputs
    ]
    place = graph.nodes.index(made)
    graph.nodes[place:place] = nodes


def _is_hidden(value: Value) -> bool:
    """Whether what makes a value hides its size, or that of what it appends."""
    made = value.producer
    if made is None:
        return False
    if made.op == "Concat":
        return any(v is not None and _is_hidden(v) for v in made.inputs)
    x = made.input(0)
    reshaped = made.op == "Reshape" and integers(made.inputs[1]) is not None
    if x is not None and (reshaped or made.op == "Cast"):
        return _is_hidden(x)
    return _hides(made)


def _all_hide(value: Value, uses: Uses) -> bool:
    """Whether all that uses a value hides its sizes. Another quirk may have put a copy between."""
    users = uses.users(value)
    if len(users) == 1 and (hides(users[0], "memory") or users[0].op == "Unsqueeze"):
        return _all_hide(users[0].outputs[0], uses)
    return all(map(_hides, users))


def _hides(node: Node) -> bool:
    return hides(node, "sizes", "bounds")


QUIRK = Quirk(
    releases="2026.4",
    symptom="A size that the body asks of a state is that of the initial state, and one that the "
    "first iteration would give is taken for certain though none runs.",
    fires="At a state with a size that changes and is not known at first, or of a Loop that may "
    "not run.",
    safe="A Slice up to 2^30 or further takes all, and a Pad by a remainder by 1 adds nothing.",
    cost="a Slice or Pad of each state of changing size, in the body",
    run=rewriting("Loop", by=hidden_sizes),
    undo=undone("sizes", "bounds"),
)
