"""Sequences, optionals and tensors of open rank in tensors of a known rank, for OpenVINO IR: it has
neither of the former, and its CPU plugin runs none of the latter.

`forms.py` says how they are held, `ragged.py`, `uniform.py` and `open_rank.py` how three of the
forms are worked on, `operators.py` and `open_operators.py` what each operator becomes, `lower.py`
walks through graphs, Ifs and Loops, and `boundary.py` names the inputs and outputs of the model.
`restore.py` brings the types back from an IR's record of them, and `copies.py` spells copies for
old operator sets.
"""

from __future__ import annotations

from bridge.errors import Unsupported, UnsupportedError
from bridge.neutral.graph import Model
from bridge.neutral.inference import infer_graph
from bridge.operators import Refused
from bridge.passes.context import Context
from bridge.passes.dead import remove_dead_nodes
from bridge.passes.fold import fold_graph
from bridge.passes.ranks import has_open_rank
from bridge.passes.sequences.bodies import is_compound
from bridge.passes.sequences.boundary import check_output_ranks, enter_model, leave_model
from bridge.passes.sequences.lower import Lowering
from bridge.passes.sequences.operators import lowering


def has_compound(model: Model) -> bool:
    """Whether a model has a sequence or an optional anywhere."""
    if any(is_compound(v) for v in (*model.graph.inputs, *model.graph.outputs)):
        return True
    return any(
        (node.op != "Identity" and lowering(node.op) is not None)
        or any(is_compound(v) for v in node.outputs)
        for node in model.graph.walk()
    )


def lower_sequences(model: Model, context: Context) -> None:
    """Rewrites, in place, every sequence, optional and tensor of open rank of the model, and notes
    in the report the branches that fail whenever they are taken and are pruned for that.

    Raises UnsupportedError with what stands in the way.
    """
    if not (has_compound(model) or has_open_rank(model.graph)):
        check_output_ranks(model.graph, context)
        return
    remove_dead_nodes(model.graph, trim=True)
    lowering = Lowering(model.graph, context.target)
    try:
        boundary = enter_model(model, lowering)
        lowering.run()
        leave_model(model, lowering, boundary, context)
    except Refused as refused:
        op, where = lowering.place()
        findings = [Unsupported(op, where, str(refused))]
        raise UnsupportedError(str(context.target), findings) from None
    context.report.pruned += lowering.pruned
    model.graph.nodes = lowering.nodes
    infer_graph(model.graph)
    fold_graph(model.graph)
