"""Drawn programs of nested control flow compute the same in both formats."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import onnx
from hypothesis import HealthCheck, given, settings

import bridge
from tests.programs.random_programs import Program, programs
from tests.support.running import OnnxRuntime, OpenVino, assert_close

FEEDS = 4


@settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(programs())
def test_program_there_and_back(program: Program) -> None:
    original = OnnxRuntime(program.model)
    feeds = [program.feed(seed) for seed in range(FEEDS)]
    expected = [original.run(feed) for feed in feeds]
    with TemporaryDirectory() as folder:
        there, back = Path(folder) / "there.xml", Path(folder) / "back.onnx"
        bridge.convert(program.model, there)
        bridge.convert(there, back)
        openvino, again = OpenVino(there), OnnxRuntime(back)
        for feed, want in zip(feeds, expected, strict=True):
            assert_close(openvino.run(list(feed.values())), want)
            assert_close(again.run(feed), want)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(programs())
def test_program_is_valid_and_survives_rewriting(program: Program) -> None:
    onnx.checker.check_model(program.model, full_check=True)
    copy = bridge.to_onnx(program.model)
    onnx.checker.check_model(copy, full_check=True)
    original, again = OnnxRuntime(program.model), OnnxRuntime(copy)
    for seed in range(FEEDS):
        feed = program.feed(seed)
        assert_close(again.run(feed), original.run(feed))
