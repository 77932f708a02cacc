"""Seeks the inputs of a check, for the file that is checked as it is.

The search itself is `search`. It gets the model that inputs are drawn for, a session that shows
which branches ran, and the states of stateful files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bridge.check.asked import Asked
from bridge.check.bench import Bench
from bridge.check.engines import Session
from bridge.check.inputs.calls import States
from bridge.check.inputs.own import read_inputs
from bridge.check.inputs.prepare import none_taken, probes_of, require_inputs
from bridge.check.inputs.search import SECONDS, fitting_sizes, search
from bridge.check.inputs.sizes import Demands, free_dimensions, with_sizes
from bridge.check.inputs.wanted import Inputs, Wanted
from bridge.check.instrument import instrument, sites_of
from bridge.check.lines import shortened
from bridge.check.loading import load
from bridge.check.matching import shared_sizes
from bridge.check.outputs import Results
from bridge.check.parts import is_too_large
from bridge.check.specialized import Fixed
from bridge.check.stateful import AgreedSession
from bridge.check.versions import Sessions
from bridge.errors import BridgeError
from bridge.neutral.graph import Model
from bridge.passes.state.pairs import restore_pairs
from bridge.show.layers import layers_with_bodies
from bridge.show.outline import outline


def seek_inputs(bench: Bench, asked: Asked, sessions: Sessions) -> tuple[Fixed, Sequence[Results]]:
    """Fills the report with inputs, and the branches that they take. The answer has the inputs that
    a specialized version holds, and what the original gives for each input."""
    report, pair = bench.report, bench.pair
    model = pair.load(pair.source)
    restore_pairs(model)
    original = sessions[0][1]
    fixed = Fixed.of(model, pair.loaded(report.versions[1].path), pair.options.get("values") or {})
    fixed.shape(model)
    irs = [version.path for version in report.versions if version.path.suffix == ".xml"]
    known = (States.of(pair.loaded(path), pair.loaded(pair.source)) for path in irs)
    states = next((found for found in known if found is not None), States.of_merged(model))
    strict = states is not None and bool(states.own or pair.source.suffix == ".xml")
    drawn = _drawn(bench, model, sessions, states, strict)
    has_bodies = any(node.bodies for node in model.graph.nodes)
    layers = layers_with_bodies(irs[0]) if irs and has_bodies else None
    report.outline = outline(model, report.source, layers)
    base = replace(asked.recipe, values=fixed.values)
    require_inputs(base, drawn)
    own = read_inputs(asked.places, drawn, fixed.values, () if states is None else states.own)
    sizes = dict(base.sizes)
    if pair.against is not None:
        twin = pair.load(pair.against)
        restore_pairs(twin)
        sizes = shared_sizes(model, twin) | sizes
    probes = probes_of(with_sizes(model, sizes), pair.scratch)
    unasked = {key: size for key, size in sizes.items() if key not in base.sizes}
    demands = Demands.of(drawn)
    base = replace(base, sizes=demands.shared(sizes), given=base.chosen)
    session = original if asked.quick else _watched(bench, original)
    agreed = session
    if strict:
        agreed = AgreedSession(session, [sessions[1][1]], bench.comparison)
    wanted = Wanted(
        drawn, demands, agreed, base, asked.samples, asked.budget, report.sites, probes, own,
        states, session, asked.quick or is_too_large(model),
        lambda text: bench.tell(f"seeking inputs: {text}"),
    )  # fmt: skip
    found = search(wanted)
    _record(bench, found)
    if asked.samples and not report.feeds:
        fitting: Mapping[str, int] = {}
        free = free_dimensions(model)
        if not found.endless:
            bench.tell("seeking sizes that fit")
            alone = replace(
                wanted, session=session, base=replace(base, sizes=demands.shared(unasked))
            )
            keys = dict.fromkeys((*asked.recipe.sizes, *free))
            fitting = fitting_sizes(
                alone, asked.recipe.sizes, keys if len(keys) <= _NAMED else asked.recipe.sizes
            )
        report.failures.append(none_taken(found, fitting, free))
    if found.cut_short:
        report.note(
            f"the search for inputs ended after {SECONDS:g} s, so that branches may have been "
            "forced that an input can reach"
        )
    if session is original:
        return fixed, [case.outputs for case in found.cases]
    return fixed, [original.run(case.feeds) for case in found.cases]


_NAMED = 8  # open dimensions that are all named


def _drawn(
    bench: Bench, model: Model, sessions: Sessions, states: States | None, strict: bool
) -> Model:
    """The model that inputs are drawn for. An input with a default is drawn if another session
    needs the input: it loses its default in `model`, too."""
    pair = bench.pair
    given = {port.name for _, session in sessions[1:] for port in session.inputs}
    given -= states.pairs.keys() if states is not None and states.own else set()

    def without_defaults(model: Model) -> Model:
        model.defaults = {v: d for v, d in model.defaults.items() if given.isdisjoint(v.names)}
        return model

    without_defaults(model)
    other = bench.report.versions[1].path
    if not strict or states is None or states.own or pair.loaded(other).format != "onnx":
        return model
    # Its operators say more about sizes that have to agree: OpenVINO does not check them.
    given |= {port.name for port in sessions[0][1].inputs}
    return without_defaults(pair.load(other))


def _watched(bench: Bench, original: Session) -> Session:
    """The original with an output for the branches that ran. The original itself, if there are no
    branches or no engine loads that."""
    pair = bench.pair
    watched = pair.load(pair.source)
    sites = list(sites_of(watched).values())
    if not sites:
        return original
    try:
        instrument(watched, counted=True)
        session, _ = load(pair.rewritten(pair.source, watched, "watched"))
    except BridgeError as error:
        bench.report.note(f"branches could not be watched: {shortened(str(error))}")
        return original
    bench.report.sites = sites
    return session


def any_input(bench: Bench, asked: Asked, sessions: Sessions) -> Results:
    """An input that the original takes, without values if a short search finds none."""
    model = bench.pair.load(bench.pair.source)
    found = search(Wanted(model, Demands.of(model), sessions[0][1], asked.recipe, 1, 50))
    return found.cases[0].feeds if found.cases else {}


def _record(bench: Bench, found: Inputs) -> None:
    """Puts the results of the search into the report."""
    report = bench.report
    report.failures += found.failures
    report.row = [*found.row]
    if found.no_row:
        report.note(
            "no calls in a row were made: the original takes none with empty states "
            f"({shortened(found.no_row)})"
        )
    report.feeds = [case.feeds for case in found.cases]
    report.recipes = [case.recipe for case in found.cases]
    report.taken = [case.taken for case in found.cases]
    report.reached, report.unreachable = {**found.reached}, {**found.unreachable}
    report.runs, report.refused = found.tried, {**found.refused}
