"""Workarounds for faults of engines.

An engine computes a correct file wrongly, or fails on it. A quirk writes the file in another way,
which avoids the fault.

Quirks stand in files by cause. Each is a pass of its own over the whole expanded graph, innermost
bodies first; all clauses of the safe Loop are one pass. A test shows the fault without the quirk
(`tests/quirks/`). When the engine passes this test, the quirk can go. After a quirk ran, the
earlier ones find no fault in the graph.
"""

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from itertools import groupby

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Model, Node, Value
from bridge.options import release_number
from bridge.passes.applies import applies, between_formats, both, either, operators_of, reads
from bridge.passes.context import Context
from bridge.passes.uses import Uses
from bridge.passes.wayback.replay import GraphRewrite
from bridge.passes.wayback.undo import Undo, recorded_ops, replaced_node, rewritten
from bridge.quirks.opaque import UNDO_OF_BARRIERS
from bridge.quirks.quirk import CPU, GPU, QUIRKS, Quirk, RunQuirk, engine_of

__all__ = ["CPU", "GPU", "ORDER", "QUIRKS", "Quirk", "by_name", "named", "of_engine"]

FILES = (
    "bits", "computed_operands", "constants", "empty", "fused", "gpu_bodies", "if_outputs",
    "integers", "kernels", "nonfinite", "open_sizes", "outputs", "parts", "rounding", "simplified",
    "truth_values", "variables",
)  # fmt: skip
"""The files that declare quirks."""

FILES_OF_CLAUSES = (
    "loops.changing_sizes", "loops.copies", "loops.shared_memory", "loops.trips",
)  # fmt: skip

CLAUSES = (
    "no_nested_iterators", "unknown_input", "stacks_without_iteration",
    "sizes_of_states", "states_without_iteration", "copied_shapes",
    "place_of_states", "memory_behind", "memory_inside", "read_inputs",
)  # fmt: skip
"""The clauses of the safe Loop, in their order."""

SAFE_LOOP = "safe_loop"
"""The pass of all clauses, in a report."""

ORDER: tuple[str, ...] = (
    # Operators that are written in another way, before those that see all of them.
    "infinite_f64", "rounded_remainder", "empty_range", "product_over_empty_axis",
    "scalar_of_product", "known_empty_tensor", "axes_of_interpolation",
    "tile_of_computed_repeats", "kernel_of_lower_rank",
    "padding_of_unknown_size", "bias_of_lrn",
    "rounded_quotient", "constant_of_higher_rank", "compared_infinity",
    "computed_axes",
    "saturating_conversion", "exchanged_operands",
    "channels_in_kernel", "activation_of_integers", "unsigned_as_signed", "integers_in_f32",
    "absolute_value_of_shape",
    "power_of_integers",
    "saturating_bytes", "scaled_in_place", "moved_dequantisation", "scale_of_product",
    "zeros_of_hard_sigmoid",
    "unscaled_weights", "rearranged_views", "cell_of_other_operands",
    "lengths_of_dynamic_sequence", "group_normalization", "gather_from_the_end",
    "gather_from_one_batch", "strides_behind_pads", "conversion_to_bool", "cast_to_bool",
    "rounded_bf16", "reduction_over_empty_axis",
    "value_of_pad", "constant_beyond_32_bits",
    # Loops, and what may read their memory or that of an If.
    *CLAUSES,
    "branch_of_equal_shape", "computed_constant", "unique_parts",
    "memory_of_branch",
    "broadcast_into_arithmetic", "converted_input", "copied_variable",
    "kernel_of_lower_rank",  # Once more, for the copies of values.
    # The GPU plugin alone, but for OneHot.
    "copied_branches", "copied_loops", "computed_one_hot", "kernel_of_vectors",
    "computed_slope", "window_beyond_input", "sizes_of_constant",
    "range_without_type", "bound_of_norm", "sign_of_remainder",
    "rows_of_scaled_bytes", "ties_of_quantisation", "row_on_host", "read_on_host",
    "rows_behind_boxes",
    "parts_in_place", "attention_over_queries",
    "copied_output", "first_operand_of_lower_rank",
    "broadcast_into_arithmetic",  # Once more, for the sums of outputs.
)  # fmt: skip
"""The quirks for IR, in their order. One may stand at several places."""


