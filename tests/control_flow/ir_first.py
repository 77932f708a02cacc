"""Loops, TensorIterators and Ifs of IR, made with OpenVINO's own interface. They go to ONNX, and
back to IR. OpenVINO's outputs are the expected ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import openvino
from openvino import opset15 as ops

import bridge
from tests.control_flow import ir_meaning
from tests.control_flow.covering import covering
from tests.control_flow.judge import NO_PROGRAM, Verdicts, line, said
from tests.control_flow.program import Invalid
from tests.control_flow.suite import Entry
from tests.support.choices import CHOICES
from tests.support.running import OnnxRuntime, OpenVino, assert_close

SLICES: Mapping[str, Mapping[str, int] | None] = {
    "none": None,
    "one": {"start": 0, "stride": 1, "part_size": 1, "end": -1, "axis": 0},
    "two": {"start": 0, "stride": 2, "part_size": 2, "end": -1, "axis": 0},
    "overlapping": {"start": 0, "stride": 1, "part_size": 2, "end": -1, "axis": 0},
    "every other": {"start": 0, "stride": 2, "part_size": 1, "end": -1, "axis": 0},
    "backwards": {"start": -1, "stride": -1, "part_size": 1, "end": 0, "axis": 0},
    "from the second": {"start": 1, "stride": 1, "part_size": 1, "end": -1, "axis": 0},
    "to the last but one": {"start": 0, "stride": 1, "part_size": 1, "end": -2, "axis": 0},
    "last axis": {"start": 0, "stride": 1, "part_size": 1, "end": -1, "axis": 1},
    "last axis, backwards": {"start": -1, "stride": -1, "part_size": 1, "end": 0, "axis": 1},
}
"""The slices of x [4, 2] that iterations get, or the order of a stack."""

STACKS = tuple(
    name
    for name in SLICES
    if name not in ("overlapping", "every other", "from the second", "to the last but one")
)

LOOP_AXES: Mapping[str, Sequence[str]] = {
    "operator": ("Loop", "TensorIterator"),
    "trips": ("absent", "0", "1", "3", "input", "input of rank 1"),
    "first": ("true", "false", "input"),
    "again": ("true", "false", "by iteration", "by state", "captured"),
    "states": ("none", "doubled", "exchanged", "growing", "several types"),
    "slice": tuple(SLICES),
    "stack": STACKS,
    "sizes": ("fixed", "open"),
    "order": ("as made", "reversed"),
}
IF_AXES: Mapping[str, Sequence[str]] = {
    "operator": ("If",),
    "condition": ("true", "false", "input", "input of rank 1", "computed"),
    "then": ("sum", "row", "captured", "constant", "scalar", "in a Loop"),
    "otherwise": ("sum", "row", "captured", "constant", "scalar", "in a Loop"),
    "inputs": ("shared", "one each"),
    "sizes": ("fixed", "open"),
    "order": ("as made", "reversed"),
}


def entries(strength: int | None) -> Iterator[Entry]:
    """The programs that cover every combination of `strength` levels (None: three)."""
    for axes in (LOOP_AXES, IF_AXES):
        rows: Iterator[Mapping[str, str]] = covering(axes, _goes, strength or 3)
        if axes is IF_AXES and strength is None:
            rows = (dict(zip(axes, row, strict=True)) for row in product(*axes.values()))
        for row in rows:
            yield Entry("ir", tuple(row.items()))


def _goes(levels: Mapping[str, str]) -> bool:
    """Whether the levels go together, and the loop ends."""
    if levels["operator"] == "If":
        return True
    if levels["states"] == levels["stack"] == "none":
        return False
    if levels["operator"] == "TensorIterator":
        plain = ("trips", "absent"), ("first", "true"), ("again", "true")
        return levels["slice"] != "none" and all(levels[axis] == level for axis, level in plain)
    if levels["stack"] not in ("none", "one", "last axis"):
        return False  # A Loop of IR stacks single parts, forwards.
    if levels["again"] == "by state" and levels["states"] == "none":
        return False
    ends = levels["again"] in ("false", "by iteration") or (
        levels["again"] == "by state" and levels["states"] != "exchanged"
    )
    return levels["trips"] != "absent" or levels["slice"] != "none" or ends


class _Feeds:
    """Inputs of a model with their values."""

    def __init__(self, sizes: str) -> None:
        self.parameters: list[Any] = []
        self.values: list[list[np.ndarray]] = []
        self.sizes = sizes

    def add(self, shape: list[int], values: Sequence[Any], dtype: Any = np.float32) -> Any:
        if self.sizes == "open" and shape and dtype == np.float32:
            shape = [-1, *shape[1:]]
        name = f"in{len(self.parameters)}"
        self.parameters.append(ops.parameter(shape, dtype, name=name))
        self.values.append([np.array(value, dtype) for value in values])
        return self.parameters[-1]

    def all(self) -> list[list[np.ndarray]]:
        return [list(values) for values in product(*self.values)]


X = np.arange(8, dtype=np.float32).reshape(4, 2) - 3


def build(levels: Mapping[str, str]) -> tuple[openvino.Model, list[list[np.ndarray]]]:
    """The model and its feeds. Raises Invalid if OpenVINO's interface cannot make such a model."""
    feeds = _Feeds(levels["sizes"])
    make = _if if levels["operator"] == "If" else _loop
    results = make(levels, feeds)
    model = openvino.Model([ops.result(value) for value in results], feeds.parameters)
    return model, feeds.all()


