"""Decoders as onnxruntime-genai's model builder writes them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import onnx

from tests.support.genai import Decoder


def written(decoder: Decoder, folder: Path) -> Path:
    path = folder / "model.onnx"
    onnx.save(decoder.model(), path)
    return path


KINDS: dict[str, Callable[[Path], Path]] = {
    "Llama": partial(written, Decoder()),
    "Llama, int4": partial(written, Decoder(bits=4)),
    "LongRoPE": partial(written, Decoder(long=True)),
}
"""The functions that write a model into a folder, by name."""
