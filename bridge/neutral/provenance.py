"""What a node was in the model that a graph came from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bridge.neutral.graph import Value


@dataclass(frozen=True, eq=False)
class Provenance:
    """The one node, with one output, in whose place a rule put several: its operator, those of its
    attributes that are not the default, and its inputs. It is kept with that of the several which
    gives the output, is a hint, and has to be proved: the nodes may have been changed since."""

    op: str
    attributes: dict[str, Any]
    inputs: Sequence[Value | None]

    def of(self, stands: Callable[[Value], Value]) -> Provenance:
        """The same node, of what stands for its inputs now."""
        inputs = [None if value is None else stands(value) for value in self.inputs]
        return Provenance(self.op, self.attributes, inputs)
