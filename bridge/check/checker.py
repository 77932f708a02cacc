"""`check`: converts a model if it must, runs all versions of it, and compares what they compute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from bridge.check.as_run import run_as_people_do
from bridge.check.asked import Asked
from bridge.check.bench import Bench
from bridge.check.collection import little_collection
from bridge.check.device import RAN_ON, DeviceCheck
from bridge.check.endless import endless_loop
from bridge.check.explain import explain, reduced_failure
from bridge.check.files import models_kept
from bridge.check.forcing import force_branches
from bridge.check.inputs.own import save_feeds
from bridge.check.loading import running_on, time_limit
from bridge.check.memory import as_file, name_of
from bridge.check.outputs import Comparison
from bridge.check.pair import Pair
from bridge.check.report import CheckReport
from bridge.check.results import call_in_a_row, compare_versions, doubt_branches
from bridge.check.seek import any_input, seek_inputs
from bridge.check.unrelated import require_related
from bridge.check.versions import load_versions
from bridge.errors import BridgeError
from bridge.files.atomic_write import scratch_folder
from bridge.library.api import Source
from bridge.limits import usually
from bridge.options import CheckOptions
from bridge.options.suggestions import keywords


@keywords(CheckOptions)
def check(
    source: Source, against: Source | None = None, **options: Unpack[CheckOptions]
) -> CheckReport:
    """Show that a model and its conversion compute the same, every branch of every If included.

    Without `against`, `source` is converted to the other format and back, and all three are
    compared; with it, the two models are compared. Each is a source as for `bridge.convert`.

    With `device` or `openvino`, a layer, type or size that these do not take is a failure.
    OpenVINO's plugin for the device runs the IR, or its CPU plugin where there is no such device.
    Types coarser than `rtol` get two units in the last place. If one file has weights of f32 stored
    as f16, the weights of the other are rounded too.

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
    asked = Asked.of(options)
    with (
        usually(asked.limits), little_collection(), time_limit(asked.seconds), models_kept(),
        scratch_folder() as scratch,
    ):  # fmt: skip
        tolerances = dict(asked.tolerances)
        report = CheckReport(name_of(source), *tolerances.pop("*"), tolerances=tolerances)
        report.device = DeviceCheck.of(asked.conversion)
        pair = Pair(
            as_file(source, scratch / "source"),
            None if against is None else as_file(against, scratch / "against"),
            scratch, asked.conversion, asked.weights, report.notes,
        )  # fmt: skip
        asked.require_small(pair, source, against)
        comparison = Comparison(report.rtol, report.atol, report.note, report.tolerances)
        device = RAN_ON if report.device is None else report.device.ran_on
        with running_on(device, pair.threads):
            bad = _run(Bench(pair, report, comparison, asked.tell), asked)
        if asked.save_inputs is not None:
            report.saved = save_feeds(asked.save_inputs, report.feeds, bad)
        return report


def _run(bench: Bench, asked: Asked) -> Mapping[int, str]:
    """Goes through the stages of a check, each of which fills the report. The answer says what is
    wrong with inputs, by their numbers."""
    if _never_ends(bench, asked.seconds):
        return {}
    sessions, failed = load_versions(bench)
    if len(sessions) < 2:
        if sessions and asked.small is not None:
            feed = any_input(bench, asked, sessions)
            bench.report.reduced = reduced_failure(bench, failed, feed, asked.small)
        return {}
    asked.require_outputs([port.name for port in sessions[0][1].outputs])
    fixed, wanted = seek_inputs(bench, asked, sessions)
    if not bench.report.feeds:
        return {}
    compared = compare_versions(bench, sessions, wanted, asked.recipe.chosen)
    require_related(bench)
    if not asked.quick:
        run_as_people_do(bench, sessions, compared)
    call_in_a_row(bench, sessions, compared)
    doubt_branches(bench, compared)
    force_branches(bench, fixed)
    if asked.small is not None or not asked.quick:
        explain(bench, asked.small, {**failed, **compared.failed})
    return compared.bad


def _never_ends(bench: Bench, seconds: float) -> bool:
    """Whether the model cannot be run, because one of its Loops never ends."""
    pair = bench.pair
    try:
        why = endless_loop(pair.loaded(pair.source), pair.options.get("values") or {}, seconds)
    except BridgeError:  # which the conversion tells
        return False
    bench.report.failures += [why] if why else []
    return bool(why)
