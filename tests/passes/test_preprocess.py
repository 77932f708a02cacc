"""Mean, scale and layout as layers give the same as OpenVINO's own preprocessing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import openvino
import pytest
from openvino.preprocess import PrePostProcessor

import bridge
from bridge.check import check

MODEL = """<ir_version: 8, opset_import: ["": 17]>
g (float[n,3,4,5] x, float[2] w) => (float[n,3,4,5] y, float[2] v) { y = Sin (x) v = Neg (w) }"""
LAST = MODEL.replace("n,3,4,5", "n,4,5,3")
RGB = [123.68, 116.78, 103.94]

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "mean": (MODEL, {"mean": {"x": RGB}, "layout": {"x": "NCHW"}}),
    "scale": (MODEL, {"scale": {"x": [58.4, 57.1, 57.4]}, "layout": {"x": "NCHW"}}),
    "one number": (MODEL, {"mean": {"x": 127.5}, "scale": {"x": 58.8}}),
    "channels by their number": (MODEL, {"mean": {"x": RGB}}),
    "another layout": (MODEL, {"layout": {"x": "NCHW->NHWC"}}),
    "all": (MODEL, {"mean": {"x": RGB}, "scale": {"x": 58.8}, "layout": {"x": "NCHW->NHWC"}}),
    "channels last": (LAST, {"mean": {"x": RGB}, "layout": {"x": "[n,h,w,c] -> NCHW"}}),
    "bytes": (MODEL, {"input_types": {"x": "u8"}}),
    "bytes, all": (
        MODEL,
        {
            "input_types": {"x": "u8"},
            "reverse_channels": ["x"],
            "mean": {"x": RGB},
            "scale": {"x": 58.8},
            "layout": {"x": "NCHW->NHWC"},
        },
    ),
    "reverse channels": (MODEL, {"reverse_channels": ["x"]}),
    "two inputs": (MODEL, {"mean": {"x": 1.5, "w": [2, 3]}, "scale": {"x": RGB, "w": 4}}),
    "an axis of no name": (MODEL, {"mean": {"x": RGB}, "layout": {"x": "?C??"}}),
}


def run_openvino(model: openvino.Model, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    config = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    found = openvino.compile_model(model, "CPU", config)(feeds)
    return [np.array(found[port]) for port in range(len(model.outputs))]


def run(model: Path, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs of a model, in its own engine."""
    if model.suffix == ".xml":
        return run_openvino(openvino.Core().read_model(model), feeds)
    import onnxruntime

    return onnxruntime.InferenceSession(model).run(None, feeds)


def expected(model: Path, options: dict[str, Any], feeds: dict[str, np.ndarray]) -> Any:
    """The outputs of the model with OpenVINO's own preprocessing."""
    read = openvino.Core().read_model(model)
    steps = PrePostProcessor(read)
    for name in {name for given in options.values() for name in given}:
        if name in options.get("input_types", {}):
            steps.input(name).tensor().set_element_type(openvino.Type.u8)
            steps.input(name).preprocess().convert_element_type(openvino.Type.f32)
        own, _, fed = options.get("layout", {}).get(name, "").partition("->")
        channels = next(iter(read.input(name).partial_shape)) == 2
        own = own or ("C" if channels else "NCHW")
        info = steps.input(name)
        info.model().set_layout(openvino.Layout(own.strip().strip("[]").replace(",", "").upper()))
        info.tensor().set_layout(
            openvino.Layout((fed or own).strip().strip("[]").replace(",", "").upper())
        )
        if name in options.get("reverse_channels", ()):
            info.preprocess().reverse_channels()
        for option in ("mean", "scale"):
            if name in options.get(option, {}):
                given = options[option][name]
                getattr(info.preprocess(), option)(given)
    return run_openvino(steps.build(), feeds)


