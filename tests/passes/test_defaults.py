"""Inputs with a default value: constants of an IR, unless the user names them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import openvino
import pytest

import bridge
from bridge.check import check
from tests.support.model_files import FOLDER
from tests.support.running import OnnxRuntime, OpenVino, assert_close

SOURCE = FOLDER / "initializer_is_input.onnxtxt"
X, W = np.array([1, -2], np.float32), np.array([5, 7], np.float32)


def test_a_constant_says_that_it_is_one(tmp_path: Path) -> None:
    report = bridge.convert(SOURCE, tmp_path / "a.xml")
    assert 'the input "w" has a default value and became a constant' in report.notes[0]
    for source in (tmp_path / "a.xml", openvino.Core().read_model(tmp_path / "a.xml")):
        assert list(bridge.pack(source, {"x": X})) == ["x"]
        with pytest.raises(bridge.UsageError, match=r'input "w" became a constant.*`input_shapes`'):
            bridge.pack(source, {"x": X, "w": W})
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx")
    assert not onnx.load(tmp_path / "b.onnx").metadata_props
    bridge.convert(tmp_path / "a.xml", tmp_path / "c.xml")
    assert bridge.Boundary.of(tmp_path / "c.xml").constants == ("w",)


def test_a_named_input_stays(tmp_path: Path) -> None:
    report = bridge.convert(SOURCE, tmp_path / "a.xml", input_shapes={"w": [2]})
    assert report.notes == ['the input "w" has no default value in IR, and must be given']
    feed = bridge.pack(tmp_path / "a.xml", {"x": X, "w": W})
    assert_close(OpenVino(tmp_path / "a.xml").run(list(feed.values())), [X * W])
    assert check(SOURCE, tmp_path / "a.xml").ok


def test_a_default_of_another_shape_goes(tmp_path: Path) -> None:
    for shape, has_default in (([2], True), ([None], True), ([1], False)):
        report = bridge.convert(SOURCE, tmp_path / "a.onnx", input_shapes={"w": shape})
        found = OnnxRuntime(tmp_path / "a.onnx").session.get_overridable_initializers()
        assert [port.name for port in found] == ["w"] * has_default
        assert bool(report.notes) != has_default
