"""Unrolls Loops whose trip count is known, for devices that want them so."""

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Model, Node
from bridge.neutral.rewrite import Pattern, Result, Rewriter
from bridge.operators.recurrent.gru import loop_of_gru
from bridge.passes.context import Context
from bridge.passes.fold import infer_and_fold
from bridge.quirks.loops.gpu.unrolled import unrolled
from bridge.targets import device_of


def unroll_loops(model: Model, context: Context) -> bool:
    """Unrolls, in place, all Loops with a small known trip count, or only the growing ones, as
    the device wants. A device that unrolls all has a Loop for a GRU: its GRUSequence is left to
    oneDNN, which nobody ran here.
    """
    growing = device_of(context.options).unrolls == "growing"

    def steps(b: Builder, node: Node, rewriter: Rewriter) -> Result:
        return None if growing else loop_of_gru(b, node)

    def iterations(b: Builder, node: Node, rewriter: Rewriter) -> Result:
        grows = any(initial.shape != value.shape for value, _, initial in node.states())
        return unrolled(b, node) if grows or not growing else None

    changed = False
    for op, form in (("GRU", steps), ("Loop", iterations)):
        if Rewriter(model.graph).run(Pattern(form, frozenset({op}), context.target)):
            infer_and_fold(model.graph)
            changed = True
    return changed
