"""The passes between reading and writing a model, in their order.

There is one tuple of passes for each target. A pass is a function of a `Model`, which it changes in
place, and a `Context`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from bridge.neutral.graph import Model
from bridge.neutral.types import STRING, ContainerType
from bridge.passes.context import Context
from bridge.targets import device_of

RunPass = Callable[[Model, Context], bool | None]
"""A pass; it returns whether it changed the model, or None if it does not know."""


def _from_other(model: Model, context: Context) -> bool:
    """Whether the model comes from the other format."""
    return model.format != context.target.format


def _always(model: Model, context: Context) -> bool:
    return True


def _selects(model: Model, context: Context) -> bool:
    """Whether Ifs become selections."""
    return context.options.get("ifs", "keep") != "keep"


def _loses_ifs(model: Model, context: Context) -> bool:
    """Whether as many Ifs as possible are removed: inputs have fixed values or shapes, or Ifs
    become selections."""
    fixed = context.options.get("values") or context.options.get("input_shapes")
    return bool(fixed) or _selects(model, context)


def _loses_ifs_of_ir(model: Model, context: Context) -> bool:
    """Whether Ifs are removed from an IR that Bridge made of ONNX. There quirks may hide known
    values, and each layer has the form that the quirks recognise."""
    return model.format == "ir" and model.opset is not None and _loses_ifs(model, context)


def _concludes(model: Model, context: Context) -> bool:
    """Whether facts are concluded from sizes; not if a format is only copied."""
    return _from_other(model, context) or _loses_ifs(model, context)


def _prunes(model: Model, context: Context) -> bool:
    """Whether branches that could not run are pruned."""
    return _from_other(model, context) and not context.options.get("keep_branches")


def _prunes_early(model: Model, context: Context) -> bool:
    """Whether they are pruned as soon as inputs have values or shapes."""
    return _prunes(model, context) and _loses_ifs(model, context)


def _keeps(model: Model, context: Context) -> bool:
    """Whether branches that could not run are kept."""
    return _from_other(model, context) and bool(context.options.get("keep_branches"))


def _has_quirks(model: Model, context: Context) -> bool:
    """Whether the conversion works around faults of engines. In a specialized IR, the workarounds
    were undone and are made again."""
    asked = _from_other(model, context) or _loses_ifs_of_ir(model, context)
    device = device_of(context.options)
    asked = asked or device.unrolls == "all"  # An IR of others is made safe, too.
    return asked and device.quirks


def _for_device(model: Model, context: Context) -> bool:
    """Whether the file is for a device or a release that does not read all valid files."""
    options = context.options
    return bool(options.get("openvino")) or device_of(options).shapes != "open"


def _unrolls(model: Model, context: Context) -> bool:
    """Whether some Loops of known count become their iterations."""
    return bool(device_of(context.options).unrolls)


def _counts(model: Model, context: Context) -> bool:
    """Whether the states of Loops that stay are counted."""
    return device_of(context.options).unrolls == "all"


def _is_limited(model: Model, context: Context) -> bool:
    """Whether the model is checked against the limits of the device."""
    return _from_other(model, context) or _for_device(model, context)


def _compresses(model: Model, context: Context) -> bool:
    """Whether constants are stored as f16."""
    return bool(context.options.get("compress_to_fp16"))


def _decompresses(model: Model, context: Context) -> bool:
    """Whether an IR, which may store constants in few bits, becomes ONNX, or none shall be so."""
    return _from_other(model, context) or bool(context.options.get("decompress"))


def _stores_short(model: Model, context: Context) -> bool:
    """Whether these constants are stored so again."""
    return not context.options.get("decompress")


def _has_records(model: Model, context: Context) -> bool:
    """Whether the model comes from the other format with metadata, which may be Bridge's own."""
    return bool(model.metadata) and _from_other(model, context)


def _drops_notes(model: Model, context: Context) -> bool:
    """Whether a model of ONNX loses the debugging data of tools."""
    return model.format == "onnx" and not context.options.get("keep_metadata")


def _has_defaults(model: Model, context: Context) -> bool:
    """Whether an input has a default value."""
    return bool(model.defaults)


def _is_stateful(model: Model, context: Context) -> bool:
    """Whether inputs and outputs become variables."""
    return bool(context.options.get("stateful"))


