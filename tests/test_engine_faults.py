"""Faults of the engines that the other tests step around; a test fails once its fault is gone."""

from __future__ import annotations

import numpy as np
import openvino
import pytest
from onnx import parser
from openvino import opset13 as ops


@pytest.mark.xfail(reason="OpenVINO CPU 2026.4 reuses an If's output too early", strict=True)
def test_output_of_if_lives_until_it_is_read() -> None:
    x = ops.parameter([-1, 3], np.float32, "x")
    other = ops.parameter([-1], np.float32, "other")
    flag = ops.parameter([], np.bool_, "flag")
    then_in, else_in = (ops.parameter([-1, 3], np.float32) for _ in range(2))
    then_body = openvino.Model([ops.result(ops.tanh(then_in))], [then_in], "then")
    else_body = openvino.Model([ops.result(else_in)], [else_in], "else")
    chosen = ops.if_op(flag.output(0))
    chosen.set_then_body(then_body)
    chosen.set_else_body(else_body)
    chosen.set_input(x.output(0), then_in, else_in)
    value = chosen.set_output(then_body.results[0], else_body.results[0])
    first = ops.softmax(value, 1)
    second = ops.softmax(ops.cum_sum(other, ops.constant(0)), 0)
    model = openvino.Model([ops.result(first), ops.result(second)], [x, other, flag], "model")
    compiled = openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    expected = np.exp(rows) / np.exp(rows).sum(1, keepdims=True)
    for size in (6, 60, 600):
        got = compiled([rows, np.ones(size, np.float32), np.array(False)])[0]
        np.testing.assert_allclose(got, expected, 1e-4)


def run_openvino(outputs: list[openvino.Output], inputs: list, arrays: list[np.ndarray]) -> list:
    model = openvino.Model(outputs, inputs, "model")
    compiled = openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return [value.copy() for value in compiled(arrays).values()]


@pytest.mark.xfail(reason="OpenVINO CPU 2026.4 takes NaN to be greater than anything", strict=True)
def test_nan_is_not_greater() -> None:
    x = ops.parameter([2], np.float32)
    greater = ops.greater(x, ops.constant(np.float32(1)))
    (got,) = run_openvino([greater.output(0)], [x], [np.array([np.nan, 2], np.float32)])
    np.testing.assert_array_equal(got, [False, True])


@pytest.mark.xfail(reason="OpenVINO CPU 2026.4 starts ReduceMax with a finite number", strict=True)
def test_maximum_of_minus_infinity() -> None:
    x = ops.parameter([2], np.float32)
    most = ops.reduce_max(x, ops.constant(np.array([0])))
    (got,) = run_openvino([most.output(0)], [x], [np.full(2, -np.inf, np.float32)])
    assert got == -np.inf


@pytest.mark.xfail(reason="OpenVINO CPU 2026.4 adds in a slice's memory", strict=True)
def test_sum_of_slices() -> None:
    model = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
    sums (float[4,1,3] x, float[1,3] start) => (float[1,3] total, float[4,1,3] all) {
      total, all = Scan<num_scan_inputs = 1, body = step (float[1,3] h, float[1,3] part)
          => (float[1,3] next, float[1,3] copy) { next = Add(part, h) copy = Identity(next) }
      >(start, x)
    }""")
    compiled = openvino.Core().compile_model(
        openvino.Core().read_model(model.SerializeToString()), "CPU"
    )
    rows = np.arange(12, dtype=np.float32).reshape(4, 1, 3)
    got = compiled([rows, np.zeros((1, 3), np.float32)])[1]
    np.testing.assert_array_equal(got, rows.cumsum(0))


@pytest.mark.xfail(reason="OpenVINO CPU 2026.4 ignores lengths where X is dynamic", strict=True)
def test_lengths_of_a_dynamic_sequence() -> None:
    x, lengths = ops.parameter([-1, 4, 2], np.float32), ops.parameter([-1], np.int32)
    start = ops.parameter([-1, 1, 3], np.float32)
    weights = [ops.constant(np.ones(s, np.float32)) for s in ((1, 3, 2), (1, 3, 3), (1, 3))]
    node = ops.rnn_sequence(x, start, lengths, *weights, 3, "forward", ["tanh"])
    arrays = [
        np.ones((1, 4, 2), np.float32),
        np.zeros((1, 1, 3), np.float32),
        np.array([2], np.int32),
    ]
    got = run_openvino([node.output(0)], [x, start, lengths], arrays)[0]
    np.testing.assert_array_equal(got[0, 0, 2:], 0)
