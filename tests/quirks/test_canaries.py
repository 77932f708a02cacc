"""Each quirk has a canary: the engine crashes on it or computes it wrongly if that quirk is left
out.

When the engine is mended its canary passes. Then the strict test fails, and the quirk's file can
go.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

import bridge
from bridge import quirks
from bridge.check.isolation import LostProcessError, isolated
from bridge.neutral.graph import Graph, Model
from bridge.neutral.verify import fingerprint
from bridge.options import OLDEST
from bridge.passes.context import Context
from bridge.pipeline import TO_IR
from tests.conformance.cases import cases
from tests.gpu.canaries import HEADER, ON_GPU
from tests.quirks.alone import fired
from tests.quirks.canaries import CANARIES, Canary, quirk_of
from tests.quirks.counted import read
from tests.support.graphs import context
from tests.support.model_files import ONNX_FILES, load_onnx
from tests.support.running import OnnxRuntime, OpenVino, assert_close, run_request

QUIRKS = {quirk.name: quirk for quirk in quirks.of_engine(quirks.CPU)}
OLD = [quirk.name for quirk in QUIRKS.values() if quirk.until]


def test_a_canary_for_each_quirk() -> None:
    assert {*map(quirk_of, CANARIES)} == {*QUIRKS}
    on_gpu = {quirk_of(path) for path in ON_GPU}
    assert on_gpu >= {*quirks.order()} - {*QUIRKS}
    assert on_gpu <= {quirk.name for quirk in quirks.of_engine(quirks.GPU)}


def test_each_quirk_has_its_place() -> None:
    of_package = {
        n for n, quirk in quirks.QUIRKS.items() if quirk.declared.__module__.startswith("bridge.")
    }
    assert of_package == {*quirks.order()}


def test_the_price_of_each_quirk() -> None:
    """Without a published model, a fault is silent: `test_without_the_quirk` holds canaries to
    that, and `tests/gpu` those of the GPU plugin."""
    exported = {name: fires for (kind, name), fires in read().items() if kind == "exporter"}
    for quirk in QUIRKS.values():
        canaries = [canary for path, canary in CANARIES.items() if quirk_of(path) == quirk.name]
        if not quirk.model:
            assert not all(canary.loud for canary in canaries), quirk.name
        elif quirk.model in exported:
            assert quirk.name in exported[quirk.model]
        else:
            assert quirk.name in fired(cases()[quirk.model].model)


LATER = {
    ("broadcast_into_arithmetic", "copied_output"): "broadcast_into_arithmetic, of an output",
    ("branch_of_equal_shape", "safe_loop"): "loop_grows_from_nothing",
    ("cast_to_bool", "value_of_pad"): "value_of_pad, of 25 bits",
    ("channels_in_kernel", "axes_of_interpolation"): "axes_of_interpolation",
    ("computed_constant", "integers_in_f32"): "unsigned_as_signed",
    ("integers_in_f32", "cast_to_bool"): "computed_axes",
    ("integers_in_f32", "kernel_of_lower_rank"): "tile_of_computed_repeats",
    ("memory_of_branch", "safe_loop"): "loop_grows_from_nothing",
    ("sizes_of_constant", "safe_loop"): "sizes_of_constant",
    ("value_of_pad", "reduction_over_empty_axis"): "value_of_pad",
    ("read_inputs", "lengths_of_dynamic_sequence"): "lengths_of_dynamic_sequence, of a cell",
}
"""A model for each dependency: in the other order, the quirk leaves its fault there."""


def test_each_dependency_has_a_model() -> None:
    all_quirks = map(quirks.named, quirks.order())
    assert {(one.name, earlier) for one in all_quirks for earlier in one.after} == {*LATER}


@pytest.mark.parametrize("name", LATER, ids="-".join)
def test_in_the_other_order_a_fault_stays(
    name: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    later, path = quirks.named(name[0]), LATER[name]
    told = context("ir", **({"openvino": OLDEST} if later.until else {}))
    if path in ON_GPU:
        told.options["device"] = "GPU"
        source = onnx.parser.parse_model(HEADER + ON_GPU[path][0])
    elif path in CANARIES:
        source = proto_of(CANARIES[path])
    else:
        source = load_onnx(next(file for file in ONNX_FILES if file.stem == path))
    first = tuple(dict.fromkeys((later.name, *quirks.order())))
    monkeypatch.setattr(quirks, "order", lambda: first)
    model = worked_round(bridge.load(source), told)
    fired = len(told.report.quirks)
    quirks.work_round(model, told)
    assert later.name in dict(told.report.quirks[fired:])


def proto_of(canary: Canary) -> onnx.ModelProto:
    header = f'<ir_version: 10, opset_import: ["": {canary.opset}]>'
    return parser.parse_model(f"{header} g {canary.model}")


def run(canary: Canary, path: Path) -> list[np.ndarray]:
    runs = [list(feed.values()) for feed in (canary.before, canary.feed) if feed is not None]
    if canary.ends:
        return isolated(run_in_one_request, path, runs, seconds=300)
    if canary.stateful:
        return run_in_one_request(path, runs)
    engine = OpenVino(path)
    return [engine.run(inputs) for inputs in runs][-1]


def run_in_one_request(path: Path, runs: list[list[np.ndarray]]) -> list[np.ndarray]:
    """The outputs of the last run, copied so that they outlive it."""
    request = OpenVino(path).compiled.create_infer_request()
    return [run_request(request, [value.copy() for value in inputs]) for inputs in runs][-1]


def compare(canary: Canary, path: Path) -> None:
    """Compares the engine's outputs with the model's meaning."""
    model = proto_of(canary)
    bridge.convert(model, path, debug=True, stateful=canary.stateful, beam_idx=canary.beams)
    expected = canary.expected
    if expected is None:
        expected = OnnxRuntime(model).run(canary.feed)
    assert_close(run(canary, path), expected)


@pytest.mark.parametrize("path", CANARIES)
def test_with_the_quirk(path: str, tmp_path: Path) -> None:
    compare(CANARIES[path], tmp_path / "model.xml")


def marked(path: str) -> object:
    canary, quirk = CANARIES[path], QUIRKS[quirk_of(path)]
    reason = f"{path} in {quirk.releases}: {quirk.symptom}"
    shown: tuple[type[Exception], ...] = (AssertionError,)
    if canary.loud or canary.ends:  # A read of other memory may end the process.
        shown = (RuntimeError, LostProcessError, *(() if canary.loud else shown))
    mark = pytest.mark.xfail(reason=reason, raises=shown, strict=True)
    if not canary.seen:
        mark = pytest.mark.skip(reason=f"the fault is that of {canary.on}")
    return pytest.param(path, marks=mark)


@pytest.mark.parametrize("path", [marked(path) for path in CANARIES])
def test_without_the_quirk(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    canary = CANARIES[path]
    left_out = {quirk_of(path), *canary.hidden_by}
    rest = tuple(name for name in quirks.order() if name not in left_out)
    monkeypatch.setattr(quirks, "order", lambda: rest)
    compare(canary, tmp_path / "model.xml")


def worked_round(model: Model, told: Context) -> Model:
    """The model after the quirks."""
    for step in TO_IR:
        if step.when(model, told):
            step.run(model, told)
        if step.run is quirks.work_round:
            break
    return model


def nodes(graph: Graph) -> tuple[object, ...]:
    return (*map(fingerprint, graph.nodes), *map(id, graph.outputs))


@pytest.mark.parametrize("name", [*CANARIES, *(path.stem for path in ONNX_FILES)])
def test_a_second_time_nothing_is_found(name: str) -> None:
    stateful = beams = False
    if name in CANARIES:
        canary = CANARIES[name]
        source, stateful, beams = bridge.load(proto_of(canary)), canary.stateful, canary.beams
    else:
        (path,) = (path for path in ONNX_FILES if path.stem == name)
        source = bridge.load(load_onnx(path))
    told = context("ir", stateful=stateful, beam_idx=beams)
    model = worked_round(source, told)
    before, kept = nodes(model.graph), list(model.graph.walk())
    quirks.work_round(model, told)
    assert nodes(model.graph) == before
    assert len(kept) == len(list(model.graph.walk()))


@pytest.mark.parametrize("path", OLD)
def test_quirks_of_old_releases(path: str, tmp_path: Path) -> None:
    """These quirks run on request, change nothing a second time, and are right here too."""
    canary = CANARIES[path]
    model, written = proto_of(canary), tmp_path / "old.xml"
    bridge.convert(model, tmp_path / "default.xml", debug=True)
    bridge.convert(model, written, openvino=OLDEST, debug=True)
    assert operators(written) != operators(tmp_path / "default.xml")
    engine, back = OpenVino(written), OnnxRuntime(bridge.to_onnx(written))
    for feed in (canary.before, canary.feed, canary.before, canary.feed):
        if feed is not None:
            expected = OnnxRuntime(model).run(feed)
            assert_close(engine.run(list(feed.values())), expected)
            assert_close(back.run(feed), expected)
    again = bridge.load(written)
    for path in OLD:
        QUIRKS[path].run(again.graph, context("ir"))
    assert operators(written) == sorted(node.op for node in again.graph.walk())


def operators(path: Path) -> list[str]:
    """The operators of a model, also in bodies."""
    return sorted(node.op for node in bridge.load(path).graph.walk())


def test_branches_of_open_shape_apart(tmp_path: Path) -> None:
    model = proto_of(CANARIES["branch_of_equal_shape"])
    bridge.convert(model, tmp_path / "old.xml", openvino=OLDEST)
    engine = OpenVino(tmp_path / "old.xml")
    for size, branch in ((3, True), (3, False), (2, False), (0, True), (0, False), (3, True)):
        feed = {"x": np.arange(size, dtype=np.float32), "c": np.array(branch)}
        assert_close(engine.run(list(feed.values())), OnnxRuntime(model).run(feed))
