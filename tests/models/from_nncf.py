"""IRs of few bits, small and with random weights, as NNCF writes them; and IRs of PyTorch's
recurrent layers by OpenVINO's own frontend, all sizes open.

    python -m tests.models.from_nncf FOLDER

Needs the extra `models-nncf`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import nncf
import numpy as np
import openvino
import torch
from torch import nn


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Linear(64, 128), nn.Linear(128, 128), nn.Linear(128, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.c(torch.tanh(self.b(torch.relu(self.a(x)))))


class Words(nn.Module):
    """An embedding, attention, and logits."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(96, 64)
        self.all, self.out, self.head = nn.Linear(64, 192), nn.Linear(64, 64), nn.Linear(64, 96)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.words(ids)
        q, k, v = self.all(x).chunk(3, -1)
        y = torch.softmax(q @ k.transpose(1, 2) * 0.125, -1) @ v
        return self.head(x + self.out(y))


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 16, 3, 2, 1), nn.Conv2d(16, 16, 3, 1, 1, groups=16)
        self.c, self.d = nn.Conv2d(16, 32, 1), nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.c(torch.relu(self.b(torch.relu(self.a(x))))))
        return self.d(x.mean((2, 3)))


class Recurrent(nn.Module):
    def __init__(self, kind: str, layers: int, batch_first: bool, both: bool) -> None:
        super().__init__()
        self.layer = getattr(nn, kind)(5, 4, layers, batch_first=batch_first, bidirectional=both)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y, state = self.layer(x)
        return y, state[0] if isinstance(state, tuple) else state


MODELS: dict[str, tuple[Callable[[], nn.Module], torch.Tensor, list[int]]] = {
    "perceptron": (Perceptron, torch.ones(2, 64), [-1, 64]),
    "words": (Words, torch.ones(1, 5, dtype=torch.int64), [-1, -1]),
    "convolutions": (Convolutions, torch.ones(1, 3, 16, 16), [1, 3, 16, 16]),
}


def converted(name: str) -> openvino.Model:
    make, example, shape = MODELS[name]
    torch.manual_seed(0)
    model = make().eval()
    with torch.no_grad():
        for weights in model.parameters():
            weights.normal_(0, 0.2)
    made = openvino.convert_model(model, example_input=example)
    made.reshape(openvino.PartialShape(shape))
    return made


def compressed(name: str, mode: str, options: dict[str, Any], folder: Path) -> Path:
    """Weights of few bits."""
    chosen = getattr(nncf.CompressWeightsMode, mode)
    model = nncf.compress_weights(converted(name), mode=chosen, **options)
    openvino.save_model(model, folder / "changed.xml")
    return folder / "changed.xml"


def quantized(name: str, options: dict[str, Any], folder: Path) -> Path:
    """Data and weights of 8 bits, their ranges measured before."""
    rng = np.random.default_rng(2)
    _, example, _ = MODELS[name]
    shape = tuple(example.shape)
    words = example.dtype == torch.int64
    data = [
        rng.integers(0, 96, shape) if words else rng.normal(size=shape).astype(np.float32)
        for _ in range(20)
    ]
    openvino.save_model(
        nncf.quantize(converted(name), nncf.Dataset(data), **options), folder / "changed.xml"
    )
    return folder / "changed.xml"


def recurrent(kind: str, layers: int, batch_first: bool, both: bool, folder: Path) -> Path:
    """An LSTM, GRU or RNN, all sizes of its input open, the last one too."""
    torch.manual_seed(0)
    layer = Recurrent(kind, layers, batch_first, both).eval()
    model = openvino.convert_model(layer, example_input=torch.ones(3, 2, 5))
    openvino.save_model(model, folder / "changed.xml", compress_to_fp16=False)
    return folder / "changed.xml"


_ALL = {"ratio": 1.0, "all_layers": True}
MODES: dict[str, tuple[str, dict[str, Any]]] = {
    "INT8_SYM": ("INT8_SYM", {}), "INT8_ASYM": ("INT8_ASYM", {}),
    "INT4_SYM": ("INT4_SYM", {"group_size": 32, **_ALL}),
    "INT4_SYM by channel": ("INT4_SYM", {"group_size": -1, **_ALL}),
    "INT4_ASYM": ("INT4_ASYM", {"group_size": 32, **_ALL}),
    "INT4 half": ("INT4_SYM", {"group_size": 32, "ratio": 0.5}),
    "INT3_SYM": ("INT3_SYM", {"group_size": 32, **_ALL}),
    "INT2_SYM": ("INT2_SYM", {"group_size": 32, **_ALL}),
    "NF4": ("NF4", {"group_size": 32, **_ALL}), "CB4": ("CB4", {"group_size": 32, **_ALL}),
    "FP4": ("FP4", {"group_size": 32, **_ALL}), "MXFP4": ("MXFP4", {"group_size": 32, **_ALL}),
    "NVFP4": ("NVFP4", {"group_size": 16, **_ALL}),
    "FP8": ("FP8_E4M3", {"group_size": 32, **_ALL}),
    "MXFP8": ("MXFP8_E4M3", {"group_size": 32, **_ALL}),
}  # fmt: skip
KINDS: dict[str, Callable[[Path], Path]] = {
    f"{name}, {mode}": partial(compressed, name, *options)
    for name in ("perceptron", "words")
    for mode, options in MODES.items()
}
KINDS |= {
    f"{name}, PTQ{label}": partial(quantized, name, options)
    for name in MODELS
    for label, options in {
        "": {},
        ", mixed": {"preset": nncf.QuantizationPreset.MIXED},
        ", FP8": {"mode": nncf.QuantizationMode.FP8_E4M3},
    }.items()
}
KINDS |= {
    f"{kind}, {layers} layers, {both * 'both, '}{'batch' if first else 'time'} first": partial(
        recurrent, kind, layers, first, both
    )
    for kind in ("LSTM", "GRU", "RNN")
    for layers in (1, 2)
    for first in (False, True)
    for both in (True, False)
    if both or layers == 1
}
"""The functions that write an IR into a folder, by name."""


def main(root: Path) -> None:
    """Writes all IRs, each into a folder of its name."""
    for name, make in KINDS.items():
        folder = root / name.replace(", ", "-").replace(" ", "_")
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "changed.xml").exists():
            try:
                print(make(folder), flush=True)
            except Exception as error:
                print(f"{name}: {type(error).__name__}: {str(error)[:200]}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
