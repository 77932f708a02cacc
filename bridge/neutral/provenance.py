"""What a node was in the model that a graph came from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bridge.neutral.graph import Value


@dataclass(frozen=True, eq=False)
class Provenance:
    """The one node in whose place a rule put several: its operator, those of its attributes that
    are not the default, and its inputs. A node of several outputs has in `outputs` what stands for
    each; an output that nobody uses stands for itself, and is made by no node of the graph. The
    last of the several that gives an output keeps it. It is a hint, and has to be proved: the nodes
    may have been changed since."""

    op: str
    attributes: dict[str, Any]
    inputs: Sequence[Value | None]
    outputs: Sequence[Value] = ()

    def of(self, stands: Callable[[Value], Value]) -> Provenance:
        """The same node, of what stands for its inputs and outputs now."""
        inputs = [None if value is None else stands(value) for value in self.inputs]
        return Provenance(self.op, self.attributes, inputs, list(map(stands, self.outputs)))
