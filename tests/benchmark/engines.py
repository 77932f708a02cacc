"""Models that run in an engine on one thread, and their outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import openvino

import bridge

Feed = Mapping[str, Any]
"""Inputs by name: arrays, lists of arrays for sequences, None for an absent optional."""
Run = Callable[[], Sequence[Any]]
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
    feed = bridge.pack(path, feed) if path.suffix == ".xml" else feed
    for port in compiled.inputs:
        name = next(name for name in feed if name in port.names)
        request.set_tensor(port, openvino.Tensor(feed[name]))

    def run() -> list[np.ndarray]:
        request.infer()
        return [tensor.data for tensor in request.output_tensors]

    return run


def unpacked(run: Run, ir: Path, outputs: Sequence[str]) -> Run:
    """A run of an IR that returns the outputs of the ONNX model with these names."""
    boundary = bridge.Boundary.of(ir)
    if not boundary:
        return run
    ports = [value.name for value in bridge.load(ir).graph.outputs]

    def values() -> list[Any]:
        found = bridge.unpack(boundary, dict(zip(ports, run(), strict=True)))
        return [found[name] for name in outputs]

    return values


def differ(ours: Run, theirs: Run) -> bool:
    """Whether outputs differ by more than the engines' usual rounding."""
    return any(_differ(a, b) for a, b in zip(ours(), theirs(), strict=True))


def _differ(a: Any, b: Any) -> bool:
    if isinstance(b, list):
        return len(a) != len(b) or any(map(_differ, a, b))
    if b is None or a is None:
        return a is not b
    if a.shape != b.shape or a.dtype.kind not in "biuf":
        return a.shape != b.shape or bool((a != b).any())
    a, b = (x.astype(np.float64) if x.dtype.kind == "b" else x for x in (a, b))
    return bool(a.size and np.abs(a - b).max() > TOLERANCE * max(1, np.abs(b).max()))
