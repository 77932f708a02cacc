"""Models for the served benchmark: the architectures that people export, small, with random
weights. All need PyTorch, most need `transformers`.

Each entry of `ARCHITECTURES` makes a module whose inputs and outputs are tensors alone, and its
inputs. Each entry of `FILES` says how one is exported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tests.benchmark.engines import Feed

Made = tuple[nn.Module, dict[str, torch.Tensor]]
ARCHITECTURES: dict[str, Callable[[], Made]] = {}

TEXT: dict[str, Any] = {
    "vocab_size": 512,
    "hidden_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 1024,
}
IMAGE = (1, 3, 96, 96)


def architecture(name: str) -> Callable[[Callable[[], Made]], Callable[[], Made]]:
    """Registers the function that makes an architecture."""

    def enter(make: Callable[[], Made]) -> Callable[[], Made]:
        ARCHITECTURES[name] = make
        return make

    return enter


class Plain(nn.Module):
    """One output of a model of transformers, by name, and its inputs by position."""

    def __init__(self, model: nn.Module, output: str, *inputs: str, **options: Any) -> None:
        super().__init__()
        self.model, self.output = model, output
        self.inputs, self.options = inputs, options

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
        given = dict(zip(self.inputs, tensors, strict=True))
        return self.model(**given, **self.options)[self.output]


def plain(model: nn.Module, output: str, options: dict[str, Any] | None = None, **inputs: Any):
    return Plain(model, output, *inputs, **(options or {})), inputs


def tokens(length: int = 64) -> torch.Tensor:
    return torch.randint(3, 500, (1, length))


def text(kind: str, model: str, output: str = "last_hidden_state", **changes: Any) -> Made:
    """A decoder of transformers without a cache."""
    import transformers

    config = getattr(transformers, f"{kind}Config")(**{**TEXT, "use_cache": False, **changes})
    ids = tokens()
    return plain(
        getattr(transformers, model)(config), output,
        input_ids=ids, attention_mask=torch.ones_like(ids),
    )  # fmt: skip


def image(kind: str, model: str, output: str, size: tuple = IMAGE, **options: Any) -> Made:
    """A model of transformers that reads an image."""
    import transformers

    config = getattr(transformers, f"{kind}Config")(**options)
    return plain(getattr(transformers, model)(config), output, pixel_values=torch.randn(size))


# Text --------------------------------------------------------------------------------------------


@architecture("BERT")
def bert() -> Made:
    return text("Bert", "BertModel")


@architecture("GPT-2")
def gpt2() -> Made:
    return text("GPT2", "GPT2LMHeadModel", "logits", n_embd=256, n_layer=2, n_head=4)


@architecture("Llama")
def llama() -> Made:
    return text("Llama", "LlamaForCausalLM", "logits", num_key_value_heads=2)


@architecture("Qwen3")
def qwen3() -> Made:
    return text("Qwen3", "Qwen3ForCausalLM", "logits", num_key_value_heads=2, head_dim=64)


@architecture("T5")
def t5() -> Made:
    import transformers

    config = transformers.T5Config(
        vocab_size=512, d_model=256, d_kv=64, d_ff=512, num_layers=2, num_heads=4, use_cache=False
    )
    return plain(
        transformers.T5Model(config), "last_hidden_state",
        input_ids=tokens(), decoder_input_ids=tokens(16),
    )  # fmt: skip


@architecture("Mamba")
def mamba() -> Made:
    import transformers

    config = transformers.MambaConfig(
        vocab_size=512, hidden_size=128, num_hidden_layers=2, state_size=8, use_cache=False
    )
    return plain(transformers.MambaForCausalLM(config), "logits", input_ids=tokens(16))


@architecture("LSTM")
def lstm() -> Made:
    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(512, 128)
            self.lstm = nn.LSTM(128, 128, 2, batch_first=True, bidirectional=True)
            self.out = nn.Linear(256, 20)

        def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
            return self.out(self.lstm(self.embedding(input_ids))[0])

    return Tagger(), {"input_ids": tokens()}


# Images ------------------------------------------------------------------------------------------


@architecture("ViT")
def vit() -> Made:
    return image(
        "ViT", "ViTModel", "last_hidden_state", image_size=96, hidden_size=256,
        num_hidden_layers=2, num_attention_heads=4, intermediate_size=1024,
    )  # fmt: skip


@architecture("Swin")
def swin() -> Made:
    return image(
        "Swin", "SwinModel", "last_hidden_state", (1, 3, 112, 112), image_size=112, embed_dim=48,
        depths=[2, 2], num_heads=[3, 6],
    )  # fmt: skip


@architecture("ConvNeXt")
def convnext() -> Made:
    return image(
        "ConvNext", "ConvNextModel", "last_hidden_state", hidden_sizes=[32, 64, 128, 256],
        depths=[1, 1, 2, 1],
    )  # fmt: skip


@architecture("SegFormer")
def segformer() -> Made:
    return image(
        "Segformer", "SegformerForSemanticSegmentation", "logits", depths=[1, 1, 1, 1],
        hidden_sizes=[16, 32, 64, 128], decoder_hidden_size=64, num_labels=10,
    )  # fmt: skip


@architecture("ResNet")
def resnet() -> Made:
    return image(
        "ResNet", "ResNetForImageClassification", "logits", depths=[1, 1, 1, 1],
        hidden_sizes=[64, 128, 256, 512], embedding_size=32, num_labels=10,
    )  # fmt: skip


@architecture("MobileNet V2")
def mobilenet() -> Made:
    return image("MobileNetV2", "MobileNetV2ForImageClassification", "logits", num_labels=10)


@architecture("EfficientNet")
def efficientnet() -> Made:
    return image(
        "EfficientNet", "EfficientNetForImageClassification", "logits", image_size=96,
        width_coefficient=0.5, depth_coefficient=0.5, hidden_dim=640, num_labels=10,
    )  # fmt: skip


@architecture("DETR")
def detr() -> Made:
    import transformers

    backbone = transformers.ResNetConfig(
        depths=[1, 1, 1, 1], hidden_sizes=[32, 64, 128, 256], embedding_size=32,
        out_features=["stage4"],
    )  # fmt: skip
    config = transformers.DetrConfig(
        use_timm_backbone=False, use_pretrained_backbone=False, backbone=None,
        backbone_config=backbone, d_model=128, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=256,
        decoder_ffn_dim=256, num_queries=20,
    )  # fmt: skip
    model = transformers.DetrForObjectDetection(config)
    return plain(
        model, "logits", pixel_values=torch.randn(IMAGE),
        pixel_mask=torch.ones(1, *IMAGE[2:], dtype=torch.int64),
    )  # fmt: skip


@architecture("U-Net")
def unet() -> Made:
    """GroupNorm, SiLU, upsampling, pixel shuffle: the parts of diffusion models."""

    class Block(nn.Module):
        def __init__(self, before: int, behind: int) -> None:
            super().__init__()
            self.body = nn.Sequential(
                nn.GroupNorm(8, before), nn.SiLU(), nn.Conv2d(before, behind, 3, padding=1)
            )
            self.skip = nn.Conv2d(before, behind, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.body(x) + self.skip(x)

    class UNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv2d(3, 32, 3, padding=1)
            self.down = Block(32, 64)
            self.middle = nn.Sequential(nn.InstanceNorm2d(64, affine=True), Block(64, 64))
            self.up = Block(96, 32)
            self.out = nn.Sequential(nn.PReLU(32), nn.Conv2d(32, 12, 3, padding=1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            high = self.first(x)
            low = self.middle(nn.functional.max_pool2d(self.down(high), 2))
            wide = nn.functional.interpolate(low, scale_factor=2.0, mode="nearest")
            joined = self.up(torch.cat([wide, high], 1))
            return nn.functional.pixel_shuffle(self.out(joined), 2).clamp(-1, 1)

    return UNet(), {"x": torch.randn(1, 3, 48, 48)}


# Sound, and image with text ----------------------------------------------------------------------


@architecture("Whisper")
def whisper() -> Made:
    import transformers

    config = transformers.WhisperConfig(
        vocab_size=512, d_model=128, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=512, decoder_ffn_dim=512, num_mel_bins=40,
        max_source_positions=100, max_target_positions=64, use_cache=False, pad_token_id=0,
        bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
    )  # fmt: skip
    return plain(
        transformers.WhisperModel(config), "last_hidden_state",
        input_features=torch.randn(1, 40, 200), decoder_input_ids=tokens(16),
    )  # fmt: skip


@architecture("wav2vec2")
def wav2vec2() -> Made:
    import transformers

    config = transformers.Wav2Vec2Config(
        **TEXT, conv_dim=[64] * 7, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4
    )
    return plain(
        transformers.Wav2Vec2Model(config), "last_hidden_state", input_values=torch.randn(1, 8000)
    )


@architecture("CLIP")
def clip() -> Made:
    import transformers

    layers = {"num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 512}
    words = {**layers, "hidden_size": 128, "vocab_size": 512, "max_position_embeddings": 32}
    picture = {**layers, "hidden_size": 128, "image_size": 96, "patch_size": 16}
    config = transformers.CLIPConfig(
        text_config={**words, "eos_token_id": 2}, vision_config=picture, projection_dim=64
    )
    ids = tokens(32)
    return plain(
        transformers.CLIPModel(config), "logits_per_image",
        input_ids=ids, pixel_values=torch.randn(IMAGE), attention_mask=torch.ones_like(ids),
    )  # fmt: skip


@architecture("Llama with a cache")
def llama_with_a_cache() -> Made:
    """One token, with the keys and values of earlier tokens as inputs and outputs."""
    import transformers
    from transformers.cache_utils import DynamicCache

    layers, heads = TEXT["num_hidden_layers"], 2
    config = transformers.LlamaConfig(**TEXT, num_key_value_heads=heads)

    class Cached(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = transformers.LlamaForCausalLM(config)

        def forward(
            self, input_ids: torch.Tensor, attention_mask: torch.Tensor,
            k0: torch.Tensor, v0: torch.Tensor, k1: torch.Tensor, v1: torch.Tensor,
        ) -> tuple[torch.Tensor, ...]:  # fmt: skip
            cache = DynamicCache([(k0, v0), (k1, v1)])
            made = self.model(input_ids, attention_mask=attention_mask, past_key_values=cache)
            present = [
                x for layer in made.past_key_values.layers for x in (layer.keys, layer.values)
            ]
            return made.logits, *present

    past = {f"{x}{layer}": torch.randn(1, heads, 64, 64) for layer in range(layers) for x in "kv"}
    mask = torch.ones(1, 65, dtype=torch.int64)
    return Cached(), {"input_ids": tokens(1), "attention_mask": mask, **past}


# Files -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class File:
    """How an architecture becomes an ONNX file.

    By default PyTorch's exporter runs with its defaults. A file may have another operator set, the
    older exporter (`script`), open sizes of the given axes of inputs, or a quantiser behind it.
    """

    architecture: str
    opset: int | None = None
    script: bool = False
    open: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    quantizer: Callable[[Path, Path, Feed], None] | None = None

    @property
    def as_made(self) -> bool:
        """Whether this is the exported module itself, without further steps."""
        return self.opset is None and not self.script and not self.quantizer

    def export(self, made: Made, path: Path) -> None:
        """Writes the file."""
        module, inputs = made
        axes: dict[str, Any] = {}
        if self.script:
            named = {n: {a: f"{n}_{a}" for a in axes} for n, axes in self.open.items()}
            axes = {"dynamic_axes": named}
        elif self.open:
            dims = [{a: torch.export.Dim.DYNAMIC for a in self.open.get(n, ())} for n in inputs]
            axes = {"dynamic_shapes": (tuple(dims),) if starred(module) else tuple(dims)}
        target = path.with_suffix(".float.onnx") if self.quantizer else path
        torch.onnx.export(
            module, tuple(inputs.values()), target, input_names=list(inputs),
            dynamo=not self.script, external_data=False, verbose=False, opset_version=self.opset,
            **axes,
        )  # fmt: skip
        if self.quantizer:
            self.quantizer(target, path, {name: x.numpy() for name, x in inputs.items()})


def starred(module: nn.Module) -> bool:
    """Whether PyTorch sees all its inputs as one parameter."""
    return isinstance(module, Plain)


def static_int8(source: Path, destination: Path, feed: Feed) -> None:
    """onnxruntime's static quantiser, Q/DQ pairs, 8 bits."""
    _static(source, destination, feed, "QDQ")


