"""Sizes of stacks where no iteration runs: the CPU plugin takes those that it does not know from
the run before, and from nowhere in the first."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.neutral.ports import Stacked
from bridge.operators import Result
from bridge.quirks.guarded_loops import UNDO, in_a_branch
from bridge.quirks.quirk import Place, Quirk, rewriting


def with_known_sizes(b: Builder, node: Node, place: Place) -> Result:
    """The Loop in a branch of an If, whose other branch gives a stack of nothing of a known shape,
    where another size of what is stacked than the number of parts is open."""
    stacks = [exit for exit in node.body.outputs if isinstance(exit, Stacked)]
    if all(_is_known(node, exit) for exit in stacks):
        return None
    return in_a_branch(b, node, place)


def _is_known(node: Node, exit: Stacked) -> bool:
    """Whether every size of a stack is known but that along which it stacks. Of a stack of unknown
    rank nobody could give one of nothing."""
    shape = node.outputs[exit.output].shape
    if shape is None:
        return True
    dims = list(shape)
    del dims[exit.axis]
    return all(isinstance(dim, int) for dim in dims)


QUIRK = Quirk(
    releases="2026.4",
    symptom="Where a Loop runs no iteration, a stack of values of open sizes has those of the "
    "inference before; where they are bounded from below, the first inference fails.",
    fires="At a Loop that may not run and stacks values of open sizes.",
    safe="One branch is the Loop where it runs; the other gives what a Loop gives that does not.",
    cost="an If around a Loop that may not run and stacks values of open sizes",
    run=rewriting("Loop", by=with_known_sizes),
    undo=UNDO,
)
