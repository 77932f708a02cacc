"""Layers with control flow of Paddle, as paddle2onnx writes them: Python's `if` and `while`, which
`to_static` reads, and the functions of `paddle.static.nn`."""
# ruff: noqa: SIM108 - the statement `if` is what these models are about.

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import paddle
    import paddle2onnx  # noqa: F401 - paddle.onnx asks for it
from paddle import nn
from paddle.static import InputSpec

Tensor = Any


class Gate(nn.Layer):
    """A layer that data choose, with paddle.static.nn.cond."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(6, 4), nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        return paddle.static.nn.cond(
            x.sum() > 0, lambda: nn.functional.relu(self.one(x)), lambda: self.other(x)
        )


class Branch(nn.Layer):
    """An `if` of Python in an `if` of Python."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        y, highest = self.one(x), x.max()
        if x.sum() > 0:
            if highest > 1:
                y = self.other(y)
            else:
                y = y + x
        else:
            y = paddle.tanh(y)
        return y * 2


class Lengths(nn.Layer):
    """Positive rows, unless there are none."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        kept = paddle.nonzero(x.sum(1) > 0)
        if paddle.shape(kept)[0] > 0:
            y = paddle.gather(x, kept.flatten())
        else:
            y = x.mean(0, keepdim=True)
        return self.out(y)


class Case(nn.Layer):
    """One of three layers, by conditions."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        return paddle.static.nn.case(
            [(x.sum() > 2, lambda: self.one(x)), (x.max() > 1, lambda: self.other(x).tanh())],
            lambda: -x,
        )


class Switch(nn.Layer):
    """One of three layers, by a number."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x: Tensor, kind: Tensor) -> Tensor:
        layers = {0: lambda: self.one(x), 1: lambda: self.other(x)}
        return paddle.static.nn.switch_case(kind, layers, lambda: x * 2)


class Recurrence(nn.Layer):
    """A recurrent layer step by step, with paddle.static.nn.while_loop, into a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.Linear(12, 6)

    def forward(self, x: Tensor) -> Tensor:
        steps = paddle.shape(x)[0]
        at = paddle.zeros([1], "int64")

        def step(at: Tensor, state: Tensor, found: Tensor) -> list[Tensor]:
            now = paddle.gather(x, at)
            state = paddle.tanh(self.cell(paddle.concat([now, state], 1)))
            return [at + 1, state, paddle.concat([found, state], 0)]

        state = paddle.zeros([1, 6])
        _, _, found = paddle.static.nn.while_loop(
            lambda at, state, found: at < steps.astype("int64"), step, [at, state, state]
        )
        return found


class Writer(nn.Layer):
    """Greedy decoding, a `while` of Python that ends at a word or after a number of steps."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.cell, self.out = nn.Embedding(12, 8), nn.Linear(16, 8), nn.Linear(8, 12)

    def forward(self, seen: Tensor, steps: Tensor) -> Tensor:
        word = paddle.zeros([1], "int64")
        written, h = word, seen
        at = paddle.zeros([1], "int64")
        while paddle.logical_and(at < steps, word != 3):
            h = paddle.tanh(self.cell(paddle.concat([self.words(word), h], 1)))
            word = self.out(h).argmax(1)
            written = paddle.concat([written, word])
            at = at + 1
        return written


class Newton(nn.Layer):
    """Newton's method, with an `if` in a `while`: the last steps are half as long."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        square = x.abs() + 1
        y, steps = square, paddle.zeros([1], "int64")
        while paddle.logical_and((y * y - square).abs().max() > 1e-2, steps < 20):
            new = 0.5 * (y + square / y)
            if steps > 3:
                new = (new + y) / 2
            else:
                new = new + 0
            y, steps = new, steps + 1
        return y, steps


