"""Some nodes of a graph as a graph or a model of their own."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from bridge.neutral.clone import clone_node, clone_value
from bridge.neutral.graph import Graph, Model, Node, Value


def behind(
    nodes: Sequence[Node], wanted: Iterable[Value], known: Collection[Value] = ()
) -> list[Node]:
    """The nodes that the `wanted` values depend on. The search stops at `known` values."""
    needed = set(wanted)
    kept: list[Node] = []
    for node in reversed(nodes):
        if not needed.isdisjoint(node.outputs):
            kept.append(node)
            needed.update(v for v in node.inputs if v is not None and v not in known)
    return kept[::-1]


def slice_of(
    model: Model,
    nodes: Sequence[Node],
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    names: Mapping[Value, str],
) -> Model:
    """A model of copies of these nodes of one graph, and of the constants that the nodes or the
    outputs use. `names` has the names of the inputs and outputs."""
    graph, copies = Graph(name="part"), dict[Value, Value]()
    for value in inputs:
        copies[value] = clone_value(value)
        copies[value].names = [names[value]]
        graph.inputs.append(copies[value])
    taken = [*(v for node in nodes for v in node.inputs if v is not None), *outputs]
    constants = dict.fromkeys(
        v.producer for v in taken if v.constant is not None and v not in copies
    )
    for node in (*constants, *nodes):
        assert node is not None
        graph.nodes.append(clone_node(node, copies))
        if graph.nodes[-1].extras:
            graph.nodes[-1].extras.pop("provenance", None)
    for value in outputs:
        copies[value].names = [names[value]]
        graph.outputs.append(copies[value])
    graph.output_names = [names[value] for value in outputs]
    return Model(graph, model.format, model.opset, dict(model.opsets), files=dict(model.files))
