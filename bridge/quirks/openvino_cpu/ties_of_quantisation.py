"""Numbers halfway between two integers: FakeQuantize finds the place between its limits, which is
not what division by the scale gives. Where no integer kernel takes what is quantised, a division
and a rounding say what ONNX means."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bridge.neutral.builder import Builder, values_of
from bridge.neutral.graph import Node, Value
from bridge.operators import Result
from bridge.passes.fuse.quantization import scale_of_limits
from bridge.quirks.opaque import opaque, revealed
from bridge.quirks.quirk import Place, Quirk, rewriting


def divided(b: Builder, node: Node, place: Place) -> Result:
    """A division by the scale, which OpenVINO would make a product if it knew it; a rounding, the
    zero point, and the limits."""
    x, *limits = node.inputs
    known = [values_of(limit) for limit in limits]
    if x is None or x.rank is None or any(limit is None for limit in known):
        return None
    start, end, least, greatest = (np.asarray(k, np.float32) for k in known)
    low, high = least.flat[0], greatest.flat[0]
    if least.size > 1 or greatest.size > 1 or high - low != node.attributes["levels"] - 1:
        return None
    if low not in (0, -(high + 1)) or start.shape != end.shape or _is_taken(node, place):
        return None
    scale = scale_of_limits(start, end, int(low), int(high))
    if scale is None or scale.ndim > x.rank:
        return None
    y = b.op("Round", x / opaque(b, b.constant(scale), "number"))
    y = b.plus(y, b.constant(np.round(low - start / scale).astype(np.float32)))
    return b.op("Clip", y, float(low), float(high))


def _is_taken(node: Node, place: Place) -> bool:
    """Whether somebody computes with what is made floats again, perhaps in integers."""
    users = place.uses.users
    integers = [made for made in users(node.outputs[0]) if made.op == "Cast"]
    floats = [f for q in integers for f in users(q.outputs[0]) if _gives_floats(f)]
    while floats:
        further = [user for made in floats for user in users(made.outputs[0])]
        if not all(user.op in ("Mul", "Sub") for user in further):
            return True
        floats = further
    return False


def _gives_floats(node: Node) -> bool:
    element = node.outputs[0].element
    return node.op == "Cast" and element is not None and element.is_float


def _placed(b: Builder, node: Node) -> Iterator[Value]:
    """The FakeQuantize of the scale and the zero point."""
    y, *ends = node.inputs
    low, high = (values_of(end) for end in ends) if len(ends) == 2 else (None, None)
    sum = y.producer if y is not None else None
    whole = sum.inputs[0].producer if sum is not None and sum.inputs[0] is not None else None
    if low is None or high is None or sum is None or sum.op != "Add" or whole is None:
        return
    zero, quotient = values_of(sum.inputs[1]), whole.inputs[0].producer if whole.inputs[0] else None
    if whole.op != "Round" or quotient is None or quotient.op != "Div" or zero is None:
        return
    x, divisor = quotient.inputs
    scale = None if divisor is None else values_of(revealed(divisor))
    if x is None or scale is None:
        return
    limits = [b.constant(scale * (np.float32(end) - zero)) for end in (low, high)]
    levels = int(high - low) + 1
    yield b.op("FakeQuantize", x, *limits, float(low), float(high), levels=levels)


QUIRK = Quirk(
    releases="2026.4",
    symptom="FakeQuantize rounds numbers halfway between two integers to another one than division "
    "by the scale does.",
    fires="At a FakeQuantize to integers that nobody computes with when they are floats again.",
    safe="QuantizeLinear is a division by the scale, a rounding, a sum with the zero point, and "
    "limits.",
    cost="four layers for one, and a 0 that is not known before the model runs",
    run=rewriting("FakeQuantize", by=divided, uses=True),
    guess={"Clip": _placed},
)
