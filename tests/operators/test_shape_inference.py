"""Shapes of data movement, with symbols and unknown dimensions, and known vectors."""

from __future__ import annotations

import re
import tomllib
from contextlib import suppress
from typing import Any

import pytest

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import ANY, F32, I64, Interval, Shape, TensorType
from bridge.operators import Refused, legalization
from bridge.vocabulary import _parts, directory, operators
from bridge.vocabulary.elements import ELEMENTS

FAR = (1 << 63) - 1


class Data:
    """A tensor of this shape."""

    def __init__(self, *shape: Any) -> None:
        self.shape = shape


def value(operand: Any) -> Value | None:
    if operand is None:
        return None
    if isinstance(operand, Data):
        return Value(TensorType(F32, operand.shape))
    items = operand if isinstance(operand, tuple) else (operand,)
    known = Value(TensorType(I64, (len(items),) if isinstance(operand, tuple) else ()))
    known.known_value = items
    return known


# Operator, operands (data, or the known content of a vector or scalar), attributes, the shapes.
SHAPES: list[tuple[str, list[Any], dict[str, Any], list[Shape]]] = [
    ("Reshape", [Data(2, "n", 6), (0, 0, -1)], {}, [(2, "n", 6)]),
    ("Reshape", [Data(2, "n", 6), ("n", -1)], {}, [("n", 12)]),
    ("Reshape", [Data("n", 4, 8), (0, -1)], {}, [("n", 32)]),
    ("Reshape", [Data("n", "m"), (-1,)], {}, [(ANY,)]),
    ("Reshape", [Data(ANY, 4), (-1, 2, 2)], {}, [(ANY, 2, 2)]),
    ("Reshape", [Data(0, 3), (3, 0)], {"allowzero": True}, [(3, 0)]),
    ("Squeeze", [Data(1, "n", 1), (0, -1)], {}, [("n",)]),
    ("Squeeze", [Data(1, 3, 1), None], {}, [(3,)]),
    ("Squeeze", [Data(1, "n"), None], {}, [None]),
    ("Squeeze", [Data(1, "n", 2), (None,)], {}, [(ANY, ANY)]),
    ("Unsqueeze", [Data("n", 3), (0, -1)], {}, [(1, "n", 3, 1)]),
    ("Transpose", [Data("n", 3, 4), (2, 0, 1)], {}, [(4, "n", 3)]),
    ("Transpose", [Data("n", 3, 4), None], {}, [(4, 3, "n")]),
    ("Concat", [Data("n", 2), Data("n", 3)], {"axis": -1}, [("n", 5)]),
    ("Concat", [Data("n", 2), Data(4, 2)], {"axis": 0}, [(Interval(4), 2)]),
    ("Expand", [Data(1, 3), ("n", 1)], {}, [("n", 3)]),
    ("Expand", [Data(3), (None, 1)], {}, [(ANY, 3)]),
    ("Tile", [Data("n", 3), (1, 2)], {}, [("n", 6)]),
    ("Range", [0, "n", 1], {}, [("n",)]),
    ("Range", [1, 8, 3], {}, [(3,)]),
    ("ConstantOfShape", [("n", 3)], {}, [("n", 3)]),
    ("Slice", [Data("n", 9), (0, 1), (FAR, -1), None, None], {}, [("n", 7)]),
    ("Slice", [Data("n"), (2,), (5,), (0,), (1,)], {}, [(Interval(0, 3),)]),
    ("Slice", [Data(Interval(5, 9)), (-2,), (FAR,), (0,), None], {}, [(2,)]),
    ("Slice", [Data("n", 9), (0,), (None,), (1,), None], {}, [("n", Interval(0, 9))]),
    ("Slice", [Data("n", 9), (9,), (-FAR,), (1,), (-2,)], {}, [("n", 5)]),
    ("Split", [Data(7, "n")], {"axis": 0}, [(3, "n"), (3, "n"), (1, "n")]),
    ("Split", [Data("n", 6), (2, 4)], {"axis": -1}, [("n", 2), ("n", 4)]),
    ("VariadicSplit", [Data(9), 0, (-1, 4)], {}, [(5,), (4,)]),
    ("Pad", [Data("n", 3), (0, 1, 0, 1), None, None], {}, [("n", 5)]),
    ("Pad", [Data("n", 3), (2, -1), None, (1,)], {}, [("n", 4)]),
    ("Gather", [Data(5, "n"), Data(2, 3), 1], {}, [(5, 2, 3)]),
    ("Gather", [Data("b", 5, "n"), Data("b", 3), 1], {"batch_dims": 1}, [("b", 3, "n")]),
    ("GatherND", [Data("b", 5, 6), Data("b", 3, 1)], {"batch_dims": 1}, [("b", 3, 6)]),
    ("Flatten", [Data("n", 3, 4)], {"axis": 1}, [("n", 12)]),
    # No tensor has this many axes.
    ("Reshape", [Data(2, 6), Data(1 << 54)], {}, [None]),
    ("Tile", [Data(2, 6), Data(1 << 54)], {}, [None]),
    ("AffineGrid", [Data(1, 1 << 54, 3), Data(ANY)], {}, [None]),
    ("Col2Im", [Data(1, 4, 4), Data(1 << 54), Data(ANY)], {}, [None]),
    ("SpaceToDepth", [Data("n", 3, 4, 6)], {"blocksize": 2}, [("n", 12, 2, 3)]),
]

