"""A check's report as text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from bridge.check.diagnosis.neighbours import CONSTANT
from bridge.check.lines import shortened
from bridge.check.report import CONVERSION, BranchState, CheckReport, OutputResult
from bridge.check.surgery.sites import Branch, branch_role
from bridge.errors import amount
from bridge.show.states import STATES

_SHOWN = 3  # kinds of refused inputs


def summary(report: CheckReport) -> list[str]:
    """The verdict, and its reasons in a few lines. Only outputs and branches that differ are
    listed."""
    device = report.device
    meant = "" if device is None else f", {device.title}"
    lines = [f"{verdict(report)}: {report.source}{meant}{_doubt(report)}", *_explained(report)]
    lines += [f"  {version.label}: {version.engine}" for version in report.versions]
    lines += [] if device is None else [f"  {device.name}: {device}"]
    for failure in report.failures:
        text = f"  failed: {failure}"
        lines += text.split("\n") if failure.startswith(CONVERSION) else [text]
    lines += [f"  DIFFERENT: {finding}" for finding in report.findings]
    lines += [f"  note: {note}" for note in (*report.notes, *report.as_run)]
    lines += _outputs(report)
    if report.row:
        lines.append(f"calls in a row: {len(report.row)}, each with the states of the one before")
    states = {branch: report.state(branch) for branch in report.branches}
    for loops, label in ((False, "branches"), (True, "iterations")):
        own = {b: state for b, state in states.items() if report.sites[b[0]].loop == loops}
        lines += [f"{label}: {_counts(report, own)}"] if own else []
        for (index, outcome), state in own.items():
            if state.state == "different":
                site = report.sites[index]
                lines.append(f"  {site.where} / {site.role(outcome)}: {state.text}")
    return lines


def _explained(report: CheckReport) -> list[str]:
    """The first value that differs and its place, who is at fault, and what to do next."""
    lines = []
    if report.first is not None:
        lines.append(str(report.first))
    for label, around in report.around.items():
        for near in around:
            if near.place == "itself":
                value = near.attributes.get("value")
                said = f": {value}" if value else ""
                lines.append(f"  in {label}: {near.type}{_named(near.name)}{said}")
        lines += [
            f"    takes the constant{_named(near.name)}: {near.attributes['value']}"
            for near in around
            if near.type == CONSTANT
        ]
    if report.fault is not None:
        lines.append(f"at fault: {report.fault}")
        if report.fault.advice:
            lines.append(f"next: {report.fault.advice}")
    if report.reduced is not None:
        lines.append(f"reduced: {report.reduced}")
    return lines


def _named(name: str) -> str:
    return f' "{name}"' if name else ""


def verdict(report: CheckReport) -> str:
    """The verdict in a word or two."""
    return "OK" if report.ok else "NOT OK" if report.compared else "nothing was compared"


def _outputs(report: CheckReport) -> list[str]:
    if not report.compared:
        return []
    wrong = [result for result in report.results if not result.worst.ok]
    names = {result.output for result in report.results}
    allowed = [f"rtol {report.rtol:g}, atol {report.atol:g}"]
    allowed += [f"'{n}': rtol {r:g}, atol {a:g}" for n, (r, a) in report.tolerances.items()]
    count = len(report.feeds) - len(report.aside)
    on = f"on {amount(count, 'input')} ({'; '.join(allowed)})"
    if wrong:
        differ = len({result.output for result in wrong})
        return [f"outputs: {differ} of {len(names)} DIFFERENT {on}", *map(_result, wrong)]
    return [f"outputs: {len(names)} equal {on}; {_worst(report.results)}"]


def _worst(results: Sequence[OutputResult]) -> str:
    """The largest difference, in percent of the allowed difference."""
    worst = max(results, key=lambda result: result.worst.share)
    if not worst.worst.absolute:
        return "no number differs"
    return (
        f"the largest difference is {100 * worst.worst.share:.2g} % of what is allowed "
        f"({worst.version}, '{worst.output}': abs {worst.worst.absolute:.3g})"
    )


def _doubt(report: CheckReport) -> str:
    """Text after the verdict: the input with which outputs differ, or the branches not shown."""
    wrong = [result for result in report.results if not result.worst.ok]
    if wrong:
        number = wrong[0].sample
        where = report.saved[number] if report.saved else report.recipes[number]
        return f", with input {number} ({where})"
    unknown = [b for b in report.branches if report.state(b).state == "unknown"]
    if not report.compared or not unknown:
        return ""
    counts = []
    for loops, what in ((False, "branches"), (True, "numbers of iterations")):
        every = [index for index, _ in report.branches if report.sites[index].loop == loops]
        some = [index for index, _ in unknown if report.sites[index].loop == loops]
        counts += [f"{len(some)} of {len(every)} {what}"] if some else []
    return f", but {' and '.join(counts)} not shown"


def _counts(report: CheckReport, known: Mapping[Branch, BranchState]) -> str:
    states = {branch: state.state for branch, state in known.items()}
    counts = Counter(states.values())
    parts = {state: f"{counts[state]} {text}" for state, text in STATES.items() if counts[state]}
    failing = sum(report.fails(branch) for branch, state in states.items() if state == "pruned")
    if failing:
        parts["pruned"] += f" ({failing} of them fail in the model itself)"
    some = {index for index, _ in states}
    kind = "Loop" if report.sites[min(some)].loop else "If"
    total = amount(len(some), kind)
    if kind == "Loop":
        return f"none, one, several in {total}: {', '.join(parts.values())}"
    return f"{len(states)} in {total}: {', '.join(parts.values())}"


def details(report: CheckReport) -> list[str]:
    """Every output, every branch, the inputs, and the refused inputs."""
    lines = []
    if report.compared:
        lines += ["every output:", *map(_result, report.results)]
    lines += [f"  note: {note}" for note in report.asides]
    if report.sites:
        lines.append("every branch:")
    for site in report.sites:
        indent = "  " * (len(site.parents) + 1)
        inside = f"{branch_role(site.parents[-1][1])} / " if site.parents else ""
        kind = "Loop" if site.loop else "If"
        lines.append(f"{indent}{inside}{kind} {site.where.rpartition(f' / {kind} ')[2]}")
        for outcome in site.outcomes:
            text = report.state((site.index, outcome)).text
            lines.append(f"{indent}  {site.role(outcome)}: {text}")
    if report.recipes:
        lines.append("every input:")
        lines += [f"  {number}: {recipe}" for number, recipe in enumerate(report.recipes)]
    return lines + _refused(report)


def _result(result: OutputResult) -> str:
    mark = f"DIFFERENT with input {result.sample}"
    if result.worst.ok:
        mark = "random" if result.worst.random else "equal"
    return f"  {result.version}, '{result.output}': {mark} ({result.worst})"


def _refused(report: CheckReport) -> list[str]:
    if not report.refused:
        return []
    kinds = refusals(report)
    lines = [
        f"{sum(kinds.values())} further {'inputs were' if sum(kinds.values()) > 1 else 'input was'}"
        " tried that the model itself does not take:"
    ]
    lines += [f"  {count} x {kind}" for kind, count in kinds.most_common(_SHOWN)]
    rest = sum(count for _, count in kinds.most_common()[_SHOWN:])
    return lines + ([f"  {rest} x other reasons"] if rest else [])


def refusals(report: CheckReport) -> Counter[str]:
    """Counts of the reasons why the model refused inputs. Messages are one kind if only their
    numbers differ."""
    kinds = Counter[str]()
    for message, count in report.refused.items():
        kinds[shortened(re.sub(r"\d+", "#", message))] += count
    return kinds
