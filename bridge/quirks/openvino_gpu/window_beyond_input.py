"""AvgPool with dilations whose last window ends beyond the input. The GPU plugin counts what is
beyond it."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting


def counting_input(b: Builder, node: Node, place: Place) -> Result:
    """The same without elements of the padding, since there is none."""
    given = node.attributes
    if given["exclude_pad"] or given["rounding_type"] == "floor" or any(given["pads"]):
        return None
    if all(step == 1 for step in given.get("dilations") or ()):
        return None
    if given["auto_pad"] not in ("NOTSET", "VALID"):
        return None
    attributes = {**given, "exclude_pad": True}
    return b.node("AvgPool", node.inputs, 1, attributes, extras=node.extras).outputs


QUIRK = Quirk(
    releases="2026.4",
    symptom="With dilations and sizes that are rounded up, the mean of the last window is too "
    "small: it is divided by the size of the window, as if zeros were there.",
    fires="At an AvgPool with dilations and without padding that rounds sizes up and counts "
    "elements of the padding.",
    safe="Without padding, there are no elements of it to count.",
    cost="none",
    run=rewriting("AvgPool", by=counting_input),
)
