"""`python -m tests.models.pipelines`: OpenVINO GenAI and optimum-intel generate text with Bridge's
files (extra `models-pipelines`).

The models are small and have random weights. A row for each way says whether the tokens equal the
tokens of onnxruntime or of PyTorch.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import onnxruntime
import openvino
import openvino_genai
import torch
from openvino_tokenizers import convert_tokenizer
from optimum.exporters.onnx import onnx_export_from_model
from optimum.intel import OVModelForCausalLM, OVModelForSeq2SeqLM, OVModelForSpeechSeq2Seq
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import GenerationConfig, PreTrainedTokenizerFast, WhisperFeatureExtractor

import bridge
from tests.models.decoders import (
    GPT2,
    LAYERS,
    LLAMA,
    SPEECH,
    T5,
    TEXT,
    WHISPER,
    encoder_decoder,
    random_model,
)
from tests.support.genai import GROUPS, HEADS, SIZE, WIDTH, WORDS, Decoder

F32 = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}
TOKENS = 20
TEXTS = [[5, 9, 3, 60, 11], [17, 4]]
DECODERS = {"Llama": Decoder(), "Llama, int4": Decoder(bits=4), "LongRoPE": Decoder(long=True)}
EXPORTED = {
    "Llama, exported": ("Llama", "LlamaForCausalLM", LLAMA),
    "GPT-2, exported": ("GPT2", "GPT2LMHeadModel", GPT2),
}
MODELS = {
    "T5": (TEXT, "T5", "T5ForConditionalGeneration", T5),
    "BART": (TEXT, "Bart", "BartForConditionalGeneration", LAYERS),
    "Marian": (TEXT, "Marian", "MarianMTModel", LAYERS),
    "Whisper": (SPEECH, "Whisper", "WhisperForConditionalGeneration", WHISPER),
}

Row = tuple[str, str, bool]
"""A pipeline, its outcome, and whether the tokens were the same."""


def decoder_alone(decoder: Decoder, folder: Path) -> Iterator[Row]:
    """A decoder of onnxruntime-genai whose logits are all alike."""
    onnx.save(decoder.model(), folder / "model.onnx")
    path = folder / "openvino_model.xml"
    bridge.convert(folder / "model.onnx", path, stateful=True, beam_idx=True)
    _write_configuration(decoder, folder)
    expected = [_greedy(folder / "model.onnx", text, decoder.layers) for text in TEXTS]
    mask = np.array([[1] * 5, [0, 0, 0, 1, 1]])
    words = np.array([TEXTS[0], [0, 0, 0, *TEXTS[1]]])
    pipeline = openvino_genai.LLMPipeline(str(folder), "CPU", **F32)
    asked = openvino_genai.GenerationConfig(max_new_tokens=TOKENS, ignore_eos=True, do_sample=False)
    one = pipeline.generate(openvino.Tensor(words[:1]), asked).tokens
    yield "LLMPipeline", "one text", one == expected[:1]
    both = openvino_genai.TokenizedInputs(openvino.Tensor(words), openvino.Tensor(mask))
    yield "LLMPipeline", "two texts", pipeline.generate(both, asked).tokens == expected
    if not decoder.long:  # Its tables depend on the mask, which paged attention does not have.
        pages = openvino_genai.LLMPipeline(str(folder), "CPU", ATTENTION_BACKEND="PA", **F32)
        yield "LLMPipeline", "in pages", pages.generate(both, asked).tokens == expected
    model = OVModelForCausalLM.from_pretrained(folder, ov_config={**F32, "CACHE_DIR": ""})
    found = model.generate(
        input_ids=torch.tensor(words), attention_mask=torch.tensor(mask), max_new_tokens=TOKENS,
        do_sample=False, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    yield "OVModelForCausalLM", "two texts", found[:, words.shape[1] :].tolist() == expected


def exported(name: str, folder: Path) -> Iterator[Row]:
    """A decoder as optimum exports it; GenAI may divide its caches into pages."""
    parts = EXPORTED[name]
    onnx_export_from_model(
        random_model(*parts), folder, task="text-generation-with-past", do_validation=False
    )
    made = random_model(*parts)
    path = folder / "openvino_model.xml"
    bridge.convert(folder / "model.onnx", path, stateful=True, beam_idx=True)
    _write_tokenizer(made.config.vocab_size, folder)
    made.config.save_pretrained(folder)
    asked = openvino_genai.GenerationConfig(max_new_tokens=TOKENS, ignore_eos=True, do_sample=False)
    words = torch.tensor(TEXTS[:1])
    expected = made.generate(
        input_ids=words, attention_mask=torch.ones_like(words), max_new_tokens=TOKENS,
        do_sample=False, eos_token_id=None, pad_token_id=0,
    )[:, words.shape[1] :].tolist()  # fmt: skip
    for kind, what in (("SDPA", "one text"), ("PA", "in pages")):
        pipeline = openvino_genai.LLMPipeline(str(folder), "CPU", ATTENTION_BACKEND=kind, **F32)
        found = pipeline.generate(openvino.Tensor(words.numpy()), asked).tokens
        yield "LLMPipeline", what, found == expected


def _write_tokenizer(count: int, folder: Path) -> PreTrainedTokenizerFast:
    """A tokenizer with this many words, each a number; the last one ends a text."""
    words = {f"w{i}": i for i in range(count - 2)} | {"<unk>": count - 2, "</s>": count - 1}
    plain = Tokenizer(WordLevel(words, unk_token="<unk>"))
    plain.pre_tokenizer = WhitespaceSplit()
    named = {"unk_token": "<unk>", "eos_token": "</s>", "pad_token": "</s>"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=plain, **named)
    for side, model in zip(
        ("tokenizer", "detokenizer"), convert_tokenizer(tokenizer, with_detokenizer=True),
        strict=True,
    ):  # fmt: skip
        openvino.save_model(model, folder / f"openvino_{side}.xml")
    return tokenizer


def _write_configuration(decoder: Decoder, folder: Path) -> None:
    _write_tokenizer(WORDS, folder)
    sizes = {
        "num_hidden_layers": decoder.layers, "num_attention_heads": HEADS, "head_dim": SIZE,
        "num_key_value_heads": GROUPS, "hidden_size": WIDTH, "vocab_size": WORDS,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", **sizes}))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": WORDS - 1}))


def _greedy(path: Path, text: list[int], layers: int) -> list[int]:
    """The next tokens in onnxruntime."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    caches = [f"past_key_values.{i}.{kind}" for i in range(layers) for kind in ("key", "value")]
    held = [np.zeros((1, GROUPS, 0, SIZE), np.float32)] * len(caches)
    words, length, found = np.array([text]), 0, list[int]()
    for _ in range(TOKENS):
        length += words.shape[1]
        given = {"input_ids": words, "attention_mask": np.ones((1, length), np.int64)}
        logits, *held = session.run(None, given | dict(zip(caches, held, strict=True)))
        words = logits[:, -1:].argmax(-1)
        found.append(int(words[0, 0]))
    return found


