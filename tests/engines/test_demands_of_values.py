"""Drawn inputs have a meaning: what operators demand of values holds. An order that is free is no
difference."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import openvino as ov
import pytest

import bridge
from bridge.check import check
from bridge.check.inputs.draw import Maker
from bridge.check.inputs.recipe import Recipe
from tests.support.graphs import HEADER, read

ONNX = {
    "RoiAlign": """(float[b,3,16,16] x, float[n,4] r, int64[n] i) => (float[n,3,2,2] y)
        { y = RoiAlign <output_height = 2, output_width = 2, spatial_scale = 0.5> (x, r, i) }""",
    "TopK": """(float[3,7] x) => (float[3,3] values, int64[3,3] places) <int64[1] k = {3}>
        { values, places = TopK <axis = -1, sorted = 0> (x, k) }""",
    "BitShift": """(uint64[n] x, uint64[n] s) => (uint64[n] y)
        { y = BitShift <direction = "LEFT"> (x, s) }""",
}  # fmt: skip


def _placed(op: Any) -> tuple[list[Any], list[Any]]:
    x, c = op.parameter([-1, 4], np.float32), np.array([[0.5, 1, 2, 3]], np.float32)
    return [op.greater(x, c)], [x]


def _searched(op: Any) -> tuple[list[Any], list[Any]]:
    x, v = op.parameter([-1, 6], np.float32), op.parameter([-1, 3], np.float32)
    return [op.search_sorted(x, v, True)], [x, v]


def _buckets(op: Any) -> tuple[list[Any], list[Any]]:
    x, b = op.parameter([-1, 5], np.float32), op.parameter([-1], np.float32)
    return [op.bucketize(x, b, "i64", True)], [x, b]


def _shifted(op: Any) -> tuple[list[Any], list[Any]]:
    x, s = op.parameter([-1], np.int32), op.parameter([-1], np.int32)
    return [op.bitwise_left_shift(x, s), op.bitwise_right_shift(x, s)], [x, s]


def _regions(op: Any) -> tuple[list[Any], list[Any]]:
    x, r = op.parameter([-1, 3, 16, 16], np.float32), op.parameter([-1, 5], np.float32)
    pooled = ov.opset2.roi_pooling(x, r, output_roi=[3, 3], spatial_scale=0.25, method="bilinear")
    return [pooled], [x, r]


def _turned(op: Any) -> tuple[list[Any], list[Any]]:
    x, r = op.parameter([-1, 3, 16, 16], np.float32), op.parameter([-1, 5], np.float32)
    b = op.parameter([-1], np.int32)
    return [op.roi_align_rotated(x, r, b, 3, 3, 2, 0.25, True)], [x, r, b]


def _largest(op: Any) -> tuple[list[Any], list[Any]]:
    x = op.parameter([3, 9], np.float32)
    top = op.topk(x, 4, 1, "max", "none")
    return [op.relu(top.output(0)), op.convert(top.output(1), "f32")], [x]


def _counted(op: Any) -> tuple[list[Any], list[Any]]:
    ends = [op.parameter([], np.int64) for _ in range(3)]
    return [op.range(*ends, "i64")], ends


def _suppressed(op: Any) -> tuple[list[Any], list[Any]]:
    given = [op.parameter(shape, np.float32) for shape in ([1, 20, 4], [1, 2, 20], [], [])]
    most = op.parameter([], np.int64)
    found = op.non_max_suppression(*given[:2], most, *given[2:])
    return [found.output(0)], [*given, most]


def _narrowed(op: Any) -> tuple[list[Any], list[Any]]:
    x = op.parameter([-1, 3], np.float32)
    return [op.convert(x, "i32"), op.convert(x, "u8")], [x]


def _padded(op: Any) -> tuple[list[Any], list[Any]]:
    x, begin, end = (
        op.parameter(*a) for a in (([-1, 5], np.float32), ([2], np.int64), ([2], np.int64))
    )
    return [op.pad(x, begin, end, "reflect")], [x, begin, end]


def _gathered(op: Any) -> tuple[list[Any], list[Any]]:
    shapes = ([5, 2, 3], [5, 2, 3], [2], [])
    given = [op.parameter(shape, np.int32) for shape in shapes]
    return [op.gather_tree(*given)], given


@pytest.mark.parametrize("name", ONNX)
def test_no_false_alarm_of_onnx(name: str, tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(HEADER + "g " + ONNX[name]), tmp_path / "m.onnx")
    report = check(tmp_path / "m.onnx")
    assert report.ok, str(report)


@pytest.mark.parametrize(
    "made",
    [
        _placed,
        _searched,
        _buckets,
        _shifted,
        _regions,
        _turned,
        _largest,
        _counted,
        _suppressed,
        _narrowed,
        _padded,
        _gathered,
    ],
)
def test_no_false_alarm_of_irs(
    made: Callable[[Any], tuple[list[Any], list[Any]]], tmp_path: Path
) -> None:
    ov.save_model(ov.Model(*made(ov.opset15)), tmp_path / "m.xml", False)
    report = check(tmp_path / "m.xml")
    assert report.ok, str(report)
    assert "random" not in str(report)


def test_a_wrong_set_is_found(tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(HEADER + "g " + ONNX["TopK"]), tmp_path / "m.onnx")
    wrong = HEADER + "g " + ONNX["TopK"].replace("sorted = 0", "largest = 0")
    bridge.convert(onnx.parser.parse_model(wrong), tmp_path / "m.xml")
    assert check(tmp_path / "m.onnx", tmp_path / "m.xml").different


def test_the_order_of_a_sorted_set_counts(tmp_path: Path) -> None:
    right = HEADER + "g " + ONNX["TopK"].replace("sorted = 0", "sorted = 1")
    turned = "v, places = TopK <axis = -1, largest = 0> (n, k) w = Neg (v) values = Neg (u)"
    wrong = right.replace("values, places = TopK <axis = -1, sorted = 1> (x, k)", turned)
    wrong = wrong.replace("{ v,", "{ n = Neg (x) o = Constant <value_ints = [2, 1, 0]> () v,")
    wrong = wrong.replace("w = Neg (v)", "u = Gather <axis = 1> (v, o)")
    onnx.save(onnx.parser.parse_model(right), tmp_path / "m.onnx")
    onnx.save(onnx.parser.parse_model(wrong), tmp_path / "n.onnx")
    assert check(tmp_path / "m.onnx", tmp_path / "n.onnx").different


SCATTERED = {
    "along an axis": ("ScatterElements <axis = 0>", "int64[3,2] i, float[3,2] u", 0),
    "rows of places": ("ScatterND", "int64[6,1] i, float[6,4] u", None),
}


@pytest.mark.parametrize(("op", "takes", "axis"), SCATTERED.values(), ids=SCATTERED)
def test_places_are_distinct(op: str, takes: str, axis: int | None) -> None:
    text = f"g (float[6,4] x, {takes}) => (float[6,4] y) {{ y = {op} (x, i, u) }}"
    maker = Maker(read(text))
    for seed in range(20):
        recipe = Recipe(seed, fills={"i": 2.0} if seed % 2 else {})
        places = maker.make(recipe)["i"]
        lines = places.reshape(1, -1) if axis is None else np.moveaxis(places, axis, -1)
        assert all(len({*line}) == len(line) for line in lines.tolist()), places


def test_an_output_that_other_inputs_show_is_not_random(tmp_path: Path) -> None:
    """onnxruntime leaves the last state of an LSTM without iterations as memory was."""
    text = f"""{HEADER} g (float[t,b,1] x) => (float[1,b,1] h, float[1,b,1] c)
        <float[1,4,1] w = {{0.1, 0.2, 0.3, 0.4}}, float[1,4,1] r = {{0.1, 0.2, 0.3, 0.4}}>
        {{ y, h, c = LSTM <hidden_size = 1> (x, w, r) }}"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    report = check(tmp_path / "m.onnx", tmp_path / "m.onnx")
    assert report.ok and "random" not in str(report), str(report)
