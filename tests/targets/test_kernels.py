"""IRs of element types for which onnxruntime has no kernel of the operator run there."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import openvino as ov
import pytest
from openvino import opset1, opset3, opset10

import bridge

INTEGERS = "i1 i2 i4 i8 u1 u2 u4 u8"
AXES = np.int64([2, 3])
PADS = np.int64([0, 0, 1, 2])
WEIGHTS = np.ones((4, 4, 1, 1))


def _like(x: Any, value: float) -> Any:
    return np.array(value, x.get_element_type().to_dtype())


def _image(x: Any) -> Any:
    return [2, 2], [0, 0], [0, 0], [2, 2]


CASES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "TopK": (lambda x: opset3.topk(x, np.int64(2), 3, "max", "value"), INTEGERS),
    "Unique": (lambda x: opset10.unique(x), INTEGERS),
    "Relu": (opset1.relu, "i1 i2 i4 i8"),
    "PRelu": (lambda x: opset1.prelu(x, _like(x, 2)), INTEGERS + " f8"),
    "DepthToSpace": (lambda x: opset1.depth_to_space(x, "blocks_first", 2), INTEGERS + " f8"),
    "DepthToSpace by depth": (lambda x: opset1.depth_to_space(x, "depth_first", 2), "i4 i8"),
    "SpaceToDepth": (lambda x: opset1.space_to_depth(x, "blocks_first", 2), INTEGERS + " f8"),
    "Select": (lambda x: opset1.select(opset1.less(x, _like(x, 3)), x, _like(x, 1)), INTEGERS),
    "Select of bool": (
        lambda x: opset1.select(
            opset1.less(x, _like(x, 3)), opset1.equal(x, _like(x, 2)), opset1.equal(x, _like(x, 4))
        ),
        "i4 f4",
    ),
    "ReduceSum": (lambda x: opset1.reduce_sum(x, AXES), INTEGERS + " f8"),
    "ReduceMax": (lambda x: opset1.reduce_max(x, AXES), INTEGERS),
    "ReduceProd": (lambda x: opset1.reduce_prod(x, np.int64([1])), "i4 i8 u4 u8"),
    "ReduceL1": (lambda x: opset1.reduce_sum(opset1.abs(x), AXES), "i4 f8"),
    "CumSum": (lambda x: opset3.cum_sum(x, np.int64(3)), "i4 i8 u4 u8 f8"),
    "Pad": (lambda x: opset1.pad(x, PADS, PADS, "edge"), INTEGERS + " f8"),
    "Maximum": (lambda x: opset1.maximum(x, _like(x, 3)), INTEGERS + " f8"),
    "Clamp": (lambda x: opset1.clamp(x, 1, 3), INTEGERS + " f8"),
    "NonZero": (opset3.non_zero, INTEGERS + " f8"),
    "Acos": (lambda x: opset1.acos(opset1.divide(x, _like(x, 9))), "f8"),
    "Elu": (lambda x: opset1.elu(x, 0.5), "f8"),
    "Erf": (opset1.erf, "f8"),
    "Convolution": (
        lambda x: opset1.convolution(
            x,
            np.ones((4, 4, 1, 1), x.get_element_type().to_dtype()),
            [1, 1],
            [0, 0],
            [0, 0],
            [1, 1],
        ),
        "f8",
    ),
    "MaxPool": (lambda x: opset1.max_pool(x, [1, 1], [0, 0], [0, 0], [2, 2]), "f8 i1 u1 i4 i8"),
    "AvgPool": (lambda x: opset1.avg_pool(x, [1, 1], [0, 0], [0, 0], [2, 2], True), "f8"),
}


@pytest.mark.parametrize(
    ("name", "type"), [(name, type) for name, (_, types) in CASES.items() for type in types.split()]
)
def test_it_runs_in_onnxruntime(name: str, type: str, tmp_path: Path) -> None:
    low = 0 if type[0] == "u" else -3
    given = np.random.default_rng(1).integers(low, 6, (1, 4, 4, 4)).astype(type)
    x = opset1.parameter(list(given.shape), given.dtype, "x")
    made = CASES[name][0](x)
    ov.save_model(ov.Model(made.outputs()[:1], [x]), tmp_path / "a.xml", compress_to_fp16=False)
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "b.onnx")
    (found,) = session.run(None, {session.get_inputs()[0].name: given})
    engine = ov.Core().compile_model(tmp_path / "a.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    expected = next(iter(engine([given]).values()))
    np.testing.assert_allclose(found, expected, 1e-5, 1e-6)
