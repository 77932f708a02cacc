"""PRelu with computed slopes, or with slopes for other axes than the channels. The GPU plugin takes
wrong slopes, or does not compile the model."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.operators import Result
from bridge.quirks.known import is_known
from bridge.quirks.quirk import Place, Quirk, rewriting


def selected(b: Builder, node: Node, place: Place) -> Result:
    """A selection of the products where the data are negative."""
    data, slope = node.inputs
    if data is None or slope is None or data.element is None:
        return None
    if is_known(slope, place) and _is_of_channels(data, slope):
        return None
    return b.where(data < b.like(0, data), data * slope, data)


def _is_of_channels(data: Value, slope: Value) -> bool:
    """Whether there is one slope, or one for each channel."""
    if data.shape is None or slope.shape is None:
        return False
    if len(slope.shape) == 1 and len(data.shape) > 1 and slope.shape[0] == data.shape[1]:
        return True
    before = len(data.shape) - len(slope.shape)
    return all(size == 1 or before + axis == 1 for axis, size in enumerate(slope.shape))


QUIRK = Quirk(
    releases="2026.4",
    symptom="PRelu with computed slopes multiplies by wrong slopes. With constant slopes that are "
    "fewer than the channels, the model does not compile.",
    fires="At a PRelu whose slopes are not known when the model is compiled, or are neither one "
    "slope nor one for each channel.",
    safe="This is PRelu's definition.",
    cost="a Less, a Multiply and a Select for PRelu; they stay on the way back to ONNX",
    run=rewriting("PRelu", by=selected),
)
