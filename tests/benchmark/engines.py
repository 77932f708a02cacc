"""Models that run in an engine on one thread, and what they give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnxruntime
import openvino

Feed = Mapping[str, np.ndarray]
Run = Callable[[], Sequence[np.ndarray]]
TOLERANCE = 2e-3


def in_onnxruntime(path: Path, feed: Feed, optimized: bool = True) -> Run:
    options = onnxruntime.SessionOptions()
    if not optimized:
        level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.graph_optimization_level = level
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feed)


def in_openvino(path: Path, feed: Feed) -> Run:
    settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    compiled = openvino.Core().compile_model(path, "CPU", settings)
    request = compiled.create_infer_request()
    for port in compiled.inputs:
        name = next(name for name in feed if name in port.names)
        request.set_tensor(port, openvino.Tensor(feed[name]))

    def run() -> list[np.ndarray]:
        request.infer()
        return [tensor.data for tensor in request.output_tensors]

    return run


def differ(ours: Run, theirs: Run) -> bool:
    """Whether outputs differ by more than the engines' own ways of computing do."""
    pairs = zip(ours(), theirs(), strict=True)
    return any(
        a.shape != b.shape or (a.size and np.abs(a - b).max() > TOLERANCE * max(1, np.abs(b).max()))
        for a, b in pairs
    )
