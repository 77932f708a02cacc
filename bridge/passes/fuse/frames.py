"""STFT: the transform of frames gathered from a signal, as the way to IR writes it."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.inference.dims import known_axes
from bridge.neutral.inference.known import known_of
from bridge.neutral.terms import Found, Op, Term, constant, op, var
from bridge.passes.fuse import fuses
from bridge.passes.uses import Uses


def _from_zero(count: Term) -> Op:
    """The numbers below a count."""
    return op("Range", 0, count, 1).shared()


SIGNAL = var(rank=3, where=lambda signal: signal.dims[2] == 1)
STEP, DIVISOR, WINDOW, AXES = var(rank=0), var(), var(), var()
KNOWN, SIZE, TAKEN = constant(), constant(), constant()

SIZES = op("Gather", op("Shape", SIGNAL).shared(), 1).shared()
LENGTH = op("Reshape | Squeeze", SIZES).shared() | SIZES
ROOM = ((LENGTH - TAKEN).shared() / DIVISOR).shared()
FRAMES = (ROOM + 1).shared()
COUNT = KNOWN | op("Max", FRAMES, 0, None).shared() | FRAMES
"""1 + (length - size) / step, or 0 if that is negative."""

STARTS = op("Unsqueeze", _from_zero(COUNT) * STEP, 1)
GATHER = op("Gather", SIGNAL, STARTS + _from_zero(SIZE), 1, batch_dims=0)


@fuses(op("RDFT", op("Squeeze", GATHER * WINDOW, AXES), 2, None), opset=17)
def short_time_transform(b: Builder, match: Found, uses: Uses) -> Value | None:
    """RDFT of the frames of real signals [batch, length, 1], times a window. Each frame begins one
    step after the frame before; the last one begins as late as the signal allows."""
    size, step = known_of(match[SIZE]).ints, match[STEP]
    if known_axes(match[AXES], 4) != (3,) or not size or match[WINDOW].shape != (size[0], 1):
        return None
    if not (_is_known_count if KNOWN in match else _is_count)(match, size[0]):
        return None
    shaped = b.reshape(match[WINDOW], size[0])
    return b.op("STFT", match[SIGNAL], step, shaped, size[0], onesided=True)


def _is_count(match: Found, size: int) -> bool:
    """Whether frames of `size` are counted by the step."""
    step, divisor = (known_of(match[term]).ints for term in (STEP, DIVISOR))
    same = match[DIVISOR] is match[STEP] or (step is not None and step == divisor)
    return same and known_of(match[TAKEN]).ints == (size,)


def _is_known_count(match: Found, size: int) -> bool:
    count, steps, length = (
        known_of(match[KNOWN]).ints,
        known_of(match[STEP]).ints,
        match[SIGNAL].dims[1],
    )
    if count is None or steps is None or not isinstance(length, int):
        return False
    return count[0] == max(0, 1 + (length - size) // steps[0])
