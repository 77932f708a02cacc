"""Engines compute what a model says: hints that let them round more are left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from bridge.check.engines import OnnxRuntime

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((3, 32)).astype(np.float32)


def _saved(path: Path, level: int) -> Path:
    """A product with weights of 4 bits, whose data may be rounded to 8 bits at level 4."""
    node = helper.make_node(
        "MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft",
        K=32, N=8, bits=4, block_size=32, accuracy_level=level,
    )  # fmt: skip
    random = np.random.default_rng(1)
    constants = {
        "w": random.integers(0, 256, (8, 1, 16)).astype(np.uint8),
        "s": random.random((8, 1)).astype(np.float32),
    }
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 32])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 8])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )  # fmt: skip
    sets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=sets, ir_version=10)
    onnx.save(
        model, path, save_as_external_data=True, location=f"{path.name}.data", size_threshold=0
    )
    return path


def test_onnxruntime_rounds_no_data(tmp_path: Path) -> None:
    exact, rounds = (_saved(tmp_path / f"{level}.onnx", level) for level in (0, 4))
    wanted = OnnxRuntime().load(exact).run({"x": X})["y"]
    assert (OnnxRuntime().load(rounds).run({"x": X})["y"] == wanted).all()
    # The user's own setting is the default.
    assert not np.allclose(OnnxRuntime(plain=False).load(rounds).run({"x": X})["y"], wanted, 1e-4)
