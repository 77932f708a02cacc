"""Models as exporters write them; nobody would write them by hand.

The ONNX models are `roundtrip_models/exporter_*.onnxtxt`, which `test_roundtrip_models.py` runs
both ways. The IR models here are made as OpenVINO's own frontends make them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import openvino as ov
import pytest
from openvino import opset1, opset5, opset6, opset13

import bridge
from tests.support.model_files import FOLDER
from tests.support.running import EXACT, OnnxRuntime, OpenVino, assert_close

RNG = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def parameter(shape: list[int], dtype: type = np.float32) -> ov.Node:
    return opset13.parameter(shape, dtype)


def normalisation_over_i32_axes() -> ov.Model:
    """PyTorch's layer_norm: MVN-6 whose axes are i32."""
    x = parameter([-1, -1, 8])
    axes = opset13.constant(np.array([-1], np.int32))
    return ov.Model([opset6.mvn(x, axes, True, 1e-5, "INSIDE_SQRT")], [x])


def explicit_broadcast_called_none() -> ov.Model:
    """PyTorch's index_fill: Broadcast-1 with a mode that the file calls `none`."""
    x = parameter([3])
    shape, axes = (opset13.constant(np.array(v, np.int32)) for v in ([3, 4], [0]))
    return ov.Model([opset1.broadcast(x, shape, axes, "EXPLICIT")], [x])


def bidirectional_broadcast() -> ov.Model:
    """PyTorch's expand: the target has ones where the input keeps its sizes."""
    x = parameter([-1, 3, 1])
    shape = opset13.constant(np.array([1, 1, 4], np.int64))
    return ov.Model([opset13.broadcast(x, shape, broadcast_spec="BIDIRECTIONAL")], [x])


def activations_of_both_directions() -> ov.Model:
    """OpenVINO's reader of ONNX repeats the activations for the second direction."""
    x, h = parameter([-1, 5, 6]), parameter([-1, 2, 4])
    lengths = opset13.gather(
        opset13.shape_of(x), opset13.constant(np.array([1])), opset13.constant(0)
    )
    batch = opset13.gather(
        opset13.shape_of(x), opset13.constant(np.array([0])), opset13.constant(0)
    )
    layer = opset5.rnn_sequence(
        x, h, opset13.broadcast(lengths, batch), *map(opset13.constant, weights(6, 4)), 4,
        "bidirectional", ["relu", "relu"],
    )  # fmt: skip
    return ov.Model([layer.output(0), layer.output(1)], [x, h])


def weights(inputs: int, hidden: int) -> list[np.ndarray]:
    return [floats(2, hidden, inputs), floats(2, hidden, hidden), floats(2, hidden)]


def stacked_layers() -> ov.Model:
    """PyTorch's LSTM of two layers: both layers get the lengths of the input."""
    x = parameter([-1, -1, 4])
    sizes, zero = opset13.shape_of(x), opset13.constant(0)
    batch, length = (opset13.gather(sizes, np.array([axis]), zero) for axis in (0, 1))
    lengths = opset13.broadcast(length, batch)
    state = opset13.broadcast(np.float32(0), opset13.concat([batch, np.array([2, 5])], 0))
    y: ov.Node = x
    for width in (4, 10):
        weights = [floats(2, 20, width), floats(2, 20, 5), floats(2, 20)]
        layer = opset5.lstm_sequence(y, state, state, lengths, *weights, 5, "bidirectional")
        turned = opset13.transpose(layer.output(0), np.array([0, 2, 1, 3]))
        y = opset13.reshape(turned, np.array([0, 0, -1]), True)
        y = opset13.clamp(opset13.relu(y), 0.0, 0.5)
    return ov.Model([y], [x])


def results_without_names() -> ov.Model:
    """The PyTorch frontend names no results."""
    x = parameter([-1, 4])
    low, high = opset13.relu(x), opset13.negative(x)
    return ov.Model([opset13.result(low), opset13.result(high), opset13.result(low)], [x])


def compressed_weights() -> ov.Model:
    """Weights of i8 with a zero point and a scale for each group, as NNCF leaves them."""
    x = parameter([-1, -1, 8])
    stored = opset13.constant(RNG.integers(-100, 100, (6, 2, 4)).astype(np.int8))
    zero = opset13.constant(RNG.integers(-5, 5, (6, 2, 1)).astype(np.int8))
    scale = opset13.constant(floats(6, 2, 1).astype(np.float16))
    centred = opset13.subtract(
        opset13.convert(stored, np.float16), opset13.convert(zero, np.float16)
    )
    scaled = opset13.multiply(centred, scale)
    matrix = opset13.reshape(scaled, opset13.constant(np.array([6, 8])), False)
    full = opset13.convert(matrix, np.float32)
    return ov.Model([opset13.matmul(x, full, False, True)], [x])


