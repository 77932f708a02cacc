"""Matrix products, recurrent layers, random numbers and signals of IR, written as ONNX. OpenVINO
writes the files; onnxruntime computes the same numbers from the converted ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino as ov
import pytest

import bridge
from tests.support.ir_operators import Constant, of
from tests.support.running import OnnxRuntime, OpenVino, assert_close

F32, I64 = np.float32, np.int64
_RNG = np.random.default_rng(3)


def random(*shape: int, type: Any = F32) -> np.ndarray:
    return (0.5 * _RNG.normal(size=shape)).astype(type)


def integers(*shape: int, type: Any = np.int32) -> np.ndarray:
    return _RNG.integers(-9, 9, size=shape).astype(type)


Case = tuple[Callable[..., Any], tuple[Any, ...]]
CASES: dict[str, Case] = {}

# Matrix products
for a, c in (((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (5, 4, 2)), ((4,), (2, 4, 3)),
             ((2, 3, 4), (4,)), ((4,), (4,))):  # fmt: skip
    for ta in (False, True):
        for tb in (False, True):
            first = a if not ta or len(a) < 2 else (*a[:-2], a[-1], a[-2])
            second = c if not tb or len(c) < 2 else (*c[:-2], c[-1], c[-2])
            CASES[f"matmul {a} {c} {ta} {tb}"] = (
                of(1, "MatMul", transpose_a=ta, transpose_b=tb),
                (random(*first), random(*second)),
            )
for type in (np.float16, np.float64):
    CASES[f"matmul {type.__name__}"] = (
        of(1, "MatMul", transpose_a=False, transpose_b=True),
        (random(3, 4, type=type), random(5, 4, type=type)),
    )
CASES["matmul i32"] = (
    of(1, "MatMul", transpose_a=False, transpose_b=True),
    (integers(3, 4), integers(5, 4)),
)
CASES["matmul i8"] = (  # ONNX's MatMul takes no i8; few enough that OpenVINO does not saturate
    of(1, "MatMul", transpose_a=False, transpose_b=True),
    (np.array([[1, -2], [3, 4]], np.int8), np.array([[5, 6], [-7, 1]], np.int8)),
)
CASES["matmul of a constant"] = (
    of(1, "MatMul", transpose_a=False, transpose_b=True),
    (random(2, 3, 4), Constant(random(5, 4))),
)
for equation, *shapes in (
    ("ij,jk->ik", (2, 3), (3, 4)), ("...ij,...jk->...ik", (5, 2, 3), (3, 4)), ("ii->i", (3, 3)),
    ("ijk->kji", (2, 3, 4)), ("i,i", (4,), (4,)),
    ("bij,bkj,bik->b", (2, 3, 4), (2, 5, 4), (2, 3, 5)),
):  # fmt: skip
    CASES[f"einsum {equation}"] = (
        of(7, "Einsum", equation=equation), tuple(random(*s) for s in shapes),
    )  # fmt: skip
for adjoint in (False, True):
    CASES[f"inverse {adjoint}"] = of(14, "Inverse", adjoint=adjoint), (random(2, 3, 4, 4),)
CASES["inverse with zeros on the diagonal"] = (
    of(14, "Inverse", adjoint=False), (np.array([[0, 2, 0], [0, 0, 4], [1, 1, 0]], F32),),
)  # fmt: skip

# OpenVINO's CPU plugin runs constant weights alone, and refuses rows behind the last group's.
EXPERTS = Constant(random(3, 5, 4))
for offsets in ([2, 5, 7], [0, 3, 7], [2, 2, 7], [7, 7, 7]):
    for type in (np.int32, I64):
        CASES[f"grouped matmul {offsets} {type.__name__}"] = (
            of(17, "GroupedMatMul"), (random(7, 4), EXPERTS, np.array(offsets, type)),
        )  # fmt: skip
CASES["grouped matmul of constant offsets"] = (
    of(17, "GroupedMatMul"), (random(7, 4), EXPERTS, Constant([1, 1, 7], I64)),
)  # fmt: skip
CASES["grouped matmul of one group"] = (
    of(17, "GroupedMatMul"), (random(7, 4), Constant(random(1, 5, 4)), np.array([7], I64)),
)  # fmt: skip
CASES["grouped matmul of batches"] = of(17, "GroupedMatMul"), (random(3, 2, 4), EXPERTS)

# Attention
QUERY, KEY, VALUE = random(2, 3, 5, 4), random(2, 3, 7, 4), random(2, 3, 7, 6)
MASK = random(2, 1, 5, 7)
SEEN = np.array(MASK > -0.6)
SINK = random(1, 3, 1, 1)
SEEN[..., 0] = True
for causal in (False, True):
    attend = of(13, "ScaledDotProductAttention", causal=causal)
    CASES[f"attention {causal}"] = attend, (QUERY, KEY, VALUE)
    CASES[f"attention {causal} mask"] = attend, (QUERY, KEY, VALUE, MASK)
    CASES[f"attention {causal} boolean mask"] = attend, (QUERY, KEY, VALUE, SEEN)
    CASES[f"attention {causal} scale"] = attend, (QUERY, KEY, VALUE, MASK, F32(0.3))
    CASES[f"attention {causal} sink"] = attend, (QUERY, KEY, VALUE, MASK, F32(0.3), SINK)
    CASES[f"attention {causal} zero mask"] = (
        attend, (QUERY, KEY, VALUE, Constant(0, F32), Constant(0.3, F32)),
    )  # fmt: skip
CASES["attention f16"] = attend, tuple(x.astype(np.float16) for x in (QUERY, KEY, VALUE))

# Recurrent cells and sequences
BATCH, SEQ, WIDTH, HIDDEN = 2, 5, 3, 4
LSTM, GRU, RNN = ["sigmoid", "tanh", "tanh"], ["sigmoid", "tanh"], ["tanh"]


def cell(version: int, name: str, gates: int, states: int, bias: int, **more: Any) -> Case:
    weights = [random(gates * HIDDEN, WIDTH), random(gates * HIDDEN, HIDDEN), random(bias * HIDDEN)]
    inputs = [random(BATCH, WIDTH), *(random(BATCH, HIDDEN) for _ in range(states))]
    return of(version, name, hidden_size=HIDDEN, **more), (*inputs, *map(Constant, weights))


def sequence(
    name: str, gates: int, states: int, bias: int, lengths: Any, direction: str, **more: Any
) -> Case:
    ways = 2 if direction == "bidirectional" else 1
    weights = [
        random(ways, gates * HIDDEN, WIDTH),
        random(ways, gates * HIDDEN, HIDDEN),
        random(ways, bias * HIDDEN),
    ]
    inputs = [
        random(BATCH, SEQ, WIDTH),
        *(random(BATCH, ways, HIDDEN) for _ in range(states)),
        lengths,
    ]
    build = of(5, name, hidden_size=HIDDEN, direction=direction, **more)
    return build, (*inputs, *map(Constant, weights))


CASES["LSTMCell-4"] = cell(4, "LSTMCell", 4, 2, 4, activations=LSTM)
CASES["LSTMCell-4 relu, clipped"] = cell(
    4, "LSTMCell", 4, 2, 4, activations=["sigmoid", "relu", "tanh"], clip=0.3
)
CASES["LSTMCell-1"] = cell(1, "LSTMCell", 4, 2, 4, activations=LSTM)
CASES["GRUCell"] = cell(3, "GRUCell", 3, 1, 3, activations=GRU)
CASES["GRUCell linear"] = cell(3, "GRUCell", 3, 1, 4, activations=GRU, linear_before_reset=True)
CASES["RNNCell-1"] = cell(1, "RNNCell", 1, 1, 1, activations=RNN)
CASES["RNNCell-3 relu"] = cell(3, "RNNCell", 1, 1, 1, activations=["relu"], clip=1.0)
ALL, SOME = Constant([SEQ, SEQ], np.int32), Constant([2, 4], np.int32)
for direction in ("forward", "reverse", "bidirectional"):
    for what, lengths in (("all", ALL), ("some", SOME), ("computed", np.array([5, 1], I64))):
        label = f"{direction} {what}"
        CASES[f"LSTMSequence {label}"] = sequence(
            "LSTMSequence", 4, 2, 4, lengths, direction, activations=LSTM
        )
        CASES[f"GRUSequence {label}"] = sequence(
            "GRUSequence", 3, 1, 3, lengths, direction, activations=GRU
        )
        CASES[f"GRUSequence linear {label}"] = sequence(
            "GRUSequence", 3, 1, 4, lengths, direction, activations=GRU, linear_before_reset=True
        )
        CASES[f"RNNSequence {label}"] = sequence(
            "RNNSequence", 1, 1, 1, lengths, direction, activations=RNN, clip=0.5
        )

# Signals
WAVE, COMPLEX = random(2, 6, 5), random(2, 6, 5, 2)
for axes, sizes in (([1], None), ([-1, 0], None), ([2, 1], [4, -1]), ([-2], [8])):
    extra = (Constant(axes, I64), *(() if sizes is None else (Constant(sizes, I64),)))
    for name in ("DFT", "IDFT"):
        CASES[f"{name} {axes} {sizes}"] = of(7, name), (COMPLEX, *extra)
    # OpenVINO accepts no larger signal_size, and no -1.
    if sizes is None or sizes == [4, -1]:
        extra = (extra[0], *([] if sizes is None else [Constant([4, 6], I64)]))
        CASES[f"RDFT {axes} {sizes}"] = of(9, "RDFT"), (WAVE, *extra)
    if sizes is None or sizes == [8]:
        CASES[f"IRDFT {axes} {sizes}"] = of(9, "IRDFT"), (COMPLEX, *extra)
SIGNAL, WINDOW = random(2, 30), np.hanning(8).astype(F32)
FRAME, STEP = Constant(8, I64), Constant(3, I64)
for transposed in (False, True):
    stft = of(15, "STFT", transpose_frames=transposed)
    CASES[f"STFT {transposed}"] = stft, (SIGNAL, WINDOW, FRAME, STEP)
    CASES[f"STFT {transposed} of a vector"] = stft, (SIGNAL[0], WINDOW, FRAME, STEP)
    CASES[f"STFT {transposed}, short window"] = stft, (SIGNAL, WINDOW[1:-2], FRAME, STEP)
SPECTRUM = random(2, 5, 6, 2)
for centred in (False, True):
    istft = of(16, "ISTFT", center=centred, normalized=centred)
    CASES[f"ISTFT {centred}"] = istft, (SPECTRUM, WINDOW, FRAME, STEP)
    CASES[f"ISTFT {centred} of one"] = istft, (SPECTRUM[0], WINDOW[1:-2], FRAME, STEP)
    for length in (12, 40):
        CASES[f"ISTFT {centred} to {length}"] = (
            istft, (SPECTRUM, WINDOW, FRAME, STEP, Constant(length, I64)),
        )  # fmt: skip


def convert(case: Case, folder: Path, **options: Any) -> tuple[Path, Path, list[np.ndarray]]:
    """OpenVINO's file, Bridge's file, and the arrays of the inputs."""
    build, arguments = case
    nodes, parameters, arrays = [], [], []
    for argument in arguments:
        if isinstance(argument, Constant):
            nodes.append(ov.opset1.constant(argument.value).output(0))
            continue
        array = np.asarray(argument)
        parameter = ov.opset1.parameter(list(array.shape), ov.Type(array.dtype))
        parameter.output(0).tensor.set_names({f"in{len(arrays)}"})
        parameters.append(parameter)
        arrays.append(array)
        nodes.append(parameter.output(0))
    source, target = folder / "a.xml", folder / "a.onnx"
    ov.save_model(ov.Model(build(*nodes).outputs(), parameters), source, False)
    bridge.convert(source, target, **options)
    onnx.checker.check_model(onnx.load(target), full_check=True)
    return source, target, arrays


@pytest.mark.parametrize("name", CASES)
def test_same_numbers(name: str, tmp_path: Path) -> None:
    source, target, arrays = convert(CASES[name], tmp_path)
    feed = {f"in{index}": array for index, array in enumerate(arrays)}
    assert_close(OnnxRuntime(target).run(feed), OpenVino(source).run(arrays))


def test_grouped_matmul_of_computed_weights(tmp_path: Path) -> None:
    """OpenVINO's CPU plugin cannot run it. The expected numbers follow OpenVINO's specification,
    with the second matrices transposed as in this release."""
    rows, weights, offsets = random(7, 4), random(3, 5, 4), np.array([2, 2, 7], I64)
    source, target, arrays = convert((of(17, "GroupedMatMul"), (rows, weights, offsets)), tmp_path)
    expected = np.concatenate([rows[:2] @ weights[0].T, rows[2:] @ weights[2].T])
    (found,) = OnnxRuntime(target).run({f"in{i}": array for i, array in enumerate(arrays)})
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)
    again = tmp_path / "b.xml"
    bridge.convert(source, again)
    assert "GroupedMatMul" in again.read_text()


@pytest.mark.parametrize(
    ("name", "gates", "functions"),
    [("GRUCell", 3, ["hardsigmoid", "tanh"]), ("RNNCell", 1, ["hardsigmoid"])],
)
def test_cells_of_unknown_sizes_come_back(
    name: str, gates: int, functions: list[str], tmp_path: Path
) -> None:
    """The cells have activations that only a Loop can express, and states whose sizes the file
    leaves open. OpenVINO reads such cells, but cannot run them."""
    build, (x, h, *weights) = cell(
        3, name, gates, 1, gates, activations=functions, activations_alpha=[0.3],
        activations_beta=[0.4],
    )  # fmt: skip
    parameters = [ov.opset1.parameter([-1, -1], ov.Type.f32) for _ in range(2)]
    y = build(*parameters, *(ov.opset1.constant(w.value) for w in weights))
    ov.save_model(ov.Model(y.outputs(), parameters), tmp_path / "a.xml", False)
    bridge.convert(tmp_path / "a.xml", tmp_path / "a.onnx")
    bridge.convert(tmp_path / "a.onnx", tmp_path / "b.xml")
    session = OnnxRuntime(tmp_path / "a.onnx")
    inputs = [item.name for item in session.session.get_inputs()]
    found = OpenVino(tmp_path / "b.xml").run([x, h])
    assert_close(found, session.run(dict(zip(inputs, (x, h), strict=True))))


@pytest.mark.parametrize("opset", [17, 21])
@pytest.mark.parametrize("wide", ["f32", "f16"])
@pytest.mark.parametrize(
    ("type", "values"),
    [("nf4", np.linspace(-1, 1, 33)), ("u1", np.arange(11) % 3 % 2), ("u3", np.arange(10) % 8),
     ("u6", np.arange(21) * 3)],
)  # fmt: skip
def test_constants_of_types_that_onnx_lacks(
    type: str, values: np.ndarray, wide: str, opset: int, tmp_path: Path
) -> None:
    constant = ov.op.Constant(getattr(ov.Type, type), ov.Shape([len(values)]), list(values))
    x = ov.opset1.parameter([1], ov.Type.f32)
    y = ov.opset1.convert(ov.opset1.convert(constant, wide), "f32")
    ov.save_model(ov.Model([ov.opset1.multiply(y, x)], [x]), tmp_path / "a.xml", False)
    bridge.convert(tmp_path / "a.xml", tmp_path / "a.onnx", opset=opset)
    onnx.checker.check_model(onnx.load(tmp_path / "a.onnx"), full_check=True)
    session = OnnxRuntime(tmp_path / "a.onnx")
    (name,) = [i.name for i in session.session.get_inputs()]
    one = np.ones(1, F32)
    assert_close(session.run({name: one}), OpenVino(tmp_path / "a.xml").run([one]))
