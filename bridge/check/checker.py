"""`check`: converts a model if it must, runs all versions of it, and compares what they compute.

Each stage takes values and gives values: Request, Suite, inputs, runs, noise, verdict, diagnosis,
report.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from bridge.check.branches import BranchResults
from bridge.check.compare import Results, arrays
from bridge.check.device import RAN_ON, DeviceCheck
from bridge.check.diagnose import Diagnosis, diagnose, reduced_failure
from bridge.check.engines import EngineError, Session
from bridge.check.engines.sessions import BY_THREADS, Sessions
from bridge.check.files import as_file, models_kept, name_of, read
from bridge.check.force import force_missing
from bridge.check.inputs.own import save_feeds
from bridge.check.inputs.recipe import Case
from bridge.check.noise import Noise
from bridge.check.noisy import make_noisy
from bridge.check.report import CheckReport, Version
from bridge.check.request import Request
from bridge.check.runs import Runs, require_related, run_all, with_defaults, with_smaller
from bridge.check.seek import Sought, any_input, breaks_ranks, seek
from bridge.check.suite import Suite, build
from bridge.check.surgery.surgery import Surgery
from bridge.check.surgery.watching import RAN
from bridge.check.verdict import Verdict, conclude
from bridge.errors import BridgeError, shortened
from bridge.files.atomic_write import scratch_folder
from bridge.library.api import Source
from bridge.limits import usually
from bridge.neutral.graph import size_of_constants
from bridge.options import CheckOptions
from bridge.options.keywords import keywords
from bridge.show.layers import layers_with_bodies
from bridge.show.outline import outline
from bridge.vocabulary.elements import F16

_DRAWING = 21
_YOUNG = 200_000  # objects that are made before the first look for garbage
_BEYOND = re.compile("out of (data )?bounds|invalid index found")
"""What engines say of an index for which OpenVINO reads something."""
_LARGEST_NOISY = 1 << 28  # bytes of constants in a model that is run with noise


@keywords(CheckOptions)
def check(
    source: Source, against: Source | None = None, **options: Unpack[CheckOptions]
) -> CheckReport:
    """Show that a model and its conversion compute the same, every branch of every If included.

    Without `against`, `source` is converted to the other format and back, and all three are
    compared; with it, the two models are compared. Each is a source as for `bridge.convert`.

    Integers, booleans and strings are equal if they are the same, floats up to
    `rtol * |expected| + atol * s`, where s is the largest magnitude of the output. A difference
    within the original's own noise is right, too, unless a tolerance is given; the report says it.
    Types coarser than the default `rtol` get two units in the last place.

    With `device` or `openvino`, a layer, type or size that these do not take is a failure.
    OpenVINO's plugin for the device runs the IR, or its CPU plugin where there is no such device.
    If one file has weights of f32 stored as f16, the weights of the other are rounded too.

    <options>

    The report has all failures of conversions and engines. Raises UsageError for options that make
    no sense, InvalidModelError for a source that cannot be read.

    >>> report = check("model.onnx")
    >>> report.ok
    True
    >>> check("model.onnx", ranges={"x": (0, 1)}, save_inputs="inputs").ok
    True
    >>> check("model.onnx", inputs="inputs/input-0.npz", samples=0, rtol={"*": 1e-2}).ok
    True
    >>> open("report.html", "w", encoding="utf-8").write(report.as_html()) > 0
    True
    """
    request = Request.of(source, against, options)
    with (
        usually(request.limits), ExitStack() as after, models_kept(), scratch_folder() as scratch,
    ):  # fmt: skip
        # Graphs are cycles that live long. To look for garbage after a few hundred new objects, as
        # Python does, takes a third of the time of a large check.
        after.callback(gc.set_threshold, *gc.get_threshold())
        gc.set_threshold(_YOUNG, 20, 20)
        first = as_file(source, scratch / "source")
        other = None if against is None else as_file(against, scratch / "against")
        request.require_small(first)
        device = DeviceCheck.of(request.conversion)
        ran_on = RAN_ON if device is None else device.ran_on
        sessions = Sessions(ran_on, _threads(first, other), request.seconds)
        return _check(request, build(request, first, other, scratch, sessions))


def _check(request: Request, suite: Suite) -> CheckReport:
    report = _of_suite(CheckReport(name_of(request.source), request.tolerances), suite)
    if len(suite.variants) < 2:
        if suite.variants and request.small is not None:
            labels = [one.label for one in suite.failures]
            feed = any_input(suite, request)
            reduced = reduced_failure(suite, labels, feed, request.small, request.tell)
            report = replace(report, diagnosis=Diagnosis(reduced=reduced))
        return report
    request.require_outputs([port.name for port in suite.original.session.outputs])
    sought = seek(suite, request)
    failures = [*report.failures, *sought.failures]
    report = replace(report, inputs=sought.inputs, failures=tuple(failures))
    if not sought.inputs.cases:
        return report
    runs = run_all(suite, sought.inputs, sought.expected, request.tolerances, request.tell)
    require_related(suite, runs)
    noise = Noise(lambda: _open_noisy(suite), request.tolerances)
    verdict = _conclude(request, suite, sought, runs, noise)
    if verdict.dark and request.samples and not (verdict.different or verdict.failed):
        request.tell("seeking inputs with less noise")
        sought, runs = with_smaller(suite, sought, runs, request)
        verdict = _conclude(request, suite, sought, runs, noise)
    inputs, notes = sought.inputs, [*suite.notes, *sought.notes]
    taken = [case.taken for case in inputs.cases]
    branches = BranchResults(
        sought.sites, taken, verdict.wrong, inputs.reached,
        unreachable=inputs.unreachable, failing=inputs.failing,
    )  # fmt: skip
    if sought.sites and not request.quick:
        branches, said = force_missing(
            suite, sought, branches, runs, request.tolerances, request.tell
        )
        notes += said
    defaults: list[str] = []
    if not (request.quick or verdict.different or verdict.failed):
        request.tell("running with default settings")
        defaults = with_defaults(suite, sought.inputs, runs, request.tolerances)
    diagnosis = Diagnosis()
    if request.small is not None or not request.quick:
        diagnosis = diagnose(
            suite, sought, runs, verdict, branches, request.tolerances, request.small, request.tell
        )
    report = replace(
        report,
        verdict=verdict,
        branches=branches,
        failures=(*failures, *_failed(verdict)),
        told=(*suite.told, *sought.told),
        notes=(*notes, *_of_way_back(suite, verdict)),
        defaults=tuple(defaults),
        diagnosis=diagnosis,
    )
    if request.save_inputs is None:
        return report
    bad = {one.case: "fails" for one in verdict.failed} | dict.fromkeys(verdict.wrong, "differs")
    feeds = [case.feeds for case in sought.inputs.cases]
    return replace(report, saved=tuple(save_feeds(request.save_inputs, feeds, bad)))


def _of_suite(report: CheckReport, suite: Suite) -> CheckReport:
    """The report with what is known once all versions were opened."""
    outlined = None
    if suite.variants and suite.readable:
        model = suite.model(suite.original.opened)
        irs = [variant.path for variant in suite.variants if variant.is_ir]
        has_bodies = any(node.bodies for node in model.graph.nodes)
        layers = layers_with_bodies(irs[0]) if irs and has_bodies else None
        outlined = outline(model, report.source, layers)
    return replace(
        report,
        versions=tuple(
            Version(one.label, one.path, one.engine, one.files) for one in suite.variants
        ),
        failures=tuple(one.text for one in suite.failures),
        unopened=suite.unopened,
        wide=suite.wide,
        told=tuple(suite.told),
        notes=tuple(suite.notes),
        device=suite.device,
        outline=outlined,
    )


def _conclude(request: Request, suite: Suite, sought: Sought, runs: Runs, noise: Noise) -> Verdict:
    """The verdict. The original's noise is measured where a run differs."""
    original = suite.original
    cases = sought.inputs.cases

    @cache
    def ran(case: int) -> Any:
        return sought.watched and sought.watched.run(cases[case].feeds).get(RAN)

    def explains(case: int, found: Sequence[Results]) -> Mapping[str, float] | None:
        def kept(results: Results) -> Results | None:
            is_alike = RAN not in results or np.array_equal(results[RAN], ran(case))
            return runs.settled(case, results) if is_alike else None

        request.tell("running the original with noise")
        return noise.of(case, cases[case].feeds, runs.expected[case], found, kept)

    given = {}
    for place, case in enumerate(cases):
        if case.recipe.is_own and case.recipe.own is not None:
            names = {n: p.name for p in original.session.outputs for n in (p.name, *p.aliases)}
            outputs = case.recipe.own.outputs.items()
            given[place] = {names[name]: value for name, value in outputs if name in names}
    apart = _apart(request, suite, cases, runs)
    light = {place for place, case in enumerate(cases) if case.is_empty or case.is_zeros}
    return conclude(runs, request.tolerances, explains, given, apart, light)


