"""Operators of onnxruntime's own, written as IR. OpenVINO computes the same as onnxruntime, and so
does onnxruntime with the ONNX that comes back. None of these models imports the domain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import openvino
import pytest
from onnx import helper

import bridge
from tests.operators.microsoft_cases import CASES, WITHOUT_KERNEL, Case, grouped
from tests.support.running import EXACT, OnnxRuntime, assert_close


def model_of(case: Case, dynamic: bool = False) -> onnx.ModelProto:
    """The case as a model. A `dynamic` model declares only the last sizes of its inputs, and the
    channels of images."""
    inputs, constants, names = [], [], []
    for i, argument in enumerate(case.inputs):
        names.append("" if argument is None else f"i{i}")
        if argument is None:
            continue
        if i in case.data:
            element = helper.np_dtype_to_tensor_dtype(argument.dtype)
            shape: list[int | str] = list(argument.shape)
            known = {len(shape) - 1, 1 if len(shape) == 4 else -1}
            if dynamic:
                shape = [d if j in known else f"i{i}_{j}" for j, d in enumerate(shape)]
            inputs.append(helper.make_tensor_value_info(f"i{i}", element, shape))
        else:
            constants.append(onnx.numpy_helper.from_array(argument, f"i{i}"))
    node = helper.make_node(case.op, names, case.outputs, domain=case.domain, **case.attributes)
    outputs = [onnx.ValueInfoProto(name=name) for name in case.outputs if name]
    for info in outputs:
        if info.name == "scores":  # onnxruntime does not infer it
            info.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    graph = helper.make_graph([node], "g", inputs, outputs, constants)
    opsets = [helper.make_opsetid("", 16 if case.domain == "" else 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", CASES)
def test_same_numbers(name: str, dynamic: bool, tmp_path: Path) -> None:
    """On the way back a static model has its operator again, and a dynamic one the standard's."""
    model = model_of(CASES[name], dynamic)
    feed = feed_of(CASES[name])
    check(model, feed, OnnxRuntime(model).run(feed), tmp_path, standard=dynamic)
    back = [(node.domain, node.op_type) for node in onnx.load(tmp_path / "b.onnx").graph.node]
    if dynamic:
        assert not any(domain == "com.microsoft" for domain, _ in back)
    elif CASES[name].domain and name not in NOT_BACK:
        assert back == [(CASES[name].domain, CASES[name].op)]


NOT_BACK = {"sample", "unique"}
"""Cases that come back as the standard's operator of the same meaning."""


@pytest.mark.parametrize("name", WITHOUT_KERNEL)
def test_by_definition(name: str, tmp_path: Path) -> None:
    case, expected = WITHOUT_KERNEL[name]
    check(model_of(case, dynamic=True), feed_of(case), [expected], tmp_path, standard=True)


def test_packed_heads(tmp_path: Path) -> None:
    """onnxruntime's CPU kernel accepts separate queries, keys and values alone."""
    query, key, value = (np.random.default_rng(i).normal(size=(2, 5, 8)) for i in range(3))
    parts = [x.astype(np.float32) for x in (query, key, value)]
    separate = Case("MultiHeadAttention", list(parts), {"num_heads": 2}, data=(0, 1, 2))
    expected = OnnxRuntime(model_of(separate)).run(feed_of(separate))
    together, pair = (
        np.stack([x.reshape(2, 5, 2, 4) for x in some], 3) for some in (parts, parts[1:])
    )
    for inputs in ([together], [parts[0], pair]):
        case = Case("MultiHeadAttention", list(inputs), {"num_heads": 2}, tuple(range(len(inputs))))
        check(model_of(case), feed_of(case), expected, tmp_path, standard=True)


