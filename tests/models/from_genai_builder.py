"""Decoders with random weights, written by onnxruntime-genai's own model builder.

    python -m tests.models.from_genai_builder FOLDER

Needs the extra `models-genai`. The builder reads configurations and weights from a folder, which
transformers writes here: nothing is downloaded.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers

SIZES = {
    "vocab_size": 128, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 96, "max_position_embeddings": 128,
    "head_dim": 16, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
LONG = {
    "rope_type": "longrope", "type": "longrope", "short_mscale": 1.0, "long_mscale": 1.0,
    "rope_theta": 10000.0, "original_max_position_embeddings": 32,
    "short_factor": [1.0 + i / 8 for i in range(8)], "long_factor": [2.0 + i for i in range(8)],
}  # fmt: skip
WIDE = {"hidden_size": 128, "head_dim": 32}  # a half of which is rotated, in eights
MIXED = {"layer_types": ["sliding_attention", "full_attention"]}
ARCHITECTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "Llama": ("Llama", {}),
    "Llama, all heads": ("Llama", {"num_key_value_heads": 4}),
    "Llama, one group": ("Llama", {"num_key_value_heads": 1}),
    "Llama, tied": ("Llama", {"tie_word_embeddings": True}),
    "Llama, biases": ("Llama", {"attention_bias": True, "mlp_bias": True}),
    "Mistral": ("Mistral", {"sliding_window": None}),
    "Mistral, window": ("Mistral", {"sliding_window": 4}),
    "Qwen2": ("Qwen2", {}),
    "Qwen3": ("Qwen3", {}),
    "Phi": ("Phi", {"num_key_value_heads": 4, **WIDE}),
    "Phi3": ("Phi3", {"original_max_position_embeddings": 128}),
    "Phi3, long": (
        "Phi3",
        {"original_max_position_embeddings": 32, "rope_parameters": LONG, "rope_scaling": LONG},
    ),
    "Gemma": ("Gemma", {}),
    "Gemma2": ("Gemma2", {"sliding_window": 4, "query_pre_attn_scalar": 16}),
    "Olmo": ("Olmo", {}),
    "Nemotron": ("Nemotron", WIDE),
    "SmolLM3": ("SmolLM3", {}),
    "Granite": ("Granite", {"attention_multiplier": 0.3, "residual_multiplier": 0.7}),
    "Ernie": ("Ernie4_5", {}),
    "HunYuan": ("HunYuanDenseV1", {}),
    "GPT-OSS": ("GptOss", {"num_local_experts": 4, "num_experts_per_tok": 2, **MIXED}),
    "LFM2": ("Lfm2", {"layer_types": ["conv", "full_attention"]}),
}  # fmt: skip
"""Names of transformers' classes, and what their configurations have beside `SIZES`."""

FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "f32": ("fp32", {}),
    "int4": ("int4", {"block_size": 16, "accuracy_level": 0}),
    "int4, rounded data": ("int4", {"block_size": 32, "accuracy_level": 4}),
    "int4, QDQ": ("int4", {"block_size": 16, "use_qdq": True}),
}
"""Precisions and other options of the builder."""


def saved(architecture: str, folder: Path) -> Any:
    """A model of transformers in a folder; its configuration."""
    name, options = ARCHITECTURES[architecture]
    config = getattr(transformers, f"{name}Config")(**{**SIZES, **options})
    config.architectures = [f"{name}ForCausalLM"]
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for weights in model.parameters():
            if weights.dim() > 1:
                weights.normal_(0, 0.1)
    model.save_pretrained(folder)
    return config


def written(architecture: str, form: str, folder: Path) -> Path:
    """The decoder in a form, as `model.onnx` in a folder."""
    from onnxruntime_genai.models import builder

    precision, options = FORMS[form]
    with tempfile.TemporaryDirectory() as source:
        config = saved(architecture, Path(source))
        config._name_or_path = source
        details = {"extra_kwargs": {}, "hf_name": source, "hf_config": config}
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                builder.create_model(
                    source, source, str(folder), precision, "cpu", source,
                    hf_details=details, hf_token=False, hf_remote=False, **options,
                )  # fmt: skip
            except Exception:  # after the model, the builder asks for a tokenizer
                if not (folder / "model.onnx").exists():
                    raise
    return folder / "model.onnx"


KINDS: dict[str, Callable[[Path], Path]] = {
    f"{architecture}, {form}": partial(written, architecture, form)
    for architecture in ARCHITECTURES
    for form in FORMS
    if form == "f32" or architecture != "GPT-OSS"  # whose weights of 4 bits are not random
}
"""The functions that write a decoder into a folder, by name."""


def main(root: Path) -> None:
    """Writes all decoders, each into a folder of its name."""
    for name, make in KINDS.items():
        folder = root / name.replace(", ", "-").replace(" ", "_")
        if (folder / "model.onnx").exists():
            continue
        folder.mkdir(parents=True, exist_ok=True)
        try:
            print(make(folder), flush=True)
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {str(error)[:200]}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
