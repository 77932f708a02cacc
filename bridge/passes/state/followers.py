"""Nodes that write into caches (GroupQueryAttention), if the caches become variables. Calls follow
one another, so new words stand behind all words in a variable."""

from collections.abc import Mapping, Sequence

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.rewrite import Substitution
from bridge.neutral.types import I64, TensorType
from bridge.records.state import PLACES, ToldPlaces

_CACHES = ((3, 1), (4, 2))
"""past_key and present_key, past_value and present_value of the operator, by their places."""


def follow_one_another(graph: Graph, values: Mapping[Value, Value]) -> list[Node]:
    """Marks, in place, the nodes whose caches are states. `values` has the next value of each
    state."""
    from bridge.operators.microsoft.group_query_attention import CONSECUTIVE

    nodes = [
        node
        for node in graph.nodes
        if node.op == "com.microsoft::GroupQueryAttention"
        and node.input(16) is None  # Else, padding follows the new words.
        and all(_is_next(values, node.input(past), node.outputs[i:]) for past, i in _CACHES)
    ]
    for node in nodes:
        node.attributes[CONSECUTIVE] = 1
    return nodes


def _is_next(values: Mapping[Value, Value], past: Value | None, outputs: Sequence[Value]) -> bool:
    """Whether `past` is a state, a key of `values`, and the first of the outputs its next value."""
    after = values.get(past) if past is not None else None
    return after is not None and bool(outputs) and after.behind("Identity") is outputs[0]


def tell_places(
    nodes: Sequence[Node], inputs: Sequence[Value]
) -> tuple[ToldPlaces | None, Value | None]:
    """Gives such nodes, in place, a new input of the model with the place of each new word. The
    answer is the input's record, and the input. Both are None if no node needs places, or if no
    other input has as many words. OpenVINO divides no cache into pages if places are computed
    from lengths."""
    from bridge.operators.microsoft.group_query_attention import TOLD

    asking = [node for node in nodes if node.attributes.get("do_rotary") and not node.input(9)]
    sizes = {query.dims[:2] for node in asking if (query := node.inputs[0]) and query.rank == 3}
    words = [value for value in inputs if value.rank == 2 and sizes == {value.dims}]
    if not words or not all(isinstance(size, int | str) for size in words[0].dims):
        return None, None
    places = Value(TensorType(I64, words[0].shape), [PLACES])
    for node in asking:
        node.inputs = [*node.inputs, *[None] * (9 - len(node.inputs))]
        node.inputs[9:10] = [places]
        node.attributes[TOLD] = 1
    return ToldPlaces(words[0].name, asking[0].operand(3).name), places


def compute_places(graph: Graph, places: Value, told: ToldPlaces, inputs: Sequence[Value]) -> bool:
    """Computes, in place, the contents of such an input for sequences without padding. The answer
    is whether the inputs that the record names are there."""
    named = {value.name: value for value in inputs}
    words, held = named.get(told.words), named.get(told.cache)
    if words is None or held is None or (words.rank, held.rank) != (2, 4):
        return False
    nodes: list[Node] = []
    b = Builder(nodes, PLACES)
    past, sizes = b.size(held, 2), b.op("Shape", words)
    row = b.op("Range", past, b.op("Add", past, b.size(words, 1)), 1)
    substitution = Substitution()
    substitution.replace(places, b.op("Expand", row, sizes), names=False)
    for node in graph.nodes:
        substitution.apply(node)
    substitution.finish(graph)
    graph.prepend(nodes)
    return True
