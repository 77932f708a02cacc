"""Sequences, optionals and tensors of open rank in tensors of a known rank, for OpenVINO IR: it has
neither of the former, and its CPU plugin runs none of the latter.

`form.py` says what a form is that holds such a value; `tensors.py`, `elements.py`, `ragged.py`,
`uniform.py` and `maybe.py` are the forms with what is done to each. `operators.py` and
`open_operators.py` say what each operator becomes. Before that, `appended.py` and `joined.py` make
stacks and tensors of what Loops collect. `lower.py` walks through graphs, Ifs and Loops,
and `boundary.py` names the inputs and outputs of the model. `restore.py` brings the types back from
an IR's record of them, `known_parts.py` knows again what it made, and `copies.py` spells copies for
old operator sets.
"""

from __future__ import annotations

from bridge.neutral.graph import Graph
from bridge.neutral.types import ContainerType
from bridge.vocabulary import family_of


def has_sequences(graph: Graph) -> bool:
    """Whether a graph has a sequence or an optional anywhere, or an operator on such."""
    made = (value for node in graph.walk() for value in node.outputs)
    return any(isinstance(value.type, ContainerType) for value in (*graph.inputs, *made)) or any(
        family_of(node.op) == "sequence" for node in graph.walk()
    )
