"""Passes from neutral graph to neutral graph, and which of them a target needs."""

from __future__ import annotations

from collections.abc import Callable

from bridge.errors import UnsupportedError
from bridge.neutral.builder import Target
from bridge.neutral.graph import Model
from bridge.report import Report


def prepare(
    model: Model,
    target: Target,
    report: Report,
    keep_branches: bool = False,
    done: Callable[[str], None] = lambda step: None,
) -> Model:
    """Rewrites a model, in place, until `target` can write every node of it.

    Raises UnsupportedError with every operator that it cannot. `keep_branches` turns off the
    pruning of branches whose rank nothing outside the If could take. `done` is called with
    the name of each step when it is done.
    """
    from bridge.passes.boundary import defaults_to_constants
    from bridge.passes.copies import separate_inputs
    from bridge.passes.dead import remove_dead_code
    from bridge.passes.dequantize import restore_dequantization
    from bridge.passes.expand import expand
    from bridge.passes.fold import fold
    from bridge.passes.impossible import prune_impossible
    from bridge.passes.ranks import settle_ranks
    from bridge.passes.sequences import has_compound, lower_sequences
    from bridge.passes.sequences.copies import spell_copies
    from bridge.passes.sequences.restore import restore_boundary
    from bridge.passes.state import lower_state, restore_state
    from bridge.passes.trip_counts import end_at_once, never_end

    done("reading")
    if target.format == "ir":
        if model.format != "ir":
            restore_state(model)
        defaults_to_constants(model, report)
        done("defaults_to_constants")
        if model.format != "ir":
            end_at_once(model.graph, target)
            fold(model.graph)
            done("fold")
            if has_compound(model):
                if refused := lower_sequences(model, target):
                    raise UnsupportedError(str(target), refused)
                fold(model.graph)
                done("lower_sequences")
            if not keep_branches:
                settle_ranks(model, report)
                done("settle_ranks")
                if failing := prune_impossible(model, report):
                    raise UnsupportedError(str(target), failing)
                done("prune_impossible")
    elif model.format == "ir":
        if refused := lower_state(model, target):
            raise UnsupportedError(str(target), refused)
        restore_boundary(model, target)
        done("restore_boundary")
        never_end(model.graph, target)
        restore_dequantization(model.graph, target)
        done("restore_dequantization")
    if model.format != target.format:
        remove_dead_code(model.graph, trim=True)
        done("remove_dead_code")
    if target.format == "onnx":
        spell_copies(model.graph, target)
        done("spell_copies")
    findings = expand(model, target)
    if findings:
        raise UnsupportedError(str(target), findings)
    done("expand")
    if model.format != target.format:
        if target.format == "ir":
            separate_inputs(model.graph, target)
            done("separate_inputs")
            fold(model.graph)
            done("fold")
        remove_dead_code(model.graph, trim=target.format == "onnx")
        done("remove_dead_code")
    return model
