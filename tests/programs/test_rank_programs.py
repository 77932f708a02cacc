"""Drawn programs whose values differ in rank from run to run compute the same in both formats."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, settings

import bridge
from tests.programs.rank_programs import RankProgram, rank_programs
from tests.support.running import OnnxRuntime, OpenVino, assert_close

FEEDS = 4


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(rank_programs())
def test_ranks_there_and_back(program: RankProgram) -> None:
    original = OnnxRuntime(program.model)
    names = [output.name for output in program.model.graph.output]
    with TemporaryDirectory() as folder:
        there, back = Path(folder) / "there.xml", Path(folder) / "back.onnx"
        bridge.convert(program.model, there)
        bridge.convert(there, back)
        openvino, again = OpenVino(there), OnnxRuntime(back)
        boundary = bridge.Boundary.of(there)
        for seed in range(FEEDS):
            feed = program.feed(seed)
            expected = original.run(feed)
            results = openvino.run_packed(boundary, feed)
            assert_close([results[name] for name in names], expected)
            assert_close(again.run(feed), expected)
