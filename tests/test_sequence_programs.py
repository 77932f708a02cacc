"""Drawn programs on sequences compute the same in both formats."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings

import bridge
from tests.running import OnnxRuntime, OpenVino, assert_close
from tests.sequence_programs import SequenceProgram, sequence_programs

FEEDS = 4


def flat(values: list[Any]) -> list[np.ndarray]:
    """Sequences opened, so that lengths show in the count; a False for what is absent."""
    result = []
    for value in values:
        if value is None:
            result.append(np.array(False))
        elif isinstance(value, list):
            result += [np.array(len(value)), *value]
        else:
            result.append(value)
    return result


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
            packed = bridge.pack(boundary, feed)
            results = bridge.unpack(boundary, openvino.run_by_name(list(packed.values())))
            assert_close(flat([results[name] for name in names]), want)
            assert_close(flat(again.run(feed)), want)
