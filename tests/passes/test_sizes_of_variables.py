"""Variables whose size changes from call to call, and at a reset, in an IR that went to ONNX and
came back. OpenVINO runs most of these IRs wrongly, so numpy computes the expected numbers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

import bridge
from tests.support.running import EXACT, run_request


def whole(*values: int) -> ov.Node:
    return ops.constant(np.array(values, np.int64))


def rows(x: ov.Node, start: int, end: int) -> ov.Node:
    return ops.slice(x, whole(start), whole(end), whole(1), whole(0))


def half(x: ov.Node) -> ov.Node:
    count = ops.divide(ops.gather(ops.shape_of(x), whole(0), whole(0)), whole(2))
    return ops.broadcast(ops.constant(np.float32(3)), ops.concat([count, whole(2)], 0))


Array = np.ndarray
Made = Callable[[ov.Node], ov.Node]

STARTS: dict[str, tuple[Made, Callable[[Array], Array]]] = {
    "as large as the input": (ops.absolute, np.abs),
    "half as large": (half, lambda x: np.full((len(x) // 2, 2), 3, np.float32)),
    "a row": (lambda x: rows(x, 0, 1), lambda x: x[:1]),
    "constant": (
        lambda x: ops.constant(np.full((2, 2), 5, np.float32)),
        lambda x: np.full((2, 2), 5, np.float32),
    ),
}
TAKEN: dict[
    str, tuple[Callable[[ov.Node, ov.Node], ov.Node], Callable[[Array, Array], Array]]
] = {
    "twice the input": (
        lambda x, held: ops.concat([x, x], 0), lambda x, held: np.concatenate([x, x])
    ),
    "another size than the start": (
        lambda x, held: ops.negative(x), lambda x, held: -x
    ),
    "a known size": (
        lambda x, held: ops.reduce_sum(x, whole(0), keep_dims=True),
        lambda x, held: x.sum(0, keepdims=True),
    ),
    "what it held, and more": (
        lambda x, held: ops.concat([held, x], 0), lambda x, held: np.concatenate([held, x])
    ),
}  # fmt: skip


@pytest.mark.parametrize(("start", "taken"), list(product(STARTS, TAKEN)))
def test_calls(start: str, taken: str, tmp_path: Path) -> None:
    (first, first_of), (after, after_of) = STARTS[start], TAKEN[taken]
    x = ops.parameter([-1, 2], np.float32)
    held = ops.read_value(first(x), "held", np.float32, ov.PartialShape([-1, 2]))
    results, sinks = [ops.result(ops.negative(held))], [ops.assign(after(x, held), "held")]
    ov.save_model(ov.Model(results, sinks, [x]), tmp_path / "a.xml", compress_to_fp16=False)
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx")
    bridge.convert(tmp_path / "b.onnx", tmp_path / "c.xml")
    request = ov.Core().compile_model(tmp_path / "c.xml", "CPU", EXACT).create_infer_request()
    for counts in ((2, 3, 1), (4, 4), (2, 5, 2), (6,)):
        request.reset_state()
        state = None
        for place, count in enumerate(counts):
            given = np.arange(2 * count, dtype=np.float32).reshape(count, 2) - place
            state = first_of(given) if state is None else state
            np.testing.assert_array_equal(run_request(request, [given])[0], -state)
            state = after_of(given, state)
