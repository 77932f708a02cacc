"""The attributes of each layer of IR as OpenVINO's reader takes them: what it ignores is ignored,
and its defaults are ours."""

from __future__ import annotations

import random
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import openvino
import pytest

import bridge
from bridge.check.isolation import Worker
from tests.control_flow.suite import Entry
from tests.operators.by_schema import ir_programs
from tests.operators.by_schema.judge import either
from tests.support.running import OpenVino, assert_close
from tests.support.sample import spread

TOLERANCES = {2: 4e-3, 4: 1e-3, 8: 1e-3}
NO_MODEL = {
    "Acosh-3", "Asinh-3", "Atanh-3", "BinaryConvolution-1", "ExtractImagePatches-3",
    "PSROIPooling-1", "RMS-14", "ScatterNDUpdate-3",
}  # fmt: skip
"""Rows that OpenVINO's interface or its CPU plugin does not have so."""

CRASHES = {
    "AvgPool dilations", "Col2Im dilations", "Col2Im pads_begin", "Col2Im pads_end",
    "Col2Im strides", "DetectionOutput keep_top_k",
    "ExperimentalDetectronDetectionOutput deltas_weights",
    "ExperimentalDetectronGenerateProposalsSingleImage post_nms_count",
    "ExperimentalDetectronROIFeatureExtractor output_size",
    "ExperimentalDetectronROIFeatureExtractor pyramid_scales", "Proposal post_nms_topn",
    "RegionYolo num",
}  # fmt: skip
"""Attributes without which OpenVINO ends its process."""

DEMANDED = {
    "ExperimentalDetectronDetectionOutput max_detections_per_image",
    "ExperimentalDetectronDetectionOutput post_nms_count",
    "ExperimentalDetectronGenerateProposalsSingleImage pre_nms_count", "FakeQuantize levels",
    "GRUCell hidden_size", "GRUSequence hidden_size", "LRN size", "Proposal base_size",
    "Proposal nms_thresh", "Proposal ratio", "Proposal scale", "ROIAlign pooled_h",
    "ROIAlign pooled_w", "ROIPooling pooled_h", "ROIPooling pooled_w", "RegionYolo classes",
    "RegionYolo coords", "RegionYolo mask",
}  # fmt: skip
"""Required attributes whose default in OpenVINO is 0 or no number, which says nothing; `pooled_h`
of ROIPooling is also said in another attribute. Bridge demands them."""

ANY_ORDER = {"TopK sort"}
"""Attributes whose default leaves the numbers open."""


def _program(name: str, path: Path) -> list[np.ndarray]:
    """Writes the first program of a row that OpenVINO runs, with constants beside its first input.
    Returns the inputs."""
    row, rng = ir_programs.ROWS[name], random.Random(name)
    axes = ir_programs.axes_of(name, row)
    for attempt in range(999):
        levels = {
            axis: choices[0] if attempt == 0 else rng.choice(choices)
            for axis, choices in axes.items()
        }
        count = levels["case"].count(";") + 1
        for axis in axes:
            if (place := axis.removeprefix("input_")).isdigit() and place != "0":
                levels[axis] = "constant" if int(place) < count else "absent"
        levels |= {"sizes": "known", "place": "top", "numbers": "plain", "input_0": "input"}
        if not row.fits(levels):
            continue
        try:
            model, feeds = ir_programs.build(Entry(f"IR.{name}", tuple(levels.items())))
            openvino.save_model(model, path, compress_to_fp16=False)
            OpenVino(path).run(feeds[0])
        except RuntimeError:
            continue
        return feeds[0]
    raise AssertionError(f"OpenVINO runs no program of {name}")


def _difference(path: Path, feed: list[np.ndarray]) -> str:
    """How Bridge's ONNX differs from OpenVINO's own reading; "" if it does not, or if OpenVINO does
    not read the file."""
    try:
        wanted = OpenVino(path).run(feed)
    except RuntimeError:
        return ""
    target = path.with_suffix(".onnx")
    try:
        bridge.convert(path, target)
        names = [item.name for item in onnx.load(target).graph.input]
        (outputs,) = either(target, [dict(zip(names, feed, strict=True))])
        assert_close(outputs, wanted, TOLERANCES)
    except (AssertionError, bridge.BridgeError) as error:
        return str(error)
    return ""