# Operator, operands, attributes, the known elements of the first result.
CONTENTS: list[tuple[str, list[Any], dict[str, Any], tuple[Any, ...] | None]] = [
    ("Shape", [Data("n", 3, ANY)], {}, ("n", 3, None)),
    ("Shape", [Data("n", 3, ANY)], {"start": -2}, (3, None)),
    ("Size", [Data(2, 3, 4)], {}, (24,)),
    ("Gather", [("n", 3, 4), (0, -1), 0], {}, ("n", 4)),
    ("Concat", [("n",), (3, None)], {"axis": 0}, ("n", 3, None)),
    ("Slice", [("n", 3, 4), (1,), (FAR,), None, None], {}, (3, 4)),
    ("Slice", [("n", 3, 4), (-1,), (-FAR,), (0,), (-1,)], {}, (4, 3, "n")),
    ("Unsqueeze", ["n", (0,)], {}, ("n",)),
    ("Squeeze", [("n",), (0,)], {}, ("n",)),
    ("Reshape", [("n", 2), (-1,)], {}, ("n", 2)),
    ("Range", [2, 5, 1], {}, (2, 3, 4)),
    ("Expand", ["n", (2,)], {}, ("n", "n")),
    ("ScatterElements", [(1, "n", 3), (1,), (7,), 0], {}, (1, 7, 3)),
    (
        "StridedSlice",
        [("n", 3, 4), (1,), (2,), (1,)],
        {"begin_mask": (0,), "end_mask": (0,), "shrink_axis_mask": (1,)},
        (3,),
    ),
]


@pytest.mark.parametrize("op, operands, attributes, expected", SHAPES)
def test_shapes(
    op: str, operands: list[Any], attributes: dict[str, Any], expected: list[Shape]
) -> None:
    node = Builder([]).node(op, [value(o) for o in operands], len(expected), attributes)
    assert [output.shape for output in node.outputs] == expected


@pytest.mark.parametrize("op, operands, attributes, expected", CONTENTS)
def test_contents(
    op: str, operands: list[Any], attributes: dict[str, Any], expected: tuple[Any, ...] | None
) -> None:
    node = Builder([]).node(op, [value(o) for o in operands], 1, attributes)
    assert node.outputs[0].known_value == expected


def test_every_part_of_a_split_vector_is_known() -> None:
    parts = Builder([]).ops("Split", 2, value(("n", 3, 4)), value((1, 2)), axis=0)
    assert [part.known_value for part in parts] == [("n",), (3, 4)]


# Target, operator, operands, attributes.
LONG: list[tuple[str, str, list[Any], dict[str, Any]]] = [
    ("onnx", "Tile", [Data(1, 4), Data(1 << 54)], {}),
    ("onnx", "Broadcast", [Data(4), Data(1 << 54), (1,)], {"mode": "explicit"}),
    ("ir", "Col2Im", [Data(1, 4, 4), Data(1 << 54), Data(ANY)], {}),
    ("ir", "AffineGrid", [Data(1, 1 << 54, 3), Data(ANY)], {}),
]


@pytest.mark.parametrize("target, op, operands, attributes", LONG)
def test_no_rule_writes_for_as_many_axes(
    target: str, op: str, operands: list[Any], attributes: dict[str, Any]
) -> None:
    rule = legalization(target, op)
    node = Builder([]).node(op, [value(o) for o in operands], 1, attributes)
    made: list[Node] = []
    assert rule is not None
    with suppress(Refused):
        rule(Builder(made), node)
    assert len(made) < 20


def test_types_of_rows_name_what_there_is() -> None:
    for row in operators().values():
        assert not row.types or len(row.types) == len(row.outputs)
        for text in row.types:
            names, _, shape = text.partition(" ")
            known = row.places.keys() | row.attributes.keys()
            assert set(names.split("|")) <= known | ELEMENTS.keys(), (row.name, text)
            words = set(re.findall(r"[A-Za-z_]\w*", shape))
            assert words <= known | {"like", "of", "broadcast"}, (row.name, text)


def test_a_row_alone_is_the_row_in_its_file() -> None:
    for file in sorted(directory().glob("*.toml")):
        whole = tomllib.loads(file.read_text(encoding="utf-8"))
        alone = [tomllib.loads(text) for text in _parts(file.stem).values()]
        assert {key: row for part in alone for key, row in part.items()} == whole
