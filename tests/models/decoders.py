"""Merged decoders: transformers' models with random weights, as optimum exports and merges them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers

LAYERS = {
    "vocab_size": 128, "d_model": 32, "encoder_layers": 1, "decoder_layers": 2,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64, "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 2,
}  # fmt: skip
T5 = {
    "vocab_size": 128, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4,
    "decoder_start_token_id": 0,
}  # fmt: skip
MOONSHINE = {
    "vocab_size": 128, "hidden_size": 32, "intermediate_size": 64,
    "encoder_num_hidden_layers": 2, "decoder_num_hidden_layers": 2,
    "encoder_num_attention_heads": 4, "decoder_num_attention_heads": 4,
}  # fmt: skip
LLAMA = {
    "vocab_size": 128, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 64,
}  # fmt: skip
GPT2 = {"vocab_size": 128, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128}
TEXT, SPEECH = "text2text-generation-with-past", "automatic-speech-recognition-with-past"


def random_model(kind: str, model: str, options: dict[str, Any]) -> Any:
    """A model whose weights are large, so that its words differ."""
    torch.manual_seed(0)
    made = getattr(transformers, model)(getattr(transformers, f"{kind}Config")(**options)).eval()
    with torch.no_grad():
        for weights in made.parameters():
            if weights.dim() > 1:
                weights.normal_(0, 0.3)
    return made


def encoder_decoder(task: str, model: tuple[str, str, dict[str, Any]], folder: Path) -> Path:
    """The merged decoder of a model with an encoder."""
    from optimum.exporters.onnx import onnx_export_from_model

    onnx_export_from_model(random_model(*model), folder, task=task, do_validation=False)
    return folder / "decoder_model_merged.onnx"


def decoder_alone(model: tuple[str, str, dict[str, Any]], folder: Path) -> Path:
    """The merged decoder of a model without an encoder, as older releases of optimum make it."""
    from optimum.exporters.onnx import export
    from optimum.exporters.tasks import TasksManager
    from optimum.onnx import merge_decoders

    made, task = random_model(*model), "text-generation"
    make = TasksManager.get_exporter_config_constructor(
        "onnx", made, task=task, library_name="transformers"
    )
    halves = []
    for past in (False, True):
        config = make(made.config, task=task, use_past=True, use_past_in_inputs=past)
        halves.append(folder / f"{past}.onnx")
        export(made, config, halves[-1], opset=18)
    merged = folder / "decoder_model_merged.onnx"
    merge_decoders(*halves, save_path=merged)
    return merged


WHISPER = {**LAYERS, "max_source_positions": 1500, "max_target_positions": 128, "bos_token_id": 1}
KINDS: dict[str, Callable[[Path], Path]] = {
    name: partial(encoder_decoder, task, (kind, model, options))
    for name, task, kind, model, options in (
        ("T5", TEXT, "T5", "T5ForConditionalGeneration", T5),
        ("BART", TEXT, "Bart", "BartForConditionalGeneration", LAYERS),
        ("Marian", TEXT, "Marian", "MarianMTModel", LAYERS),
        ("Pegasus", TEXT, "Pegasus", "PegasusForConditionalGeneration", LAYERS),
        ("Whisper", SPEECH, "Whisper", "WhisperForConditionalGeneration", WHISPER),
        ("Moonshine", SPEECH, "Moonshine", "MoonshineForConditionalGeneration", MOONSHINE),
    )
}
KINDS |= {
    "GPT-2": partial(decoder_alone, ("GPT2", "GPT2LMHeadModel", GPT2)),
    "Llama": partial(decoder_alone, ("Llama", "LlamaForCausalLM", LLAMA)),
}
"""The functions that write a merged decoder into a folder, by name."""