def _has_variables(model: Model, context: Context) -> bool:
    """Whether a model from the other format reads variables."""
    return _from_other(model, context) and any(n.op == "ReadValue" for n in model.graph.nodes)


def _has_quantized(model: Model, context: Context) -> bool:
    """Whether a model from the other format quantises values."""
    return _from_other(model, context) and any(
        node.op == "QuantizeLinear" for node in model.graph.walk()
    )


def _has_parts(model: Model, context: Context) -> bool:
    """Whether some value is held as several tensors in IR: a sequence, an optional, or a tensor
    whose rank data decide."""
    from bridge.passes.ranks import has_open_rank
    from bridge.passes.sequences import has_sequences

    graph = model.graph
    return _from_other(model, context) and (has_sequences(graph) or has_open_rank(graph))


def _selects_in_onnx(model: Model, context: Context) -> bool:
    """Whether Ifs of ONNX become selections in ONNX."""
    return model.format == "onnx" and _selects(model, context)


def _selects_parts(model: Model, context: Context) -> bool:
    """Whether all Ifs here become selections, and some have or compute values that become several
    tensors. Only tensors of one rank can be selected, and no guards exist for sequences."""
    from bridge.passes.sequences import has_sequences

    return (
        model.format == "onnx"
        and context.options.get("ifs") == "select"
        and any(
            any(value.rank is None for value in node.outputs)
            or any(has_sequences(body.graph) for body in node.bodies)
            for node in model.graph.walk()
            if node.op == "If"
        )
    )


def _has_boundary(model: Model, context: Context) -> bool:
    """Whether inputs and outputs may be parts of the ONNX model's inputs and outputs."""
    return _from_other(model, context) or _selects_in_onnx(model, context)


def _has_compound_boundary(model: Model, context: Context) -> bool:
    """Whether an input or an output is a sequence or an optional."""
    values = (*model.graph.inputs, *model.graph.outputs)
    compound = any(isinstance(value.type, ContainerType) for value in values)
    return compound and _from_other(model, context)


def _has_strings(model: Model, context: Context) -> bool:
    """Whether some value is a tensor of strings."""
    made = (value for node in model.graph.walk() for value in node.outputs)
    values = (*model.graph.inputs, *made)
    return _from_other(model, context) and any(value.element is STRING for value in values)


@dataclass(eq=False)
class Pass:
    """A function in `bridge/`, by the path of its module and its name. It runs if `when` holds. If
    another pass, `like`, did not change the model, this pass cannot change it either."""

    path: str
    when: Callable[[Model, Context], bool] = _from_other
    like: str = ""

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.path.rpartition(".")[2]

    @property
    def run(self) -> RunPass:
        """The function; its module is imported now."""
        module, _, name = self.path.rpartition(".")
        return cast(RunPass, getattr(import_module(f".{module}", __package__), name))


