"""The two engines, run plainly, for tests that compare numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import openvino

import bridge

onnxruntime.set_default_logger_severity(4)

EXACT = {
    "INFERENCE_PRECISION_HINT": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
    "KV_CACHE_PRECISION": "f32",
}
"""OpenVINO's settings without loss of bits. Without the second setting, processors with VNNI
multiply by weights of few bits in 8 bits. Without the third, caches of attention have 8 bits."""

# Relative and absolute tolerance by the size of a float in bytes. OpenVINO's CPU plugin computes
# 64-bit floats in 32 bits.
_TOLERANCE = {2: 2e-3, 4: 2e-5, 8: 2e-5}


class OnnxRuntime:
    """An ONNX model in onnxruntime, graph optimisations off."""

    def __init__(self, model: onnx.ModelProto | Path) -> None:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        source = str(model) if isinstance(model, Path) else model.SerializeToString()
        self.session = onnxruntime.InferenceSession(
            source, options, providers=["CPUExecutionProvider"]
        )

    def run(self, feed: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        return self.session.run(None, dict(feed))


def run_request(request: openvino.InferRequest, values: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of one inference."""
    given(request, values)
    request.infer()
    return taken(request)


def given(request: openvino.InferRequest, values: Sequence[np.ndarray]) -> None:
    """Gives a request its inputs."""
    for position, value in enumerate(values):
        request.set_input_tensor(position, _tensor(value))


def taken(request: openvino.InferRequest, copies: bool = True) -> list[np.ndarray]:
    """The outputs of the last inference; without copies, those of numbers are the memory of the
    request."""
    return [
        _array(tensor) if copies or tensor.element_type in UNLIKE else tensor.data
        for tensor in request.output_tensors
    ]


def _tensor(value: np.ndarray) -> openvino.Tensor:
    if value.dtype == ml_dtypes.bfloat16:  # OpenVINO's interface knows no dtype for it.
        tensor = openvino.Tensor(openvino.Type.bf16, value.shape)
        tensor.data[...] = value.view(np.float16)
        return tensor
    if value.dtype == ml_dtypes.uint2:  # Four of them are a byte, the first in its lowest bits.
        tensor = openvino.Tensor(openvino.Type.u2, value.shape)
        bits = np.unpackbits(value.astype(np.uint8)[..., None], axis=-1, bitorder="little")
        tensor.data.reshape(-1)[...] = np.packbits(bits[..., :2].reshape(-1), bitorder="little")
        return tensor
    return openvino.Tensor(value.astype(str) if value.dtype == object else value)


UNLIKE = (openvino.Type.bf16, openvino.Type.string)
"""Types whose memory numpy does not show as it is."""


def _array(tensor: openvino.Tensor) -> np.ndarray:
    if tensor.element_type == openvino.Type.bf16:
        return tensor.data.view(ml_dtypes.bfloat16).copy()
    if tensor.element_type == openvino.Type.string:
        # Reading `data` of strings crashes if there are no strings.
        return np.array(tensor.str_data, object)
    return tensor.data.copy()


class OpenVino:
    """A model on a plugin of OpenVINO, by default the CPU plugin, computing in 32-bit floats."""

    def __init__(self, model: openvino.Model | Path, device: str = "CPU") -> None:
        settings = EXACT if device == "CPU" else {"INFERENCE_PRECISION_HINT": "f32"}
        self.compiled = openvino.Core().compile_model(model, device, settings)

    def run(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        return run_request(self.compiled.create_infer_request(), values)

    def run_by_name(self, values: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        """The outputs by each of their tensor names."""
        return self.named(self._infer(values))

    def named(self, request: openvino.InferRequest) -> dict[str, np.ndarray]:
        """The outputs of a request by each of their tensor names."""
        return {
            name: _array(tensor)
            for port, tensor in zip(self.compiled.outputs, request.output_tensors, strict=True)
            for name in port.get_names()
        }

    def run_packed(self, boundary: bridge.Boundary, feed: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs of the ONNX model that the model comes from, by name."""
        packed = bridge.pack(boundary, feed)
        return bridge.unpack(boundary, self.run_by_name(list(packed.values())))

    def run_once(
        self, request: openvino.InferRequest, boundary: bridge.Boundary, feed: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The outputs by name of one inference of this request."""
        packed = bridge.pack(boundary, feed)
        run_request(request, [np.array(value) for value in packed.values()])
        return bridge.unpack(boundary, self.named(request))

    def _infer(self, values: Sequence[np.ndarray]) -> openvino.InferRequest:
        request = self.compiled.create_infer_request()
        run_request(request, values)
        return request


def flat(values: Sequence[Any]) -> list[np.ndarray]:
    """Sequences flattened, with their lengths; False for an absent optional."""
    result: list[np.ndarray] = []
    for value in values:
        if value is None:
            result.append(np.array(False))
        elif isinstance(value, list):
            result += [np.array(len(value)), *value]
        else:
            result.append(value)
    return result


def assert_close(
    actual: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    tolerances: Mapping[int, float] = _TOLERANCE,
) -> None:
    """Asserts equal count, element types, shapes, and values (floats within tolerance)."""
    assert len(actual) == len(expected)
    for position, (got, want) in enumerate(zip(actual, expected, strict=True)):
        where = f"output {position}"
        assert got.dtype == want.dtype, f"{where}: {got.dtype} for {want.dtype}"
        assert got.shape == want.shape, f"{where}: {got.shape} for {want.shape}"
        if np.issubdtype(want.dtype, np.floating):
            tolerance = tolerances[want.dtype.itemsize]
            np.testing.assert_allclose(got, want, tolerance, tolerance, err_msg=where)
        elif want.dtype.isbuiltin == 2:  # f32 holds bf16 and few bits, and its NaN equals NaN.
            np.testing.assert_array_equal(got.astype(np.float32), want.astype(np.float32), where)
        else:
            np.testing.assert_array_equal(got, want, where)
