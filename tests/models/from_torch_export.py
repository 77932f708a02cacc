"""Modules with control flow of `torch.export`, as PyTorch's newer exporter writes them: cond,
while_loop, scan, and sizes that data decide."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import nn
from torch._higher_order_ops import scan, while_loop

AUTO = torch.export.Dim.AUTO


class Experts(nn.Module):
    """One of three layers, by conditions, one in the other."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def high(x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.max() > 1, lambda x: self.one(x), lambda x: self.other(x), (x,))

        return torch.cond(x.sum() > 0, high, lambda x: x.tanh(), (x,))


class Sizes(nn.Module):
    """A layer that the length of the input chooses."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.shape[0] > 4, lambda x: self.one(x), lambda x: self.other(x) * 2, (x,))


class Norm(nn.Module):
    """GroupNorm in one branch."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(2, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: self.norm(x), lambda x: x * 2, (x,))


class Root(nn.Module):
    """Newton's method in a while_loop: it ends when a step is small."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        square = x.abs() + 1

        def goes_on(y: torch.Tensor, moved: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
            return (moved > 1e-3) & (steps < 20)

        def step(
            y: torch.Tensor, moved: torch.Tensor, steps: torch.Tensor
        ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
            new = 0.5 * (y + square / y)
            return new, (new - y).abs().max(), steps + 1

        y, _, steps = while_loop(
            goes_on, step, (square.clone(), torch.tensor(1.0), torch.tensor(0))
        )
        return y, steps


class Solver(nn.Module):
    """Conjugate gradients in a while_loop: it ends when the residual, a row times a column, is
    small."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        matrix = x.T @ x + torch.eye(x.shape[1])
        aim = x.sum(0, keepdim=True)

        def goes_on(y: torch.Tensor, r: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
            return (r @ r.T).reshape(()) > 1e-6

        def step(
            y: torch.Tensor, r: torch.Tensor, p: torch.Tensor
        ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
            far = (r @ r.T) / (p @ matrix @ p.T)
            rest = r - far * (p @ matrix)
            return y + far * p, rest, rest + (rest @ rest.T) / (r @ r.T) * p

        y, rest, _ = while_loop(goes_on, step, (aim * 0, aim.clone(), aim.clone()))
        return y, rest


class Writer(nn.Module):
    """Greedy decoding in a while_loop, into a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.cell, self.out = nn.Embedding(12, 8), nn.Linear(16, 8), nn.Linear(8, 12)

    def forward(self, seen: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        def goes_on(
            at: torch.Tensor, word: torch.Tensor, h: torch.Tensor, written: torch.Tensor
        ) -> torch.Tensor:
            return (at < 8) & (word != 3).any()

        def step(
            at: torch.Tensor, word: torch.Tensor, h: torch.Tensor, written: torch.Tensor
        ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
            h = self.cell(torch.cat([self.words(word), h], 1)).tanh()
            word = self.out(h).argmax(1)
            place = torch.arange(8).unsqueeze(0) == at
            return at + 1, word, h, torch.where(place, word.unsqueeze(1), written)

        at, _, _, written = while_loop(
            goes_on, step,
            (torch.tensor(0), torch.zeros(2, dtype=torch.long), seen.clone(),
             torch.zeros(2, 8, dtype=torch.long)),
        )  # fmt: skip
        return written, at


class Recurrence(nn.Module):
    """A recurrent layer as a scan, which forgets its state at silent steps."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.Linear(12, 6)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        def step(h: torch.Tensor, now: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            h = torch.cond(
                now.abs().max() < 0.5, lambda h, now: h * 0,
                lambda h, now: self.cell(torch.cat([h, now])).tanh(), (h, now),
            )  # fmt: skip
            return h, h * 1

        return scan(step, torch.zeros(6), x, dim=0)


class Backwards(nn.Module):
    """A scan from the end, over two tensors, and one from the start."""

    def forward(self, x: torch.Tensor, decay: torch.Tensor) -> torch.Tensor:
        def back(
            h: torch.Tensor, now: tuple[torch.Tensor, torch.Tensor]
        ) -> tuple[torch.Tensor, torch.Tensor]:
            h = now[0] + now[1] * h
            return h, h * 1

        _, returns = scan(back, torch.zeros(6), (x, decay), dim=0, reverse=True)
        last, total = scan(lambda h, now: (h + now, h * 1), torch.zeros(6), returns, dim=0)
        return total + last


class Found(nn.Module):
    """As many rows as data say, and a layer for them, if there are any."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(6, 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        kept = x[x.sum(1) > 0]
        best = torch.cond(
            (x.sum(1) > 0).any(), lambda x: x.max(0).values, lambda x: x.mean(0) * 0, (x,)
        )
        return self.out(kept), best


class Nested(nn.Module):
    """A scan in each branch of a cond, in both directions."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def there(x: torch.Tensor) -> torch.Tensor:
            return scan(lambda h, now: (h + now, h * 1), torch.zeros(6), x, dim=0)[1]

        def back(x: torch.Tensor) -> torch.Tensor:
            return scan(lambda h, now: (h * now, h + 1), torch.ones(6), x, dim=0, reverse=True)[1]

        return torch.cond(x.sum() > 0, there, back, (x,))


def written(
    module: type[nn.Module],
    inputs: dict[str, torch.Tensor],
    axes: dict,
    folder: Path,
    opset: int | None = None,
) -> Path:
    torch.manual_seed(0)
    path = folder / "model.onnx"
    torch.onnx.export(
        module().eval(), tuple(inputs.values()), path, dynamo=True, verbose=False,
        opset_version=opset, input_names=list(inputs), external_data=False,
        dynamic_shapes=tuple(axes.get(name) for name in inputs),
    )  # fmt: skip
    return path


_rows, _open = {"x": torch.randn(5, 6)}, {"x": {0: AUTO}}

KINDS: dict[str, Callable[[Path], Path]] = {
    "cond in a cond": partial(written, Experts, _rows, _open),
    "cond by a size": partial(written, Sizes, _rows, _open),
    "GroupNorm in a branch": partial(written, Norm, _rows, {}, opset=23),
    "while_loop, Newton's method": partial(written, Root, _rows, _open),
    "while_loop, conjugate gradients": partial(written, Solver, _rows, {}),
    "while_loop, greedy decoding": partial(written, Writer, {"seen": torch.randn(2, 8)}, {}),
    "scan with a cond": partial(written, Recurrence, _rows, _open),
    "scans of both directions": partial(
        written, Backwards, {"x": torch.randn(5, 6), "decay": torch.rand(5, 6)},
        {"x": {0: AUTO}, "decay": {0: AUTO}},
    ),
    "as many rows as data say": partial(written, Found, _rows, _open),
    "scans in a cond": partial(written, Nested, _rows, _open),
}  # fmt: skip
"""The functions that write a model into a folder, by name."""
