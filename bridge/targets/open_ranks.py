"""Notes values of unknown rank: OpenVINO's CPU plugin does not run a model with such values. The
file is still written, because others read it."""

from bridge.neutral.graph import Model, names_of_outputs, producer_of
from bridge.neutral.types import TensorType
from bridge.passes.context import Context
from bridge.passes.ranks import has_state_of_open_rank, require_output_ranks

_NOT_RUN = "OpenVINO's CPU plugin does not run such a model"


def note_open_ranks(model: Model, context: Context) -> bool:
    """Notes the remaining values of unknown rank. The model stays as it is.

    Raises UsageError for `output_ranks` that are not the ranks of the outputs.
    """
    require_output_ranks(model.graph, context)
    notes = context.report.notes
    for node in model.graph.walk():
        if node.op == "Loop" and has_state_of_open_rank(node):
            notes.append(f"{node!r} carries a value whose rank changes: {_NOT_RUN}")
    for value, name in zip(model.graph.outputs, names_of_outputs(model.graph), strict=True):
        producer = producer_of(value, "If")
        if isinstance(value.type, TensorType) and value.rank is None and producer:
            notes.append(f'the rank of the output "{name}" depends on {producer!r}: {_NOT_RUN}')
    return False
