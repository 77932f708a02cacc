"""Models that onnxruntime's tools change after the export: its optimiser of transformers, in
float16 too, and its quantisers of 8 and of 4 bits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import onnx
from onnxruntime.quantization import quantize_dynamic
from onnxruntime.quantization.matmul_nbits_quantizer import (
    HQQWeightOnlyQuantConfig,
    MatMulNBitsQuantizer,
)
from onnxruntime.transformers.optimizer import optimize_model

from tests.models.decoders import LAYERS, T5, TEXT, encoder_decoder, random_model

Make = Callable[[Path], Path]

BERT = {
    "vocab_size": 128, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 64, "max_position_embeddings": 64,
}  # fmt: skip


def encoder(folder: Path) -> Path:
    """A BERT as optimum exports it."""
    from optimum.exporters.onnx import onnx_export_from_model

    made = random_model("Bert", "BertModel", BERT)
    onnx_export_from_model(made, folder, task="feature-extraction", do_validation=False)
    return folder / "model.onnx"


def merged(kind: str, options: dict[str, Any], folder: Path) -> Path:
    """A merged decoder, or the separate files beside it."""
    return encoder_decoder(TEXT, (kind, f"{kind}ForConditionalGeneration", options), folder)


def optimised(make: Make, kind: str, name: str, halves: bool, folder: Path) -> Path:
    """The file `name` beside the made one, with its operators fused; in float16 if asked for."""
    source = make(folder).with_name(name)
    model = optimize_model(str(source), kind, num_heads=4, hidden_size=32, opt_level=0)
    if halves:
        model.convert_float_to_float16()
    return saved(model.model, folder)


def in_8_bits(make: Make, folder: Path) -> Path:
    """Weights of 8 bits, also in branches; data are quantised at run time."""
    target = folder / "changed.onnx"
    options = {"EnableSubgraph": True, "MatMulConstBOnly": True}
    quantize_dynamic(make(folder), target, extra_options=options)
    return target


def in_4_bits(make: Make, folder: Path) -> Path:
    """Weights of 4 bits, with zero points between whole numbers."""
    config = HQQWeightOnlyQuantConfig(block_size=16, bits=4)
    quantizer = MatMulNBitsQuantizer(onnx.load(make(folder)), algo_config=config)
    quantizer.process()
    return saved(quantizer.model.model, folder)


def saved(model: onnx.ModelProto, folder: Path) -> Path:
    target = folder / "changed.onnx"
    onnx.save(model, target)
    return target


_T5, _BART = partial(merged, "T5", T5), partial(merged, "Bart", LAYERS)

KINDS: dict[str, Make] = {
    "BERT, optimised": partial(optimised, encoder, "bert", "model.onnx", False),
    "BERT, optimised, float16": partial(optimised, encoder, "bert", "model.onnx", True),
    "T5 encoder, optimised": partial(optimised, _T5, "t5", "encoder_model.onnx", False),
    "T5 decoder, optimised": partial(optimised, _T5, "t5", "decoder_with_past_model.onnx", False),
    "T5, merged, 8 bits": partial(in_8_bits, _T5),
    "BART, merged, 8 bits": partial(in_8_bits, _BART),
    "BART, merged, 4 bits": partial(in_4_bits, _BART),
}
"""The functions that write a model into a folder, by name."""
