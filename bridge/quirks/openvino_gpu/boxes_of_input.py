"""NonMaxSuppression of an input of the model that is only reshaped. The GPU plugin computes it on
the host, and does not wait until the input has been copied to the device."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.operators import Result
from bridge.quirks.opaque import undone, with_hidden
from bridge.quirks.quirk import Place, Quirk, rewriting

VIEWS = ("Identity", "Reshape", "Squeeze", "Unsqueeze")
"""Operators for which the plugin does nothing when the model runs."""


def copied(b: Builder, node: Node, place: Place) -> Result:
    """The same of copies of such inputs."""
    return with_hidden(b, node, "memory", [_is_view_of_input(value) for value in node.inputs])


def _is_view_of_input(value: Value | None) -> bool:
    """Whether a value is an input of the graph with other sizes."""
    if value is None or value.producer is None:
        return False
    before = value.behind(*VIEWS)
    return before is not value and before.producer is None and before.constant is None


QUIRK = Quirk(
    releases="2026.4",
    symptom="A NonMaxSuppression behind a Reshape of an input of the model often selects the boxes "
    "of the inference before.",
    fires="At an input of NonMaxSuppression that is a reshaped input of the graph.",
    safe="The maximum of a value with itself is the value.",
    cost="a Maximum for each such input",
    run=rewriting("ir::NonMaxSuppression", by=copied),
    undo=undone("memory"),
)