TO_IR = (
    Pass("passes.debugging_notes.drop_debugging_notes", _drops_notes),
    Pass("passes.decompress.decompress", _concludes),
    Pass("quirks.undo_quirks", _loses_ifs_of_ir),
    Pass("passes.shared_symbols.distrust_symbols", _concludes),
    Pass("passes.specialize.specialize", _loses_ifs),
    Pass("passes.impossible.prune_impossible", _prunes_early),
    Pass("passes.specialize.tell_what_is_left", _loses_ifs),
    Pass("passes.open_outputs.unwrap_open_outputs", _has_compound_boundary),
    Pass("passes.sequences.known_parts.know_parts", _has_compound_boundary),
    Pass("passes.state.variables.restore_state", _has_records),
    Pass("passes.fold.fold", _is_stateful),
    Pass("passes.dead.trim_outputs", _is_stateful),
    Pass("passes.state.pairs.make_stateful", _is_stateful),
    Pass("passes.boundary.defaults_to_constants", _has_defaults),
    Pass("passes.trip_counts.end_at_once"),
    Pass("passes.fold.fold"),
    Pass("passes.out_of_range.tell_out_of_range"),
    Pass("passes.maps.lower_maps"),
    Pass("passes.ranks.settle_ranks"),
    Pass("passes.sequences.model.lower_sequences", _has_parts),
    Pass("targets.open_ranks.note_open_ranks", like="passes.ranks.settle_ranks"),
    Pass("passes.impossible.prune_impossible", _prunes),
    Pass("passes.impossible.refuse_impossible", _keeps),
    Pass("passes.dead.trim_outputs"),
    Pass("passes.strings.lower_strings", _has_strings),
    Pass("targets.unroll.unroll_loops", _unrolls),
    Pass("passes.select.ifs.select_branches", _selects),
    Pass("targets.counted.count_loops", _counts),
    Pass("passes.quantized_pairs.join_pairs", _has_quantized),
    Pass("passes.gates.use_h_sigmoid"),
    Pass("passes.legalize.legalize", _always),
    Pass("targets.unroll.unroll_loops", _counts),
    Pass("passes.fake_quantize.use_fake_quantize"),
    Pass("passes.fold.fold"),
    Pass("passes.fuse.patterns.fuse_states", _has_variables),
    Pass("passes.impossible.prune_impossible", _prunes),
    Pass("passes.idle_loops.drop_idle_loops"),
    Pass("passes.own_outputs.own_outputs", _has_quirks),
    Pass("quirks.work_round", _has_quirks),
    Pass("passes.fold.fold"),
    Pass("passes.dead.remove_dead_code", like="passes.dead.trim_outputs"),
    Pass("passes.own_outputs.own_outputs", _has_quirks),
    Pass("targets.operators.write_in_others", _for_device),
    Pass("targets.branches.arrange_branches", _for_device),
    Pass("targets.empty_inputs.open_empty_inputs", _unrolls),
    Pass("passes.decompress.store_short", _concludes),
    Pass("passes.compress.compress", _compresses),
    Pass("passes.legality.check_legality", _always),
    Pass("targets.limits.check_limits", _is_limited),
)

TO_ONNX = (
    Pass("passes.boundary.require_declared_types"),
    Pass("passes.decompress.decompress", _decompresses),
    Pass("quirks.undo_quirks"),
    Pass("passes.own_outputs.join_outputs"),
    Pass("passes.state.pairs.restore_pairs"),
    Pass("passes.state.variables.lower_state"),
    Pass("passes.dead.trim_outputs"),
    Pass("passes.shared_symbols.distrust_symbols", _concludes),
    Pass("passes.specialize.specialize", _loses_ifs),
    Pass("passes.specialize.tell_what_is_left", _loses_ifs),
    Pass("passes.fuse.patterns.fuse_ir"),
    Pass("passes.fold.fold"),
    Pass("passes.trip_counts.never_end"),
    Pass("passes.idle_loops.drop_idle_loops"),
    Pass("passes.fold.fold", _selects_in_onnx),
    Pass("passes.ranks.settle_ranks", _selects_in_onnx),
    Pass("passes.sequences.model.lower_sequences", _selects_parts),
    Pass("passes.impossible.prune_impossible", _selects_in_onnx),
    Pass("passes.strings.restore.restore_strings"),
    Pass("passes.sequences.restore.restore_boundary", _has_boundary),
    Pass("passes.maps.restore_maps"),
    Pass("passes.open_outputs.wrap_open_outputs"),
    Pass("passes.dead.trim_outputs"),
    Pass("passes.select.ifs.select_branches", _selects),
    Pass("passes.sequences.copies.spell_copies", _always),
    Pass("targets.runtimes.legalize", _always),
    Pass("passes.fuse.patterns.fuse_onnx"),
    Pass("passes.dead.trim_outputs"),
    Pass("passes.decompress.store_short", _stores_short),
    Pass("passes.dimension_names.name_dimensions", _always),
    Pass("passes.legality.check_legality", _always),
)


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
    for step in TO_IR if context.target.format == "ir" else TO_ONNX:
        if idle.isdisjoint((step.path, step.like)) and step.when(model, context):
            if step.run(model, context) is False:
                idle.add(step.path)
            else:
                idle.clear()
            _done(step.name, model, context, done)
    return model


def _done(step: str, model: Model, context: Context, done: Callable[[str], None]) -> None:
    if context.options.get("debug"):
        from bridge.neutral import verify

        verify.verify(model.graph, f"after {step}: graph")
    if context.watch is not None:
        context.watch(model, step)
    done(step)
