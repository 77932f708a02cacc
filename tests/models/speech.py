"""Speech in PyTorch, scripted: encoders that stream, transducers, attention, voice activity."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import nn

from tests.models.control_flow import scripted


class Block(nn.Module):
    """A block of a Conformer: attention that includes the cache of earlier calls, a causal
    convolution, and two layers of half weight."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.last = (
            nn.Sequential(
                nn.LayerNorm(width), nn.Linear(width, 32), nn.SiLU(), nn.Linear(32, width)
            )
            for _ in range(2)
        )
        self.norm, self.qkv = nn.LayerNorm(width), nn.Linear(width, 3 * width)
        self.up, self.deep = (
            nn.Conv1d(width, 2 * width, 1),
            nn.Conv1d(width, width, 3, groups=width),
        )
        self.down, self.batch = nn.Conv1d(width, width, 1), nn.BatchNorm1d(width)
        self.end = nn.LayerNorm(width)

    def forward(
        self, x: torch.Tensor, hidden: torch.Tensor, cache: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        x = x + 0.5 * self.first(x)
        now = self.norm(x)
        seen = now if cache is None else torch.cat([cache, now], 1)
        batch, width = x.size(0), x.size(2)
        q, k, v = self.qkv(seen).view(batch, -1, 3, self.heads, width // self.heads).unbind(2)
        scores = torch.einsum("bqhd,bkhd->bhqk", q[:, -x.size(1) :], k) / 2.0
        if hidden.size(1) == scores.size(3):
            scores = scores.masked_fill(hidden.unsqueeze(1).unsqueeze(1), -1e4)
        mixed = torch.einsum("bhqk,bkhd->bqhd", scores.softmax(3), v)
        x = x + mixed.reshape(batch, -1, width)
        wide = nn.functional.pad(nn.functional.glu(self.up(x.transpose(1, 2)), 1), [2, 0])
        x = x + self.down(nn.functional.silu(self.batch(self.deep(wide)))).transpose(1, 2)
        return self.end(x + 0.5 * self.last(x)), seen[:, -4:]


class Encoder(nn.Module):
    """A Conformer that gets whole signals of several lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(16, 2) for _ in range(2)])

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = torch.arange(x.size(1)).unsqueeze(0) >= lengths.unsqueeze(1)
        for block in self.blocks:
            x, _ = block(x, hidden, None)
        return x.masked_fill(hidden.unsqueeze(2), 0.0), lengths


class Streaming(nn.Module):
    """A Conformer that gets a signal piece by piece, with caches of its layers from earlier
    pieces."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(16, 2) for _ in range(2)])

    def forward(self, x: torch.Tensor, caches: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        kept: list[torch.Tensor] = []
        none = torch.zeros(0, 0, dtype=torch.bool)
        for at, block in enumerate(self.blocks):
            cache: torch.Tensor | None = None
            if caches.size(2) > 0:
                cache = caches[at]
            x, cache = block(x, none, cache)
            kept.append(cache)
        return x, torch.stack(kept)


class Segments(nn.Module):
    """An encoder that reads a signal segment by segment, and remembers a mean of each, as an
    Emformer does."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.kv, self.out = nn.Linear(16, 16), nn.Linear(16, 32), nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        memory = x[:0]
        found: list[torch.Tensor] = []
        for segment in x.split(4):
            seen = torch.cat([memory, segment])
            k, v = self.kv(seen).chunk(2, 1)
            found.append(self.out((self.q(segment) @ k.t()).softmax(1) @ v))
            memory = torch.cat([memory, segment.mean(0, keepdim=True)])
            if memory.size(0) > 3:
                memory = memory[1:]
        return torch.cat(found)


class Transducer(nn.Module):
    """Greedy decoding of an RNN-T: for each frame, symbols until a blank."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.cell = nn.Embedding(12, 8), nn.LSTMCell(8, 8)
        self.source, self.out = nn.Linear(8, 8), nn.Linear(8, 12)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        frames = self.source(frames)
        word = torch.zeros(1, dtype=torch.long)
        h, c = self.cell(self.words(word), (torch.zeros(1, 8), torch.zeros(1, 8)))
        written: list[torch.Tensor] = []
        for at in range(frames.size(0)):
            symbols = 0
            blank = False
            while not blank and symbols < 3:
                word = self.out((frames[at : at + 1] + h).relu()).argmax(1)
                blank = bool(word == 0)
                if not blank:
                    written.append(word)
                    h, c = self.cell(self.words(word), (h, c))
                symbols += 1
        return torch.cat(written) if len(written) > 0 else torch.zeros(0, dtype=torch.long)


class Speaks(nn.Module):
    """Voice activity with a state: starts and ends of speech, separated by long silences."""

    def __init__(self) -> None:
        super().__init__()
        self.seen, self.cell, self.out = nn.Linear(32, 8), nn.LSTMCell(8, 8), nn.Linear(8, 1)

    def forward(self, x: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h, c = state[0], state[1]
        found = x[:0].long()
        start, silent = -1, 0
        chunks = x.split(32)
        for at in range(len(chunks)):
            chunk = chunks[at]
            if chunk.size(0) < 32:
                chunk = nn.functional.pad(chunk, [0, 32 - chunk.size(0)])
            h, c = self.cell(self.seen(chunk.unsqueeze(0)).relu(), (h, c))
            if bool(self.out(h).sigmoid() > 0.5):
                silent = 0
                if start < 0:
                    start = at
            elif start >= 0:
                silent += 1
                if silent > 1:
                    found = torch.cat([found, torch.zeros(1).long() + start])
                    found = torch.cat([found, torch.zeros(1).long() + at])
                    start = -1
        if start >= 0:
            found = torch.cat([found, torch.zeros(1).long() + start])
            found = torch.cat([found, torch.zeros(1).long() + len(chunks)])
        return found.view(-1, 2), torch.stack([h, c])


class Predictor(nn.Module):
    """The predictor and the joiner of an RNN-T: a recurrent layer with norms, step by step. Its
    state is absent at first."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.x2g, self.h2g = nn.Embedding(12, 8), nn.Linear(8, 32), nn.Linear(8, 32)
        self.norm, self.out = nn.LayerNorm(8), nn.Linear(8, 12)

    def forward(
        self, source: torch.Tensor, words: torch.Tensor, state: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if state.size(1) == 0:
            state = torch.zeros(2, words.size(0), 8)
        h, c = state[0], state[1]
        found: list[torch.Tensor] = []
        for gate in self.x2g(self.words(words)).unbind(1):
            i, f, g, o = (gate + self.h2g(h)).chunk(4, 1)
            c = self.norm(f.sigmoid() * c + i.sigmoid() * g.tanh())
            h = o.sigmoid() * c.tanh()
            found.append(h)
        joined = source.unsqueeze(2) + torch.stack(found, 1).unsqueeze(1)
        return self.out(joined.relu()), torch.stack([h, c])


class Spoken(nn.Module):
    """A decoder like Tacotron's: attention by place, and frames until every sample of a batch has
    ended."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.encoder = nn.Embedding(12, 16), nn.LSTM(16, 8, 1, True, True, 0.0, True)
        self.before, self.cell = nn.Linear(4, 8), nn.LSTMCell(24, 16)
        self.query, self.place, self.score = (
            nn.Linear(16, 16),
            nn.Conv1d(1, 16, 3, 1, 1),
            nn.Linear(16, 1),
        )
        self.frame, self.gate = nn.Linear(32, 4), nn.Linear(32, 1)
        self.after = nn.Conv1d(4, 4, 5, 1, 2)

    def forward(self, words: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        memory = self.encoder(self.words(words))[0]
        batch, symbols = words.size(0), words.size(1)
        h, c = torch.zeros(batch, 16), torch.zeros(batch, 16)
        weights, frame = torch.zeros(batch, symbols), torch.zeros(batch, 4)
        lengths = torch.zeros(batch, dtype=torch.long)
        finished = torch.zeros(batch, dtype=torch.bool)
        frames: list[torch.Tensor] = []
        looks: list[torch.Tensor] = []
        for _ in range(12):
            context = torch.bmm(weights.unsqueeze(1), memory).squeeze(1)
            h, c = self.cell(torch.cat([self.before(frame).relu(), context], 1), (h, c))
            placed = self.place(weights.unsqueeze(1)).transpose(1, 2)
            scores = self.score(torch.tanh(self.query(h).unsqueeze(1) + memory + placed)).squeeze(2)
            weights = scores.softmax(1)
            both = torch.cat([h, torch.bmm(weights.unsqueeze(1), memory).squeeze(1)], 1)
            frame = self.frame(both)
            frames.append(frame)
            looks.append(weights)
            lengths = lengths + (~finished).long()
            finished = torch.logical_or(finished, self.gate(both).squeeze(1) > 0.3)
            if bool(finished.all()):
                break
        mel = torch.stack(frames, 2)
        return mel + self.after(mel), lengths, torch.stack(looks, 1)


KINDS: dict[str, Callable[[Path], Path]] = {
    "Conformer": partial(
        scripted, Encoder, {"x": torch.randn(2, 20, 16), "lengths": torch.tensor([20, 11])},
        {"x": {0: "batch", 1: "frames"}, "lengths": {0: "batch"}},
    ),
    "Conformer, streaming": partial(
        scripted, Streaming, {"x": torch.randn(1, 6, 16), "caches": torch.zeros(2, 1, 4, 16)},
        {"x": {0: "batch", 1: "frames"}, "caches": {1: "batch", 2: "held"}},
    ),
    "segments with a memory": partial(
        scripted, Segments, {"x": torch.randn(18, 16)}, {"x": {0: "frames"}}
    ),
    "RNN-T, predictor and joiner": partial(
        scripted, Predictor,
        {"source": torch.randn(2, 5, 8), "words": torch.ones(2, 3).long(),
         "state": torch.zeros(2, 2, 8)},
        {"source": {0: "batch", 1: "frames"}, "words": {0: "batch", 1: "symbols"},
         "state": {1: "held"}},
    ),
    "RNN-T, greedy decoding": partial(
        scripted, Transducer, {"frames": torch.randn(9, 8)}, {"frames": {0: "frames"}}
    ),
    "Tacotron, decoder": partial(
        scripted, Spoken, {"words": torch.ones(2, 7).long()},
        {"words": {0: "batch", 1: "symbols"}},
    ),
    "spans of voice activity": partial(
        scripted, Speaks, {"x": torch.randn(200), "state": torch.zeros(2, 1, 8)},
        {"x": {0: "samples"}},
    ),
}  # fmt: skip
"""The functions that write a model into a folder, by name."""