class Boxes(nn.Layer):
    """Detection as PaddleDetection's models end. The images have open sizes, and boxes are
    suppressed for each class. The output is the rest of the boxes, if there are any."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Conv2D(3, 8, 3, stride=4, padding=1)
        self.scores, self.sizes = nn.Conv2D(8, 2, 1), nn.Conv2D(8, 4, 1)
        self.score_threshold = 0.55

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        seen = nn.functional.relu(self.trunk(image))
        scores = nn.functional.sigmoid(self.scores(seen)).flatten(2)
        sizes = nn.functional.sigmoid(self.sizes(seen)).flatten(2).transpose([0, 2, 1])
        low, size = paddle.split(sizes, 2, axis=2)
        boxes = paddle.concat([low, low + size], 2)
        found, _, count = paddle._C_ops.multiclass_nms3(
            boxes, scores, None, self.score_threshold, 50, 10, 0.5, True, 1.0, -1
        )
        if count.sum() > 0:
            chosen = found[:, 2:] * 4
        else:
            chosen = paddle.zeros([1, 4])
        return chosen, count


class Recognition(nn.Layer):
    """Reading text in images: convolutions, a bidirectional LSTM over columns."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Conv2D(1, 8, 3, stride=2, padding=1)
        self.run = nn.LSTM(64, 16, direction="bidirect")
        self.out = nn.Linear(32, 12)

    def forward(self, image: Tensor) -> Tensor:
        seen = nn.functional.relu(self.trunk(image)).flatten(1, 2).transpose([0, 2, 1])
        return nn.functional.softmax(self.out(self.run(seen)[0]), axis=2)


class Chunks(nn.Layer):
    """Voice activity of a long signal chunk by chunk, a `for` over a range of open length."""

    def __init__(self) -> None:
        super().__init__()
        self.fast, self.cell, self.out = nn.Linear(16, 8), nn.LSTMCell(8, 8), nn.Linear(8, 1)

    def forward(self, x: Tensor) -> Tensor:
        h, c = paddle.zeros([1, 8]), paddle.zeros([1, 8])
        found = paddle.zeros([1, 1])
        for i in range(paddle.shape(x)[1] // 16):
            chunk = nn.functional.relu(self.fast(x[:, i * 16 : i * 16 + 16]))
            _, (h, c) = self.cell(chunk, (h, c))
            found = paddle.concat([found, nn.functional.sigmoid(self.out(h))], 1)
        return found[:, 1:]


class Beams(nn.Layer):
    """Beam search of width 2, a `while` of Python."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.cell, self.out = nn.Embedding(12, 8), nn.Linear(16, 8), nn.Linear(8, 12)

    def forward(self, seen: Tensor, steps: Tensor) -> tuple[Tensor, Tensor]:
        h = seen.expand([2, 8])
        written = paddle.zeros([2, 1], "int64")
        scores = paddle.to_tensor([0.0, -1000.0]).reshape([2, 1])
        at = paddle.zeros([1], "int64")
        while at < steps:
            h = paddle.tanh(self.cell(paddle.concat([self.words(written[:, -1]), h], 1)))
            total = scores + nn.functional.log_softmax(self.out(h), axis=1)
            best, place = paddle.topk(total.flatten(), 2)
            beam = place // 12
            word = (place % 12).reshape([2, 1])
            written = paddle.concat([paddle.gather(written, beam), word], 1)
            h, scores = paddle.gather(h, beam), best.reshape([2, 1])
            at = at + 1
        return written, scores


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Hides the output of paddle2onnx, which comes from C++."""
    sys.stdout.flush()
    kept = os.dup(1)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def written(
    layer: type[nn.Layer], specs: Sequence[tuple[str, Sequence[int | None], str]], folder: Path
) -> Path:
    paddle.seed(0)
    signature = [InputSpec(shape, kind, name) for name, shape, kind in specs]
    made = layer()
    made.eval()
    with silent():
        paddle.onnx.export(made, str(folder / "model"), signature, opset_version=17)
    return folder / "model.onnx"


_rows, _steps = ("x", [None, 6], "float32"), ("steps", [1], "int64")
_seen = ("seen", [1, 8], "float32")

KINDS: dict[str, Callable[[Path], Path]] = {
    "static.nn.cond": partial(written, Gate, [_rows]),
    "if in an if": partial(written, Branch, [_rows]),
    "if of two lengths": partial(written, Lengths, [_rows]),
    "static.nn.case": partial(written, Case, [_rows]),
    "static.nn.switch_case": partial(written, Switch, [_rows, ("kind", [1], "int32")]),
    "static.nn.while_loop, recurrence": partial(written, Recurrence, [_rows]),
    "while, greedy decoding": partial(written, Writer, [_seen, _steps]),
    "if in a while": partial(written, Newton, [("x", [None], "float32")]),
    "detection": partial(written, Boxes, [("image", [1, 3, None, None], "float32")]),
    "text recognition": partial(written, Recognition, [("image", [None, 1, 16, None], "float32")]),
    "for over chunks, voice activity": partial(written, Chunks, [("x", [1, None], "float32")]),
    "while, beam search": partial(written, Beams, [_seen, _steps]),
}
"""The functions that write a model into a folder, by name."""