def named(name: str) -> Quirk:
    """The quirk of this name. This imports the files of quirks, or those of clauses."""
    _import(FILES_OF_CLAUSES if name in CLAUSES else FILES)
    return QUIRKS[name]


@cache
def _import(files: tuple[str, ...]) -> None:
    for file in files:
        import_module(f".{file}", __package__)


def by_name() -> list[Quirk]:
    """Each quirk once, by its first engine and its name."""
    quirks = {name: named(name) for name in ORDER}
    return sorted(quirks.values(), key=lambda quirk: (quirk.engine, quirk.name))


def of_engine(engine: str) -> list[Quirk]:
    """The quirks for the faults of an engine, in their order."""
    return [quirk for quirk in map(named, ORDER) if engine in quirk.engines]


def work_round(model: Model, context: Context) -> bool:
    """Applies the quirks of the target in place, if the model has their operators. Returns whether
    any quirk found its fault."""
    ops, changed = context.ask(operators_of, model.graph), False
    for form, names in groupby(ORDER, lambda name: SAFE_LOOP if name in CLAUSES else name):
        if form == SAFE_LOOP and "Loop" not in ops:
            continue  # So their files are not imported.
        quirks = [quirk for quirk in map(named, names) if _is_wanted(quirk, context)]
        quirks = [quirk for quirk in quirks if not quirk.needs or quirk.needs & ops]
        if not quirks:
            continue
        told = len(context.report.quirks)
        if _run_of(quirks)(model.graph, context) is not False:
            ops, changed = operators_of(model.graph), True
            if len(context.report.quirks) == told:
                context.report.quirks.append((form, "graph"))
            context.watch(model, f"the quirk {form}")
    return changed


def _run_of(quirks: Sequence[Quirk]) -> RunQuirk:
    """The pass of a quirk, or of several clauses."""
    if len(quirks) == 1:
        return quirks[0].run
    from bridge.quirks.loops.clause import Clause, making_safe

    return making_safe([quirk for quirk in quirks if isinstance(quirk, Clause)])


# In an IR that Bridge made of ONNX, quirks may hide known values, and each layer has the form that
# they recognise.
@applies(both(reads("ir"), either(between_formats, lambda model, _: model.opset is not None)))
def undo_quirks(model: Model, context: Context) -> bool:
    """Undoes the quirks for IR in place, in reverse order, until no undo changes the model."""
    from bridge.passes.fuse import fuse

    ops = context.ask(operators_of, model.graph)
    names = (name for name in reversed(ORDER) if name not in CLAUSES or "Loop" in ops)
    quirks = list(dict.fromkeys(map(named, names)))
    patterns: dict[str, list[Undo]] = {op: [undo] for op, undo in UNDO_OF_BARRIERS.items()}
    recorded: dict[str, list[GraphRewrite]] = {}
    for quirk in quirks:
        rewrites = quirk.rewrites
        for op in quirk.recorded:
            recorded.setdefault(op, []).extend(rewrites)
        guesses = {op: rewritten(rewrites, guess) for op, guess in quirk.guess.items()}
        for op, undo in (*quirk.undo.items(), *guesses.items()):
            patterns.setdefault(op, []).append(undo)
    chosen = {op: [*map(_with_record, dict.fromkeys(undos))] for op, undos in patterns.items()}
    by_record = replaced_node(recorded)
    for op in recorded_ops(model.graph):
        chosen.setdefault(op, []).append(by_record)
    changed = False
    while fuse(model.graph, chosen, context):
        changed = True
    return changed


def _with_record(undo: Undo) -> Undo:
    """The same undo, with a record: the nodes that it makes stand for the same ONNX node as the
    nodes of the quirk."""

    def run(b: Builder, node: Node, uses: Uses) -> Value | None:
        made = undo(b, node, uses)
        maker = made.producer if made is not None else None
        if maker in b.nodes and maker is not None and node.extras and "provenance" in node.extras:
            maker.extras = {**(maker.extras or {}), "provenance": node.extras["provenance"]}
        return made

    return run


def _is_wanted(quirk: Quirk, context: Context) -> bool:
    """Whether the engine that the file is for has the fault."""
    asked, engine = context.options.get("openvino"), engine_of(context)
    if engine not in quirk.engines or not quirk.until or engine != CPU:
        return engine in quirk.engines
    return bool(asked and release_number(asked) <= release_number(quirk.until))
