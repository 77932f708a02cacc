"""Unknown sizes of states: OpenVINO gives that of a state and that of what it starts as one symbol,
and takes one for the other wherever the body asks for a size; and it takes the least size after an
iteration, and the greatest, for certain, though none may run."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.neutral.builder import Builder, integers
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.ports import Carried
from bridge.neutral.types import Interval, is_static
from bridge.operators import Result
from bridge.operators.control.draft import Draft, is_positive, iteration_number
from bridge.quirks.quirk import OPENVINO_CPU, Place, Quirk, rewriting, users_in

ALL = 1 << 30
"""An end of a Slice behind every element; exact in f32."""


def hidden_sizes(b: Builder, node: Node, place: Place) -> Result:
    """Both are hidden from OpenVINO where a size may change."""
    draft = Draft.of(node)
    graph = draft.body.graph
    nodes: list[Node] = []
    inner = Builder(nodes, node.name, b.target)
    entries: dict[Value, Value] = {}
    exits: dict[int, list[int]] = {}
    number: Value | None = None
    users = users_in(graph)
    for value, port, initial in _states(draft):
        dims = enumerate(value.shape or ())
        axes = [axis for axis, dim in dims if isinstance(dim, Interval)]
        unknown = [axis for axis in axes if not isinstance(initial.dims[axis], int)]
        if unknown and all(map(_hides, users.get(value, ()))):
            unknown = []
        if not _surely_runs(node) and axes and not _is_hidden(graph.outputs[port.output]):
            exits[port.output] = axes
        if not unknown and port.output not in exits:
            continue
        number = number or inner.op("Reshape", iteration_number(draft.body), inner.constant([1]))
        if unknown:
            entries[value] = _of_any_size(inner, value, unknown, number)
    if number is None:
        return None
    for one in graph.nodes:
        one.inputs = [None if v is None else entries.get(v, v) for v in one.inputs]
    graph.nodes[:0] = nodes
    states = {*graph.inputs, *entries.values()}
    for index, axes in exits.items():
        value = graph.outputs[index]
        if not _hide_appended(graph, value, axes, number, states):
            graph.outputs[index] = _of_unbounded_size(draft.inside(b), value, axes, number)
    return draft.build(b)


def _states(draft: Draft) -> Iterator[tuple[Value, Carried, Value]]:
    """The states with what they start with, but the trip count as one, and those whose rank
    differs."""
    for value, port in draft.body.entries():
        initial = draft.initial(port) if isinstance(port, Carried) else None
        if not isinstance(port, Carried) or port.input == 0 or initial is None:
            continue
        if initial.rank == value.rank:
            yield value, port, initial


def _surely_runs(node: Node) -> bool:
    """Whether a Loop runs at least once; slices are taken to have parts."""
    return all(v is None or is_positive(v) for v in (node.trip_count, node.condition))


def _hide_appended(
    graph: Graph, value: Value, axes: list[int], number: Value, states: set[Value]
) -> bool:
    """Where something is joined to a state, hides the size of that alone, which is less to copy;
    whether it could."""
    made = value.producer
    if made is None or made.op != "Concat" or value.rank is None:
        return False
    if axes != [made.attributes["axis"] % value.rank] or not states & set(made.inputs):
        return False
    nodes: list[Node] = []
    inner = Builder(nodes, made.name)
    made.inputs = [
        v if v is None or v in states else _of_any_size(inner, v, axes, number) for v in made.inputs
    ]
    place = graph.nodes.index(made)
    graph.nodes[place:place] = nodes
    return True


def _of_any_size(b: Builder, value: Value, axes: list[int], number: Value) -> Value:
    """The value as it is, through an operator whose result depends, for all that OpenVINO can
    tell, on `number` (i64 [1], not negative)."""
    if value.rank == 1 and not is_static(value.shape):
        # A Slice would copy a vector element by element; yet a Reshape to the one size that there
        # can be is none.
        none = b.op("Min", number, b.constant([0]))
        return b.op("Reshape", value, b.op("Max", b.op("Shape", value), none), allowzero=True)
    end = b.op("Max", number, b.constant([ALL]))
    ends = b.op("Concat", *[end] * len(axes), axis=0) if len(axes) > 1 else end
    return b.op("Slice", value, b.constant([0] * len(axes)), ends, b.constant(axes))


def _of_unbounded_size(b: Builder, value: Value, axes: list[int], number: Value) -> Value:
    """As `_of_any_size`, where the size must not be taken for a bound either: that of a Slice is
    no larger than what it is of."""
    none, zero = b.op("Mod", number, b.constant([1])), b.constant([0])
    rank = len(value.dims)
    ends = (none if axis in axes else zero for axis in range(rank))
    return b.op("Pad", value, b.op("Concat", *[zero] * rank, *ends, axis=0))


def _is_hidden(value: Value) -> bool:
    """Whether what makes a value hides its size, or that of what it appends."""
    made = value.producer
    if made is None:
        return False
    if made.op == "Concat":
        return any(v is not None and _is_hidden(v) for v in made.inputs)
    return _hides(made)


def _hides(node: Node) -> bool:
    """Whether a node is what `_of_any_size` makes."""
    if node.op == "Pad":
        return _is_open_pad(node)
    if node.op not in ("Reshape", "Slice"):
        return False
    sizes = node.inputs[1 if node.op == "Reshape" else 2]
    made = sizes.producer if sizes is not None else None
    if made is not None and made.op == "Concat":
        made = made.inputs[0].producer if made.inputs[0] is not None else None
    if made is None or made.op != "Max":
        return False
    if node.op == "Slice":
        return integers(made.inputs[1]) == (ALL,)
    least = made.inputs[1].producer if made.inputs[1] is not None else None
    return least is not None and least.op == "Min"


def _is_open_pad(node: Node) -> bool:
    """Whether a node is what `_of_unbounded_size` makes."""
    pads = node.inputs[1].producer if node.inputs[1] is not None else None
    parts = pads.inputs if pads is not None and pads.op == "Concat" else []
    made = (part.producer for part in parts if part is not None)
    return any(m is not None and m.op == "Mod" and integers(m.inputs[1]) == (1,) for m in made)


QUIRK = Quirk(
    OPENVINO_CPU,
    releases="2026.4",
    symptom="A size that the body asks of a state is that of the initial state, and one that the "
    "first iteration would give is taken for certain though none runs.",
    cost="a Slice, Reshape or Pad of each state of changing size, in the body",
    run=rewriting("Loop", by=hidden_sizes),
)
