"""What inputs of places, axes and counts may be."""

from __future__ import annotations

import pytest

from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.indexes import index_range
from bridge.neutral.types import Dim
from bridge.operators import load_all
from bridge.vocabulary import operators
from tests.support.graphs import read

SIZES = {"n": 5, "m": 3}

FOUND = {
    "Gather (data, i)": (1, (0, 4)),
    "Gather <axis = 1> (data, i)": (1, (0, 2)),
    "Gather <axis = -1> (data, i)": (1, (0, 2)),
    "GatherElements <axis = 1> (data, i)": (1, (0, 2)),
    "GatherND (data, row)": (1, (0, 2)),
    "GatherND (data, pair)": (1, (0, 2)),
    "GatherND (data, single)": (1, (0, 4)),
    "ScatterND (data, single, pair)": (1, (0, 4)),
    "OneHot (i, four, ends)": (0, (0, 3)),
    "ReduceSum (data, row)": (1, (0, 1)),
    "Unsqueeze (data, one)": (1, (0, 2)),
    "CumSum (data, k)": (1, (0, 1)),
    "Gather (open, i)": (1, None),
    "Add (i, i)": (1, None),
}
"""A node, and the lowest and highest number of the input at a position."""


def size(dim: Dim) -> int:
    """The size of a dimension, if n is 5 and m is 3."""
    return SIZES[dim] if isinstance(dim, str) else dim if isinstance(dim, int) else 1


def made(text: str, outputs: str = "y") -> Node:
    """The node of a graph with one node besides constants."""
    model = read(f"""g (float[n,m] data, float open, int64[2,2] i, int64[k,2] pair,
                        int64[k,1] single, int64[r] row, int64[1] one, int64 k, float[2] ends)
                        => (y) {{
        four = Constant <value = int64 {{4}}> ()
        {outputs} = {text}
    }}""")
    return model.graph.nodes[-1]


@pytest.mark.parametrize("text", FOUND)
def test_an_index_is_within_its_axis(text: str) -> None:
    position, wanted = FOUND[text]
    found = index_range(made(text), position)
    assert (None if found is None else found.bounds(size)) == wanted


def test_the_most_elements_that_are_chosen() -> None:
    found = index_range(made("TopK <axis = 0> (data, one)", "y, z"), 1)
    assert found is not None
    assert found.bounds(size) == (1, 5)


def test_an_empty_axis_has_no_places() -> None:
    found = index_range(made("Gather (data, i)"), 1)
    assert found is not None
    assert found.bounds(lambda dim: 0) is None


def test_an_operator_without_a_row_has_ranges_beside_its_rule() -> None:
    table, places = made("Gather (data, i)").inputs[:2]
    node = Node("com.microsoft::GatherBlockQuantized", [table, places], [Value()], {})
    found = index_range(node, 1)
    assert found is not None
    assert found.bounds(size) == (0, 4)


@pytest.mark.parametrize("op", [op for op, row in operators().items() if row.indexes])
def test_every_form_in_a_row_is_understood(op: str) -> None:
    load_all()
    row = operators()[op]
    inputs: list[Value | None] = [Value() for _ in row.inputs]
    node = Node(op, inputs, [Value() for _ in row.outputs], dict(row.defaults))
    for position in row.indexes:
        assert index_range(node, position) is None
