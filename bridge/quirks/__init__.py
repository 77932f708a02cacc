"""Workarounds for faults of engines.

An engine computes a correct file wrongly, or fails on it. A quirk writes the file in another way,
which avoids the fault.

Each fault has one file, in the folder of its engine. Each quirk is a pass of its own over the whole
expanded graph, innermost bodies first. A test shows the fault without the quirk (`tests/quirks/`).
When the engine passes this test, the file can go. The quirks run in the order of the tuple. After a
quirk ran, the earlier ones find no fault in the graph.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Model, Node, Value
from bridge.options import release_number
from bridge.passes.applies import applies, between_formats, both, either, operators_of, reads
from bridge.passes.context import Context
from bridge.passes.uses import Uses
from bridge.quirks.known import UNFOLDED
from bridge.quirks.quirk import (
    ARITHMETIC,
    COMPARISONS,
    ELEMENTWISE,
    PARTS,
    RECURRENT,
    Quirk,
    Run,
    Undo,
)

ENGINES = {"openvino_cpu": "OpenVINO CPU", "openvino_gpu": "OpenVINO GPU"}
"""The names of the engines, by folder."""

CPU, GPU = ENGINES


@dataclass(eq=False)
class At:
    """One quirk, before its file is imported.

    `path` is its module, `engine.fault`. The quirk finds nothing in a model without the operators
    `ops`, if there are any, and its undo finds nothing without the operators `undo`. `until` is the
    last release that has the fault, if newer releases of the CPU plugin mend it. Then the quirk
    runs only if the user asks for such a release; the undo always runs. `engines` are the folders
    of all engines with the fault.
    """

    path: str
    ops: frozenset[str]
    undo: frozenset[str]
    until: str = ""
    engines: tuple[str, ...] = (CPU,)

    @property
    def engine(self) -> str:
        """The engine with the fault."""
        return ENGINES[self.path.partition(".")[0]]

    @property
    def form(self) -> str:
        """The path; for a clause, the path of its form. All clauses of a form run together."""
        engine, form, *clause = self.path.split(".")
        return f"{engine}.{form}" if clause else self.path

    @property
    def quirk(self) -> Quirk:
        """The quirk. This imports its file."""
        found = import_module(f".{self.path}", __package__).QUIRK
        assert isinstance(found, Quirk)
        return found


def _at(
    fault: str, *ops: str, undo: str = "", until: str = "", engines: tuple[str, ...] = (CPU,)
) -> At:
    """A quirk whose file is in the folder of the first engine."""
    return At(f"{engines[0]}.{fault}", frozenset(ops), frozenset(undo.split()), until, engines)


BOTH = (CPU, GPU)
"""The engines of a fault of both plugins."""


def _clause(name: str, undo: str = "", until: str = "", engines: tuple[str, ...] = (CPU,)) -> At:
    """A clause of the safe Loop."""
    return _at(f"safe_loop.{name}", "Loop", undo=undo, until=until, engines=engines)


REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogicalAnd", "ReduceLogicalOr", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum",
)  # fmt: skip
"""The reductions that IR has."""

FOR_IR: tuple[At, ...] = (
    _at("wide_variables", "Assign", "ReadValue"),
    _at("infinite_f64", "Cast", "Constant", undo="Cast", engines=BOTH),
    _at("range_of_nothing", "Range", undo="Range", engines=BOTH),
    _at("product_over_nothing", "MatMul", engines=BOTH),
    _at("scalar_of_product", "MatMul", "Einsum"),
    _at("selection_by_itself", "Where", engines=BOTH),
    _at(
        "nothing_reshaped",
        "Reshape",
        "Squeeze",
        "Transpose",
        "Unsqueeze",
        undo="Reshape",
        engines=BOTH,
    ),
    _at("gather_of_nothing", "Gather", undo="Reshape"),
    _at("axes_of_interpolation", "Interpolate"),
    _at("slice_before_gather_elements", "GatherElements"),
    _at("slice_of_computed_axes", "Slice", undo="Slice", engines=BOTH),
    _at("tile_of_computed_repeats", "Tile", undo="Reshape"),
    _at(
        "kernel_of_lower_rank",
        *ELEMENTWISE,
        "Expand",
        "FakeQuantize",
        "PRelu",
        undo="Broadcast Reshape",
    ),
    _at("computed_pad_value", "ir::Pad", undo="Where"),
    _at("padding_of_unknown_size", "MaxPool"),
    _at("bias_of_lrn", "LRN"),
    _at("matrix_times_stack", "MatMul", undo="Squeeze"),
    _at("rounded_quotient", "Clip", undo="Clip"),
    _at("computed_scale", "Round", undo="Add Round"),
    _at("constant_of_higher_rank", *ARITHMETIC, undo=" ".join(ARITHMETIC), engines=BOTH),
    _at("maximum_of_minus_infinity", "Equal"),
    _at("infinite_bf16", "Equal"),
    _at(
        "logical_reduction_of_computed_axes",
        "ReduceLogicalAnd",
        "ReduceLogicalOr",
        undo="Cast",
        engines=BOTH,
    ),
    _at("rank_of_computed_axes", "Squeeze", "Unsqueeze", *REDUCTIONS, undo="Reshape", engines=BOTH),
    _at("absolute_value_of_shape", "Abs", undo="Squeeze", engines=BOTH),
    _at("cast_of_later_output", "Cast", engines=BOTH),
    _at("saturating_conversion", "Cast", "CastLike", undo="Cast"),
    _at("nan_is_greater", "Greater", "GreaterOrEqual", undo="Less LessOrEqual"),
    _at("nan_beside_number", "Max", "Min", undo="Max Min"),
    _at("infinity_behind_arithmetic", "IsInf"),
    _at("arithmetic_behind_reduction", *REDUCTIONS, undo="Max Or"),
    _at("selected_integers", "Where", undo="Add"),
    _at(
        "integers_in_f32",
        *COMPARISONS,
        "Div",
        "Mod",
        "Relu",
        "ir::Mod",
        undo="Add Equal NotEqual Sub",
    ),
    _at("power_of_integers", "Pow", undo="Mul", engines=BOTH),
    _at("saturating_bytes", "Add", "Div", "Mul", "Sub", undo="Cast"),
    _at("channels_behind_product", "Einsum", "MatMul", undo="Max Or"),
    _at("scaled_in_place", "Mul", undo="Mul"),
    _at("channels_before_quantisation", "FakeQuantize", undo="Max Or"),
    _at("float8_beside_integers", "FakeQuantize", undo="Max Or"),
    _at("scaled_weights_of_recurrent_layer", "FakeQuantize", undo="Cast"),
    _at("lengths_of_dynamic_sequence", "GRUSequence", "LSTMSequence", "RNNSequence"),
    _at("computed_start", "ReadValue", undo="VariadicSplit"),
    _at("group_normalization", "GroupNormalization"),
    _at("one_hot_from_the_end", "ir::OneHot", undo="ir::OneHot", until="2025.3"),
    _at(
        "gather_from_the_end",
        "GatherElements",
        "GatherND",
        undo="GatherElements GatherND",
        until="2025.2",
    ),
    _at("conversion_to_bool", "Cast", until="2024.2"),
    _at("nan_to_bool", "Cast", undo="NotEqual"),
    _at("reduction_over_nothing", *REDUCTIONS, undo="Where", until="2024.5"),
    _at(
        "reduction_over_nothing",
        *REDUCTIONS,
        undo="ReduceL1 ReduceL2 ReduceLogicalAnd ReduceLogicalOr ReduceMax ReduceMin ReduceProd "
        "ReduceSum",
        engines=(GPU,),
    ),
    _clause("no_nested_iterators"),
    _clause("unknown_input", undo="Add Gather"),
    _clause("copied_types"),
    _clause("counting_slices"),
    _clause("asked_condition", undo="Add Loop"),
    _clause("sizes_of_stacks", undo="If"),
    _clause("axes_of_stacks"),
    _clause("sizes_beside_nothing", undo="Reshape"),
    _clause("sizes_of_states", undo="If VariadicSplit", engines=BOTH),
    _clause("states_of_no_iteration", undo="If", until="2026.3"),
    _clause("copied_shapes", undo="Loop Squeeze", until="2025.2"),
    _clause("place_of_states", undo="Loop"),
    _clause("parts_of_stacks", undo="Add Loop Slice"),
    _clause("memory_behind", undo="Max Or"),
    _clause("memory_inside", undo="Gather Max Or"),
    _clause("read_states"),
    _at("branch_of_equal_shape", "If", undo="Reshape", until="2026.1"),
    _at("computed_constant", "Gather", "MatMul", *UNFOLDED, undo="Gather"),
    _at("top_of_none", "ir::TopK", undo="Slice"),
    _at("unsorted_unique", "Unique"),
    _at("unique_of_nothing", "Unique", undo="Slice"),
    _at("batch_of_known_state", *RECURRENT, undo="Reshape"),
    _at("memory_of_branch", "If", undo="Broadcast Expand Reshape VariadicSplit"),
    _at("outputs_of_shapes", "Shape", engines=(GPU,)),
    _at("broadcast_of_nothing", "Broadcast", "Expand", undo="Add Broadcast Expand VariadicSplit"),
    _at(
        "broadcast_into_arithmetic",
        *ARITHMETIC,
        "Mod",
        "ir::Mod",
        "SquaredDifference",
        undo="Max Or",
        engines=BOTH,
    ),
    _at("converted_input", "Cast", "CastLike", "Reshape", undo="Max Or"),
    _at("cast_of_variable", "ReadValue", undo="Max Or"),
    _at("assigned_input", "Assign", undo="Gather Max Or"),
    _at("assigned_size", "Assign", undo="VariadicSplit"),
    # Once more, for the copies of values.
    _at("kernel_of_lower_rank", "Max", "Or", undo="Broadcast Reshape"),
    _at("memory_of_branch", "If", undo="Max Or VariadicSplit", engines=(GPU,)),
    _at("memory_of_loop", "Loop", undo="Max Or", engines=(GPU,)),
    _at("computed_one_hot", "ir::OneHot", engines=(GPU,)),
    _at("saturating_nibbles", "Cast", "CastLike", engines=(GPU,)),
    _at(
        "places_in_constant_vector",
        "GatherElements",
        "ScatterElements",
        "ScatterND",
        engines=(GPU,),
    ),
    _at("scalar_of_einsum", "Einsum", undo="Squeeze", engines=(GPU,)),
    _at("window_in_padding", "MaxPool", engines=(GPU,)),
    _at("computed_slope", "PRelu", engines=(GPU,)),
    _at("window_beyond_input", "AvgPool", engines=(GPU,)),
    _at("sizes_of_constant", "VariadicSplit", undo="Gather", engines=(GPU,)),
    _at("range_without_type", "Range", engines=(GPU,)),
    _at("bound_of_norm", "NormalizeL2", engines=(GPU,)),
    _at("pads_of_vector", "ir::Pad", undo="Squeeze", engines=(GPU,)),
    _at("sizes_in_parts", *PARTS, undo="Max Or", engines=(GPU,)),
    _at("sign_of_remainder", "Mod", undo="Where", engines=(GPU,)),
    _at("rows_of_scaled_bytes", "Gather", undo="Max Or", engines=(GPU,)),
    _at("ties_of_quantisation", "FakeQuantize", engines=(GPU,)),
    _at("limits_of_vector", "FakeQuantize", undo="Squeeze", engines=(GPU,)),
    _at("boxes_of_input", "ir::NonMaxSuppression", undo="Max Or", engines=(GPU,)),
    _at("rows_behind_boxes", "ir::NonMaxSuppression", undo="Slice", engines=(GPU,)),
    _at("parts_in_place", *PARTS, undo="Max Or", engines=(GPU,)),
    _at("attention_of_one_head", "Softmax", undo="Max Or", engines=(GPU,)),
    _at("unique_of_one", "Unique", engines=(GPU,)),
    _at("wide_constant_output", undo="Gather", engines=(GPU,)),
    _at("type_of_bool", undo="Max Or", engines=(GPU,)),
)
"""Quirks for IR, in their order."""


def by_path() -> list[At]:
    """Each quirk once, by its path. A quirk may stand at several places of the order."""
    return sorted({at.path: at for at in reversed(FOR_IR)}.values(), key=lambda at: at.path)


def of_engine(engine: str) -> tuple[At, ...]:
    """The quirks for the faults of an engine, by its folder."""
    return tuple(at for at in FOR_IR if engine in at.engines)


def work_round(model: Model, context: Context) -> bool:
    """Applies the quirks of the target in place, if the model has their operators. Returns whether
    any quirk found its fault."""
    ops: Set[str] = context.ask(operators_of, model.graph)
    changed = False
    for form, group in groupby(_wanted(context), lambda at: at.form):
        wanted = [at for at in group if not at.ops or at.ops & ops]
        if not wanted:
            continue
        told = len(context.report.quirks)
        if _run_of(wanted)(model.graph, context) is not False:
            ops, changed = _ops(model), True
            if len(context.report.quirks) == told:
                context.report.quirks.append((form, "graph"))
            if context.watch is not None:
                context.watch(model, f"the quirk {form}")
    return changed


def _run_of(wanted: Sequence[At]) -> Run:
    """The pass of a quirk, or of several clauses."""
    quirks = [at.quirk for at in wanted]
    if len(quirks) == 1:
        return quirks[0].run
    from bridge.quirks.safe_loop import Clause, making_safe

    return making_safe([quirk for quirk in quirks if isinstance(quirk, Clause)])


# In an IR that Bridge made of ONNX, quirks may hide known values, and each layer has the form that
# they recognise.
@applies(both(reads("ir"), either(between_formats, lambda model, _: model.opset is not None)))
def undo_quirks(model: Model, context: Context) -> bool:
    """Undoes the quirks for IR in place, in reverse order, until no undo changes the model."""
    from bridge.passes.fuse import fuse
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


def _wanted(context: Context) -> tuple[At, ...]:
    asked = context.options.get("openvino")
    engine = f"openvino_{context.options.get('device') or 'CPU'}".lower()
    return tuple(
        at
        for at in of_engine(engine)
        if not at.until
        or engine != CPU
        or (asked and release_number(asked) <= release_number(at.until))
    )


def _ops(model: Model) -> set[str]:
    return {node.op for node in model.graph.walk()}
