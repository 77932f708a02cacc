"""Matrix products with weights of few bits go to IR and come back as the same operator, with
weights of the same size."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import openvino
import pytest
from onnx import TensorProto, helper
from openvino import opset13 as ops

import bridge
from bridge.errors import UnsupportedError
from tests.support.running import EXACT

ROWS = 48


@dataclass(frozen=True)
class Case:
    """A MatMulNBits with ROWS outputs."""

    length: int = 128
    bits: int = 4
    block: int = 32
    zeros: bool = False
    opset: int = 21
    accuracy: int | None = None


CASES = {
    "symmetric": Case(),
    "zero points": Case(zeros=True),
    "8 bits": Case(bits=8),
    "8 bits, zero points": Case(bits=8, zeros=True),
    "small blocks": Case(block=16, zeros=True),
    "large blocks": Case(block=128, zeros=True),
    "an odd number of blocks": Case(length=96, zeros=True),
    "the last block is not full": Case(length=80, zeros=True),
    "an operator set without 4 bits": Case(opset=17, zeros=True),
    "an accuracy that is asked for": Case(accuracy=4),
}


def made(case: Case, *more: str) -> onnx.ModelProto:
    """The model; `more` are further inputs of the node."""
    random = np.random.default_rng(7)
    blocks = -(-case.length // case.block)
    packed = random.integers(0, 256, (ROWS, blocks, case.block * case.bits // 8), np.uint8)
    scale = random.random(ROWS * blocks, np.float32) * 0.1 + 0.01
    zeros = random.integers(0, 256, ROWS * -(-blocks * case.bits // 8), np.uint8)
    if blocks * case.bits % 8:
        zeros = (zeros.reshape(ROWS, -1) & np.r_[[255] * (blocks // 2), 15].astype("u1")).ravel()
    constants = {"w": packed, "s": scale, "z": zeros}
    names = ["w", "s", "z"] if case.zeros else ["w", "s"]
    asked = {} if case.accuracy is None else {"accuracy_level": case.accuracy}
    node = helper.make_node(
        "MatMulNBits", ["x", *names, *more], ["y"], "product", domain="com.microsoft",
        K=case.length, N=ROWS, bits=case.bits, block_size=case.block, **asked,
    )  # fmt: skip
    graph = helper.make_graph(
        [node],
        "few_bits",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", case.length])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", ROWS])],
        [onnx.numpy_helper.from_array(constants[name], name) for name in names],
    )
    sets = [helper.make_opsetid("", case.opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=sets, ir_version=8)


def parts(model: onnx.ModelProto) -> list[object]:
    """The nodes of a model with their constants."""
    constants = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    return [
        (
            node.domain, node.op_type, node.name,
            {a.name: a.i for a in node.attribute},
            [(name, constants[name].tobytes()) for name in node.input if name in constants],
        )
        for node in model.graph.node
    ]  # fmt: skip


def run(model: Path, x: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": x})[0])


@pytest.mark.parametrize("name", CASES)
def test_there_and_back(name: str, tmp_path: Path) -> None:
    case, there, back = CASES[name], tmp_path / "a.xml", tmp_path / "b.onnx"
    source = made(case)
    onnx.save(source, tmp_path / "a.onnx")
    bridge.convert(tmp_path / "a.onnx", there)
    bridge.convert(there, back)
    found = onnx.load(back)
    assert parts(found) == parts(source)
    assert found.opset_import == source.opset_import
    x = np.random.default_rng(1).standard_normal((3, case.length)).astype(np.float32)
    wanted = run(tmp_path / "a.onnx", x)
    np.testing.assert_array_equal(run(back, x), wanted)
    (result,) = openvino.Core().compile_model(there, "CPU", EXACT)(x).values()
    np.testing.assert_allclose(result, wanted, rtol=0.02, atol=0.5 if case.accuracy else 1e-2)
    assert there.with_suffix(".bin").stat().st_size < back.stat().st_size


def test_the_weights_of_an_ir_stay_of_few_bits(tmp_path: Path) -> None:
    """The IR never was ONNX. Its weights have the form from which onnxruntime makes the same
    operator."""
    bridge.convert(made(Case(zeros=True)), tmp_path / "a.xml")
    model = openvino.Core().read_model(tmp_path / "a.xml")
    bare = openvino.Model(model.get_results(), model.get_parameters(), "bare")
    openvino.save_model(bare, tmp_path / "b.xml", compress_to_fp16=False)
    bridge.convert(tmp_path / "b.xml", tmp_path / "b.onnx")
    initializers = onnx.load(tmp_path / "b.onnx").graph.initializer
    assert TensorProto.UINT4 in {tensor.data_type for tensor in initializers}
    assert not any(t.data_type == TensorProto.FLOAT and t.dims[:1] == [128] for t in initializers)
    x = np.random.default_rng(1).standard_normal((3, 128)).astype(np.float32)
    (wanted,) = openvino.Core().compile_model(tmp_path / "b.xml", "CPU", EXACT)(x).values()
    np.testing.assert_allclose(by_default(tmp_path / "b.onnx", x), wanted, rtol=1e-5, atol=1e-5)


def test_an_order_of_the_rows_is_refused() -> None:
    case = Case(zeros=True)
    model = made(case, "g")
    order = np.arange(case.length, dtype=np.int32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(order, "g"))
    with pytest.raises(UnsupportedError, match="g_idx"):
        bridge.to_openvino(model)


def by_default(path: Path, x: np.ndarray) -> np.ndarray:
    """What onnxruntime computes with all of its optimisations, as people run it."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


