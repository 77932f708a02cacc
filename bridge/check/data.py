"""A check's report for scripts: what `bridge check --json` prints."""

import math
from dataclasses import asdict
from typing import Any

import numpy as np

from bridge.check.diagnosis.reduce import Reduced
from bridge.check.report import CheckReport
from bridge.check.surgery.sites import Site, branch_role
from bridge.check.text import first_line, refusals
from bridge.check.verdict import Comparison
from bridge.records.entry import Json
from bridge.release import release

FORMAT = 2
"""The version of this format. It changes if a key changes its meaning, not if keys are added."""

_FIRST = 8  # elements of an input that are shown


def as_json(report: CheckReport) -> Json:
    """The report in lists, dictionaries, numbers and text. Numbers that JSON lacks are text:
    `inf`, `-inf` and `nan`."""
    met = report.inputs.met
    tolerances, sites, found = report.tolerances, report.branches.sites, report.diagnosis
    data: Json = _plain(
        {
            "bridge": release(),
            "format": FORMAT,
            "source": report.source,
            "verdict": verdict_of(report),
            "text": first_line(report),
            "rtol": tolerances.rtol,
            "atol": tolerances.atol,
            "tolerances": {
                name: {"rtol": rtol, "atol": atol}
                for name, (rtol, atol) in tolerances.by_output.items()
            },
            "versions": [
                {
                    "label": version.label,
                    "engine": version.engine,
                    "files": [asdict(file) for file in version.files],
                }
                for version in report.versions
            ],
            "outputs": [_output(one) for one in report.verdict.results],
            "ifs": [_site(report, site) for site in sites if not site.loop],
            "loops": [_site(report, site) for site in sites if site.loop],
            "inputs": [
                {
                    "recipe": str(case.recipe),
                    "tensors": {name: _described(value) for name, value in case.feeds.items()},
                }
                for case in report.inputs.cases
            ],
            "reach": {
                "iterations": max(report.inputs.most_iterations.values(), default=0),
                "size": report.inputs.largest_size,
            },
            "situations": [
                {"where": one.where, "kind": one.kind, "text": one.text, "input": met.get(number)}
                for number, one in enumerate(report.inputs.situations)
            ],
            "saved": report.saved,
            "reduced": None if found.reduced is None else _reduced(found.reduced),
            "tried": report.inputs.tried,
            "refused": dict(refusals(report).most_common()),
            "device": _device(report),
            "failures": report.failures,
            "told": [*report.verdict.not_shown, *report.told],
            "notes": report.notes,
            "defaults": report.defaults,
            "first_difference": _first(report),
            "fault": None if found.blame is None else asdict(found.blame),
        }
    )
    return data


def verdict_of(report: CheckReport) -> str:
    """The verdict, in a word or two."""
    if report.different:
        return "different"
    if report.ok:
        is_noisy = report.verdict.noise is not None or report.verdict.dark
        return "within noise" if is_noisy else "equal"
    return "incomplete" if report.compared else "nothing compared"


def _output(one: Comparison) -> Json:
    found = asdict(one.difference)
    del found["ok"]
    at = list(found.pop("worst"))
    return {
        "version": one.label,
        "output": one.output,
        "state": one.state,
        "equal": one.ok,
        **found,
        "at": at,
        "input": one.case,
        "how": one.how,
        "text": str(one.difference),
    }


def _site(report: CheckReport, site: Site) -> Json:
    """The state of each outcome of an If or a Loop, and the most iterations that a Loop ran."""
    states = {
        site.role(outcome): report.branches.state((site.index, outcome))
        for outcome in site.outcomes
    }
    return {
        "where": site.where,
        "parents": [[index, branch_role(branch)] for index, branch in site.parents],
        **({"iterations": report.inputs.most_iterations.get(site.index, 0)} if site.loop else {}),
        **{role: asdict(state) for role, state in states.items()},
    }


def _device(report: CheckReport) -> Json | None:
    """What shows of the device that IRs are for."""
    device = report.device
    if device is None:
        return None
    findings = [
        {"version": version, **asdict(finding)}
        for version, found in device.findings.items()
        for finding in found
    ]
    asked = {name: device.asked.get(name) for name in ("device", "openvino")}
    return {
        **asked,
        "ran_on": device.ran_on,
        "text": f"{device.title}: {device}",
        "findings": findings,
    }


def _reduced(found: Reduced | str) -> Json:
    """The smallest part that differs, or why there is none."""
    if isinstance(found, str):
        return {"text": found}
    return {"text": str(found), **asdict(found)}


def _first(report: CheckReport) -> Json | None:
    first = report.diagnosis.first
    if first is None or isinstance(first, str):
        return None if first is None else {"text": first}
    return {
        "text": str(first),
        "name": first.name,
        "node": first.node,
        "iterations": [{"loop": loop, "iteration": at} for loop, at in first.iterations],
        "before": first.before,
        "around": {
            label: [asdict(neighbour) for neighbour in neighbours]
            for label, neighbours in report.diagnosis.around.items()
        },
    }


def _described(value: Any) -> Any:
    """Type, shape, range and first elements of an input. A sequence has them for each element."""
    if value is None:
        return None
    if isinstance(value, list):
        return [_described(item) for item in value]
    array = np.asarray(value)
    found: Json = {"type": str(array.dtype), "shape": list(array.shape)}
    if array.dtype.kind in "biuf" and array.size:
        numbers = array.astype(np.float64)
        found |= {"lowest": numbers.min(), "highest": numbers.max(), "mean": numbers.mean()}
    return {**found, "first": array.reshape(-1)[:_FIRST].tolist()}


def _plain(value: Any) -> Any:
    """The value as JSON can hold it."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, bool | int | float | str | None) else str(value)
