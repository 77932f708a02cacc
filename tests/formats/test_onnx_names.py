"""Names in written ONNX."""

from __future__ import annotations

from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.types import F32, TensorType
from bridge.onnx_format.names import Names, unique_node_names


def test_nodes_keep_their_names_before_others_are_numbered() -> None:
    nodes = [Node("Neg", [], [], name=name) for name in ("a", "a", "a_1", "", "a_1")]
    names = unique_node_names(Graph(nodes=nodes))
    assert [names.get(node) for node in nodes] == ["a", "a_2", "a_1", None, "a_1_1"]


def test_what_others_prepare_for_has_the_name() -> None:
    x = Value()
    nodes = [Node(op, [x] * n, [], name="a") for op, n in (("Where", 3), ("GRU", 3), ("Cast", 1))]
    names = unique_node_names(Graph([], [], nodes))
    assert [names[node] for node in nodes] == ["a_1", "a", "a_2"]


def test_values_keep_their_names_before_others_get_one() -> None:
    values = [Value(TensorType(F32, ()), names) for names in ([], ["a"], ["b"])]
    nodes = [Node("Neg", [], [value], name="a") for value in values]
    names = Names()
    names.give_nodes(nodes)
    assert [names.of[value] for value in values] == ["a_1", "a", "b"]
