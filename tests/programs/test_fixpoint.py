"""A second round trip gives the same bytes as the first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino
import pytest
from openvino import opset15 as ops

import bridge
from bridge.errors import UnsupportedError
from tests.support.choices import CHOICES
from tests.support.model_files import FOLDER, IR_FILES, ONNX_FILES, load_onnx
from tests.support.running import OnnxRuntime, OpenVino, assert_close
from tests.support.sample import spread


def rounds(
    model: onnx.ModelProto | Path, folder: Path, first: str, second: str, choice: str = "default"
) -> None:
    """Writes four files: the model as 1 in the first format (unless it exists), from it 1 in the
    second format, and from that both formats once more."""
    for number in ("1", "2"):
        for suffix in (first, second):
            path = folder / f"{number}.{suffix}"
            options = CHOICES[choice] if suffix == "xml" else {}
            if not path.exists():
                bridge.convert(model, path, **options)
            model = path


def same(folder: Path, *suffixes: str) -> bool:
    """Whether the second of these files are byte for byte the first."""
    pairs = ([folder / f"{number}.{suffix}" for number in ("1", "2")] for suffix in suffixes)
    return all(first.read_bytes() == second.read_bytes() for first, second in pairs)


def operators(path: Path) -> Iterator[tuple[str, object]]:
    """The nodes of a model, also in its bodies, in order and with their attributes."""
    for node in bridge.load(path).graph.walk():
        yield node.op, str(sorted(node.attributes.items(), key=lambda item: item[0]))


RANDOM = {"RandomUniform", "RandomUniformLike", "RandomNormal", "RandomNormalLike", "Multinomial"}
"""Operators for which quirks make numbers that no graph knows, and that do not show in ONNX."""

FOR_OTHERS = spread([path.stem for path in ONNX_FILES], 6, lambda name: name.split("_")[0])
"""The models that are also written for old releases and for any reader."""


@pytest.mark.parametrize("path", ONNX_FILES, ids=lambda path: path.stem)
def test_a_second_round_trip_changes_nothing(path: Path, tmp_path: Path) -> None:
    model, written = load_onnx(path), set()
    for choice, options in CHOICES.items():
        if choice != "default" and path.stem not in FOR_OTHERS:
            continue
        folder = tmp_path / choice
        folder.mkdir()
        try:
            bridge.convert(model, folder / "1.xml", **options)
        except UnsupportedError as error:
            assert "which is read from" in str(error)
            continue
        xml = (folder / "1.xml").read_bytes()
        if xml not in written:
            rounds(model, folder, "xml", "onnx", choice)
            drawn = {op for op, _ in operators(folder / "1.onnx") if op in RANDOM}
            assert drawn <= {node.op for node in bridge.load(model).graph.walk()}, choice
            if choice == "old":  # Constants without names may get other numbers.
                first, second = (list(operators(folder / f"{n}.onnx")) for n in ("1", "2"))
                assert first == second
            else:
                assert same(folder, "onnx"), choice
        written.add(xml)


@pytest.mark.parametrize("path", IR_FILES, ids=lambda path: path.stem)
def test_a_second_round_trip_of_ir_changes_nothing(path: Path, tmp_path: Path) -> None:
    for choice in CHOICES:
        folder = tmp_path / choice
        folder.mkdir()
        rounds(path, folder, "onnx", "xml", choice)
        assert same(folder, "onnx", "xml", "bin"), choice


# Files of other tools: OpenVINO's readers of ONNX and of PyTorch.
def model_of(*types: Any, build: Callable[..., Any]) -> openvino.Model:
    inputs = [ops.parameter(shape, element) for shape, element in types]
    return openvino.Model([ops.result(value) for value in build(*inputs)], inputs)


def read_by_openvino(name: str) -> openvino.Model:
    onnx_bytes = load_onnx(FOLDER / f"{name}.onnxtxt").SerializeToString()
    return openvino.Core().read_model(onnx_bytes)


def size(value: Any, axis: int) -> Any:
    sizes = ops.shape_of(value, "i32")
    return ops.gather(sizes, np.array([axis]), np.int64(0))


def halves(x: Any) -> list[Any]:
    """PyTorch's chunk: the last part holds the remaining elements."""
    half = ops.divide(size(x, 1), np.int32(2))
    lengths = ops.concat([half, np.array([-1], np.int32)], 0)
    return ops.variadic_split(x, np.int64(1), lengths).outputs()


def counted(x: Any) -> list[Any]:
    """PyTorch's arange, upwards and by a computed step."""
    stop = ops.squeeze(size(x, 0), np.array([0]))
    step = ops.squeeze(size(x, 1))
    return [
        ops.range(stop, np.int32(7), np.int32(1), "i32"),
        ops.range(np.int32(6), stop, np.int32(-1), "i32"),
        ops.range(stop, np.int32(9), step, "i32"),
    ]


