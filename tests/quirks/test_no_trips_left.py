"""Loops that run no iteration after a model is reshaped, and OpenVINO notices it. That may crash,
so each runs in a process of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import bridge
from bridge.check.isolation import isolated

TRIPS = {
    "a size": ("n = Squeeze (sizes)", 0),
    "less than a size": (
        "one = Constant <value_int = 1> () m = Squeeze (sizes) n = Sub (m, one)",
        1,
    ),
}
"""The nodes that compute the trip count, and the size that makes it 0."""


def shape_of_stack(ir: Path, size: int) -> tuple[int, ...]:
    import openvino

    core = openvino.Core()
    model = core.read_model(ir)
    model.reshape({"z": [size]})
    found = core.compile_model(model, "CPU")([np.ones(2, np.float32), np.ones(size, np.float32)])
    return found[0].shape


@pytest.mark.parametrize("name", TRIPS)
def test_reshaped_to_nothing(name: str, tmp_path: Path) -> None:
    trips, size = TRIPS[name]
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[2] x, float[a] z) => (float[k,2] y) {{
        sizes = Shape (z) {trips}
        y = Loop (n, "") <body = b (int64 i, bool c) => (bool d, float[2] part) {{
            d = Identity (c) part = Neg (x) }}> }}""")
    bridge.convert(model, tmp_path / "a.xml")
    for more in (0, 1, 3):
        assert isolated(shape_of_stack, tmp_path / "a.xml", size + more) == (more, 2)