def operators_int8(source: Path, destination: Path, feed: Feed) -> None:
    """onnxruntime's static quantiser, operators of integers, 8 bits."""
    _static(source, destination, feed, "QOperator")


def _static(source: Path, destination: Path, feed: Feed, form: str) -> None:
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self.feeds = iter([feed])

        def get_next(self) -> Feed | None:
            return next(self.feeds, None)

    quantize_static(
        str(source), str(destination), Reader(), quant_format=QuantFormat[form], per_channel=True
    )  # fmt: skip


def dynamic_int8(source: Path, destination: Path, feed: Feed) -> None:
    """onnxruntime's dynamic quantiser with its defaults, 8 bits."""
    from onnxruntime.quantization import quantize_dynamic

    quantize_dynamic(str(source), str(destination))


def matmul_nbits(source: Path, destination: Path, feed: Feed) -> None:
    """onnxruntime's 4-bit weights, its own operator."""
    _int4(source, destination, "QOperator")


def blocks_of_int4(source: Path, destination: Path, feed: Feed) -> None:
    """onnxruntime's 4-bit weights, DequantizeLinear in blocks."""
    _int4(source, destination, "QDQ")


def _int4(source: Path, destination: Path, form: str) -> None:
    import onnx
    from onnxruntime.quantization import QuantFormat
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    quantizer = MatMulNBitsQuantizer(
        onnx.load(source), block_size=32, is_symmetric=True, quant_format=QuantFormat[form]
    )
    quantizer.process()
    quantizer.model.save_model_to_file(str(destination))


