"""Tools that make a model from a model. Each gets the path of the source, the path of the result,
and inputs for calibration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import onnx
import onnxoptimizer
import onnxruntime
import onnxsim
import onnxslim
from onnxruntime import quantization
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
from onnxruntime.transformers import float16

Feeds = Sequence[dict[str, Any]]


def _slimmed(source: Path, target: Path, feeds: Feeds) -> None:
    onnx.save(onnxslim.slim(onnx.load(source)), target)


def _simplified(source: Path, target: Path, feeds: Feeds) -> None:
    model, _ = onnxsim.simplify(onnx.load(source))
    onnx.save(model, target)


def _passes(source: Path, target: Path, feeds: Feeds) -> None:
    onnx.save(onnxoptimizer.optimize(onnx.load(source)), target)


def _optimized(level: str, source: Path, target: Path, feeds: Feeds) -> None:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.optimized_model_filepath = str(target)
    options.log_severity_level = 4
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])


def _halved(keep: bool, source: Path, target: Path, feeds: Feeds) -> None:
    onnx.save(float16.convert_float_to_float16(onnx.load(source), keep_io_types=keep), target)


def _dynamic(source: Path, target: Path, feeds: Feeds) -> None:
    quantization.quantize_dynamic(
        source, target, extra_options={"EnableSubgraph": True, "MatMulConstBOnly": True}
    )


class _Reader(quantization.CalibrationDataReader):
    def __init__(self, feeds: Feeds) -> None:
        self.feeds = iter(feeds)

    def get_next(self) -> Any:
        return next(self.feeds, None)


def _static(format: str, source: Path, target: Path, feeds: Feeds) -> None:
    quantization.quantize_static(
        source, target, _Reader(feeds), quant_format=quantization.QuantFormat[format]
    )


def _four_bits(format: str, source: Path, target: Path, feeds: Feeds) -> None:
    quantizer = MatMulNBitsQuantizer(
        onnx.load(source), block_size=16, quant_format=quantization.QuantFormat[format]
    )
    quantizer.process()
    quantizer.model.save_model_to_file(str(target))


TOOLS: dict[str, Callable[[Path, Path, Feeds], None]] = {
    "onnxslim": _slimmed,
    "onnxsim": _simplified,
    "onnxoptimizer": _passes,
    "onnxruntime, basic": partial(_optimized, "ORT_ENABLE_BASIC"),
    "onnxruntime, extended": partial(_optimized, "ORT_ENABLE_EXTENDED"),
    "onnxruntime, all": partial(_optimized, "ORT_ENABLE_ALL"),
    "float16": partial(_halved, False),
    "float16, keep_io_types": partial(_halved, True),
    "dynamic": _dynamic,
    "static, QDQ": partial(_static, "QDQ"),
    "static, QOperator": partial(_static, "QOperator"),
    "4 bits, QDQ": partial(_four_bits, "QDQ"),
    "4 bits, QOperator": partial(_four_bits, "QOperator"),
}
