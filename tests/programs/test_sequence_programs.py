"""Drawn programs on sequences and optionals compute the same in both formats."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, settings

import bridge
from tests.programs.sequence_programs import SequenceProgram, sequence_programs
from tests.support.running import OnnxRuntime, OpenVino, assert_close, flat

FEEDS = 4


@settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(sequence_programs())
def test_sequences_there_and_back(program: SequenceProgram) -> None:
    original = OnnxRuntime(program.model)
    names = [output.name for output in program.model.graph.output]
    feeds = [program.feed(seed) for seed in range(FEEDS)]
    expected = [flat(original.run(feed)) for feed in feeds]
    with TemporaryDirectory() as folder:
        there, back = Path(folder) / "there.xml", Path(folder) / "back.onnx"
        bridge.convert(program.model, there)
        bridge.convert(there, back)
        openvino, again = OpenVino(there), OnnxRuntime(back)
        boundary = bridge.Boundary.of(there)
        for feed, want in zip(feeds, expected, strict=True):
            results = openvino.run_packed(boundary, feed)
            assert_close(flat([results[name] for name in names]), want)
            assert_close(flat(again.run(feed)), want)
