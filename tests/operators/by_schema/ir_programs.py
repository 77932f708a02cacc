"""Programs that OpenVINO's interface makes and saves: their rows, axes and models."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from zlib import crc32

import numpy as np
import openvino
from openvino import opset1 as ops
from openvino.opset5 import loop
from openvino.opset8 import if_op

from tests.control_flow.suite import Entry
from tests.operators.by_schema.ir_detection_rows import ROWS as DETECTION
from tests.operators.by_schema.ir_older_rows import ROWS as OLDER
from tests.operators.by_schema.ir_rows import ROWS as OTHERS
from tests.operators.by_schema.rows import Row
from tests.operators.by_schema.values import value
from tests.support.ir_operators import of

TYPES = ("float", "int32", "int64", "float16", "uint8", "int8", "double", "bool", "uint32")
ROWS = {**OTHERS, **DETECTION, **OLDER}
PLACES = ("top", "in an If", "in a Loop", "in a TensorIterator")
TRIPS = 2


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
    axes["place"] = PLACES
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


Program = tuple[openvino.Model, list[list[np.ndarray]]]
Outputs = Sequence[Sequence[np.ndarray]]
FEEDS = 2
"""The number of inputs that a program runs with."""


def _values(entry: Entry) -> tuple[list[str], list[list[np.ndarray]]]:
    """How each input of the layer is given, and its values."""
    levels, row = dict(entry.levels), _row(entry)
    rng = np.random.default_rng(crc32(entry.name.encode()))
    ways: list[str] = []
    values: list[list[np.ndarray]] = []
    for place, text in enumerate(levels["case"].split(";")):
        type_ = row.types.get(str(place), [levels["type_0"]])[0] if place else levels["type_0"]
        ways.append(levels[f"input_{place}"])
        values.append([value(text, type_, levels["numbers"], rng) for _ in range(FEEDS)])
    return ways, values


def _row(entry: Entry) -> Row:
    return ROWS[entry.kind.removeprefix("IR.")]


def _model(entry: Entry, ways: Sequence[str], values: Sequence[Any], sizes: str) -> Any:
    """The model of the layer alone."""
    parameters: list[Any] = []
    arguments: list[Any] = []
    for place, (way, made) in enumerate(zip(ways, values, strict=True)):
        if way == "constant":
            arguments.append(constant(made))
            continue
        shape = [-1] * made.ndim if sizes == "open" else list(made.shape)
        arguments.append(ops.parameter(shape, made.dtype, name=f"in{place}"))
        parameters.append(arguments[-1])
    levels = dict(entry.levels)
    attributes = {axis: ast.literal_eval(levels[axis]) for axis in _row(entry).attributes}
    attributes = {key: item for key, item in attributes.items() if item is not None}
    op, _, release = entry.kind.removeprefix("IR.").rpartition("-")
    node = of(int(release), op, **attributes)(*arguments)
    results = [ops.result(node.output(place)) for place in range(node.get_output_size())]
    return openvino.Model(results, parameters)


def build(entry: Entry) -> Program:
    """The model of the layer alone, and its inputs."""
    ways, values = _values(entry)
    model = _model(entry, ways, [made[0] for made in values], dict(entry.levels)["sizes"])
    given = [made for way, made in zip(ways, values, strict=True) if way == "input"]
    return model, [list(feed) for feed in zip(*given, strict=True)]


def plain(entry: Entry, feed: Sequence[np.ndarray]) -> Program:
    """The layer with known sizes, and with constants beside its first input, for one input of the
    program: the form in which OpenVINO has the fewest faults."""
    ways, values = _values(entry)
    given = iter(feed)
    whole = [
        next(given) if way == "input" else made[0]
        for way, made in zip(ways, values, strict=True)
    ]  # fmt: skip
    model = _model(entry, ["input", *["constant"] * (len(ways) - 1)], whole, "known")
    return model, [[whole[0]]]


def place(
    program: Program, where: str, run: Callable[[Sequence[np.ndarray]], Sequence[np.ndarray]]
) -> tuple[Program, Outputs]:
    """The program in its place, and its outputs there, from the layer's for one input. Constants
    stand in the body, inputs come from around it."""
    model, feeds = program
    if where == "in a TensorIterator":
        # Each iteration has a part of the first input, and all of the others.
        feeds = [[given, *feeds[0][1:]] for given, *_ in feeds]
    wanted = [run(feed) for feed in feeds]
    if where == "top":
        return program, wanted
    inputs = [
        ops.parameter(item.partial_shape, item.element_type, name=item.node.friendly_name)
        for item in model.inputs
    ]
    return AROUND[where](model, inputs, feeds, wanted)


def _if(model: Any, inputs: list[Any], feeds: Any, wanted: Outputs) -> tuple[Program, Outputs]:
    """The other branch gives zeros."""
    taken = ops.parameter([], np.bool_, name="taken")
    node = if_op(taken)
    others = [np.zeros_like(item) for item in wanted[0]]
    results = [ops.result(constant(item)) for item in others]
    node.set_then_body(model)
    node.set_else_body(openvino.Model(results, []))
    for outer, inner in zip(inputs, model.get_parameters(), strict=True):
        node.set_input(outer.output(0), inner, None)
    outputs = [
        node.set_output(*pair) for pair in zip(model.get_results(), results, strict=True)
    ]  # fmt: skip
    placed = openvino.Model([ops.result(item) for item in outputs], [taken, *inputs])
    fed = [[np.array(way), *feed] for way in (True, False) for feed in feeds]
    return (placed, fed), [*wanted, *[others] * len(feeds)]


def _stacking(model: openvino.Model) -> tuple[list[Any], list[Any]]:
    """The body's parameters, and results with an axis to stack along."""
    sources = [item.input_value(0) for item in model.get_results()]
    return model.get_parameters(), [
        ops.result(ops.unsqueeze(item, np.array([0], np.int64))) for item in sources
    ]


