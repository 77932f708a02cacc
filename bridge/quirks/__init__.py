"""Workarounds for faults of engines.

An engine computes a correct file wrongly, or fails on it. A quirk writes the file in another way,
which avoids the fault.

Quirks stand in files by cause. Each is a pass of its own over the whole expanded graph, innermost
bodies first; all clauses of the safe Loop are one pass. A test shows the fault without the quirk
(`tests/quirks/`). When the engine passes this test, the quirk can go. After all have run, none
finds a fault in the graph. So a quirk comes after another one that makes what it looks for.
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
from bridge.quirks.opaque import UNDO_OF_BARRIERS, plain_zero
from bridge.quirks.quirk import CPU, GPU, QUIRKS, Quirk, RunQuirk, engine_of

__all__ = ["CPU", "GPU", "QUIRKS", "Quirk", "by_name", "named", "of_engine", "order"]

FILES = (
    "bits", "computed_operands", "constants", "empty", "fused", "gpu_bodies", "if_outputs",
    "integers", "kernels", "loops.changing_sizes", "loops.copies", "loops.shared_memory",
    "loops.trips", "nonfinite", "open_sizes", "outputs", "parts", "rounding", "simplified",
    "truth_values", "variables",
)  # fmt: skip
"""The files that declare quirks."""

SAFE_LOOP = "safe_loop"
"""The pass of all clauses."""


def named(name: str) -> Quirk:
    """The quirk of this name. This imports the files of quirks."""
    _import()
    return QUIRKS[name]


@cache
def _import() -> None:
    for file in FILES:
        import_module(f".{file}", __package__)


@cache
def order() -> tuple[str, ...]:
    """The names of all quirks, in their order: by file and by line, but each after those that it
    names. The clauses of the safe Loop are one pass."""
    _import()
    passes: dict[str, list[Quirk]] = {}
    declared = (quirk for quirk in QUIRKS.values() if quirk.place[0] in FILES)
    for quirk in sorted(declared, key=lambda quirk: quirk.place):
        passes.setdefault(_pass_of(quirk), []).append(quirk)
    done: dict[str, None] = {}

    def put(name: str) -> None:
        for earlier in (earlier for quirk in passes[name] for earlier in quirk.after):
            if earlier not in done:
                put(earlier)
        done.update(dict.fromkeys([name]))

    for name in passes:
        put(name)
    return tuple(quirk.name for name in done for quirk in passes[name])


def _pass_of(quirk: Quirk) -> str:
    return SAFE_LOOP if quirk.place[0].startswith("loops.") else quirk.name


def by_name() -> list[Quirk]:
    """Each quirk once, by its first engine and its name."""
    quirks = {name: named(name) for name in order()}
    return sorted(quirks.values(), key=lambda quirk: (quirk.engine, quirk.name))


def of_engine(engine: str) -> list[Quirk]:
    """The quirks for the faults of an engine, in their order."""
    return [quirk for quirk in map(named, order()) if engine in quirk.engines]


def work_round(model: Model, context: Context) -> bool:
    """Applies the quirks of the target in place, if the model has their operators. Returns whether
    any quirk found its fault."""
    ops, changed = context.ask(operators_of, model.graph), False
    for form, members in groupby(map(named, order()), _pass_of):
        quirks = [quirk for quirk in members if _is_wanted(quirk, context)]
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

    quirks = [named(name) for name in reversed(order())]
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
    return fuse(model.graph, {"Bucketize": [plain_zero]}, context) or changed


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
