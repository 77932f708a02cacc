"""The node of the original model that a node comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bridge.neutral.graph import Value


@dataclass(frozen=True, eq=False)
class Provenance:
    """The one node that a rule replaced by several: its operator, its attributes without defaults,
    and its inputs. `outputs` of a node with several outputs holds a new value for each. An output
    that nobody uses stands for itself; no node of the graph makes it. The provenance is kept at
    the last of the new nodes that gives an output. It is a hint and must be proved, because the
    nodes may have changed since.

    `of_quirk` says that a quirk replaced the node, which was one of IR then, and perhaps one of the
    nodes that replace the node of ONNX in `former`."""

    op: str
    attributes: dict[str, Any]
    inputs: Sequence[Value | None]
    outputs: Sequence[Value] = ()
    of_quirk: bool = False
    former: Provenance | None = None

    def of(self, stands: Callable[[Value], Value]) -> Provenance:
        """The same node, with the values that now replace its inputs and outputs."""
        inputs = [None if value is None else stands(value) for value in self.inputs]
        outputs = list(map(stands, self.outputs))
        former = None if self.former is None else self.former.of(stands)
        return Provenance(self.op, self.attributes, inputs, outputs, self.of_quirk, former)