COMPRESSED = {
    "i4, groups": ("i4", 32, TensorProto.INT4),
    "u4, groups": ("u4", 32, TensorProto.UINT4),
    "u4, a scale for each row": ("u4", 0, TensorProto.UINT4),
    "u8, a scale for each row": ("u8", 0, TensorProto.UINT8),
    "i8, a scale for each row": ("i8", 0, TensorProto.INT8),
}


def compress(kind: str, group: int, path: Path) -> None:
    """Writes an IR with a product with a matrix as NNCF compresses it: f16, unsigned integers with
    zero points, in groups along the rows of the matrix."""
    random, element = np.random.default_rng(3), getattr(openvino.Type, kind)
    alive: list[np.ndarray] = []  # OpenVINO's tensors do not keep their memory.
    shape = [ROWS, 128 // group, group] if group else [ROWS, 128]
    grid = [*shape[:-1], 1]

    def integers(*shape: int) -> openvino.Node:
        bits = int(kind[1:])
        packed = random.integers(0, 256, int(np.prod(shape)) * bits // 8, np.uint8)
        data = packed.view(np.int8) if kind == "i8" else packed
        alive.append(data)
        constant = ops.constant(openvino.Tensor(data, openvino.Shape(shape), element))
        return ops.convert(constant, np.float16)

    x = ops.parameter([-1, -1, 128], np.float32, name="x")
    weights = integers(*shape)
    if kind.startswith("u"):
        weights = ops.subtract(weights, integers(*grid))
    scale = (random.random(grid) * 0.01 + 0.001).astype(np.float16)
    weights = ops.multiply(weights, ops.constant(scale))
    if group:
        weights = ops.reshape(weights, ops.constant(np.array([ROWS, 128])), False)
    y = ops.matmul(x, ops.convert(weights, np.float32), False, True)
    x.output(0).set_names({"x"})
    y.output(0).set_names({"y"})
    openvino.save_model(openvino.Model([y], [x], "compressed"), path, compress_to_fp16=False)


@pytest.mark.parametrize("name", COMPRESSED)
def test_compressed_weights(name: str, tmp_path: Path) -> None:
    """The weights stay of few bits. With all optimisations, onnxruntime quantises nothing else."""
    kind, group, element = COMPRESSED[name]
    model, back = tmp_path / "a.xml", tmp_path / "b.onnx"
    compress(kind, group, model)
    bridge.convert(model, back)
    assert element in {tensor.data_type for tensor in onnx.load(back).graph.initializer}
    x = np.random.default_rng(1).standard_normal((1, 3, 128)).astype(np.float32)
    (wanted,) = openvino.Core().compile_model(model, "CPU", EXACT)(x).values()
    np.testing.assert_allclose(by_default(back, x), wanted, rtol=1e-5, atol=1e-5)
    bridge.convert(back, tmp_path / "d.xml")
    bridge.convert(tmp_path / "d.xml", tmp_path / "d.onnx")
    assert (tmp_path / "d.onnx").read_bytes() == back.read_bytes()


FORMS = {
    "a scale for all": "c = Cast<to=1>(w) d = Mul(c, one) y = MatMul(x, d)",
    "a scale for each column": "c = Cast<to=1>(w) d = Mul(c, columns) y = MatMul(x, d)",
    "a scale for each row": "c = Cast<to=1>(w) d = Mul(c, rows) y = MatMul(x, d)",
    "zero points": "c = Cast<to=1>(w) o = Cast<to=1>(zeros) z = Sub(c, o) d = Mul(z, columns) "
    "y = MatMul(x, d)",
    "zero points of floats": "c = Cast<to=1>(w) z = Sub(c, columns) d = Mul(z, columns) "
    "y = MatMul(x, d)",
    "transposed": "c = Cast<to=1>(t) d = Mul(c, upright) e = Transpose<perm=[1, 0]>(d) "
    "y = MatMul(x, e)",
    "a copy": "c = Cast<to=1>(w) d = Mul(c, columns) e = Identity(d) y = MatMul(x, e)",
    "reshaped": "c = Cast<to=1>(w) d = Mul(c, columns) e = Reshape(d, shape) y = MatMul(x, e)",
    "for two products": "c = Cast<to=1>(w) d = Mul(c, columns) a = MatMul(x, d) b = Relu(x) "
    "e = MatMul(b, d) y = Add(a, e)",
    "with a bias": "c = Cast<to=1>(w) d = Mul(c, columns) e = MatMul(x, d) y = Add(e, columns)",
    "Gemm": "c = Cast<to=1>(w) d = Mul(c, columns) y = Gemm(x, d)",
    "scaled behind": "c = Cast<to=1>(w) d = MatMul(x, c) y = Mul(d, columns)",
}


@pytest.mark.parametrize("form", FORMS)
def test_scaled_weights_by_default(form: str) -> None:
    """The way back computes the same with onnxruntime's optimisations, in as many nodes."""
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g (float[N,128] x) => (float[N,{ROWS}] y)'
        f" <int64[2] shape = {{128, {ROWS}}}> {{ {FORMS[form]} }}"
    )
    random = np.random.default_rng(5)
    w = random.integers(-100, 100, (128, ROWS)).astype(np.int8)
    columns = (random.random(ROWS) * 0.01 + 0.001).astype(np.float32)
    constants = {
        "w": w, "t": w.T.copy(), "one": np.array(0.01, np.float32), "columns": columns,
        "upright": columns[:, None], "zeros": np.full(ROWS, 3, np.int8),
        "rows": (random.random((128, 1)) * 0.01 + 0.001).astype(np.float32),
    }  # fmt: skip
    taken = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(array, name)
        for name, array in constants.items()
        if name in taken
    )
    back = bridge.to_onnx(bridge.to_openvino(model))
    x = random.standard_normal((5, 128)).astype(np.float32)
    wanted, found = (
        onnxruntime.InferenceSession(m.SerializeToString()).run(None, {"x": x})[0]
        for m in (model, back)
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    assert len(back.graph.node) <= len(model.graph.node)