def _apart(request: Request, suite: Suite, cases: Sequence[Case], runs: Runs) -> Mapping[int, str]:
    """The inputs that no user would give, with what is odd about them."""
    original = suite.original
    apart = {}
    for place, case in enumerate(cases):
        if case.recipe.is_own:
            continue
        if case.is_empty:
            apart[place] = "an empty tensor"
        elif breaks_ranks(original.session, runs.expected[place]):
            apart[place] = "outputs of other ranks than the original declares"
        elif suite.wide and any(map(_is_wide, (case.feeds, runs.expected[place]))):
            apart[place] = "integers beyond 32 bits"
    apart = apart if len(apart) < len(cases) else {}
    limited = request.recipe.ranges.keys() | request.recipe.fills.keys()
    for run in runs.runs if original.is_ir and limited else ():
        if isinstance(run.outcome, EngineError) and _BEYOND.search(str(run.outcome)):
            feed = cases[run.case].feeds
            zeros = {name: np.zeros_like(v) for name, v in feed.items() if name in limited}
            (within,) = suite.of(run.label).session.run_each([{**feed, **zeros}])
            if not isinstance(within, EngineError):
                apart[run.case] = "an index beyond the data, outside what the model takes"
    return apart


def _is_wide(values: Results) -> bool:
    """Whether an integer needs more than 32 bits."""
    return any(
        array.dtype.kind in "iu"
        and array.dtype.itemsize == 8
        and bool((array != array.astype(np.int32)).any())
        for value in values.values()
        for array in arrays(value)
    )