def _loop(levels: Mapping[str, str], feeds: _Feeds) -> list[Any]:  # noqa: C901 (one for each axis)
    x = feeds.add([4, 2], [X])
    w = feeds.add([1, 2], [[[1, 2]]])
    parameters: list[Any] = []
    ties: list[Callable[[Any], None]] = []
    named: dict[str, Any] = {}

    def parameter(shape: list[int], dtype: Any, tie: Callable[[Any, Any], None]) -> Any:
        made = ops.parameter(shape, dtype)
        parameters.append(made)
        ties.append(lambda loop: tie(loop, made))
        return made

    sliced = SLICES[levels["slice"]]
    if sliced is None:
        part = parameter(
            [1, 2], np.float32, lambda loop, p: loop.set_invariant_input(p, w.output(0))
        )
    else:
        shape = [4, 1] if sliced["axis"] else [sliced["part_size"], 2]
        if levels["sizes"] == "open":
            shape[1 - sliced["axis"]] = shape[1 - sliced["axis"]] if sliced["axis"] == 0 else -1
        part = parameter(shape, np.float32, lambda loop, p: loop.set_sliced_input(
            p, x.output(0), sliced["start"], sliced["stride"], sliced["part_size"], sliced["end"],
            sliced["axis"]))  # fmt: skip
    small = ops.reduce_sum(part, np.array([0, 1]), True)
    # States, each with its initial value.
    states: list[tuple[Any, Any]] = []

    def state(shape: list[int], dtype: Any, initial: Any) -> Any:
        made = parameter(shape, dtype, lambda loop, p: None)
        states.append((made, initial))
        return made

    after: list[Any] = []
    if levels["states"] == "doubled":
        a = state([1, 2], np.float32, w.output(0))
        after = [ops.add(ops.add(a, a), ops.abs(small))]
    elif levels["states"] == "exchanged":
        a, b = (
            state([1, 2], np.float32, w.output(0)),
            state([1, 2], np.float32, ops.constant(X[:1]).output(0)),
        )
        after = [ops.add(b, small), a]
    elif levels["states"] == "growing":
        a = state([-1, 2], np.float32, w.output(0))
        after = [ops.concat([a, ops.add(ops.constant(X[1:2]), ops.abs(small))], 0)]
    elif levels["states"] == "several types":
        a, b = (
            state([1, 2], np.float32, w.output(0)),
            state([], np.int64, ops.constant(np.int64(1)).output(0)),
        )
        after = [ops.add(ops.abs(a), ops.abs(small)), ops.multiply(b, np.int64(3))]
    iteration = (
        parameter([], np.int64, lambda loop, p: None) if levels["again"] == "by iteration" else None
    )
    match levels["again"]:
        case "true" | "false":
            again = ops.constant(np.array(levels["again"] == "true"))
        case "by iteration":
            again = ops.less(iteration, np.int64(1))
        case "by state":
            again = ops.less(
                ops.reduce_sum(ops.abs(after[0]), np.array([0, 1]), False), np.float32(40)
            )
        case _:
            go = feeds.add([], [False, True], np.bool_)
            again = parameter(
                [], np.bool_, lambda loop, p: loop.set_invariant_input(p, go.output(0))
            )
            again = ops.logical_and(again, again)
    bodies = [ops.result(value) for value in after]
    stacked = SLICES[levels["stack"]]
    if stacked is not None:
        value = ops.add(
            ops.tile(small, np.array([stacked["part_size"], 1])), ops.constant(np.float32(0.5))
        )
        if states:
            value = ops.add(value, ops.reduce_sum(states[0][0], np.array([0, 1]), True))
        named["stack"] = ops.result(value)
        bodies.append(named["stack"])
    condition = ops.result(again)
    outputs = [condition, *bodies] if levels["operator"] == "Loop" else bodies
    if levels["order"] == "reversed":
        outputs, parameters = outputs[::-1], parameters[::-1]
    if levels["operator"] == "Loop":
        loop = ops.loop(_trips(levels["trips"], feeds), _first(levels["first"], feeds))
        loop.set_function(openvino.Model(outputs, parameters))
        place = -1 if iteration is None else parameters.index(iteration)
        loop.set_special_body_ports([place, outputs.index(condition)])
    else:
        loop = ops.tensor_iterator()
        loop.set_body(openvino.Model(outputs, parameters))
    for tie in ties:
        tie(loop)
    for (made, initial), result in zip(states, bodies, strict=False):
        loop.set_merged_input(made, initial, result.output(0))
    results = [
        loop.get_iter_value(result.output(0), -1) for _, result in zip(states, bodies, strict=False)
    ]
    if stacked is not None:
        results.append(loop.get_concatenated_slices(
            named["stack"].output(0), stacked["start"], stacked["stride"], stacked["part_size"],
            stacked["end"], stacked["axis"]))  # fmt: skip
    return results


