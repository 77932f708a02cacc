"""Identity."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.rules import Result, expands


@expands("Identity", target="ir")
def nothing(b: Builder, node: Node) -> Result:
    """A value of IR has as many names as it takes, so nothing is left of an Identity. IR's own, of
    operator set 16, was long not run by OpenVINO's CPU plugin (2025.2)."""
    return node.inputs[0]