def _loop(model: Any, inputs: list[Any], feeds: Any, wanted: Outputs) -> tuple[Program, Outputs]:
    parameters, results = _stacking(model)
    again = ops.result(ops.constant(np.array(True)))
    node = loop(ops.constant(np.int64(TRIPS)), ops.constant(np.array(True)))
    node.set_function(openvino.Model([again, *results], parameters))
    node.set_special_body_ports([-1, 0])
    for outer, inner in zip(inputs, parameters, strict=True):
        node.set_invariant_input(inner, outer.output(0))
    stacked = [
        ops.result(node.get_concatenated_slices(item.output(0), 0, 1, 1, -1, 0))
        for item in results
    ]  # fmt: skip
    twice = [[np.stack([item] * TRIPS) for item in row] for row in wanted]
    return (openvino.Model(stacked, inputs), feeds), twice


def _iterator(model: Any, inputs: list[Any], feeds: Any, wanted: Outputs) -> Any:
    parameters, results = _stacking(model)
    whole = model.input(0).partial_shape
    part = ops.parameter([1, *whole], model.input(0).element_type)
    first = ops.squeeze(part, np.array([0], np.int64))
    for reader in list(parameters[0].output(0).get_target_inputs()):
        reader.replace_source_output(first.output(0))
    sliced = ops.parameter([TRIPS, *whole], model.input(0).element_type, name="in0")
    node = ops.tensor_iterator()
    node.set_body(openvino.Model(results, [part, *parameters[1:]]))
    node.set_sliced_input(part, sliced.output(0), 0, 1, 1, -1, 0)
    for outer, inner in zip(inputs[1:], parameters[1:], strict=True):
        node.set_invariant_input(inner, outer.output(0))
    stacked = [
        ops.result(node.get_concatenated_slices(item.output(0), 0, 1, 1, -1, 0))
        for item in results
    ]  # fmt: skip
    parts = np.stack([given[0] for given in feeds])
    joined = [np.stack(items) for items in zip(*wanted, strict=True)]
    return (openvino.Model(stacked, [sliced, *inputs[1:]]), [[parts, *feeds[0][1:]]]), [joined]


AROUND = {"in an If": _if, "in a Loop": _loop, "in a TensorIterator": _iterator}