def _trips(level: str, feeds: _Feeds) -> Any:
    match level:
        case "absent":
            return ops.constant(np.int64(-1)).output(0)
        case "input":
            return feeds.add([], [0, 1, 3], np.int64).output(0)
        case "input of rank 1":
            return feeds.add([1], [[0], [1], [3]], np.int64).output(0)
    return ops.constant(np.int64(int(level))).output(0)


def _first(level: str, feeds: _Feeds) -> Any:
    if level == "input":
        return feeds.add([], [False, True], np.bool_).output(0)
    return ops.constant(np.array(level == "true")).output(0)


def _if(levels: Mapping[str, str], feeds: _Feeds) -> list[Any]:
    x = feeds.add([4, 2], [X])
    w = feeds.add([4, 2], [X[::-1]])
    made = ops.if_op(_asked(levels["condition"], x, feeds))
    branches = []
    for level, place in ((levels["then"], 0), (levels["otherwise"], 1)):
        shape = [-1, 2] if levels["sizes"] == "open" else [4, 2]
        own = [ops.parameter(shape, np.float32), ops.parameter(shape, np.float32)]
        taken = own if levels["inputs"] == "shared" else [own[place]] * 2
        result = ops.result(_given(level, *taken))
        used = own if levels["inputs"] == "shared" else [own[place]]
        if levels["order"] == "reversed":
            used = used[::-1]
        branches.append((own, used, result, openvino.Model([result], used)))
    then, otherwise = branches
    made.set_then_body(then[3])
    made.set_else_body(otherwise[3])
    for place, value in enumerate((x, w)):
        sides = [branch[0][place] if branch[0][place] in branch[1] else None for branch in branches]
        if any(side is not None for side in sides):
            made.set_input(value.output(0), *sides)
    return [made.set_output(then[2], otherwise[2])]


