"""Turns sequences, optionals and tensors of open rank into tensors of known rank, for OpenVINO IR.

IR has no sequences and no optionals, and OpenVINO's CPU plugin runs no tensors of open rank.

`form.py` has the base class of a form, which holds such a value. `tensors.py`, `elements.py`,
`ragged.py`, `uniform.py` and `maybe.py` have the forms and their operations. `operators.py` and
`open_operators.py` rewrite each operator. Before that, `appended.py` and `joined.py` make stacks
and tensors of the values that Loops collect. `lower.py` walks through graphs, Ifs and Loops, and
`boundary.py` names the inputs and outputs of the model. `restore.py` restores the types from an
IR's record. `known_parts.py` recognises the nodes that `restore.py` made. `copies.py` writes copies
for old operator sets.
"""

from __future__ import annotations

from bridge.neutral.graph import Graph
from bridge.neutral.types import ContainerType
from bridge.vocabulary import family_of


def has_sequences(graph: Graph) -> bool:
    """Whether a graph has a sequence or an optional anywhere, or an operator on such."""
    computed = (value for node in graph.walk() for value in node.outputs)
    return any(
        isinstance(value.type, ContainerType) for value in (*graph.inputs, *computed)
    ) or any(family_of(node.op) == "sequence" for node in graph.walk())
