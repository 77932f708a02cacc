"""MaxPool whose last window would start in the padding behind the input. The GPU plugin keeps
that window."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting


def of_known_count(b: Builder, node: Node, place: Place) -> Result:
    """The same with the padding that the last window needs, and sizes that are rounded down."""
    given, data = node.attributes, node.inputs[0]
    if given["rounding_type"] != "ceil_torch" or given["auto_pad"] != "NOTSET":
        return None
    count = len(given["kernel_shape"])
    sizes = () if data is None or data.shape is None else data.shape[-count:]
    dilations = given.get("dilations") or (1,) * count
    ends, is_wrong = [], False
    rows = (sizes, given["kernel_shape"], given["strides"], dilations, given["pads"][:count])
    for axis, (size, kernel, stride, dilation, before) in enumerate(zip(*rows, strict=False)):
        if not isinstance(size, int):
            return None
        window = dilation * (kernel - 1) + 1
        rest = size + before + given["pads"][count + axis] - window
        last = -(-rest // stride)  # The place of the last window, if all count.
        if last * stride >= size + before:
            last, is_wrong = last - 1, True
        ends.append(max(last * stride + window - size - before, 0))
    if not is_wrong:
        return None
    pads = (*given["pads"][:count], *ends)
    attributes = {**given, "pads": pads, "rounding_type": "floor"}
    return b.node("MaxPool", node.inputs, len(node.outputs), attributes, extras=node.extras).outputs


QUIRK = Quirk(
    releases="2026.4",
    symptom="With sizes that are rounded up, a MaxPool has a window more, which starts in the "
    "padding.",
    fires="At a MaxPool of known sizes that leaves out such a window.",
    safe="With the padding that the last window needs, there are as many windows, at the same "
    "places.",
    cost="none",
    run=rewriting("MaxPool", by=of_known_count),
)