def _asked(level: str, x: Any, feeds: _Feeds) -> Any:
    match level:
        case "input":
            return feeds.add([], [False, True], np.bool_).output(0)
        case "input of rank 1":
            return feeds.add([1], [[False], [True]], np.bool_).output(0)
        case "computed":
            some = feeds.add([1], [[-9], [99]], np.int64)
            total = ops.reduce_sum(x, np.array([0, 1]), False)
            return ops.less(total, ops.convert(ops.squeeze(some, np.array(0)), "f32")).output(0)
    return ops.constant(np.array(level == "true")).output(0)


def _given(level: str, a: Any, b: Any) -> Any:
    match level:
        case "sum":
            return ops.add(a, ops.abs(b))
        case "row":
            return ops.reshape(ops.subtract(a, ops.abs(b)), np.array([1, -1]), False)
        case "captured":
            return b
        case "constant":
            return ops.constant(X[:3])
        case "scalar":
            return ops.reduce_sum(ops.multiply(a, b), np.array([0, 1]), True)
    inner = ops.parameter([-1, 2], np.float32)
    result, more = ops.result(ops.add(inner, inner)), ops.result(ops.constant(np.array(True)))
    loop = ops.loop(ops.constant(np.int64(2)), ops.constant(np.array(True)))
    loop.set_function(openvino.Model([more, result], [inner]))
    loop.set_special_body_ports([-1, 0])
    loop.set_merged_input(inner, ops.add(a, b).output(0), result.output(0))
    return loop.get_iter_value(result.output(0), -1)


def judge(entry: Entry, choices: Sequence[str] = tuple(CHOICES)) -> Verdicts:
    """Runs a program along the routes of these choices."""
    with warnings.catch_warnings(), TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        original = Path(folder) / "original.xml"
        try:
            model, feeds = build(dict(entry.levels))
            openvino.save_model(model, original, compress_to_fp16=False)
            engine = OpenVino(original)
            expected = [engine.run(feed) for feed in feeds]
            if dict(entry.levels)["operator"] != "If":
                _require_meaning(dict(entry.levels), feeds, expected)
        except (Invalid, Exception) as error:
            return {NO_PROGRAM: line(error)}
        verdicts: Verdicts = {}
        for route in ("to ONNX",):
            there = Path(folder) / f"{len(verdicts)}.onnx"
            try:
                bridge.convert(original, there)
            except Exception as error:
                verdicts[route] = line(error)
                continue
            verdicts[route] = said(_run_onnx, there, feeds, expected)
            for quirks in (choice for choice in choices if choice != "none"):
                again = there.with_name(f"{there.stem}_{quirks}.xml")
                try:
                    bridge.convert(there, again, **CHOICES[quirks])
                except Exception as error:
                    verdicts[f"{route}, back, {quirks}"] = line(error)
                else:
                    verdicts[f"{route}, back, {quirks}"] = said(_run_ir, again, feeds, expected)
        return verdicts


def _require_meaning(
    levels: Mapping[str, str], feeds: Sequence[Any], found: Sequence[Sequence[np.ndarray]]
) -> None:
    """Raises AssertionError if OpenVINO's outputs differ from the specification's."""
    sizes = SLICES[levels["slice"]], SLICES[levels["stack"]]
    for feed, outputs in zip(feeds, found, strict=True):
        assert_close(outputs, ir_meaning.outputs(levels, *sizes, feed))


def _run_onnx(path: Path, feeds: Sequence[Any], expected: Sequence[Any]) -> None:
    session = OnnxRuntime(path)
    names = [item.name for item in session.session.get_inputs()]
    for number, (feed, wanted) in enumerate(zip(feeds, expected, strict=True)):
        by_name = dict(zip(names, feed, strict=True))
        try:
            assert_close(session.run(by_name), wanted)
        except AssertionError as error:
            raise AssertionError(f"wrong at input {number}: {line(error)}") from error


def _run_ir(path: Path, feeds: Sequence[Any], expected: Sequence[Any]) -> None:
    engine = OpenVino(path)
    for number, (feed, wanted) in enumerate(zip(feeds, expected, strict=True)):
        try:
            assert_close(engine.run(feed), wanted)
        except AssertionError as error:
            raise AssertionError(f"wrong at input {number}: {line(error)}") from error