TEXT_AXES = {"input_ids": (0, 1), "attention_mask": (0, 1)}
IMAGE_AXES = {"pixel_values": (0,)}
FILES: dict[str, File] = {
    **{name: File(name) for name in ARCHITECTURES},
    **{
        f"{name}, open sizes": File(name, open=axes)
        for name, axes in {
            "BERT": TEXT_AXES,
            "GPT-2": TEXT_AXES,
            "Llama": TEXT_AXES,
            "T5": {"input_ids": (0, 1)},
            "ViT": IMAGE_AXES,
            "SegFormer": {"pixel_values": (0, 2, 3)},
            "wav2vec2": {"input_values": (0, 1)},
            "LSTM": {"input_ids": (0, 1)},
        }.items()
    },
    **{
        f"{name}, operator set 23": File(name, opset=23)
        for name in ("BERT", "GPT-2", "Llama", "Qwen3", "T5", "ViT")
    },
    **{
        f"{name}, older exporter": File(name, script=True, open=axes)
        for name, axes in {
            "BERT": TEXT_AXES,
            "Llama": TEXT_AXES,
            "LSTM": {"input_ids": (0, 1)},
            "Swin": IMAGE_AXES,
            "ConvNeXt": IMAGE_AXES,
            "U-Net": {"x": (0,)},
        }.items()
    },
    **{f"{name}, int8": File(name, quantizer=static_int8) for name in ("ResNet", "BERT")},
    "Llama, MatMulNBits": File("Llama", quantizer=matmul_nbits),
    "Llama, int4": File("Llama", opset=21, quantizer=blocks_of_int4),
}
"""The measured files, by name."""

INT8: dict[str, File] = {
    f"{name}, {kind}": File(name, quantizer=quantizer)
    for kind, quantizer, names in (
        ("Q/DQ", static_int8, ("ResNet", "MobileNet V2", "BERT", "ViT")),
        ("QOperator", operators_int8, ("ResNet", "MobileNet V2", "BERT", "ViT")),
        ("dynamic", dynamic_int8, ("BERT", "ViT", "GPT-2", "LSTM")),
    )
    for name in names
}
"""Quantised models by the form of their quantisation."""
