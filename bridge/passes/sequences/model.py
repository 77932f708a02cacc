"""The pass over a whole model."""

from bridge.errors import Unsupported, UnsupportedError
from bridge.neutral.graph import Model
from bridge.neutral.inference import infer_graph
from bridge.operators import Refused
from bridge.passes.context import Context
from bridge.passes.dead import remove_dead_nodes
from bridge.passes.fold import fold_graph
from bridge.passes.sequences.appended import stack_appended
from bridge.passes.sequences.compound_boundary import enter_model, leave_model
from bridge.passes.sequences.joined import join_extended
from bridge.passes.sequences.lower import Lowering


def lower_sequences(model: Model, context: Context) -> None:
    """Rewrites, in place, every sequence, optional and tensor of open rank of the model. Branches
    that fail whenever they are taken are pruned; the report says which.

    Raises UnsupportedError with the operators that cannot be lowered.
    """
    remove_dead_nodes(model.graph, trim=True)
    stack_appended(model.graph)
    join_extended(model.graph)
    lowering = Lowering(model.graph, context.target)
    try:
        enter_model(model, lowering, context.boundary)
        lowering.run()
        with lowering.builder:
            leave_model(model, lowering, context.boundary, context)
    except Refused as refused:
        op, where = lowering.place()
        findings = [Unsupported(op, where, str(refused))]
        raise UnsupportedError(str(context.target), findings) from None
    context.report.pruned += lowering.pruned
    model.graph.nodes = lowering.nodes
    infer_graph(model.graph)
    fold_graph(model.graph)
