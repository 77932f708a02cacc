"""Seeks the inputs of a check, for its files as they are.

The search itself is `inputs.search`. It gets the model that inputs are drawn for, a session that
shows which branches ran, and the states of stateful files.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bridge.check.compare import Results
from bridge.check.engines import EngineError, Session
from bridge.check.engines.adapters import agreed_on
from bridge.check.inputs.calls import States
from bridge.check.inputs.own import read_inputs, require_inputs
from bridge.check.inputs.probe import probes_of
from bridge.check.inputs.search import fitting_sizes, search
from bridge.check.inputs.sizes import Demands, free_dimensions, shared_sizes, with_sizes
from bridge.check.inputs.wanted import Inputs, Wanted
from bridge.check.noisy import exact_values
from bridge.check.request import Request
from bridge.check.suite import Suite
from bridge.check.surgery.sites import Site, sites_of
from bridge.check.surgery.situations import Dependences, Situation
from bridge.check.surgery.surgery import Surgery
from bridge.check.surgery.watching import MOST
from bridge.errors import BridgeError, shortened
from bridge.neutral.clone import clone_model
from bridge.neutral.graph import Model
from bridge.passes.state.pairs import restore_pairs

_NAMED = 8  # open dimensions that are all named


@dataclass(frozen=True)
class Sought:
    """The inputs of a check, and what the original gives for each. `sites` are the Ifs and Loops
    that were `watched`, in the original with an output for that."""

    inputs: Inputs = field(default_factory=Inputs)
    expected: Sequence[Results] = ()
    sites: Sequence[Site] = ()
    failures: Sequence[str] = ()
    notes: Sequence[str] = ()
    told: Sequence[str] = ()
    watched: Session | None = None


def seek(suite: Suite, request: Request) -> Sought:
    """Seeks inputs that the original takes. Raises UsageError for options that the model does not
    allow."""
    original = suite.original
    model = clone_model(suite.model(original.opened))
    restore_pairs(model)
    suite.fixed.shape(model)
    states = _states(suite, model)
    # OpenVINO takes a mask that does not fit the states, and its results are then meaningless.
    strict = states is not None and bool(states.own or original.is_ir)
    drawn = _drawn(suite, model, states, strict)
    base = replace(request.recipe, values=suite.fixed.values)
    require_inputs(base, drawn)
    own = read_inputs(
        request.places, drawn, suite.fixed.values, () if states is None else states.own
    )
    sizes = dict(base.sizes)
    if suite.files.other is not None:
        twin = clone_model(suite.model(suite.others[0].path))
        restore_pairs(twin)
        sizes = shared_sizes(model, twin) | sizes
    demands = Demands.of(drawn)
    watched, sites, situations, notes = _watched(suite, request.quick)
    session = agreed_on(watched, [suite.others[0].session]) if strict else watched
    wanted = Wanted(
        drawn, demands, session,
        replace(base, sizes=demands.shared(sizes), given=base.chosen),
        request.samples, request.budget, sites,
        probes_of(with_sizes(model, sizes), suite.scratch, suite.sessions), own, states, watched,
        request.quick, suite.model(suite.others[0].path), situations,
        lambda text: request.tell(f"seeking inputs: {text}"),
    )  # fmt: skip
    found = search(wanted)
    failures = list(found.failures)
    if request.samples and not found.cases:
        kept = {key: size for key, size in sizes.items() if key not in base.sizes}
        alone = replace(
            wanted, session=watched, base=replace(base, sizes=demands.shared(kept)), sites=()
        )
        failures.append(_none_taken(found, alone, request))
    if found.no_row:
        notes.append(
            "no calls in a row were made: the original takes none with empty states "
            f"({shortened(found.no_row)})"
        )
    if found.cut_short and not request.quick:
        notes.append(
            f"the search for inputs ended after {found.tried} runs, so that branches may have been "
            "forced that an input can reach"
        )
    return _with_outputs(
        suite, found, Sought(sites=sites, failures=failures, notes=notes, watched=watched)
    )


def any_input(suite: Suite, request: Request) -> Results:
    """An input that the original takes, without values if a short search finds none."""
    model = suite.model(suite.original.opened)
    session = suite.original.session
    found = search(Wanted(model, Demands.of(model), session, request.recipe, 1, 50))
    return found.cases[0].feeds if found.cases else {}


def _with_outputs(suite: Suite, found: Inputs, sought: Sought) -> Sought:
    """The inputs with what the original gives for them, without additions."""
    outputs = suite.original.session.run_each([case.feeds for case in found.cases])
    kept = [place for place, one in enumerate(outputs) if not isinstance(one, EngineError)]
    failed = len(outputs) - len(kept)
    told = [f"without {failed} inputs that the original took once and then refused"] * bool(failed)
    expected = [one for one in outputs if not isinstance(one, EngineError)]
    return replace(sought, inputs=found.only(kept), expected=expected, told=told)


def breaks_ranks(original: Session, results: Results) -> bool:
    """Whether outputs have other ranks than the original declares, on which a conversion relies."""
    return any(
        bool(port.shape) and np.ndim(results[port.name]) != len(port.shape)
        for port in original.outputs
        if port.shape is not None and isinstance(results[port.name], np.ndarray)
    )


def _states(suite: Suite, model: Model) -> States | None:
    """The states of the files, as inputs and outputs."""
    first = suite.model(suite.original.opened)
    irs = (suite.model(variant.path) for variant in suite.variants if variant.is_ir)
    known = (States.of(one, first) for one in irs)
    return next((found for found in known if found is not None), States.of_merged(model))


def _drawn(suite: Suite, model: Model, states: States | None, strict: bool) -> Model:
    """The model that inputs are drawn for. An input with a default is drawn if another session
    needs the input: it loses its default in `model`, too."""
    given = {port.name for variant in suite.others for port in variant.session.inputs}
    given -= states.pairs.keys() if states is not None and states.own else set()

    def without_defaults(model: Model) -> Model:
        model.defaults = {v: d for v, d in model.defaults.items() if given.isdisjoint(v.names)}
        return model

    without_defaults(model)
    other = suite.model(suite.others[0].path)
    if not strict or states is None or states.own or other.format != "onnx":
        return model
    # Its operators say more about sizes that have to agree: OpenVINO does not check them.
    given |= {port.name for port in suite.original.session.inputs}
    return without_defaults(clone_model(other))


def _watched(suite: Suite, quick: bool) -> tuple[Session, list[Site], list[Situation], list[str]]:
    """The original with outputs for the branches that ran and the situations that came about, its
    Ifs and Loops, its situations, and notes. The original itself, if it has none or no engine loads
    that."""
    original = suite.original
    model = suite.model(original.opened)
    sites = list(sites_of(model).values())
    alike = all(one.is_ir == original.is_ir for one in suite.others)
    notes: list[str] = []
    for measured in (True, False)[quick:]:
        if not (sites or measured):
            break
        try:
            surgery = Surgery(model)
            graph = surgery.model.graph
            sources = Dependences(graph, exact_values(graph), alike) if measured else None
            situations = surgery.watch(sources=sources)
            if len(situations) >= MOST:
                notes.append(f"situations are sought at the first nodes alone, {MOST} of them")
            if not (sites or situations):
                break
            session = suite.open(surgery.model, f"watched-{measured}")
            return session, sites, situations, notes
        except BridgeError as error:
            what = "situations" if measured else "branches"
            notes = [f"{what} could not be watched: {shortened(str(error))}"]
    return original.session, [], [], notes


def _none_taken(found: Inputs, wanted: Wanted, request: Request) -> str:
    """Says that the model takes no input that was tried, why, and what to do."""
    free, asked = free_dimensions(wanted.model), request.recipe.sizes
    advice = "give it inputs of your own with --inputs"
    if found.endless:
        advice = "give a run more time with --timeout, or inputs of your own with --inputs"
    elif free:
        request.tell("seeking sizes that fit")
        keys = dict.fromkeys((*asked, *free))
        fitting = fitting_sizes(wanted, asked, keys if len(keys) <= _NAMED else asked)
        advice = f"give sizes that fit with --size: open are {', '.join(free)}"
        if fitting:
            advice = "sizes that fit: " + " ".join(f"--size {k}={n}" for k, n in fitting.items())
    reasons = Counter(found.refused).most_common(1)
    why = f" (mostly: {shortened(reasons[0][0], 300)})" if reasons else ""
    return f"no input was found that the model takes{why}; {advice}"