def with_encoder(name: str, folder: Path) -> Iterator[Row]:
    """A model with an encoder, as optimum exports it, with both decoders and with one."""
    task, kind, architecture, options = MODELS[name]
    made = random_model(kind, architecture, options)
    start = made.config.decoder_start_token_id
    made.config.architectures = [architecture]
    made.generation_config = GenerationConfig(decoder_start_token_id=start, pad_token_id=0)
    encoder_decoder(task, (kind, architecture, options), folder)
    made.config.save_pretrained(folder)
    made.generation_config.save_pretrained(folder)
    bridge.convert(folder / "encoder_model.onnx", folder / "openvino_encoder_model.xml")
    loader = OVModelForSpeechSeq2Seq if task == SPEECH else OVModelForSeq2SeqLM
    for one_decoder in (False, True):
        bridge.convert(
            folder / "decoder_model_merged.onnx", folder / "openvino_decoder_model.xml",
            stateful=True, beam_idx=True, one_decoder=one_decoder,
        )  # fmt: skip
        model = loader.from_pretrained(folder, ov_config={**F32, "CACHE_DIR": ""})
        for beams in (1, 3):
            asked = {"num_beams": beams, "max_new_tokens": TOKENS, "do_sample": False}
            given = {**_inputs(made), **asked, "eos_token_id": None}
            same = made.generate(**given).tolist() == model.generate(**given).tolist()
            decoders = "one decoder" if one_decoder else "both decoders"
            yield loader.__name__, f"{decoders}, {beams} beams", same


