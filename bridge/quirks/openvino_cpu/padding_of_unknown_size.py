"""The padding of a MaxPool with indices, if the size of its input is unknown."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.neutral.types import is_static
from bridge.operators import Result
from bridge.operators.nn.conv import explicitly_padded
from bridge.quirks.quirk import Place, Quirk, rewriting


def written_out(b: Builder, node: Node, place: Place) -> Result:
    """The MaxPool with the pads that `auto_pad` means. Refused if the pads depend on the size."""
    (data,) = node.inputs
    attributes = node.attributes
    assert data is not None
    if len(node.outputs) < 2 or attributes["auto_pad"] == "NOTSET" or is_static(data.shape):
        return None
    kernel = attributes["kernel_shape"]
    return b.ops("MaxPool", 2, data, **explicitly_padded(data, kernel, attributes))


QUIRK = Quirk(
    releases="2026.4",
    symptom="A MaxPool with two outputs and auto_pad pads at the wrong end if the size of the "
    "input is unknown.",
    fires="At a MaxPool with indices and auto_pad, with an input of open shape.",
    safe="The explicit pads are the pads that auto_pad means. If they depend on the size, the "
    "model is refused.",
    cost="none: explicit pads instead of auto_pad",
    run=rewriting("MaxPool", by=written_out),
)