def unsigned(x: Any) -> list[Any]:
    return [ops.convert(ops.relu(x), "u8"), ops.max_pool(x, [1], [1], [0], [0], [2]).output(0)]


def doubled(x: Any) -> list[Any]:
    """PyTorch's while: one iteration for each number."""
    y, lower = ops.parameter([-1, -1, -1], np.float32), np.float32(100)
    twice = ops.add(y, ops.abs(y))
    more = ops.less(ops.reduce_sum(ops.abs(twice), np.array([0, 1, 2])), lower)
    results = [ops.result(value) for value in (more, twice)]
    count = ops.constant(np.array(np.iinfo(np.int64).max))
    loop = ops.loop(count, ops.constant(np.array(True)))
    loop.set_function(openvino.Model(results, [y]))
    loop.set_special_body_ports([-1, 0])
    loop.set_merged_input(y, x.output(0), results[1].output(0))
    return [loop.get_iter_value(results[1].output(0), -1)]


def turned(x: Any) -> list[Any]:
    """PyTorch's if: constants are inputs, and become attributes of ONNX."""
    order, branches = ops.constant(np.array([0, 2, 1])), []
    positive = ops.greater(ops.reduce_sum(x, np.array([0, 1, 2])), np.float32(0))
    choice = ops.if_op(positive.output(0))
    for sign in (1, -1):
        y, by = ops.parameter([-1, -1, -1], np.float32), ops.parameter([3], np.int64)
        first = ops.gather(ops.transpose(y, by), np.array([0]), np.int64(0))
        result = ops.result(ops.multiply(first, np.float32(sign)))
        branches.append((y, by, result, openvino.Model([result], [y, by])))
    then, otherwise = branches
    choice.set_then_body(then[3])
    choice.set_else_body(otherwise[3])
    choice.set_input(x.output(0), then[0], otherwise[0])
    choice.set_input(order.output(0), then[1], otherwise[1])
    return [choice.set_output(then[2], otherwise[2])]


def quantised(x: Any) -> list[Any]:
    """nncf's activations."""
    low, high = np.float32(-1.28), np.float32(1.27)
    return [ops.relu(ops.fake_quantize(x, low, high, low, high, 256))]


OTHERS: dict[str, tuple[Callable[[], openvino.Model], list[list[np.ndarray]]]] = {}
BATCHES = [np.random.default_rng(1).uniform(-2, 2, (n, 3, 4)).astype(np.float32) for n in (2, 1)]
ROWS = [np.arange(n * m, dtype=np.float32).reshape(n, m) for n, m in ((3, 4), (5, 2))]
for build, feed in {
    halves: ROWS, counted: ROWS, unsigned: BATCHES,
    doubled: BATCHES, turned: BATCHES, quantised: BATCHES,
}.items():  # fmt: skip
    kind = ([-1] * feed[0].ndim, np.float32)
    OTHERS[build.__name__] = partial(model_of, kind, build=build), [[one] for one in feed]
for name, *feeds in (
    ("loop_state_is_initial_again", [np.ones(2, np.float32), np.array(3)]),
    ("loop_scan_output_of_scalar", [np.array(4)]),
    ("loop_zero_iterations", [np.ones(2, np.float32)]),
    ("loop_state_grows_or_not", [np.ones((2, 3), np.float32), np.array(3)]),
    ("bit_shift", [np.array([1, 20, 7, 9], np.uint8), np.array([1, 2, 0, 3], np.uint8)]),
):
    OTHERS[name] = partial(read_by_openvino, name), feeds


def names_taken(graph: onnx.GraphProto) -> Iterator[str]:
    for node in graph.node:
        yield from node.input
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from names_taken(attribute.g)


@pytest.mark.parametrize("name", OTHERS)
def test_what_openvino_writes_is_right_at_once(name: str, tmp_path: Path) -> None:
    make, feeds = OTHERS[name]
    path = tmp_path / "0.xml"
    openvino.save_model(make(), path, compress_to_fp16=False)
    rounds(path, tmp_path, "onnx", "xml")
    assert same(tmp_path, "onnx", "xml", "bin")
    model = onnx.load(tmp_path / "1.onnx")
    assert {item.name for item in model.graph.initializer} <= set(names_taken(model.graph))
    original, there, again = OpenVino(path), OnnxRuntime(tmp_path / "1.onnx"), tmp_path / "1.xml"
    for feed in feeds:
        expected = original.run(feed)
        inputs = [item.name for item in there.session.get_inputs()]
        assert_close(there.run(dict(zip(inputs, feed, strict=True))), expected)
        assert_close(OpenVino(again).run(feed), expected)