def fake_quantised_convolution() -> ov.Model:
    """FakeQuantize before a convolution of dequantised weights, of 7 bits. On a processor without
    VNNI, OpenVINO adds products of u8 and i8 in pairs of 16 bits; weights of 8 bits would overflow.
    """
    x = parameter([-1, 3, 6, 6])
    bounds = [opset13.constant(np.float32(v)) for v in (-1.28, 1.27, -1.28, 1.27)]
    quantised = opset13.fake_quantize(x, *bounds, 256)
    stored = opset13.constant(RNG.integers(-64, 65, (4, 3, 3, 3)).astype(np.int8))
    scale = opset13.constant(np.full((4, 1, 1, 1), 0.01, np.float32))
    kernel = opset13.multiply(opset13.convert(stored, np.float32), scale)
    y = opset13.convolution(quantised, kernel, [1, 1], [1, 1], [1, 1], [1, 1])
    return ov.Model([opset13.relu(y)], [x])


IR_MODELS: dict[Callable[[], ov.Model], list[tuple[int, ...]]] = {
    normalisation_over_i32_axes: [(2, 3, 8)],
    explicit_broadcast_called_none: [(3,)],
    bidirectional_broadcast: [(2, 3, 1)],
    activations_of_both_directions: [(3, 5, 6), (3, 2, 4)],
    stacked_layers: [(2, 3, 4)],
    results_without_names: [(2, 4)],
    compressed_weights: [(2, 3, 8)],
    fake_quantised_convolution: [(2, 3, 6, 6)],
}
"""Each model with the shapes of its inputs."""


@pytest.mark.parametrize("compressed", [False, True], ids=["f32", "f16"])
@pytest.mark.parametrize("make", IR_MODELS, ids=lambda make: make.__name__)
def test_ir_to_onnx_and_back(
    make: Callable[[], ov.Model], compressed: bool, tmp_path: Path
) -> None:
    ov.save_model(make(), tmp_path / "a.xml", compress_to_fp16=compressed)
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx", debug=True)
    bridge.convert(tmp_path / "b.onnx", tmp_path / "c.xml", debug=True)
    model = onnx.load(tmp_path / "b.onnx")
    onnx.checker.check_model(model, full_check=True)
    values = [floats(*shape) for shape in IR_MODELS[make]]
    expected = OpenVino(tmp_path / "a.xml").run(values)
    named = {v.name: x for v, x in zip(model.graph.input, values, strict=True)}
    assert_close(OnnxRuntime(model).run(named), expected)
    assert_close(OpenVino(tmp_path / "c.xml").run(values), expected)


def test_lengths_that_are_the_whole_are_not_said(tmp_path: Path) -> None:
    ov.save_model(stacked_layers(), tmp_path / "a.xml")
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx")
    layers = [n for n in onnx.load(tmp_path / "b.onnx").graph.node if n.op_type == "LSTM"]
    assert [len(layer.input) for layer in layers] == [4, 4]


def test_dummies_of_another_rank_prune_nothing(tmp_path: Path) -> None:
    """A branch that hands on a dummy may still run, so it stays."""
    source = FOLDER / "exporter_break_and_continue.onnxtxt"
    assert not bridge.convert(source, tmp_path / "a.xml").pruned


def test_stateful_language_model_step(tmp_path: Path) -> None:
    """A cache that grows with each call, as make_stateful leaves it: a variable that starts with
    no tokens."""
    x = parameter([1, -1, 4])
    x.output(0).tensor.set_names({"x"})
    empty = opset13.constant(np.zeros((1, 0, 4), np.float32))
    cache = opset6.read_value(empty, "cache", np.float32, ov.PartialShape([1, -1, 4]))
    grown = opset13.concat([cache, x], 1)
    y = opset13.matmul(x, grown, False, True)
    model = ov.Model([opset13.result(y)], [opset6.assign(grown, "cache")], [x], "step")
    ov.save_model(model, tmp_path / "a.xml", compress_to_fp16=False)
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx", debug=True)
    session = OnnxRuntime(tmp_path / "b.onnx")
    compiled = ov.Core().compile_model(tmp_path / "a.xml", "CPU", EXACT)
    request = compiled.create_infer_request()
    state: dict[str, np.ndarray] = {}
    for tokens in (3, 1, 2):
        value = floats(1, tokens, 4)
        result, after = session.run({"x": value, **state})
        state = {"cache": after}
        request.infer({"x": value})
        assert_close([result], [request.get_output_tensor(0).data])
