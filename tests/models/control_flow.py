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
    """Synthesis: a layer computes how many frames each symbol lasts."""

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


class Attention(nn.Module):
    """A recurrent decoder that attends to all outputs of an encoder, in each step of its loop."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.cell = nn.Embedding(32, 32), nn.LSTMCell(96, 64)
        self.query, self.key, self.score = nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 1)
        self.out = nn.Linear(64, 32)

    def forward(self, seen: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        h, c = torch.zeros(seen.size(0), 64), torch.zeros(seen.size(0), 64)
        word = torch.zeros(seen.size(0), dtype=torch.long)
        keys = self.key(seen)
        written: list[torch.Tensor] = []
        for _ in range(int(steps)):
            scores = self.score(torch.tanh(self.query(h).unsqueeze(1) + keys)).squeeze(2)
            context = torch.bmm(scores.softmax(1).unsqueeze(1), seen).squeeze(1)
            h, c = self.cell(torch.cat([self.words(word), context], 1), (h, c))
            logits = self.out(h)
            word = logits.argmax(1)
            written.append(logits)
        return torch.stack(written, 1)


class Chunks(nn.Module):
    """Voice activity of a long signal, chunk by chunk."""

    def __init__(self) -> None:
        super().__init__()
        self.fast = nn.Conv1d(1, 32, 64, 32)
        self.cell, self.out = nn.LSTMCell(32, 32), nn.Linear(32, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h, c = torch.zeros(x.size(0), 32), torch.zeros(x.size(0), 32)
        found: list[torch.Tensor] = []
        for i in range(x.size(1) // 512):
            chunk = x[:, i * 512 : (i + 1) * 512].unsqueeze(1)
            h, c = self.cell(self.fast(chunk).relu().mean(2), (h, c))
            found.append(self.out(h).sigmoid())
        return torch.cat(found, 1)


class Search(nn.Module):
    """Greedy CTC search: the best symbol of each frame, repeated ones and blanks left out."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(64, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        best = self.out(x).argmax(1)
        found = best[:1]
        for i in range(1, best.size(0)):
            now = best[i : i + 1]
            if bool((now != 0) & (now != best[i - 1 : i])):
                found = torch.cat([found, now])
        return found


class Packed(nn.Module):
    """A recurrent layer over sequences of several lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.run = nn.LSTM(64, 64, batch_first=True, bidirectional=True)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        packed = nn.utils.rnn.pack_padded_sequence(
            x, lengths, batch_first=True, enforce_sorted=False
        )
        y, (h, _) = self.run(packed)
        return nn.utils.rnn.pad_packed_sequence(y, batch_first=True)[0], h


class Expert(nn.Module):
    """A layer that `torch.cond` chooses."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(6, 4), nn.Linear(6, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: self.one(x).relu(), lambda x: self.other(x), (x,))


def scripted(
    module: type[nn.Module],
    inputs: dict[str, torch.Tensor],
    axes: dict,
    folder: Path,
    script: Callable[[nn.Module], nn.Module] = torch.jit.script,
) -> Path:
    torch.manual_seed(0)
    path = folder / "model.onnx"
    torch.onnx.export(
        script(module().eval()), tuple(inputs.values()), path, dynamo=False,
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
    "scripted attention in a loop": partial(
        scripted, Attention, {"seen": torch.randn(2, 40, 64), "steps": torch.tensor(5)},
        {"seen": {0: "batch", 1: "frames"}},
    ),
    "scripted voice activity over chunks": partial(
        scripted, Chunks, {"x": torch.randn(2, 2048)}, {"x": {0: "batch", 1: "samples"}}
    ),
    "scripted CTC search": partial(
        scripted, Search, {"x": torch.randn(20, 64)}, {"x": {0: "frames"}}
    ),
    "packed LSTM": partial(
        scripted, Packed, {"x": torch.randn(3, 9, 64), "lengths": torch.tensor([9, 4, 6])},
        {"x": {0: "batch", 1: "frames"}, "lengths": {0: "batch"}}, script=lambda module: module,
    ),
    "torch.cond": partial(traced, Expert, {"x": torch.randn(3, 6)}),
}  # fmt: skip
"""The functions that write a model into a folder, by name."""
