"""The passes between reading and writing a model, in their order.

There are the same five stages for both targets: read, specialize, decide, legalize, finish. A pass
is a function of a `Model`, which it changes in place, and a `Context`; beside it stands when it
applies (`bridge/passes/applies.py`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import cast

from bridge.neutral.graph import Model
from bridge.passes.applies import (
    PassCondition,
    RunPass,
    always,
    between_formats,
    both,
    concludes,
    condition_of,
    either,
    found,
    has_compound_boundary,
    has_operator,
    has_records,
    has_strings,
    option,
    selects,
    selects_in_onnx,
    specializes,
    without,
)
from bridge.passes.context import Context
from bridge.passes.ranks import has_open_rank
from bridge.passes.sequences import has_parts, selects_parts
from bridge.targets import (
    counts_states,
    has_limits,
    is_for_cpu,
    is_for_device,
    unrolls,
    works_round,
)


@dataclass(frozen=True)
class Pass:
    """A function in `bridge/`, by the path of its module and its name, at its place. With a
    `condition` it applies only under that, and its module is not imported elsewhere."""

    path: str
    condition: PassCondition | None = None

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.path.rpartition(".")[2]

    @cached_property
    def run(self) -> RunPass:
        """The function; its module is imported now."""
        module, _, name = self.path.rpartition(".")
        return cast(RunPass, getattr(import_module(f".{module}", __package__), name))

    def when(self, model: Model, context: Context) -> bool:
        """Whether the pass applies here."""
        if self.condition is None:
            return condition_of(self.run, between_formats)(model, context)
        return self.condition(model, context) and condition_of(self.run, always)(model, context)


def given(condition: PassCondition, *paths: str) -> tuple[Pass, ...]:
    """Passes that apply under a condition."""
    return tuple(Pass(path, condition) for path in paths)


Stages = Mapping[str, tuple[str | tuple[Pass, ...], ...]]
"""The passes of each stage."""

STAGES_TO_IR: Stages = {
    "read": (
        "passes.debugging_notes.drop_debugging_notes",
        "passes.legality.refuse_ill_typed",
        given(has_operator("DequantizeLinear"), "passes.block_axes.fit_block_axes"),
        given(either(concludes, option("compress_to_fp16")), "passes.decompress.decompress"),
        given(specializes, "quirks.undo_quirks"),
        "passes.shared_symbols.distrust_symbols",
    ),
    "specialize": (
        given(
            specializes,
            "passes.specialize.specialize",
            "passes.impossible.prune_impossible",
            "passes.specialize.tell_what_is_left",
        ),
        given(
            has_compound_boundary,
            "passes.open_outputs.unwrap_open_outputs",
            "passes.sequences.known_parts.know_parts",
        ),
        given(has_records, "passes.state.variables.restore_state"),
        given(
            option("stateful"),
            "passes.fold.fold",
            "passes.dead.trim_outputs",
            "passes.state.pairs.make_stateful",
        ),
        "passes.inputs.defaults_to_constants",
        "passes.inputs.clean_names",
    ),
    "decide": (
        "passes.trip_counts.end_at_once",
        "passes.fold.fold",
        given(has_operator("Gather", "GatherElements"), "passes.out_of_range.tell_out_of_range"),
        given(is_for_cpu, "targets.wide_integers.note_wide_integers"),
        "passes.maps.lower_maps",
        "passes.ranks.settle_ranks",
        given(has_parts, "passes.sequences.model.lower_sequences"),
        given(
            both(between_formats, either(option("output_ranks"), found(has_open_rank))),
            "targets.open_ranks.note_open_ranks",
        ),
        "passes.impossible.prune_impossible",
        "passes.impossible.refuse_impossible",
        "passes.dead.trim_outputs",
        given(has_strings, "passes.strings.lower_strings"),
        given(unrolls, "targets.loop_forms.unroll_loops"),
        given(selects, "passes.select.ifs.select_branches"),
        given(counts_states, "targets.loop_forms.count_loops"),
        given(has_operator("QuantizeLinear"), "passes.quantized_pairs.join_pairs"),
        "passes.believed.believe_ranks",
        "passes.gates.use_h_sigmoid",
    ),
    "legalize": (
        "passes.legalize.legalize",
        given(counts_states, "targets.loop_forms.unroll_loops"),
        "passes.fake_quantize.use_fake_quantize",
        "passes.fold.fold",
        given(has_operator("ReadValue"), "passes.fuse.patterns.fuse_states"),
        given(has_operator("If", "Loop"), "passes.impossible.prune_impossible"),
        "passes.idle_loops.drop_idle_loops",
    ),
    "finish": (
        given(
            works_round,
            "passes.own_outputs.own_outputs",
            "quirks.work_round",
            "targets.written_for.record_release",
        ),
        "passes.fold.fold",
        "passes.dead.remove_dead_code",
        given(works_round, "passes.own_outputs.own_outputs"),
        given(
            is_for_device,
            "targets.operators.write_in_others",
            "targets.branch_inputs.arrange_branches",
        ),
        given(unrolls, "targets.empty_inputs.open_empty_inputs"),
        given(is_for_cpu, "targets.empty_inputs.refuse_empty_inputs"),
        given(
            option("compress_to_fp16"),
            "passes.compress.compress",
            "passes.dead.remove_dead_code",
        ),
        given(either(concludes, option("compress_to_fp16")), "passes.decompress.store_short"),
        "passes.legality.check_legality",
        given(has_limits, "targets.limits.check_limits"),
    ),
}

STAGES_TO_ONNX: Stages = {
    "read": (
        "passes.legality.refuse_ill_typed",
        "targets.written_for.forget_release",
        "passes.inputs.require_declared_types",
        given(either(between_formats, option("decompress")), "passes.decompress.decompress"),
        "passes.dead.trim_outputs",
        "quirks.undo_quirks",
        "passes.own_outputs.join_outputs",
        "passes.state.pairs.restore_pairs",
        "passes.state.variables.lower_state",
        "passes.dead.trim_outputs",
    ),
    "specialize": (
        "passes.shared_symbols.distrust_symbols",
        given(
            specializes,
            "passes.specialize.specialize",
            "passes.specialize.tell_what_is_left",
        ),
    ),
    "decide": (
        "passes.fuse.patterns.fuse_ir",
        "passes.fold.fold",
        "passes.trip_counts.never_end",
        "passes.idle_loops.drop_idle_loops",
        given(selects_in_onnx, "passes.ranks.settle_ranks"),
        given(selects_parts, "passes.sequences.model.lower_sequences"),
        given(selects_in_onnx, "passes.impossible.prune_impossible"),
        "passes.strings.restore.restore_strings",
        "passes.sequences.restore.restore_boundary",
        "passes.maps.restore_maps",
        "passes.open_outputs.wrap_open_outputs",
        "passes.dead.trim_outputs",
        given(selects, "passes.select.ifs.select_branches"),
    ),
    "legalize": (
        "passes.sequences.copies.spell_copies",
        "targets.runtimes.legalize",
    ),
    "finish": (
        "passes.fuse.patterns.fuse_onnx",
        "passes.dead.trim_outputs",
        given(without("decompress"), "passes.decompress.store_short"),
        "targets.runtimes.fill_empty_constants",
        "passes.dimension_names.name_dimensions",
        "passes.legality.check_legality",
    ),
}


def _in_order(stages: Stages) -> tuple[Pass, ...]:
    rows = [row for rows in stages.values() for row in rows]
    return tuple(step for row in rows for step in ((Pass(row),) if isinstance(row, str) else row))


TO_IR, TO_ONNX = _in_order(STAGES_TO_IR), _in_order(STAGES_TO_ONNX)


def prepare(
    model: Model, context: Context, done: Callable[[str], None] = lambda step: None
) -> Model:
    """Rewrites a model, in place, until the target can write every node of it.

    A pass that found nothing to change is not asked again before another has changed something.

    Raises UnsupportedError with every operator that it cannot. `done` is called with the name of
    each step when it is done; with the option `debug` the graph is verified before that.
    `Context.watch` is called with the model after each step, and after each quirk.
    """
    _done("reading", model, context, done)
    idle: set[str] = set()
    context.answers = {}
    for step in TO_IR if context.target.format == "ir" else TO_ONNX:
        if step.path not in idle and step.when(model, context):
            if step.run(model, context) is False:
                idle.add(step.path)
            else:
                idle.clear()
                context.answers = {}
            _done(step.name, model, context, done)
    context.answers = None
    return model


def _done(step: str, model: Model, context: Context, done: Callable[[str], None]) -> None:
    if context.options.get("debug"):
        from bridge.neutral import verify

        verify.verify(model.graph, f"after {step}: graph")
    context.watch(model, step)
    done(step)
