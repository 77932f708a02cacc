"""FakeQuantize of numbers midway between two steps. The GPU plugin rounds them away from zero,
where ONNX and the CPU plugin round to even."""

from __future__ import annotations

from math import frexp

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting


def rounded(b: Builder, node: Node, place: Place) -> Result:
    """The clipped data divided by the step, rounded to even, and scaled to the range of the
    result."""
    data, *limits = node.inputs
    low, high, least, most = (_number(limit) for limit in limits)
    if data is None or low is None or high is None or least is None or most is None or low >= high:
        return None
    count = node.attributes["levels"] - 1
    step, scale = (high - low) / count, (most - least) / count
    start = low / step
    if frexp(step)[0] != 0.5 or start % 2:
        return None
    steps = b.op("Clip", data, b.like(low, data), b.like(high, data)) * b.like(1 / step, data)
    return b.op("Round", steps) * b.like(scale, data) + b.like(least - start * scale, data)


def _number(limit: Value | None) -> float | None:
    """The number of a limit, if it is known and one."""
    known = None if limit is None else known_of(limit).reals
    return float(known.flat[0]) if known is not None and np.size(known) == 1 else None


QUIRK = Quirk(
    releases="2026.4",
    symptom="FakeQuantize rounds 0.5 steps to 1, and 2.5 to 3.",
    fires="At a FakeQuantize whose step is a power of two, with one step for all channels. Else a "
    "number lies midway between two steps only by its rounding.",
    safe="This is FakeQuantize's definition. Dividing by a power of two rounds nothing.",
    cost="a Clamp, a Round, two Multiplies and an Add, which the plugin does not compute in 8 "
    "bits; they stay on the way back to ONNX",
    run=rewriting("FakeQuantize", by=rounded),
)