def _open_noisy(suite: Suite) -> Session:
    """The original in its noisy form. Raises BridgeError if it is too large for that."""
    model = suite.model(suite.original.opened)
    if size_of_constants(model.graph) > _LARGEST_NOISY:
        raise BridgeError("the model is too large to be run with noise")
    surgery = Surgery(model)
    surgery.watch()
    noisy = surgery.model
    make_noisy(noisy, F16 if suite.files.halves else None)
    # onnxruntime draws random numbers in operator sets up to 21.
    newer = noisy.format == "onnx" and (noisy.opset or 0) > _DRAWING
    return suite.open(noisy, "noisy", _DRAWING if newer else None)


def _failed(verdict: Verdict) -> list[str]:
    """A line for each version that fails, with the first input."""
    lines: dict[str, str] = {}
    for one in verdict.failed:
        how = f", {one.how}" if one.how else ""
        lines.setdefault(
            one.label, f"{one.label}, input {one.case}{how}: {shortened(str(one.outcome), 500)}"
        )
    return [*lines.values()]


def _of_way_back(suite: Suite, verdict: Verdict) -> list[str]:
    """A note that the way back is not shown, if an IR that the check made does not run."""
    failed = {one.label for one in suite.failures} | {one.label for one in verdict.failed}
    if suite.is_pair or not any(label.endswith("→ IR") for label in failed):
        return []
    return [
        "no engine ran the IR: the way back proves nothing by itself, since it replays the rules, "
        "and a wrong rule is right there and back"
    ]


def _threads(*paths: Path | None) -> int | None:
    """How many threads engines may have, None if the results do not depend on that."""
    for path in filter(None, paths):
        try:
            if any(node.op in BY_THREADS for node in read(path).graph.walk()):
                return 1
        except BridgeError:  # which the conversion tells
            continue
    return None
