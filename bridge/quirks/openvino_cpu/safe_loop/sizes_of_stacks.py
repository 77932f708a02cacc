"""A stack has its sizes if no iteration runs.

The CPU plugin takes open sizes from the inference before. In the first inference it has none.
"""

from __future__ import annotations

from bridge.neutral.graph import Node
from bridge.neutral.ports import Stacked
from bridge.quirks.guarded_loops import UNDO
from bridge.quirks.safe_loop import Clause, Draft


def lacks(draft: Draft) -> list[Stacked]:
    """The stacks of open sizes, if the Loop may run no iteration."""
    stacks = [exit for exit in draft.stacks if not _is_known(draft.node, exit)]
    return stacks if stacks and draft.may_be_guarded else []


def give(draft: Draft, found: list[Stacked]) -> None:
    """The Loop stands in an If, whose other branch gives an empty stack of known shape."""
    draft.wants_guard = True


def _is_known(node: Node, exit: Stacked) -> bool:
    """Whether every size is known, but for the axis of the stack. With an unknown rank, nobody
    could give an empty stack."""
    shape = node.outputs[exit.output].shape
    if shape is None:
        return True
    dims = list(shape)
    del dims[exit.axis]
    return all(isinstance(dim, int) for dim in dims)


QUIRK = Clause(
    holds="A stack has its sizes if no iteration runs.",
    lacks=lacks,
    give=give,
    releases="2026.4",
    symptom="If a Loop runs no iteration, open sizes of a stack are the sizes of the inference "
    "before. If they have a lower bound, the first inference fails.",
    fires="At a Loop that may run no iteration and stacks values of open sizes.",
    safe="If the Loop runs, the If takes the branch with the Loop. The other branch gives the "
    "outputs of a Loop without an iteration.",
    cost="an If around a Loop that may run no iteration and stacks values of open sizes",
    undo=UNDO,
)