def _differences(name: str, changes: Callable[[dict[str, str]], Iterator[dict[str, str]]]) -> str:
    """How Bridge differs from OpenVINO in a row's layer with changed attributes, line by line."""
    type = name.rpartition("-")[0]
    found = []
    with TemporaryDirectory() as folder:
        path, changed = Path(folder) / "a.xml", Path(folder) / "b.xml"
        feed = _program(name, path)
        changed.with_suffix(".bin").write_bytes(path.with_suffix(".bin").read_bytes())
        net = ElementTree.parse(path)
        (layer,) = (
            x for x in net.iterfind("layers/layer") if x.attrib["type"].lower() == type.lower()
        )
        data = layer.find("data")
        if data is None:
            data = ElementTree.SubElement(layer, "data")
        given = dict(data.attrib)
        for attributes in changes(given):
            data.attrib.clear()
            data.attrib.update(attributes)
            net.write(changed)
            if why := _difference(changed, feed):
                found.append(f"{type} {sorted(given.keys() ^ attributes)}: {why}")
    return "\n".join(found)


def _with_another(name: str) -> str:
    return _differences(name, lambda given: iter([{**given, "of_next_month": "1"}]))


def _without(name: str) -> str:
    type = name.rpartition("-")[0]

    def changes(given: dict[str, str]) -> Iterator[dict[str, str]]:
        free = [key for key in given if f"{type} {key}" not in CRASHES | DEMANDED | ANY_ORDER]
        for taken in (*([key] for key in free), free):
            yield {key: text for key, text in given.items() if key not in taken}

    return _differences(name, changes)


ROWS = spread(
    (name for name in ir_programs.ROWS if name not in NO_MODEL),
    3,
    lambda name: name.rpartition("-")[0],
)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    """OpenVINO may end its process."""
    made = Worker()
    yield made
    made.close()


@pytest.mark.parametrize("name", ROWS)
def test_an_attribute_that_openvino_ignores(name: str, worker: Worker) -> None:
    assert worker.call(_with_another, name) == ""


@pytest.mark.parametrize("name", ROWS)
def test_the_defaults_are_those_of_openvinos_reader(name: str, worker: Worker) -> None:
    assert worker.call(_without, name) == ""


SPELLINGS = (
    ("Concat-1", "axis", ("-1", "-1.0", " -1 ", "-1x", "-0x1", "+1", "", "x", "nan", "1" * 20)),
    ("Convolution-1", "strides", ("2.0,2.0", "1,2,", "1, 2", "", "2x,2", "1,,2", ",1", "+1,1")),
    ("Convolution-1", "pads_begin", ("1.0,0", "1,1,", "", "x,1", "-1,0")),
    ("Convolution-1", "auto_pad", ("VALID", "Same_Upper", "notset")),
    ("Elu-1", "alpha", ("0.5f", "-0.5f", "+.5", "5.", "1e-1", "1e", "0x1p3", "", "x", "1e400")),
    ("StridedSlice-1", "begin_mask", ("1.0,0", "1,0,", "true,0")),
    ("CumSum-3", "exclusive", ("TRUE", "1", "", "yes", "2", " true", "true ", "1.0")),
    ("Reshape-1", "special_zero", ("", "yes", "true")),
    ("Add-1", "auto_broadcast", ("NUMPY", "", "none", "x")),
    ("NonMaxSuppression-9", "box_encoding", ("CENTER", "Corner")),
    ("NonMaxSuppression-1", "box_encoding", ("CENTER", "Corner")),
    ("Interpolate-4", "mode", ("NEAREST",)),
    ("MVN-6", "eps_mode", ("outside_sqrt",)),
    ("Broadcast-3", "mode", ("NUMPY", "Bidirectional")),
    ("Convert-1", "destination_type", ("I64", "F16", "x")),
    ("ShapeOf-3", "output_type", ("I32", "int64")),
    ("GRUSequence-5", "activations", ("sigmoid,tanh,", "sigmoid,,tanh", " tanh , tanh")),
)  # fmt: skip
"""Rows, an attribute, and texts of it."""


def _spelled(name: str, attribute: str, texts: tuple[str, ...]) -> str:
    return _differences(name, lambda given: ({**given, attribute: text} for text in texts))


@pytest.mark.parametrize(("name", "attribute", "texts"), SPELLINGS)
def test_spellings(name: str, attribute: str, texts: tuple[str, ...], worker: Worker) -> None:
    """What OpenVINO reads, Bridge reads alike."""
    assert worker.call(_spelled, name, attribute, texts) == ""