@pytest.mark.parametrize("name", ["layer", "simplified", "simplified, statistics"])
def test_what_the_standard_lacks_becomes_standard(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    bridge.convert(model_of(case), tmp_path / "b.onnx")
    onnx.checker.check_model(tmp_path / "b.onnx", full_check=True)
    expected = OnnxRuntime(model_of(case)).run(feed_of(case))
    assert_close(OnnxRuntime(tmp_path / "b.onnx").run(feed_of(case)), expected)


OPTIMIZED = """<ir_version: 8, opset_import: ["" : 13]>
g (float[b,s,8] x, float[b,3,9,9] image) => (float[b,s,8] y, float[b,s,8] r, float[b,4] z)
<float half = {0.5}, float one = {1}, float two = {2}, float root = {1.4142135}, float e = {1e-5}> {
  wide = MatMul(x, w1)
  sum = Add(wide, b1)
  scaled = Div(sum, root)
  erf = Erf(scaled)
  more = Add(erf, one)
  times = Mul(sum, more)
  gelu = Mul(times, half)
  narrow = MatMul(gelu, w2)
  skipped = Add(narrow, x)
  mean = ReduceMean <axes = [-1]> (skipped)
  centered = Sub(skipped, mean)
  squares = Pow(centered, two)
  variance = ReduceMean <axes = [-1]> (squares)
  above = Add(variance, e)
  deviation = Sqrt(above)
  normal = Div(centered, deviation)
  stretched = Mul(normal, scale)
  y = Add(stretched, shift)
  powers = Pow(y, two)
  power = ReduceMean <axes = [-1]> (powers)
  raised = Add(power, e)
  length = Sqrt(raised)
  unit = Div(y, length)
  r = Mul(unit, scale)
  conv = Conv <pads = [1, 1, 1, 1]> (image, w3, b3)
  relu = Relu(conv)
  pooled = GlobalAveragePool(relu)
  flat = Flatten(pooled)
  gemm = Gemm(flat, w4, b4)
  z = Relu(gemm)
}"""


def test_model_optimized_by_onnxruntime(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    shapes = {
        "w1": (8, 16), "b1": (16,), "w2": (16, 8), "scale": (8,), "shift": (8,),
        "w3": (5, 3, 3, 3), "b3": (5,), "w4": (5, 4), "b4": (4,),
    }  # fmt: skip
    model = onnx.parser.parse_model(OPTIMIZED)
    for name, shape in shapes.items():
        values = rng.normal(size=shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
    feed = {
        name: rng.normal(size=shape).astype(np.float32)
        for name, shape in (("x", (2, 5, 8)), ("image", (2, 3, 9, 9)))
    }
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    optimized = onnx.load(tmp_path / "optimized.onnx")
    assert {node.op_type for node in optimized.graph.node} >= {
        "BiasGelu", "FusedConv", "FusedGemm", "SimplifiedLayerNormalization",
        "SkipLayerNormalization",
    }  # fmt: skip
    check(optimized, feed, OnnxRuntime(model).run(feed), tmp_path)


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (Case("Attention", [np.zeros((1, 2, 8), np.float32)], {"num_heads": 2}), "input 1 is abs"),
        (Case("Conv", [np.zeros(1)], domain="com.microsoft.nchwc"), "ORT_ENABLE_EXTENDED"),
        (grouped(1, [6], past=5, qk_output=1), "qk_output"),
        (Case("EPContext", [np.zeros(1)], {"source": "QNN"}), "QNN compiled for a device"),
        (
            Case("EPContext", [np.zeros(1)], {"embed_mode": 0, "ep_cache_context": "m_ctx.xml"}),
            "the IR m_ctx.xml beside",
        ),
    ],
)  # fmt: skip
def test_refused_with_a_reason(case: Case, reason: str, tmp_path: Path) -> None:
    model = model_of(case)
    model.opset_import.add(domain="com.microsoft.nchwc", version=1)
    with pytest.raises(bridge.UnsupportedError, match=reason):
        bridge.convert(model, tmp_path / "a.xml")


def feed_of(case: Case) -> dict[str, np.ndarray]:
    """The case's data by the names of the model's inputs."""
    return {f"i{i}": value for i in case.data if (value := case.inputs[i]) is not None}


def check(
    model: onnx.ModelProto,
    feed: dict[str, np.ndarray],
    expected: list[np.ndarray],
    folder: Path,
    standard: bool = False,
) -> None:
    """Runs the model as IR, and the ONNX that the IR becomes, with `standard` operators or not."""
    bridge.convert(model, folder / "a.xml")
    compiled = openvino.Core().compile_model(
        folder / "a.xml", "CPU",
        EXACT,
    )  # fmt: skip
    assert_close(list(compiled(list(feed.values())).values()), expected)
    bridge.convert(folder / "a.xml", folder / "b.onnx", standard_operators=standard)
    assert_close(OnnxRuntime(folder / "b.onnx").run(feed), expected)