def speech(folder: Path) -> Iterator[Row]:
    """A Whisper, with the configuration that its pipeline needs."""
    count, start, silent = 160, 101, 104
    ids = {"decoder_start_token_id": start, "eos_token_id": count - 1, "pad_token_id": count - 1}
    parts = ("Whisper", "WhisperForConditionalGeneration", WHISPER | ids | {"vocab_size": count})
    made = random_model(*parts)
    encoder_decoder(SPEECH, parts, folder)
    made.config.save_pretrained(folder)
    features = WhisperFeatureExtractor(feature_size=made.config.num_mel_bins)
    features.save_pretrained(folder)
    tokenizer = _write_tokenizer(count, folder)
    told = {
        **ids, "is_multilingual": False, "no_timestamps_token_id": silent, "suppress_tokens": [],
        "begin_suppress_tokens": [], "lang_to_id": {"<|en|>": 102}, "prev_sot_token_id": 106,
        "task_to_id": {"transcribe": 103, "translate": 105}, "max_initial_timestamp_index": 50,
    }  # fmt: skip
    (folder / "generation_config.json").write_text(json.dumps(told))
    sound = np.random.default_rng(0).normal(0, 0.1, 16000 * 5).astype(np.float32)
    heard = features(sound, sampling_rate=16000, return_tensors="pt").input_features
    words = torch.tensor([[start, silent]])
    for _ in range(TOKENS):
        logits = made(input_features=heard, decoder_input_ids=words).logits
        words = torch.cat([words, logits[:, -1:].argmax(-1)], 1)
    expected = tokenizer.decode(words[0, 2:])
    bridge.convert(folder / "encoder_model.onnx", folder / "openvino_encoder_model.xml")
    for one_decoder in (False, True):
        bridge.convert(
            folder / "decoder_model_merged.onnx", folder / "openvino_decoder_model.xml",
            stateful=True, beam_idx=True, one_decoder=one_decoder,
        )  # fmt: skip
        pipeline = openvino_genai.WhisperPipeline(str(folder), "CPU", **F32)
        found = pipeline.generate(sound.tolist(), max_new_tokens=TOKENS).texts
        decoders = "one decoder" if one_decoder else "both decoders"
        yield "WhisperPipeline", decoders, found == [expected]


def _inputs(model: Any) -> dict[str, torch.Tensor]:
    torch.manual_seed(1)
    if hasattr(model.config, "num_mel_bins"):
        return {"input_features": torch.randn(1, model.config.num_mel_bins, 3000)}
    words = torch.randint(3, 128, (2, 9))
    return {"input_ids": words, "attention_mask": torch.ones_like(words)}


def main() -> None:
    """Prints the table."""
    warnings.filterwarnings("ignore")
    print("| model | pipeline | what | tokens |", "| --- | --- | --- | --- |", sep="\n", flush=True)
    ways = {name: lambda d, f=decoder_alone, x=x: f(x, d) for name, x in DECODERS.items()}
    ways |= {name: lambda d, x=name: exported(x, d) for name in EXPORTED}
    ways |= {name: lambda d, x=name: with_encoder(x, d) for name in MODELS}
    ways["Whisper, five seconds of noise"] = speech
    for name, rows in ways.items():
        with TemporaryDirectory() as folder:
            for pipeline, what, same in rows(Path(folder)):
                verdict = "equal" if same else "DIFFERENT"
                print(f"| {name} | {pipeline} | {what} | {verdict} |", flush=True)


if __name__ == "__main__":
    main()
