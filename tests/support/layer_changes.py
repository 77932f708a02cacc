"""Changes of one layer in the text of an IR, which a check has to find."""

from __future__ import annotations

import re
from collections.abc import Iterator

_OTHERS = {
    "Add": "Subtract", "Subtract": "Add", "Multiply": "Add", "Divide": "Multiply",
    "Less": "GreaterEqual", "Greater": "LessEqual", "Equal": "NotEqual", "Relu": "Sigmoid",
    "Sigmoid": "Tanh", "Tanh": "Sigmoid", "Exp": "Sin", "Abs": "Negative", "Negative": "Abs",
    "ReduceSum": "ReduceMax", "ReduceMax": "ReduceMin",
}  # fmt: skip
"""Layers, and what takes their place: of the same inputs, outputs and attributes."""

_LAYER = r'<layer id="\d+" name="[^"]*" type="(?P<type>\w+)" version="opset\d+">'


def changes(ir: str, layer: str = "") -> Iterator[str]:
    """The text of an IR with one layer changed, for each layer that has another in its place. If
    `layer` is given, layers of this type in bodies alone."""
    for match in re.finditer(_LAYER, ir):
        new, before = _OTHERS.get(match["type"]), ir[: match.start()]
        opened, closed = (
            len(re.findall(rf"<{end}(?:then_|else_)?body>", before)) for end in ("", "/")
        )
        if new and (not layer or (layer == match["type"] and opened > closed)):
            changed = match[0].replace(f'type="{match["type"]}"', f'type="{new}"')
            yield before + changed + ir[match.end() :]
