"""Programs that OpenVINO's interface makes and saves: their rows, axes and models."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

import numpy as np
import openvino
from openvino import opset1 as ops

from tests.control_flow.suite import Entry
from tests.operators.by_schema.ir_rows import ROWS
from tests.operators.by_schema.rows import Row
from tests.operators.by_schema.values import value
from tests.support.ir_operators import of

TYPES = ("float", "int32", "int64", "float16", "uint8", "int8", "double", "bool")


def axes_of(name: str, row: Row) -> Mapping[str, Sequence[str]]:
    """The axes of a layer. `type_0` is the type of the inputs without one of their own."""
    axes: dict[str, Sequence[str]] = {"case": row.cases, "type_0": row.types.get("0", TYPES)}
    for attribute, levels in row.attributes.items():
        axes[attribute] = [*map(repr, levels)]
    longest = max(case.count(";") for case in row.cases) + 1
    for place in range(longest):
        axes[f"input_{place}"] = ["input", "constant"] if longest > 1 else ["input"]
    axes["sizes"] = ["known", "open"]
    axes["numbers"] = ["plain", *["special"] * row.special]
    return axes


def exists(levels: Mapping[str, str]) -> bool:
    """Whether the levels go together."""
    if levels["numbers"] != "plain" and levels["type_0"] not in ("float", "float16"):
        return False  # Overflows differ by the place.
    texts = levels["case"].split(";")
    given = [axis for axis in levels if axis.startswith("input_")]
    if any(levels[axis] == "constant" for axis in given[len(texts) :]):
        return False
    return any(levels[axis] == "input" for axis in given[: len(texts)])


def constant(made: np.ndarray) -> Any:
    """A constant, which may be empty."""
    if made.size:
        return ops.constant(made)
    return openvino.op.Constant(openvino.Type(made.dtype), openvino.Shape(made.shape), [])


def build(entry: Entry) -> tuple[openvino.Model, list[list[np.ndarray]]]:
    """The model and its inputs."""
    levels = dict(entry.levels)
    name = entry.kind.removeprefix("IR.")
    row = ROWS[name]
    rng = np.random.default_rng(crc32(entry.name.encode()))
    parameters: list[Any] = []
    feeds: list[list[np.ndarray]] = [[], []]
    arguments: list[Any] = []
    for place, text in enumerate(levels["case"].split(";")):
        type_ = row.types.get(str(place), [levels["type_0"]])[0] if place else levels["type_0"]
        made = [value(text, type_, levels["numbers"], rng) for _ in feeds]
        if levels[f"input_{place}"] == "constant":
            arguments.append(constant(made[0]))
            continue
        shape = [-1] * made[0].ndim if levels["sizes"] == "open" else list(made[0].shape)
        arguments.append(ops.parameter(shape, made[0].dtype, name=f"in{place}"))
        parameters.append(arguments[-1])
        for feed, item in zip(feeds, made, strict=True):
            feed.append(item)
    attributes = {axis: ast.literal_eval(levels[axis]) for axis in row.attributes}
    attributes = {key: item for key, item in attributes.items() if item is not None}
    release, _, op = name.rpartition("-")[2], None, name.rpartition("-")[0]
    node = of(int(release), op, **attributes)(*arguments)
    results = [ops.result(node.output(place)) for place in range(node.get_output_size())]
    return openvino.Model(results, parameters), feeds