@pytest.mark.parametrize("route", ["onnx-ir", "ir-onnx", "onnx-onnx", "ir-ir"])
@pytest.mark.parametrize(("text", "options"), CASES.values(), ids=CASES)
def test_it_computes_what_openvino_does(
    text: str, options: dict[str, Any], route: str, tmp_path: Path
) -> None:
    plain = tmp_path / "plain.onnx"
    onnx.save(onnx.parser.parse_model(text), plain)
    source, target = plain, tmp_path / f"made.{'xml' if route.endswith('ir') else 'onnx'}"
    if route.startswith("ir"):
        source = tmp_path / "plain.xml"
        openvino.save_model(openvino.convert_model(plain), source, compress_to_fp16=False)
    bridge.convert(source, target, **options)
    rng = np.random.default_rng(0)
    turned = "->" in options.get("layout", {}).get("x", "")
    shape = (2, 4, 5, 3) if turned != (text == LAST) else (2, 3, 4, 5)
    feeds = {
        "x": rng.uniform(0, 255, shape).astype(
            np.uint8 if "input_types" in options else np.float32
        ),
        "w": rng.uniform(0, 9, 2).astype(np.float32),
    }
    for ours, theirs in zip(run(target, feeds), expected(plain, options, feeds), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
    report = check(source, target, samples=2)
    assert report.ok and "the original is fed preprocessed inputs" in str(report).splitlines()[0]


def test_openvino_finds_the_layout(tmp_path: Path) -> None:
    proto = onnx.parser.parse_model(MODEL)
    bridge.convert(proto, tmp_path / "a.xml", layout={"x": "NCHW->NHWC"})
    read = openvino.Core().read_model(tmp_path / "a.xml")
    assert read.input("x").node.layout == openvino.Layout("NHWC")
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.xml", mean={"x": RGB})  # along its last axis
    read = openvino.Core().read_model(tmp_path / "b.xml")
    assert read.input("x").node.layout == openvino.Layout("NHWC")
    assert check(proto, tmp_path / "b.xml", samples=1).ok


def test_a_check_sees_another_mean(tmp_path: Path) -> None:
    proto = onnx.parser.parse_model(MODEL)
    target = tmp_path / "a.onnx"
    bridge.convert(proto, target, mean={"x": RGB})
    made = onnx.load(target)
    (mean,) = [one for one in made.graph.initializer if len(one.dims) == 4]
    mean.raw_data = np.float32([123.68, 116.78, 104.5]).tobytes()
    onnx.save(made, target)
    assert check(proto, target, samples=1).different


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mean": {"z": 1}}, 'no input "z"'),
        ({"mean": {"x": [1, 2]}}, "which axis has the 2 channels is not known"),
        ({"mean": {"x": [1, 2]}, "layout": {"x": "NCHW"}}, "3 channels, and was given 2 values"),
        ({"mean": {"x": RGB}, "layout": {"x": "N???"}}, "which axis has the 3 channels"),
        ({"scale": {"x": [1, 0, 1]}}, "has a 0"),
        ({"scale": {"x": "a"}}, "a number or a list of them"),
        ({"mean": {"x": [float("nan")]}}, "a number or a list of them"),
        ({"mean": [1]}, "maps names of inputs"),
        ({"layout": {"x": "NC"}}, "its `layout` NC is of 2 axes"),
        ({"layout": {"x": "NCHH"}}, "a letter for each axis"),
        ({"layout": {"x": "NCHW->NHWD"}}, "the same letters"),
        ({"layout": {"x": "NC??->??CN"}}, "the same letters"),
        ({"mean": {"i": 1}}, "are for inputs of floats"),
    ],
)  # fmt: skip
def test_what_cannot_be_preprocessed(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    text = MODEL.replace("float[2] w", "float[2] w, int64 i")
    with pytest.raises(bridge.UsageError) as raised:
        bridge.convert(onnx.parser.parse_model(text), tmp_path / "a.xml", **options)
    assert said in str(raised.value)


def test_an_input_that_is_an_output_too(tmp_path: Path) -> None:
    """What the file said of the output is not said of the input, which keeps its name."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
        g (float[n,3] x) => (float[n,3] y, float[?,3] x) { y = Sin (x) }""")
    bridge.convert(model, tmp_path / "a.xml", layout={"x": "NC->CN"})
    back = bridge.to_onnx(tmp_path / "a.xml").graph
    sizes = [[d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in back.input]
    assert sizes == [[3, "n"]]
