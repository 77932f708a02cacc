"""Other modules that people script in PyTorch: lists, optionals, early returns, loops in loops."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import nn

from tests.models.control_flow import scripted


class Texts(nn.Module):
    """Attention within each of several texts; one tensor holds them one after another."""

    def __init__(self) -> None:
        super().__init__()
        self.key, self.out = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        found: list[torch.Tensor] = []
        start = 0
        for i in range(counts.size(0)):
            end = start + int(counts[i])
            part = x[start:end]
            found.append(self.out((part @ self.key(part).t()).softmax(1) @ part))
            start = end
        return torch.cat(found)


class Pyramid(nn.Module):
    """A list of layers of several sizes. A loop over the list adds each to the one before."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([nn.Conv2d(3, 4, 3, 2, 1), nn.Conv2d(4, 4, 3, 2, 1)])
        self.side = nn.Conv2d(4, 4, 1)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        seen: list[torch.Tensor] = []
        for layer in self.down:
            image = layer(image).relu()
            seen.append(image)
        last = seen.pop()
        while len(seen) > 0:
            now = seen.pop()
            size = [now.size(2), now.size(3)]
            last = self.side(now) + nn.functional.interpolate(last, size, mode="nearest")
        return last


class Early(nn.Module):
    """Layers that a sample leaves early if one of them is sure."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(6, 6) for _ in range(3)])
        self.out = nn.Linear(6, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x).relu()
            y = self.out(x)
            if bool(y.softmax(1).max() > 0.5):
                return y
        return self.out(x)


class Maybe(nn.Module):
    """A memory that the first call lacks, and a mask that may be empty."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.out = nn.Linear(6, 6), nn.Linear(6, 6)

    def attend(self, x: torch.Tensor, memory: torch.Tensor | None) -> torch.Tensor:
        seen = x if memory is None else torch.cat([memory, x])
        return (self.query(x) @ seen.t()).softmax(1) @ seen

    def forward(self, x: torch.Tensor, memory: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        held: torch.Tensor | None = None
        if memory.size(0) > 0:
            held = memory
        y = self.out(self.attend(x, held))
        return y, y[-2:] if y.size(0) > 2 else y


class Sorted(nn.Module):
    """Bubble sort of rows by a score: an `if` in a loop in a loop, over a list."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.unbind(0)
        found: list[torch.Tensor] = []
        for row in rows:
            place = 0
            for at in range(len(found)):
                if bool(found[at].sum() < row.sum()):
                    place = at + 1
            found.insert(place, row)
        return torch.stack(found)


class Suppressed(nn.Module):
    """Suppression of boxes in a `while` over the remaining ones, with `continue` and `break`."""

    def forward(self, boxes: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        order = scores.argsort(descending=True)
        kept = order[:0]
        area = (boxes[:, 2] - boxes[:, 0]).clamp(0) * (boxes[:, 3] - boxes[:, 1]).clamp(0)
        while order.numel() > 0:
            best, order = order[0], order[1:]
            if bool(area[best] <= 0):
                continue
            kept = torch.cat([kept, best.unsqueeze(0)])
            if kept.numel() >= 4:
                break
            low = torch.maximum(boxes[best, :2], boxes[order, :2])
            high = torch.minimum(boxes[best, 2:], boxes[order, 2:])
            both = (high - low).clamp(0).prod(1)
            order = order[both / (area[best] + area[order] - both + 1e-6) <= 0.5]
        return kept


class Beams(nn.Module):
    """Beam search of width 2 that ends when all beams have ended."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.cell, self.out = nn.Embedding(12, 8), nn.Linear(16, 8), nn.Linear(8, 12)

    def forward(self, seen: torch.Tensor, steps: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = seen.expand(2, 8)
        written = torch.zeros(2, 1, dtype=torch.long)
        scores = torch.tensor([0.0, -1e3])
        done = torch.zeros(2, dtype=torch.bool)
        for _ in range(int(steps)):
            h = self.cell(torch.cat([self.words(written[:, -1]), h], 1)).tanh()
            logits = self.out(h).log_softmax(1)
            ended = torch.full_like(logits, -1e9)
            ended[:, 3] = 0.0
            logits = torch.where(done.unsqueeze(1), ended, logits)
            scores, place = (scores.unsqueeze(1) + logits).view(-1).topk(2)
            beam, word = place // 12, place % 12
            written = torch.cat([written[beam], word.unsqueeze(1)], 1)
            h, done = h[beam], done[beam] | (word == 3)
            if bool(done.all()):
                break
        return written, scores


class Windows(nn.Module):
    """Overlapping windows of an image, with a sum of each window at its place."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = nn.Conv2d(1, 1, 3, padding=1)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        height, width = image.size(2), image.size(3)
        total = torch.zeros_like(image)
        for top in range(0, height - 4, 4):
            for left in range(0, width - 4, 4):
                part = image[:, :, top : top + 8, left : left + 8]
                total[:, :, top : top + 8, left : left + 8] += self.seen(part)
        return total


KINDS: dict[str, Callable[[Path], Path]] = {
    "texts of several lengths": partial(
        scripted, Texts, {"x": torch.randn(16, 6), "counts": torch.tensor([9, 7])},
        {"x": {0: "N"}, "counts": {0: "B"}},
    ),
    "list as a stack": partial(
        scripted, Pyramid, {"image": torch.randn(1, 3, 32, 32)},
        {"image": {2: "height", 3: "width"}},
    ),
    "early returns": partial(scripted, Early, {"x": torch.randn(3, 6)}, {"x": {0: "N"}}),
    "memory that may be absent": partial(
        scripted, Maybe, {"x": torch.randn(3, 6), "memory": torch.randn(2, 6)},
        {"x": {0: "N"}, "memory": {0: "M"}},
    ),
    "insertion sort in a list": partial(
        scripted, Sorted, {"x": torch.randn(5, 6)}, {"x": {0: "N"}}
    ),
    "suppression in a while": partial(
        scripted, Suppressed, {"boxes": torch.rand(6, 4), "scores": torch.rand(6)},
        {"boxes": {0: "N"}, "scores": {0: "N"}},
    ),
    "beam search": partial(
        scripted, Beams, {"seen": torch.randn(1, 8), "steps": torch.tensor(5)}, {}
    ),
    "windows, a loop in a loop": partial(
        scripted, Windows, {"image": torch.randn(1, 1, 24, 24)},
        {"image": {2: "height", 3: "width"}},
    ),
}  # fmt: skip
"""The functions that write a model into a folder, by name."""
