"""Loops in the forms that a device wants: unrolled, or as OpenVINO's GPU plugin computes them
(`bridge/quirks/loops/gpu/`)."""

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Model, Node
from bridge.neutral.rewrite import Pattern, Result, Rewriter
from bridge.operators.recurrent.gru import loop_of_gru
from bridge.passes.context import Context
from bridge.passes.fold import infer_and_fold
from bridge.passes.select.ifs import select_branches
from bridge.quirks.loops.gpu.conditional import conditional
from bridge.quirks.loops.gpu.counted import counted
from bridge.quirks.loops.gpu.kinds import (
    has_form,
    is_conditional_form,
    is_counted,
    is_counted_form,
    is_regular,
)
from bridge.quirks.loops.gpu.padded import padded
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


def count_loops(model: Model, context: Context) -> bool:
    """Rewrites, in place, each remaining Loop in the form for its kind."""
    changed = False
    for form in (_padded, _in_form):
        pattern = Pattern(form, frozenset({"Loop"}), context.target, uses=True)
        if Rewriter(model.graph).run(pattern):
            infer_and_fold(model.graph)
            changed = True
    if not changed:
        return False
    if context.options.get("ifs", "keep") != "keep":
        select_branches(model, context)
    return True


def _padded(b: Builder, node: Node, rewriter: Rewriter) -> Result:
    return None if has_form(node) else padded(b, node, rewriter)


def _in_form(b: Builder, node: Node, rewriter: Rewriter) -> Result:
    if not is_regular(node):
        return None
    if is_counted(node):
        return None if is_counted_form(node) else counted(b, node)
    return None if is_conditional_form(node) else conditional(b, node)
