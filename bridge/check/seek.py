"""Seeks the inputs of a check, for the file that is checked as it is.

The search itself is `explore`. It gets the model that inputs are drawn for, a session that shows
which branches ran, and the states of stateful files.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import bridge
from bridge.check.asked import Asked
from bridge.check.bench import Bench
from bridge.check.calls import States
from bridge.check.demands import share_symbols, shared
from bridge.check.engines import Session
from bridge.check.engines.adapters import agreed_on, named_like
from bridge.check.engines.parts import is_too_large
from bridge.check.explore import SECONDS, Exploration, Probes, explore
from bridge.check.fitting import sizes_that_fit
from bridge.check.inputs import Recipe, free_dimensions
from bridge.check.instrument import Site, instrument, sites_of, ways
from bridge.check.lines import shortened
from bridge.check.loading import load
from bridge.check.matching import shared_sizes, with_sizes
from bridge.check.outputs import Results
from bridge.check.own_inputs import read_inputs
from bridge.check.probe import Probe, probe
from bridge.check.specialized import Fixed
from bridge.check.versions import Sessions
from bridge.errors import BridgeError, UsageError
from bridge.neutral.graph import Model
from bridge.neutral.types import innermost
from bridge.options import Ranges
from bridge.options.suggestions import unknown
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
    _require_free(base, free_dimensions(drawn))
    _require_ranges(base.ranges, drawn)
    own = read_inputs(asked.places, drawn, fixed.values, () if states is None else states.own)
    sizes = dict(base.sizes)
    if pair.against is not None:
        twin = pair.load(pair.against)
        restore_pairs(twin)
        sizes = shared_sizes(model, twin) | sizes
    probes = _probes(with_sizes(model, sizes), pair.scratch)
    unasked = {key: size for key, size in sizes.items() if key not in base.sizes}
    symbols = share_symbols(drawn)
    base = replace(base, sizes=shared(symbols, sizes))
    session = original if asked.quick else _watched(bench, original)
    agreed = session
    if strict:
        agreed = agreed_on(session, [named_like(original, sessions[1][1])])
    found = explore(
        drawn, agreed, report.sites, base, asked.samples, asked.budget, probes,
        lambda text: bench.tell(f"seeking inputs: {text}"), own, states, session,
        asked.quick or is_too_large(model),
    )  # fmt: skip
    _record(bench, found)
    if asked.samples and not report.feeds:
        fitting: Mapping[str, int] = {}
        if not found.endless:
            bench.tell("seeking sizes that fit")
            free = replace(base, sizes=shared(symbols, unasked))
            fitting = sizes_that_fit(model, session, free, asked.recipe.sizes, symbols)
        report.failures.append(_none_taken(found, fitting, free_dimensions(model)))
    if found.cut_short:
        report.note(
            f"the search for inputs ended after {SECONDS:g} s, so that branches may have been "
            "forced that an input can reach"
        )
    watched = session is not original
    return fixed, [original.run(feed) for feed in found.feeds] if watched else found.outputs


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
        instrument(watched)
        session, _ = load(pair.rewritten(pair.source, watched, "watched"))
    except BridgeError as error:
        bench.report.note(f"branches could not be watched: {shortened(str(error))}")
        return original
    bench.report.sites = sites
    return session


def any_input(bench: Bench, asked: Asked, sessions: Sessions) -> Results:
    """An input that the original takes, without values if a short search finds none."""
    model = bench.pair.load(bench.pair.source)
    found = explore(model, sessions[0][1], [], asked.recipe, 1, 50, lambda _: None)
    return found.feeds[0] if found.feeds else {}


_PROBED = 50_000  # nodes of all probes together
_PROBE = 5_000  # nodes of one


def _probes(model: Model, scratch: Path) -> Probes:
    """Cuts probes out of a model and loads them, as long as they stay small."""
    found = ways(model)
    left = _PROBED

    def probed(site: Site) -> tuple[Probe, Session] | None:
        nonlocal left
        cut = probe(model, *found[site.index], min(_PROBE, left))
        left -= _PROBE if cut is None else len(cut.model.graph.nodes)
        if cut is None:
            return None
        path = scratch / f"probe-{site.index}.onnx"
        try:
            bridge.save(cut.model, path)
            return cut, load(path)[0]
        except BridgeError:
            return None

    return probed


def _record(bench: Bench, found: Exploration) -> None:
    """Puts the results of the search into the report."""
    report = bench.report
    report.failures += found.failures
    report.row = found.row
    if found.no_row:
        report.note(
            "no calls in a row were made: the original takes none with empty states "
            f"({shortened(found.no_row)})"
        )
    report.feeds, report.recipes = found.feeds, found.recipes
    report.taken, report.reached = found.taken, found.reached
    report.unreachable = found.unreachable
    report.runs, report.refused = found.runs, dict(found.refused)


def _none_taken(found: Exploration, fitting: Mapping[str, int], open: Sequence[str]) -> str:
    """Says that the model takes no input that was tried, why, and what to do."""
    reasons = found.refused.most_common(1)
    why = f" (mostly: {shortened(reasons[0][0], 300)})" if reasons else ""
    advice = "give it inputs of your own with --inputs"
    if found.endless:
        advice = "give a run more time with --timeout, or inputs of your own with --inputs"
    elif fitting:
        advice = "sizes that fit: " + " ".join(f"--size {k}={n}" for k, n in fitting.items())
    elif open:
        advice = f"give sizes that fit with --size: open are {', '.join(open)}"
    return f"no input was found that the model takes{why}; {advice}"


def _require_free(recipe: Recipe, free: Sequence[str]) -> None:
    """Raises UsageError for a size whose key is no open dimension of an input."""
    for key in recipe.sizes:
        name, _, axis = key.rpartition(".")
        if key not in free and not (axis.isdecimal() and f"{name}.*" in free):
            open = f"open are {', '.join(free)}" if free else "all of them are fixed"
            raise UsageError(f'"{key}" is no open dimension of the inputs; {open}')


def _require_ranges(ranges: Ranges, model: Model) -> None:
    """Raises UsageError for a range without any number of the input's type."""
    known = {value.name: innermost(value.type).element for value in model.graph.inputs}
    for name, (lowest, highest) in ranges.items():
        if name not in known:
            raise UsageError(unknown("input", name, known))
        element = known[name]
        if element is None or element.kind not in ("bool", "int", "uint", "float"):
            raise UsageError(f'a range is for numbers; the input "{name}" is of {element}')
        if not element.is_float:
            lowest, highest = math.ceil(lowest), math.floor(highest)
        if not lowest <= highest:
            raise UsageError(f'the range of "{name}" has no number of {element} in it')
