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

from bridge.neutral.graph import Graph, Model
from bridge.neutral.types import ContainerType
from bridge.passes.applies import between_formats, both, either, found, operators_of
from bridge.passes.context import Context
from bridge.passes.ranks import has_open_rank
from bridge.vocabulary import family_of


def has_sequences(graph: Graph) -> bool:
    """Whether a graph has a sequence or an optional anywhere, or an operator on such."""
    values = (graph.inputs, *(node.outputs for node in graph.walk()))
    if any(isinstance(value.type, ContainerType) for some in values for value in some):
        return True
    return any(family_of(op) == "sequence" for op in operators_of(graph))


has_parts = both(between_formats, either(found(has_sequences), found(has_open_rank)))
"""If some value is held as several tensors in IR: a sequence, an optional, or a tensor whose rank
data decide."""


def selects_parts(model: Model, context: Context) -> bool:
    """If all Ifs of ONNX become selections there, and some have or compute values that become
    several tensors. Only tensors of one rank can be selected, and no guards exist for sequences."""
    return (
        model.format == "onnx"
        and context.options.get("ifs") == "select"
        and any(
            any(value.rank is None for value in node.outputs)
            or any(has_sequences(body.graph) for body in node.bodies)
            for node in model.graph.walk()
            if node.op == "If"
        )
    )
