"""Faults of engines, worked round: an engine computes a right file wrongly or not at all, and
another way of writing it avoids that.

One file per fault, in the folder of its engine. Each is a pass of its own over the whole expanded
graph, innermost bodies first, and has a test that shows the fault without it (`tests/quirks/`):
when that begins to pass, the file can go. The order in the tuple is that in which they run; each
leaves a graph in which those before it find nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from bridge.limits import budget
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Model, Node, Value
from bridge.options import release_number
from bridge.passes.context import Context
from bridge.passes.uses import Uses
from bridge.quirks.known import UNFOLDED
from bridge.quirks.quirk import RECURRENT, Quirk, Undo

ENGINES = {"openvino_cpu": "OpenVINO CPU"}
"""The engines, by their folders."""


@dataclass(eq=False)
class At:
    """Where a quirk is, `engine.fault`, the operators without which it finds nothing, and those
    without which it has nothing to undo. `until` is the last release that has the fault, where
    newer ones mend it: it runs where such a release is asked for, and is undone everywhere."""

    path: str
    ops: frozenset[str]
    undo: frozenset[str]
    until: str = ""

    @property
    def engine(self) -> str:
        """The engine that has the fault."""
        return ENGINES[self.path.partition(".")[0]]

    @property
    def quirk(self) -> Quirk:
        """The quirk; its file is imported now."""
        found = import_module(f"bridge.quirks.{self.path}").QUIRK
        assert isinstance(found, Quirk)
        return found


def _at(path: str, *ops: str, undo: str = "", until: str = "") -> At:
    return At(path, frozenset(ops), frozenset(undo.split()), until)


REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogicalAnd", "ReduceLogicalOr", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum",
)  # fmt: skip
"""The reductions that IR has."""

FOR_IR: tuple[At, ...] = (
    _at("openvino_cpu.loop_without_iterations", "Loop"),
    _at("openvino_cpu.range_of_nothing", "Range", undo="Range"),
    _at("openvino_cpu.product_over_nothing", "MatMul"),
    _at("openvino_cpu.scalar_of_product", "MatMul", "Einsum"),
    _at("openvino_cpu.selection_by_itself", "Where"),
    _at(
        "openvino_cpu.nothing_reshaped",
        "Reshape",
        "Squeeze",
        "Transpose",
        "Unsqueeze",
        undo="Reshape",
    ),
    _at("openvino_cpu.axes_of_interpolation", "Interpolate"),
    _at("openvino_cpu.slice_before_gather_elements", "GatherElements"),
    _at("openvino_cpu.slice_of_computed_axes", "Slice", undo="Slice"),
    _at("openvino_cpu.tile_of_computed_repeats", "Tile", undo="Reshape"),
    _at("openvino_cpu.computed_pad_value", "ir::Pad", undo="Where"),
    _at("openvino_cpu.padding_of_unknown_size", "MaxPool"),
    _at("openvino_cpu.bias_of_lrn", "LRN"),
    _at("openvino_cpu.matrix_times_stack", "MatMul", undo="Squeeze"),
    _at("openvino_cpu.maximum_of_minus_infinity", "Equal"),
    _at("openvino_cpu.infinite_bf16", "Equal"),
    _at(
        "openvino_cpu.logical_reduction_of_computed_axes",
        "ReduceLogicalAnd",
        "ReduceLogicalOr",
        undo="Cast",
    ),
    _at("openvino_cpu.rank_of_computed_axes", "Squeeze", "Unsqueeze", *REDUCTIONS, undo="Reshape"),
    _at("openvino_cpu.absolute_value_of_shape", "Abs", undo="Squeeze"),
    _at("openvino_cpu.cast_of_later_output", "Cast"),
    _at("openvino_cpu.saturating_conversion", "Cast", "CastLike", undo="Cast"),
    _at("openvino_cpu.nan_is_greater", "Greater", "GreaterOrEqual", undo="Less LessOrEqual"),
    _at("openvino_cpu.infinity_behind_arithmetic", "IsInf"),
    _at("openvino_cpu.arithmetic_behind_reduction", *REDUCTIONS, undo="Max Or"),
    _at("openvino_cpu.saturating_bytes", "Add", "Div", "Mul", "Sub", undo="Cast"),
    _at("openvino_cpu.scaled_in_place", "Mul", undo="Mul"),
    _at("openvino_cpu.negative_scale_of_quantisation", "FakeQuantize", undo="Max Or"),
    _at("openvino_cpu.lengths_of_dynamic_sequence", "GRUSequence", "LSTMSequence", "RNNSequence"),
    _at("openvino_cpu.unreachable_trip_count", "Loop"),
    _at("openvino_cpu.unchanged_state", "Loop"),
    _at("openvino_cpu.nested_tensor_iterators", "Loop"),
    _at("openvino_cpu.few_bits_into_loop", "Loop"),
    _at("openvino_cpu.uncounted_slices", "Loop"),
    _at("openvino_cpu.false_first_condition", "Loop", undo="Add Loop Sub"),
    _at("openvino_cpu.stacks_of_no_iteration", "Loop", undo="If Loop"),
    _at("openvino_cpu.loop_of_constants", "Loop", undo="Add Gather Sub"),
    _at("openvino_cpu.stack_behind_nothing", "Loop"),
    _at("openvino_cpu.sizes_beside_nothing", "Loop", undo="Reshape"),
    _at("openvino_cpu.body_of_first_sizes", "Loop", undo="Reshape ir::Pad"),
    _at("openvino_cpu.sizes_of_states", "Loop", undo="Reshape Slice ir::Pad"),
    _at("openvino_cpu.computed_start", "ReadValue", undo="Reshape ir::Pad"),
    _at("openvino_cpu.group_normalization", "GroupNormalization"),
    _at("openvino_cpu.one_hot_from_the_end", "ir::OneHot", undo="ir::OneHot", until="2025.3"),
    _at(
        "openvino_cpu.gather_from_the_end",
        "GatherElements",
        "GatherND",
        undo="GatherElements GatherND",
        until="2025.2",
    ),
    _at("openvino_cpu.conversion_to_bool", "Cast", until="2024.2"),
    _at("openvino_cpu.reduction_over_nothing", *REDUCTIONS, undo="Where", until="2024.5"),
    _at("openvino_cpu.initial_size_of_state", "Loop", undo="Reshape ir::Pad", until="2026.2"),
    _at("openvino_cpu.states_of_no_iteration", "Loop", undo="If", until="2026.3"),
    _at("openvino_cpu.nothing_into_loop", "Loop", undo="Loop Squeeze", until="2025.2"),
    _at("openvino_cpu.branch_of_equal_shape", "If", undo="Reshape", until="2026.1"),
    _at("openvino_cpu.computed_constant", "Gather", *UNFOLDED, undo="Gather"),
    _at("openvino_cpu.unsorted_unique", "Unique"),
    _at("openvino_cpu.batch_of_known_state", *RECURRENT, undo="Reshape"),
    _at("openvino_cpu.memory_of_branch", "If", undo="Broadcast Expand Reshape"),
    _at(
        "openvino_cpu.broadcast_of_nothing", "Broadcast", "Expand", undo="Add Broadcast Expand Sub"
    ),
    _at("openvino_cpu.converted_input", "Cast", "CastLike", "Reshape", undo="Max Or"),
    _at("openvino_cpu.views_of_state", "Loop", undo="Max Or"),
    _at("openvino_cpu.state_in_shared_memory", "Loop", undo="Gather Max Or"),
)
"""Quirks for IR, in their order."""


def work_round(model: Model, context: Context) -> bool:
    """Applies, in place, the quirks of the target whose operators the model has; whether any found
    its fault."""
    ops, made, changed = _ops(model), budget(), False
    for at in _wanted(context):
        if not at.ops & ops:
            continue
        before = made.nodes
        if at.quirk.run(model.graph, context) is not False or made.nodes != before:
            ops, changed = _ops(model), True
            if context.watch is not None:
                context.watch(model, f"the quirk {at.path}")
    return changed


def undo_quirks(model: Model, context: Context) -> bool:
    """Undoes, in place, what the quirks for IR wrote, in the reverse of their order, until nothing
    of it is left."""
    from bridge.passes.fuse import by_op
    from bridge.quirks.undo import rewritten

    ops = _ops(model)
    patterns: dict[str, list[Undo]] = {}
    for at in reversed(FOR_IR):
        if at.undo & ops:
            quirk = at.quirk
            guesses = {op: rewritten(quirk.run, guess) for op, guess in quirk.guess.items()}
            for op, undo in (*quirk.undo.items(), *guesses.items()):
                patterns.setdefault(op, []).append(undo)
    chosen = {op: tuple(map(_with_record, dict.fromkeys(undos))) for op, undos in patterns.items()}
    changed = False
    while chosen and Uses(model.graph).run(by_op(chosen, context)):
        changed = True
    return changed


def _with_record(undo: Undo) -> Undo:
    """The same undo; what it makes stands for the ONNX node that the quirk's nodes stood for."""

    def run(b: Builder, node: Node, uses: Uses) -> Value | None:
        made = undo(b, node, uses)
        maker = made.producer if made is not None else None
        if maker in b.nodes and maker is not None and node.extras and "provenance" in node.extras:
            maker.extras = {**(maker.extras or {}), "provenance": node.extras["provenance"]}
        return made

    return run


def _wanted(context: Context) -> tuple[At, ...]:
    asked = context.options.get("openvino")
    return tuple(
        at
        for at in FOR_IR
        if not at.until or (asked and release_number(asked) <= release_number(at.until))
    )


def _ops(model: Model) -> set[str]:
    return {node.op for node in model.graph.walk()}
