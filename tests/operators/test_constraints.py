"""One declaration beside an operator gives the refusal, the sizes and the ranks."""

from __future__ import annotations

from typing import Any

import pytest

import bridge.operators  # noqa: F401 (which infers)
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.constraints import (
    contradiction,
    equal_sizes,
    rank_constraints,
    sizes_that_suit,
)
from bridge.neutral.types import F32, Shape, TensorType


def node_of(op: str, *given: Shape | list[int], **attributes: object) -> Node:
    """A node on values of these shapes; a list is a constant."""
    b = Builder([])
    inputs = [b.constant(x) if isinstance(x, list) else Value(TensorType(F32, x)) for x in given]
    return b.node(op, inputs, 1, attributes)


def test_the_refusal_names_the_shapes() -> None:
    assert (
        contradiction(node_of("MatMul", (2, 3), (4, 5))) == "[2,3] and [4,5] cannot be multiplied"
    )
    assert contradiction(node_of("MatMul", (2, 3), (5, 4), transpose_a=True)) != ""
    assert contradiction(node_of("MatMul", (2, "k"), (4, 5))) == ""
    assert contradiction(node_of("MatMul", None, (4, 5))) == ""
    far = node_of("ConvTranspose", (1, 1, 5), (1, 1, 3), output_shape=(20,), strides=(2,))
    assert contradiction(far) == "its output_shape wants 20 elements, of which it has 11"
    near = node_of("ConvTranspose", (1, 1, 5), (1, 1, 3), output_shape=(12,), strides=(2,))
    assert contradiction(near) == ""


@pytest.mark.parametrize(
    ("node", "sizes"),
    [
        (node_of("MatMul", ("n", "k"), (4, 5)), [("k", 4)]),
        (node_of("MatMul", ("k", "n"), (4, 5), transpose_a=True), [("k", 4)]),
        (node_of("MatMul", ("k",), (4, 5)), [("k", 4)]),
        (node_of("GridSample", ("n", 3, 4, 4), (2, 5, 5, "two")), [("n", 2), ("two", 2)]),
        (node_of("Concat", ("a", 2), (3, "b"), axis=1), [("a", 3)]),
    ],
)
def test_equal_sizes(node: Node, sizes: list[tuple[str, int]]) -> None:
    assert [pair for pair in equal_sizes(node)] == sizes


def test_sizes_that_suit() -> None:
    assert list(sizes_that_suit(node_of("Add", ("a", "b"), (3,)))) == [("b", 3)]
    assert list(sizes_that_suit(node_of("Add", ("a", "b"), (1,)))) == []


def test_ranks_that_an_operator_demands() -> None:
    node = node_of("NonMaxSuppression", None, None)
    assert rank_constraints(node) == ([], [(node.inputs[0], 3), (node.inputs[1], 3)])
    node = node_of("Einsum", None, None, equation="ij,jk->ik")
    assert rank_constraints(node) == ([], [(node.inputs[0], 2), (node.inputs[1], 2)])
    node = node_of("Transpose", None, [1, 0, 2])
    assert rank_constraints(node) == ([], [(node.inputs[0], 3)])


def test_ranks_that_go_together() -> None:
    node = node_of("Unsqueeze", None, [0, 1])
    assert rank_constraints(node) == ([(node.outputs[0], node.inputs[0], 2, False)], [])
    node = node_of("Gather", None, (2, 3), [0], batch_dims=0)
    assert (node.outputs[0], node.inputs[0], 1, False) in rank_constraints(node)[0]
    node = node_of("Relu", None)
    assert rank_constraints(node) == ([(node.outputs[0], node.inputs[0], 0, False)], [])


@pytest.mark.parametrize(
    ("op", "rest", "attributes"),
    [
        ("ReduceMax", [[0]], {"keepdims": False}),
        ("ReduceMax", [[-1]], {"keepdims": False}),
        ("ReduceMax", [[1, 0]], {"keepdims": False}),
        ("ReduceMax", [[0, -1]], {"keepdims": False}),
        ("ReduceMax", [[0, -1]], {"keepdims": True}),
        ("Squeeze", [[0, -1]], {"allow_axis_skip": False}),
        ("Squeeze", [[1, 0]], {"allow_axis_skip": False}),
        ("Unsqueeze", [[0, -1]], {}),
        ("Gather", [(2, 3), [0]], {"batch_dims": 0}),
        ("GatherND", [(2, 1)], {"batch_dims": 1}),
        ("GatherND", [(2, 2)], {"batch_dims": 0}),
        ("Concat", [(1, 1)], {"axis": -1}),
        ("Relu", [], {}),
    ],
)
def test_ranks_go_together_as_inference_says(
    op: str, rest: list[Any], attributes: dict[str, object]
) -> None:
    for rank in range(5):
        node = node_of(op, (1,) * rank, *rest, **attributes)
        relations, _ = rank_constraints(node)
        for a, b, more, scalars in () if contradiction(node) else relations:
            assert a.rank is not None and b.rank is not None
            assert a.rank == (0 if scalars and b.rank == 0 else b.rank + more)
