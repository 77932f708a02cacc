"""Shape arithmetic and data movement of ONNX, written as IR and compared with onnxruntime.

The standard's node cases leave these forms out: old versions, unknown sizes, constant operands.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import bridge
from tests.support.running import OnnxRuntime, OpenVino, assert_close

F32, I32, I64 = np.float32, np.int32, np.int64


class Fixed:
    """An operand as an initializer rather than an input."""

    def __init__(self, value: Any, type: Any = I64) -> None:
        self.value = np.asarray(value, type)


@dataclass(frozen=True)
class Case:
    """One operator. An operator set gives its version; None stands for an absent operand."""

    op: str
    opset: int
    operands: tuple[Any, ...]
    attributes: dict[str, Any]
    outputs: int = 1


CASES: dict[str, Case] = {}


def case(
    name: str, op: str, opset: int, *operands: Any, outputs: int = 1, **attributes: Any
) -> None:
    CASES[name] = Case(op, opset, operands, attributes, outputs)


_RNG = np.random.default_rng(5)


def random(*shape: int, type: Any = F32) -> np.ndarray:
    return _RNG.normal(size=shape).astype(type)


X = random(2, 3, 4, 5)

# Old versions
case("reshape 1", "Reshape", 5, X, Fixed([0, -1]))
case("slice 1", "Slice", 9, X, starts=[1, -3], ends=[99, -1], axes=[3, 2])
case("slice 1 no axes", "Slice", 9, X, starts=[0, 1], ends=[1, 3])
case("squeeze 1", "Squeeze", 11, random(1, 3, 1), axes=[0, -1])
case("unsqueeze 1", "Unsqueeze", 11, random(3), axes=[0, 2])
case("unsqueeze nothing", "Unsqueeze", 13, random(3), Fixed([], np.int64))
case("split 2", "Split", 11, X, outputs=2, axis=3, split=[2, 3])
case("split 2 even", "Split", 11, X, outputs=2, axis=2)
case("pad 2", "Pad", 10, X, pads=[0, 1, 0, 2, 0, 0, 1, 0], value=2.5)
case("pad 2 edge", "Pad", 10, X, pads=[0, 1, 0, 2, 0, 0, 1, 0], mode="edge")
case("scatter 9", "Scatter", 9, random(3, 3), np.array([[1, 0, 2]]), random(1, 3), axis=0)
case("upsample 7", "Upsample", 7, X, scales=[1.0, 1.0, 2.0, 1.6], mode="nearest")
case("upsample 9", "Upsample", 9, X, Fixed([1, 1, 2, 3], F32), mode="linear")
case("resize to one", "Resize", 19, X, None, None, Fixed([1, 1, 3, 2]), mode="nearest",
     coordinate_transformation_mode="pytorch_half_pixel")  # fmt: skip
case("resize 10", "Resize", 10, X, Fixed([1, 1, 0.6, 1.7], F32), mode="nearest")
case("resize 11", "Resize", 11, X, Fixed([], F32), Fixed([1, 1, 2, 0.7], F32), mode="linear",
     coordinate_transformation_mode="tf_half_pixel_for_nn")  # fmt: skip

# Shapes
case("constant of shape", "ConstantOfShape", 9, np.array([2, 3]),
     value=numpy_helper.from_array(np.array([7], I32)))  # fmt: skip
case("constant of no shape", "ConstantOfShape", 9, Fixed([]))
case("expand less", "Expand", 13, random(3, 4), Fixed([2, 1, 1]))
case("tile computed", "Tile", 13, random(2, 3), np.array([2, 3]))
case("range of vectors", "Range", 11, np.array(1, F32), np.array(3.5, F32), np.array(0.5, F32))
# Slices
case(
    "slice back", "Slice", 13, X, Fixed([-1, 99]), Fixed([-99, 0]), Fixed([3, -2]), Fixed([-2, -1])
)
case("slice computed axes", "Slice", 13, X, np.array([1]), np.array([3]), np.array([3]))
case("split rest", "Split", 18, random(7, 2), outputs=3, num_outputs=3)
case("split computed", "Split", 13, random(7, 2), np.array([2, 5]), outputs=2)
case("split bool", "Split", 13, random(4) > 0, outputs=2)
case("pad bool", "Pad", 13, random(3) > 0, Fixed([1, 2]), Fixed(True, bool))
case("pad negative", "Pad", 13, X, np.array([0, -1, 1, 0, 0, 0, -2, 1]), Fixed(3, F32))
case("pad i64", "Pad", 13, np.arange(6).reshape(2, 3), Fixed([0, 1, 0, 0]), Fixed([5]))
# Indices
case("one_hot float depth", "OneHot", 11, np.array([[0, -1], [5, 2]]), np.array([3.0], F32),
     np.array([2, 5], F32), axis=1)  # fmt: skip
case("one_hot computed", "OneHot", 11, np.array([1, -2]), np.array(3), np.array([2, 5]))
case("unique unsorted", "Unique", 11, np.array([3, 1, 3, 2], F32), outputs=4, sorted=0)
# Images
for mode in ("nearest", "linear", "cubic"):
    case(f"resize crop {mode}", "Resize", 19, X, Fixed([0.2, -0.1, 0.9, 1.2], F32), None,
         Fixed([3, 7]), axes=[2, 3], mode=mode, extrapolation_value=9.0,
         coordinate_transformation_mode="tf_crop_and_resize")  # fmt: skip
    case(
        f"resize channels last {mode}", "Resize", 19, X, None, None, Fixed([2, 6, 7, 5]), mode=mode,
        nearest_mode="floor",
    )  # fmt: skip
for scales in ([0.6, 0.7], [1.5, 0.4]):
    for mode in ("linear", "cubic"):
        case(f"resize antialias {mode} {scales}", "Resize", 18, X, None, Fixed(scales, F32),
             axes=[2, 3], mode=mode, antialias=1)  # fmt: skip
        if mode == "cubic":
            case(f"resize exclude_outside {scales}", "Resize", 18, X, None, Fixed(scales, F32),
                 axes=[2, 3], mode=mode, exclude_outside=1)  # fmt: skip
case("resize batch", "Resize", 19, X, None, Fixed([2, 1, 1, 2], F32))
case("resize one kept", "Resize", 19, random(1, 1, 3, 5), None, Fixed([1, 1, 1.3, 1.3], F32))


def build(name: str, dynamic: bool) -> tuple[onnx.ModelProto, list[np.ndarray]]:
    """The model of a case, with known or unknown sizes of its inputs, and values for them."""
    chosen = CASES[name]
    inputs, initializers, names, values = [], [], [], []
    for index, operand in enumerate(chosen.operands):
        names.append("" if operand is None else f"i{index}")
        if isinstance(operand, Fixed):
            initializers.append(numpy_helper.from_array(operand.value, names[-1]))
        elif operand is not None:
            element = helper.np_dtype_to_tensor_dtype(operand.dtype)
            data = operand.dtype.kind == "f"  # Shapes and indices keep their sizes.
            dims = (
                [f"d{index}_{axis}" for axis in range(operand.ndim)] if dynamic and data else None
            )
            shape = operand.shape if dims is None else dims
            inputs.append(helper.make_tensor_value_info(names[-1], element, shape))
            values.append(operand)
    outputs = [f"o{i}" for i in range(chosen.outputs)]
    node = helper.make_node(chosen.op, names, outputs, **chosen.attributes)
    results = [helper.make_empty_tensor_value_info(output) for output in outputs]
    graph = helper.make_graph([node], "g", inputs, results, initializers)
    opsets = [helper.make_opsetid("", chosen.opset)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return onnx.shape_inference.infer_shapes(model), values


NOT_DYNAMIC = (
    "resize antialias", "resize crop", "one_hot", "unique", "resize one kept",
)  # fmt: skip
"""Cases without a dynamic run. Most have no sizes to leave open. One needs its sizes: an axis keeps
its size although its scale is not 1."""

RUNS = [(name, False) for name in CASES]
RUNS += [(name, True) for name in CASES if not name.startswith(NOT_DYNAMIC)]


@pytest.mark.parametrize(("name", "dynamic"), RUNS)
def test_onnx_to_ir(name: str, dynamic: bool, tmp_path: Path) -> None:
    model, values = build(name, dynamic)
    bridge.convert(model, tmp_path / "model.xml")
    feed = {item.name: value for item, value in zip(model.graph.input, values, strict=True)}
    assert_close(OpenVino(tmp_path / "model.xml").run(values), OnnxRuntime(model).run(feed))


@pytest.mark.parametrize("op", ["ReduceSum <keepdims = 0>", "Squeeze", "Unsqueeze", "GatherND"])
def test_ranks_that_the_length_of_an_input_decides(op: str, tmp_path: Path) -> None:
    """OpenVINO cannot compile them as they are; with the length given they are right."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]>
        g (float[1,3] x, int64[k] a) => (float[] y) {{ y = {op} (x, a) }}"""
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    with pytest.raises(bridge.UnsupportedError, match="`input_shapes`"):
        bridge.convert(model, tmp_path / "model.xml")
    bridge.convert(model, tmp_path / "model.xml", input_shapes={"a": [1]})
    feed = {"x": np.array([[1, 2, 3]], F32), "a": np.array([0])}
    assert_close(
        OpenVino(tmp_path / "model.xml").run(list(feed.values())), OnnxRuntime(model).run(feed)
    )


def test_fewer_indices_than_data_of_open_sizes(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 21]>
        g (float[a,b,c] x, int64[d,e,f] i) => (float[d,e,f] y)
        { y = GatherElements <axis = 1> (x, i) }"""
    )
    bridge.convert(model, tmp_path / "model.xml")
    engine = OpenVino(tmp_path / "model.xml")
    for shape in ((3, 4, 2), (2, 3, 1), (0, 3, 2)):
        feed = {"x": np.arange(24, dtype=F32).reshape(3, 4, 2), "i": np.full(shape, -2)}
        assert_close(engine.run(list(feed.values())), OnnxRuntime(model).run(feed))
    back = bridge.to_onnx(tmp_path / "model.xml")
    assert [node.op_type for node in back.graph.node] == ["GatherElements"]
