"""A file that OpenVINO saved again, and a file without its records, come back right.

OpenVINO keeps the records and the names of layers. It may write the bodies of a model in another
order, so records of bodies are lost. What is lost there stays as a quirk wrote it, which is right
and longer.
"""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import openvino
import pytest

import bridge
from tests.support import model_files
from tests.support.model_files import INPUT_SETS, ONNX_FILES
from tests.support.running import OnnxRuntime, OpenVino, assert_close, flat
from tests.support.sample import sample

FILES = {path.stem: path for path in ONNX_FILES}

LONGER = {"if_clamp_adds_an_axis"}
"""The models that come back with more nodes after OpenVINO has saved them."""

RECORDS = re.compile(r"<rt_info>\s*<bridge>.*</rt_info>(?=\s*</net>)", re.DOTALL)


def count(graph: onnx.GraphProto) -> int:
    """The nodes of a graph and of its bodies."""
    bodies = (item.g for node in graph.node for item in node.attribute if item.HasField("g"))
    return len(graph.node) + sum(map(count, bodies))


def compare(path: Path, saved: Path, back: Path) -> None:
    """Compares a file that came back with the model."""
    boundary, there, original = bridge.Boundary.of(saved), OnnxRuntime(back), OpenVino(saved)
    outputs = [value.name for value in there.session.get_outputs()]
    kept = {value.name for value in there.session.get_inputs()}
    inputs = model_files.onnx_inputs(model_files.load_onnx(path))
    for index in range(INPUT_SETS):
        feed = model_files.feeds(path, inputs, index)
        feed = {key: value for key, value in feed.items() if key in kept}
        results = original.run_packed(boundary, feed)
        assert_close(flat(there.run(feed)), flat([results[name] for name in outputs]))


@pytest.mark.parametrize("name", sample({**dict.fromkeys(sorted(LONGER)), **FILES}, 6))
def test_saved_again_by_openvino(name: str, tmp_path: Path) -> None:
    written, saved = tmp_path / "written.xml", tmp_path / "saved.xml"
    bridge.convert(FILES[name], written)
    openvino.save_model(openvino.Core().read_model(written), saved, compress_to_fp16=False)
    counts = []
    for path in (written, saved):
        bridge.convert(path, path.with_suffix(".onnx"))
        counts.append(count(onnx.load(path.with_suffix(".onnx")).graph))
    assert (counts[1] > counts[0]) == (name in LONGER), counts
    compare(FILES[name], saved, saved.with_suffix(".onnx"))


@pytest.mark.parametrize("name", sample(FILES, 6))
def test_without_records(name: str, tmp_path: Path) -> None:
    written = tmp_path / "written.xml"
    bridge.convert(FILES[name], written)
    bare = tmp_path / "bare.xml"
    bare.write_text(RECORDS.sub("", written.read_text(encoding="utf-8")), encoding="utf-8")
    bare.with_suffix(".bin").write_bytes(written.with_suffix(".bin").read_bytes())
    bridge.convert(bare, bare.with_suffix(".onnx"))
    boundary, original = bridge.Boundary.of(written), OpenVino(bare)
    there = OnnxRuntime(bare.with_suffix(".onnx"))
    names = [given.name for given in there.session.get_inputs()]
    inputs = model_files.onnx_inputs(model_files.load_onnx(FILES[name]))
    inputs = [item for item in inputs if not item.has_default]
    for index in range(INPUT_SETS):
        packed = bridge.pack(boundary, model_files.feeds(FILES[name], inputs, index))
        values = list(packed.values())
        assert_close(there.run(dict(zip(names, values, strict=True))), original.run(values))
