"""IRs with layers of older operator sets. Their ports declare more than OpenVINO gives."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import openvino
import pytest
from openvino import opset13 as op

import bridge
from bridge.check import check
from tests.support.running import OnnxRuntime, OpenVino

BOXES, SCORES = [1, 6, 4], [1, 2, 6]


def suppression(version: int) -> openvino.Model:
    """Boxes from a NonMaxSuppression of the given version in a branch."""
    outer = [op.parameter(shape, np.float32) for shape in (BOXES, SCORES)]
    inner = [op.parameter(shape, np.float32) for shape in (BOXES, SCORES)]
    limits = (op.constant(np.int64(20)), op.constant(np.float32(0.3)), op.constant(np.float32(0)))
    suppress = import_module(f"openvino.opset{version}").non_max_suppression
    kept = op.convert(suppress(*inner, *limits), "f32")
    boxes = op.parameter(BOXES, np.float32)
    first = op.slice(op.reshape(boxes, [6, 4], False), [0], [3], [1], [1])
    choice = op.if_op(taken := op.parameter([], bool))
    choice.set_then_body(then := openvino.Model([op.relu(kept)], inner, "then"))
    choice.set_else_body(other := openvino.Model([first], [boxes], "else"))
    choice.set_input(outer[0].output(0), inner[0], boxes)
    choice.set_input(outer[1].output(0), inner[1], None)
    result = choice.set_output(then.results[0], other.results[0])
    return openvino.Model([result], [taken, *outer], "boxes")


@pytest.mark.parametrize("version", [1, 3, 4])
def test_rows_are_those_that_there_are(version: int, tmp_path: Path) -> None:
    """The ports of the layer and of later layers declare the most rows possible."""
    openvino.save_model(suppression(version), tmp_path / "a.xml", compress_to_fp16=False)
    bridge.convert(tmp_path / "a.xml", tmp_path / "a.onnx")
    bridge.convert(tmp_path / "a.onnx", tmp_path / "b.xml")
    rng = np.random.default_rng(0)
    boxes, scores = (rng.random(shape).astype(np.float32) for shape in (BOXES, SCORES))
    boxes[..., 2:] += boxes[..., :2]
    session = OnnxRuntime(tmp_path / "a.onnx")
    names = [port.name for port in session.session.get_inputs()]
    for taken in (True, False):
        feeds = [np.array(taken), boxes, scores]
        (expected,) = OpenVino(tmp_path / "a.xml").run(feeds)
        assert len(expected) == (12 if taken else 6)
        for found in (
            session.run(dict(zip(names, feeds, strict=True))),
            OpenVino(tmp_path / "b.xml").run(feeds),
        ):
            np.testing.assert_array_equal(found[0], expected)


@pytest.mark.parametrize("rows", [-1, 6])
def test_lengths_of_parts_are_drawn(rows: int, tmp_path: Path) -> None:
    """The lengths of VariadicSplit in a branch are drawn so that a check shows both branches."""
    outer, lengths = op.parameter([rows, 3], np.float32), op.parameter([3], np.int64)
    x, own = op.parameter([rows, 3], np.float32), op.parameter([3], np.int64)
    whole = op.parameter([rows, 3], np.float32)
    parts = op.variadic_split(x, op.constant(np.int64(0)), own)
    choice = op.if_op(taken := op.parameter([], bool))
    choice.set_then_body(then := openvino.Model([op.relu(parts.output(2))], [x, own], "then"))
    choice.set_else_body(other := openvino.Model([op.abs(whole)], [whole], "else"))
    choice.set_input(outer.output(0), x, whole)
    choice.set_input(lengths.output(0), own, None)
    result = choice.set_output(then.results[0], other.results[0])
    model = openvino.Model([result], [taken, outer, lengths], "parts")
    openvino.save_model(model, tmp_path / "a.xml", compress_to_fp16=False)
    report = check(tmp_path / "a.xml", samples=2)
    assert report.ok and len(report.branches.reached) == 2, str(report)
