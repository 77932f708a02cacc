"""Checks of stateful models: calls in a row, as a loop that generates text makes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino as ov
import openvino.opset13 as ops
import pytest

import bridge
from bridge.check import CheckReport, check
from tests.support.reports import feeds_of
from tests.support.sample import thinned

CACHE = "float[b, n, 4] logits, float[b, m, 4] present_key"
CASES: dict[str, tuple[str, str, str, list[dict[str, int]]]] = {
    # Older releases of optimum declare the mask so: the first call alone is of these symbols.
    "a mask of all words": (
        "float[b, p, 4] past_key, float[b, n, 4] x, float[b, n] mask",
        "present_key = Concat <axis = 1> (past_key, x) bias = Unsqueeze (mask, last) "
        "scores = Add (present_key, bias) looks = ReduceMax <axes = [1]> (scores) "
        "logits = Add (x, looks)",
        CACHE,
        [{"past_key": 0, "x": 3, "mask": 3}, {"past_key": 3, "x": 2, "mask": 5},
         {"past_key": 5, "x": 1, "mask": 6}],
    ),
    "a mask of new words": (
        "float[b, p, 4] past_key, float[b, n, 4] x, float[b, n] mask",
        "bias = Unsqueeze (mask, last) new = Add (x, bias) logits = Neg (new) "
        "present_key = Concat <axis = 1> (past_key, new)",
        CACHE,
        [{"past_key": 0, "x": 3, "mask": 3}, {"past_key": 3, "x": 2, "mask": 2},
         {"past_key": 5, "x": 1, "mask": 1}],
    ),
    "a state of an open batch": (
        "float[b, 4] h, float[b, n, 4] x",
        "top = ReduceMax <axes = [1], keepdims = 0> (x) hn = Add (h, top) y = Unsqueeze (hn, one) "
        "logits = Add (x, y)",
        "float[b, n, 4] logits, float[b, 4] hn",
        [{"x": 3}, {"x": 3}, {"x": 3}],
    ),
    "a state of one size": (
        "float[1, 4] h, float[1, n, 4] x",
        "top = ReduceMax <axes = [1], keepdims = 0> (x) hn = Add (h, top) y = Unsqueeze (hn, one) "
        "logits = Add (x, y)",
        "float[1, n, 4] logits, float[1, 4] hn",
        [{"x": 3}, {"x": 3}, {"x": 3}],
    ),
}  # fmt: skip


def written(name: str, folder: Path, start: str = "") -> Path:
    inputs, nodes, outputs, _ = CASES[name]
    path = folder / "a.onnxtxt"
    path.write_text(f"""<ir_version: 10, opset_import: ["" : 17]>
        g ({inputs}) => ({outputs})
        <{start} int64[1] last = {{2}}, int64[1] one = {{1}}> {{ {nodes} }}""")
    return path


def lengths(report: CheckReport) -> list[dict[str, int]]:
    """The sizes of the second axes in each call, of inputs that are no fixed state."""
    calls = [feeds_of(report)[place] for place in report.inputs.row]
    return [{n: v.shape[1] for n, v in feed.items() if v.ndim > 1 and n != "h"} for feed in calls]


@pytest.mark.parametrize("name", CASES)
def test_calls_in_a_row(name: str, tmp_path: Path) -> None:
    source = written(name, tmp_path)
    bridge.convert(source, tmp_path / "b.xml", stateful=True, beam_idx=True)
    report = check(source, tmp_path / "b.xml", sizes={"n": 3})
    assert report.ok, str(report)
    assert lengths(report) == CASES[name][3]
    assert "calls in a row: 3" in report.summary()
    for back in (
        check(tmp_path / "b.xml", sizes={"n": 3}),
        check(source, stateful=True, sizes={"n": 3}),
    ):
        assert back.ok and len(back.inputs.row) == 3, str(back)


@pytest.mark.parametrize("name", thinned(CASES, 2))
def test_variables_that_somebody_else_made(name: str, tmp_path: Path) -> None:
    """As OpenVINO and optimum write them, without a record of Bridge."""
    source = written(name, tmp_path)
    bridge.convert(source, tmp_path / "b.xml", stateful=True)
    model = bridge.load(tmp_path / "b.xml")
    model.metadata.pop("stateful")
    bridge.save(model, tmp_path / "c.xml")
    bridge.convert(tmp_path / "c.xml", tmp_path / "c.onnx")
    bridge.convert(tmp_path / "c.onnx", tmp_path / "d.xml")
    for one, other in (
        ("c.xml", None),
        ("c.xml", "c.onnx"),
        ("c.onnx", "d.xml"),
        ("c.xml", "d.xml"),
    ):
        report = check(tmp_path / one, other and tmp_path / other)
        assert report.ok and len(report.inputs.row) == 3, str(report)
        assert len({result.output for result in report.verdict.results}) == 2
    kept = check(tmp_path / "c.xml", save_inputs=tmp_path / "kept")
    again = check(
        tmp_path / "c.xml", inputs=[kept.saved[place] for place in kept.inputs.row], samples=0
    )
    assert again.ok and set(feeds_of(again)[1]) > set(feeds_of(again)[0]), str(again)
    wrong = onnx.load(tmp_path / "c.onnx")
    (last,) = (n for n in wrong.graph.node if wrong.graph.output[1].name in n.output)
    name, last.output[0] = last.output[0], "before"
    wrong.graph.node.append(onnx.helper.make_node("Neg", ["before"], [name]))
    onnx.save(wrong, tmp_path / "e.onnx")
    assert not check(tmp_path / "c.xml", tmp_path / "e.onnx").ok


MERGED = """<ir_version: 10, opset_import: ["" : 17]>
    g (bool[1] use_cache, float[b, p, 4] past_key, float[b, n, 4] x, float[b, n] mask)
        => (float[b, n, 4] logits, float[b, m, 4] present_key) <int64[1] last = {2}> {
        bias = Unsqueeze (mask, last)
        logits, present_key = If (use_cache) <
            then_branch = later () => (float[b, n, 4] l, float[b, t, 4] k) {
                k = Concat <axis = 1> (past_key, x)  s = Add (k, bias)
                top = ReduceMax <axes = [1]> (s)  l = Add (x, top) },
            else_branch = first () => (float[b, n, 4] fl, float[b, n, 4] fk) {
                fk = Identity (x)  fs = Add (fk, bias)
                ftop = ReduceMax <axes = [1]> (fs)  fl = Add (x, ftop) }> }"""


@pytest.mark.parametrize(
    "options", [{}, {"stateful": True}, {"stateful": True, "one_decoder": True}], ids=str
)
def test_the_branch_of_later_calls(options: dict[str, Any], tmp_path: Path) -> None:
    """The symbols of the mask say that it is as long as the words: so it is in a first call."""
    (tmp_path / "a.onnxtxt").write_text(MERGED)
    report = check(tmp_path / "a.onnxtxt", sizes={"n": 3}, **options)
    assert report.ok and len(report.branches.reached) == 2, str(report)
    assert [size["mask"] for size in lengths(report)] == [3, 5, 6]
    assert [feeds_of(report)[place]["use_cache"].item() for place in report.inputs.row] == [0, 1, 1]


@pytest.mark.parametrize("start", ["", "float[1, 4] h = {1.0, 2.0, 3.0, 4.0},"])
def test_a_state_that_begins_with_something_else(start: str, tmp_path: Path) -> None:
    """Nothing shows that where the check sets the states before each call."""
    source = written("a state of one size", tmp_path, start)
    bridge.convert(source, tmp_path / "b.xml", stateful=True)
    assert check(source, tmp_path / "b.xml").ok
    model = ov.Core().read_model(tmp_path / "b.xml")
    (node,) = (op for op in model.get_ops() if op.get_type_name() == "ReadValue")
    node.set_arguments([ops.constant(np.full((1, 4), 7, np.float32))])
    ov.save_model(model, tmp_path / "c.xml", False)
    report = check(source, tmp_path / "c.xml")
    assert report.different and {one.case for one in report.verdict.comparisons if not one.ok} <= {
        *report.inputs.row
    }
    assert report.inputs.row[0] in report.verdict.wrong
    assert " of 3 in a row" in str(report).splitlines()[0], str(report)
    blame = report.diagnosis.blame
    assert blame is not None and blame.who == "unknown"
    assert "in a row, where it keeps the states itself" in blame.text


def test_a_model_that_takes_no_empty_state(tmp_path: Path) -> None:
    source = written("a mask of all words", tmp_path)
    text = source.read_text().replace(
        "looks =", "least = Gather <axis = 1> (past_key, one) looks ="
    )
    source.write_text(text.replace("(x, looks)", "(least, looks)"))
    report = check(source, stateful=True)
    assert any("no calls in a row were made" in note for note in report.notes), str(report)


def test_a_cache_of_attention_keeps_its_numbers(tmp_path: Path) -> None:
    """Left to itself OpenVINO's CPU plugin keeps such a cache in f16, or in 8 bits."""
    x, beams = ops.parameter([-1, 2, -1, 8], name="x"), ops.parameter([-1], np.int32, "beam_idx")
    for parameter in (x, beams):
        parameter.output(0).set_names({parameter.friendly_name})
    cached, sinks = [], []
    for name in ("key", "value"):
        size = ops.gather(ops.shape_of(x), [0, 1], 0), ops.constant([0, 8], np.int64)
        start = ops.broadcast(ops.constant(0.0, np.float32), ops.concat(list(size), 0))
        past = ops.read_value(start, f"past.{name}", np.float32, ov.PartialShape([-1, 2, -1, 8]))
        whole = ops.concat([ops.gather(past, beams, 0), x], 2)
        cached.append(whole)
        sinks.append(ops.assign(whole, f"past.{name}"))
    y = ops.result(ops.scaled_dot_product_attention(x, *cached), name="y")
    y.output(0).set_names({"y"})
    ov.save_model(ov.Model([y], sinks, [x, beams]), tmp_path / "a.xml", compress_to_fp16=False)
    report = check(tmp_path / "a.xml", rtol=1e-5)
    assert report.ok and len(report.inputs.row) == 3, str(report)
