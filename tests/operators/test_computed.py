"""Nodes with known inputs have known outputs, equal to the results of onnxruntime."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest

import bridge
import bridge.hooks  # registers what operators need
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import F32, I8, I64, TensorType
from bridge.passes.specialize import fix_values
from tests.conformance.cases import cases
from tests.support import sample
from tests.support.running import OnnxRuntime

SPECIAL = np.array([np.inf, -np.inf, -0.0, 0.5, -0.5, 1.5, -2.5, 1e30, 3e9])
"""Real numbers that operators round or that other types cannot hold."""

Feeds = dict[str, np.ndarray]


def special(feeds: Feeds, seed: int) -> Feeds:
    """Inputs with some of these numbers among them."""
    rng = np.random.default_rng(seed)
    made = {}
    for name, array in feeds.items():
        if array.dtype in (np.float32, np.float64) and array.size > 2:
            flat = array.reshape(-1).copy()
            places = rng.integers(flat.size, size=min(len(SPECIAL), flat.size // 2))
            flat[places] = rng.choice(SPECIAL, len(places))
            array = flat.reshape(array.shape)
        made[name] = array
    return made


def single_nodes() -> Iterator[tuple[str, onnx.ModelProto, Feeds]]:
    """Cases of one node that has no body, whose inputs are arrays."""
    for place, (name, case) in enumerate(cases().items()):
        graph = case.model.graph
        if len(graph.node) != 1 or any(a.HasField("g") for a in graph.node[0].attribute):
            continue
        if not all(i.type.HasField("tensor_type") for i in graph.input):
            continue
        for inputs, _ in case.data_sets:
            feeds = {i.name: np.asarray(x) for i, x in zip(graph.input, inputs, strict=False)}
            if len(feeds) == len(inputs) and all(x.dtype.kind in "biuf" for x in feeds.values()):
                if sample.WHOLE or place % 4 == 0:
                    yield name, case.model, feeds
                if sample.WHOLE or place % 4 == 2:
                    yield f"{name} special", case.model, special(feeds, place)


def computed(model: onnx.ModelProto, feeds: Feeds) -> list[np.ndarray | None]:
    """The known values of the outputs if the inputs are constants."""
    loaded = bridge.load(model)
    fix_values(loaded, feeds)
    return [known_of(value).array for value in loaded.graph.outputs]


def test_known_nodes_are_what_onnxruntime_computes() -> None:
    count, wrong = 0, []
    for name, model, feeds in single_nodes():
        known = computed(model, feeds)
        try:
            expected = OnnxRuntime(model).run(feeds)
        except Exception:  # onnxruntime lacks some operators and types.
            continue
        for one, other in zip(known, expected, strict=True):
            if one is None:
                continue
            count += 1
            same = (one.dtype, one.shape) == (other.dtype, other.shape)
            if not same or not np.allclose(one, other, rtol=1e-4, atol=1e-5):
                wrong.append(f"{name}: {one.reshape(-1)[:6]}, not {other.reshape(-1)[:6]}")
    assert not wrong, "\n".join(wrong)
    assert count > (1500 if sample.WHOLE else 300)


def known(op: str, *inputs: Any, **attributes: Any) -> Any:
    """The known value of a node's output as a list, or None."""
    array = known_of(Builder([]).op(op, *inputs, **attributes)).array
    return None if array is None else array.tolist()


I64_MAX = np.iinfo(np.int64).max

CASES: list[tuple[str, list[Any], dict[str, Any], Any]] = [
    ("Div", [[-7, 7], [2, -2]], {"floor": False}, [-3, -3]),
    ("Div", [[-7, 7], [2, -2]], {"floor": True}, [-4, -4]),
    ("Mod", [[-7.5, 7.5], [2.0, -2.0]], {"fmod": True}, [-1.5, 1.5]),
    ("Round", [[0.5, 1.5, -2.5]], {}, [0.0, 2.0, -2.0]),
    ("Cast", [[2.7, -2.7]], {"to": I64}, [2, -2]),
    ("Cast", [np.array([1.5], np.float16)], {"to": F32}, [1.5]),
    ("ArgMax", [[1.0, 5.0, 7.0]], {"axis": 0, "keepdims": False}, 2),
    ("Gather", [[0.5, 1.5], 1, 0], {}, 1.5),
    # Engines disagree on these.
    ("Div", [[7], [0]], {"floor": False}, None),
    ("Mul", [[I64_MAX], [2]], {}, None),
    ("Cast", [[3e30]], {"to": I64}, None),
    ("Cast", [[np.nan]], {"to": I64}, None),
    # Bridge leaves nodes to the engine if they take long or their result is not defined.
    ("Range", [0.0, 1e12, 1.0], {}, None),
    ("Expand", [1.0, [1 << 40]], {}, None),
    ("Add", [np.ones((1 << 10) + 1, np.float32), 1.0], {}, None),
    ("AveragePool", [np.ones((1, 1, 4), np.float32)],
     {"kernel_shape": (1 << 30,), "pads": (1 << 29, 1 << 29)}, None),
    ("RandomNormalLike", [[1.0]], {}, None),
]  # fmt: skip


@pytest.mark.parametrize("op, inputs, attributes, expected", CASES)
def test_what_is_known_of_small_nodes(
    op: str, inputs: list[Any], attributes: dict[str, Any], expected: Any
) -> None:
    assert known(op, *inputs, **attributes) == expected


def test_a_long_chain_is_computed_without_recursion() -> None:
    b = Builder([])
    value = b.constant(0.5)
    for _ in range(5000):
        value = b.op("Sqrt", value)
    array = known_of(value).array
    assert array is not None and array > 0.99


def test_nothing_is_computed_that_nobody_asks_for() -> None:
    code = (
        "import sys, bridge, onnx.parser\n"
        'm = onnx.parser.parse_model(\'<ir_version: 8, opset_import: ["": 17]> '
        "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { v = Sqrt(w)  y = Add(x, v) }')\n"
        "bridge.to_openvino(m)\n"
        "print('onnx.reference' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_no_weights_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large matrix of integers is taken for weights, and has no part in sizes."""
    weights = Tensor.of(np.zeros((64, 64), np.int8))

    read = []

    def array(tensor: Tensor) -> np.ndarray:
        read.append(tensor.shape)
        return np.zeros(tensor.shape, np.int8)

    b = Builder([])
    matrix, places, axis = b.tensor(weights), Value(TensorType(I64, (3,))), b.constant(0)
    monkeypatch.setattr(Tensor, "array", array)
    for op, others in (("Gather", [places, axis]), ("Identity", []), ("Squeeze", [])):
        assert b.op(op, matrix, *others).element is I8
    assert (64, 64) not in read
