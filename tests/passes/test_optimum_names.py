"""An IR with optimum's variables, names and notes of a decoder, in ONNX and back."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import openvino as ov
import openvino.opset13 as ops
import pytest
from openvino._offline_transformations import apply_make_stateful_transformation

import bridge
from bridge.check import check
from tests.support.running import EXACT, OnnxRuntime

LAYERS = 11
CACHES = [f"{n}.{kind}" for n in range(LAYERS) for kind in ("key", "value")]
NOTES = {
    ("optimum", "task"): "text-generation",
    ("tokenizer", "chat_template"): "{'a': \"b & <c>\"}",
}


def decoder() -> ov.Model:
    """A decoder whose caches are variables. They start empty, with one row for each sequence."""
    x = ops.parameter([-1, -1, 8], np.float32)
    x.output(0).set_names({"inputs_embeds"})
    beams = ops.parameter([-1], np.int32)
    beams.output(0).set_names({"beam_idx"})
    caches, results, value = [], [], x.output(0)
    for name in CACHES:
        cache = ops.parameter([-1, 2, -1, 4], np.float32)
        cache.output(0).set_names({f"past_key_values.{name}"})
        heads = ops.reshape(value, ops.constant(np.array([0, 0, 2, 4])), True)
        new = ops.transpose(heads, ops.constant(np.array([0, 2, 1, 3])))
        joined = ops.concat([ops.gather(cache, beams, ops.constant(0)), new], 2)
        joined.output(0).set_names({f"present.{name}"})
        mean = ops.reduce_mean(joined, ops.constant(np.array([1, 2, 3])), True)
        flat = ops.reshape(mean, ops.constant(np.array([0, 1, 1])), True)
        value = ops.multiply(ops.add(value, flat), ops.constant(np.float32(0.5))).output(0)
        caches.append(cache), results.append(ops.result(joined))
    value.set_names({"logits"})
    model = ov.Model([ops.result(value), *results], [x, *caches, beams], "decoder")
    apply_make_stateful_transformation(
        model, {f"past_key_values.{name}": f"present.{name}" for name in CACHES}
    )
    shape = ops.shape_of(model.input("inputs_embeds"), "i64")
    batch = ops.gather(shape, ops.constant(np.array([0])), ops.constant(0))
    for node in model.get_ops():
        if node.get_type_name() == "ReadValue":
            dims = ops.concat([batch, ops.constant(np.array([2, 0, 4]))], 0)
            node.set_arguments([ops.broadcast(ops.constant(np.float32(0)), dims)])
    model.validate_nodes_and_infer_types()
    for path, text in NOTES.items():
        model.set_rt_info(text, list(path))
    return model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("decoder")
    ov.save_model(decoder(), made / "a.xml", False)
    bridge.convert(made / "a.xml", made / "b.onnx", debug=True)
    bridge.convert(made / "b.onnx", made / "c.xml", debug=True, stateful=True)
    bridge.convert(made / "c.xml", made / "d.onnx", debug=True)
    return made


def test_names(folder: Path) -> None:
    model = onnx.load(folder / "b.onnx")
    onnx.checker.check_model(model, full_check=True)
    pasts = [f"past_key_values.{name}" for name in CACHES]
    assert [v.name for v in model.graph.input] == ["inputs_embeds", "beam_idx", *pasts]
    presents = [f"present.{name}" for name in CACHES]
    assert [v.name for v in model.graph.output] == ["logits", *presents]
    assert (folder / "d.onnx").read_bytes() == (folder / "b.onnx").read_bytes()


def test_states_and_notes_come_back(folder: Path) -> None:
    there, back = (ov.Core().read_model(folder / name) for name in ("a.xml", "c.xml"))

    def variables(model: ov.Model) -> dict[str, str]:
        reads = [op for op in model.get_ops() if op.get_type_name() == "ReadValue"]
        return {
            op.get_attributes()["variable_id"]: f"{op.get_output_partial_shape(0)} from "
            f"{op.input_value(0).get_node().get_type_name()}"
            for op in reads
        }

    assert variables(back) == variables(there) and len(variables(there)) == len(CACHES)
    assert {op.get_type_name() for op in back.get_ops()}.isdisjoint({"If"})
    for path, text in NOTES.items():
        assert back.get_rt_info(list(path)).astype(str) == text


def test_calls_in_a_row(folder: Path) -> None:
    session = OnnxRuntime(folder / "b.onnx")
    requests = [
        ov.compile_model(folder / name, "CPU", EXACT)
        .create_infer_request()
        for name in ("a.xml", "c.xml")
    ]  # fmt: skip
    state: dict[str, np.ndarray] = {}
    for call in range(3):
        x = np.random.default_rng(call).standard_normal((2, 3, 8)).astype(np.float32)
        feeds = {"inputs_embeds": x, "beam_idx": np.array([1, 0] if call else [0, 1], np.int32)}
        logits, *after = session.run({**feeds, **state})
        state = dict(zip((f"past_key_values.{name}" for name in CACHES), after, strict=True))
        for request in requests:
            np.testing.assert_allclose(request.infer(feeds)["logits"], logits, 1e-4, 1e-5)


def test_it_checks(folder: Path) -> None:
    report = check(folder / "a.xml", samples=2)
    assert report.ok, str(report)


@pytest.mark.parametrize("text", ["<a/><b/>", "no xml", "<!DOCTYPE a><a/>", "<a", "<a>&b;</a>"])
def test_notes_that_somebody_changed_are_left_out(text: str, folder: Path, tmp_path: Path) -> None:
    model = onnx.load(folder / "b.onnx")
    (entry,) = (entry for entry in model.metadata_props if entry.key == "rt_info")
    entry.value = json.dumps(['<task value="x"/>', text])
    bridge.convert(model, tmp_path / "e.xml")
    written = (tmp_path / "e.xml").read_text(encoding="utf-8")
    assert written.count('<task value="x"/>') == 1 and text not in written
    assert ov.Core().read_model(tmp_path / "e.xml").get_rt_info("task").astype(str) == "x"
