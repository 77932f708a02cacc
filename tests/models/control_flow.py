"""Modules with control flow, as PyTorch's exporters write them: scripted ones, and `torch.cond`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import nn


class Voice(nn.Module):
    """Voice activity: a layer for each sample rate, and a state that is absent at first."""

    def __init__(self) -> None:
        super().__init__()
        self.fast, self.slow = nn.Conv1d(1, 8, 8, 4), nn.Conv1d(1, 8, 4, 2)
        self.cell, self.out = nn.LSTMCell(8, 8), nn.Linear(8, 1)

    def forward(
        self, x: torch.Tensor, state: torch.Tensor, rate: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        x = x.unsqueeze(1)
        seen = self.fast(x) if bool(rate == 16000) else self.slow(x)
        if state.size(1) == 0:
            state = torch.zeros(2, x.size(0), 8)
        h, c = self.cell(seen.relu().mean(2), (state[0], state[1]))
        return self.out(h).sigmoid(), torch.stack([h, c])


class Speech(nn.Module):
    """Synthesis: each symbol lasts as many frames as a layer says."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.frames = nn.Embedding(20, 8), nn.Embedding(20, 1)
        self.out = nn.Linear(8, 4)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        lasts = self.frames(ids[0]).squeeze(1).exp().ceil().clamp(1, 5).long()
        return self.out(torch.repeat_interleave(self.words(ids[0]), lasts, dim=0))


class Writer(nn.Module):
    """Greedy decoding inside the model: a loop that ends at a word or after a number of steps."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.cell, self.out = nn.Embedding(12, 8), nn.Linear(16, 8), nn.Linear(8, 12)

    def forward(self, seen: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        h = seen
        word = torch.zeros(seen.size(0), dtype=torch.long)
        written = word.unsqueeze(1)
        step = 0
        while step < int(steps) and bool((word != 3).any()):
            h = self.cell(torch.cat([self.words(word), h], 1)).tanh()
            word = self.out(h).argmax(1)
            written = torch.cat([written, word.unsqueeze(1)], 1)
            step += 1
        return written


class Expert(nn.Module):
    """A layer that `torch.cond` chooses."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(6, 4), nn.Linear(6, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: self.one(x).relu(), lambda x: self.other(x), (x,))


def scripted(
    module: type[nn.Module], inputs: dict[str, torch.Tensor], axes: dict, folder: Path
) -> Path:
    torch.manual_seed(0)
    path = folder / "model.onnx"
    torch.onnx.export(
        torch.jit.script(module().eval()), tuple(inputs.values()), path, dynamo=False,
        input_names=list(inputs), dynamic_axes=axes, opset_version=17,
    )  # fmt: skip
    return path


def traced(module: type[nn.Module], inputs: dict[str, torch.Tensor], folder: Path) -> Path:
    torch.manual_seed(0)
    path = folder / "model.onnx"
    torch.onnx.export(
        module().eval(), tuple(inputs.values()), path, dynamo=True, verbose=False,
        input_names=list(inputs), external_data=False,
    )  # fmt: skip
    return path


KINDS: dict[str, Callable[[Path], Path]] = {
    "scripted voice activity": partial(
        scripted, Voice,
        {"x": torch.randn(2, 64), "state": torch.zeros(2, 2, 8), "rate": torch.tensor(16000)},
        {"x": {0: "batch", 1: "samples"}, "state": {1: "held"}},
    ),
    "scripted synthesis": partial(
        scripted, Speech, {"ids": torch.arange(6).view(1, 6)}, {"ids": {1: "symbols"}}
    ),
    "scripted decoding in a loop": partial(
        scripted, Writer, {"seen": torch.randn(2, 8), "steps": torch.tensor(5)},
        {"seen": {0: "batch"}},
    ),
    "torch.cond": partial(traced, Expert, {"x": torch.randn(3, 6)}),
}  # fmt: skip
"""What writes a model into a folder, by name."""
