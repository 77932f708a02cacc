"""A check's report as text."""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from bridge.check.compare import is_real
from bridge.check.diagnosis.neighbours import CONSTANT
from bridge.check.report import CheckReport
from bridge.check.suite import CONVERSION
from bridge.check.surgery.sites import Branch, branch_role
from bridge.check.surgery.situations import CONDITION
from bridge.check.verdict import DIFFERENT, NOISE, RANDOM, UNSHOWN, Comparison
from bridge.errors import amount, shortened
from bridge.show.states import STATES, Standing

_SHOWN = 3  # kinds of refused inputs


def summary(report: CheckReport) -> list[str]:
    """The verdict, and its reasons in a few lines. Only outputs and branches that differ are
    listed."""
    device, branches = report.device, report.branches
    lines = [first_line(report), *_explained(report)]
    lines += [f"  {version.label}: {version.engine}" for version in report.versions]
    lines += [] if device is None else [f"  {device.name}: {device}"]
    for failure in report.failures:
        text = f"  failed: {failure}"
        lines += text.split("\n") if failure.startswith(CONVERSION) else [text]
    lines += [f"  note: {note}" for note in (*report.notes, *report.defaults)]
    lines += _outputs(report)
    for loops, label in ((False, "branches"), (True, "iterations")):
        own = [b for b in branches.all if branches.sites[b[0]].loop == loops]
        lines += [f"{label}: {_counts(report, own)}"] if own else []
        for branch in own:
            state = branches.state(branch)
            if state.state is Standing.DIFFERENT:
                lines.append(f"  {name_of(report, branch)}: {state.text}")
    return lines


def first_line(report: CheckReport) -> str:
    """The verdict, and all that a reader must know before believing it."""
    device = report.device
    meant = "" if device is None else f", {device.title}"
    noise = report.verdict.noise
    word = verdict(report)
    if report.ok and noise is not None:
        word += f" within the original's noise (output {noise.output}, {_percent(noise)})"
    wrong = [one for one in report.verdict.results if not one.ok]
    with_input = ""
    if wrong:
        case = wrong[0].case
        where = report.saved[case] if report.saved else report.inputs.cases[case].recipe
        how = f", {wrong[0].how}" if wrong[0].how else ""
        with_input = f", with input {case} ({where}){how}"
    said = "".join(f"; {one}" for one in (*report.verdict.not_shown, *report.told))
    return f"{word}: {report.source}{meant}{with_input}{_not_shown(report)}{said}"


def verdict(report: CheckReport) -> str:
    """The verdict in a word or two."""
    if report.compared:
        return "OK" if report.ok else "NOT OK"
    return report.unopened or "nothing was compared"


def name_of(report: CheckReport, branch: Branch) -> str:
    """A branch, with the path of its If or Loop."""
    site = report.branches.sites[branch[0]]
    return f"{site.where} / {site.role(branch[1])}"


def _not_shown(report: CheckReport) -> str:
    branches = report.branches
    unknown = branches.not_shown if report.compared and not report.different else []
    counts = []
    for loops, what in ((False, "branches"), (True, "numbers of iterations")):
        every = [index for index, _ in branches.all if branches.sites[index].loop == loops]
        some = [index for index, _ in unknown if branches.sites[index].loop == loops]
        counts += [f"{len(some)} of {len(every)} {what}"] if some else []
    sides = [one for one in report.inputs.situations if one.kind == CONDITION]
    if report.compared and not report.different and (left := {*sides} & {*report.inputs.unmet}):
        counts.append(f"{len(left)} of {len(sides)} sides of conditions")
    said = [f"{' and '.join(counts)} not shown"] if counts else []
    if report.ok and report.wide:
        said.append(f"not for integers beyond 32 bits ({', '.join(report.wide)})")
    return f", but {' and '.join(said)}" if said else ""


def _percent(one: Comparison) -> str:
    found = one.difference
    if (
        found.problem
        or not found.absolute < float("inf")
        or not is_real(np.asarray(found.expected))
    ):
        return "another choice"
    if not found.range:
        return f"off by {found.absolute:.2g} where all of it is 0"
    few = f" at {found.wrong} of {found.size} elements" if 2 * found.wrong < found.size else ""
    return f"{100 * found.of_range:.2g} % of its range{few}"


def _explained(report: CheckReport) -> list[str]:
    """The first value that differs and its place, who is at fault, and what to do next."""
    found = report.diagnosis
    lines = [] if found.first is None else [str(found.first)]
    for label, around in found.around.items():
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
    if found.blame is not None:
        lines.append(f"at fault: {found.blame}")
        lines += [f"next: {found.blame.advice}"] if found.blame.advice else []
    return lines + ([] if found.reduced is None else [f"reduced: {found.reduced}"])


def _named(name: str) -> str:
    return f' "{name}"' if name else ""


_KINDS = {
    CONDITION: ("side of a condition", "sides of conditions"),
    "sides": ("side of a comparison", "sides of comparisons"),
    "close": ("number close to a bound", "numbers close to bounds"),
    "equal": ("equal number", ""), "ranges": ("large number", ""), "windows": ("last window", ""),
    "signs": ("negative number", ""), "ties": ("tie", ""), "sizes": ("size", ""),
    "thresholds": ("threshold", ""),
    "iterations": ("number of iterations", "numbers of iterations"),
}  # fmt: skip
"""What a situation of a kind is called, and several."""


def _situations(report: CheckReport) -> list[str]:
    """How many situations inputs met, and which kinds they did not."""
    inputs = report.inputs
    if not inputs.situations:
        return []
    left = Counter(one.kind for one in inputs.unmet)
    named = {kind: _KINDS.get(kind) or (kind.replace("rows", "row", 1), kind) for kind in left}
    missing = ", ".join(amount(count, *named[kind]) for kind, count in left.most_common())
    total = len(inputs.situations)
    said = f"{total - len(inputs.unmet)} of {amount(total, 'situation')}"
    return [f"{said}; not seen: {missing}" if left else said]


def _outputs(report: CheckReport) -> list[str]:
    if not report.compared:
        return []
    results = report.verdict.results
    wrong = [one for one in results if not one.ok]
    names = {one.output for one in results}
    tolerances = report.tolerances
    allowed = [f"rtol {tolerances.rtol:g}, atol {tolerances.atol:g}"]
    allowed += [f"'{n}': rtol {r:g}, atol {a:g}" for n, (r, a) in tolerances.by_output.items()]
    inputs = report.inputs
    reach = [f"sizes up to {inputs.largest_size}"] if inputs.largest_size else []
    most = max(inputs.most_iterations.values(), default=0)
    reach += [f"up to {amount(most, 'iteration')}"] if most else []
    reach += _situations(report)
    counts = [report.verdict.compared(name) for name in sorted(names)]
    few, many = (f(counts, default=0) for f in (min, max))
    on = amount(many, "input") if few == many else f"{few} to {many} inputs"
    on = f"on {on} ({'; '.join(allowed)})"
    within = [one for one in results if one.state == NOISE]
    lines = [f"outputs: {len(names)} equal {on}; {_worst(results)}"]
    if wrong:
        differ = len({one.output for one in wrong})
        lines = [f"outputs: {differ} of {len(names)} DIFFERENT {on}", *map(_result, wrong)]
    elif within or report.verdict.dark:
        count = len({one.output for one in within})
        said = [f"{count} of {len(names)} within the original's noise"] * bool(count)
        dark = len(report.verdict.dark)
        said += [f"{dark} of {len(names)} not shown"] * bool(dark)
        lines = [f"outputs: {' and '.join(said)}, {on}"]
    lines += map(_result, within)
    lines += [f"reach: {', '.join(reach)}"] if reach else []
    if inputs.row:
        lines.append(f"calls in a row: {len(inputs.row)}, each with the states of the one before")
    return lines


def _worst(results: Sequence[Comparison]) -> str:
    """The largest difference, in percent of the allowed difference."""
    some = [one for one in results if one.state != RANDOM]
    if not any(one.difference.absolute for one in some):
        return "no number differs"
    worst = max(some, key=lambda one: one.difference.share)
    return (
        f"the largest difference is {100 * worst.difference.share:.2g} % of what is allowed "
        f"({worst.label}, '{worst.output}': abs {worst.difference.absolute:.3g})"
    )


def _counts(report: CheckReport, some: Sequence[Branch]) -> str:
    branches = report.branches
    states = {branch: branches.state(branch).state for branch in some}
    counts = Counter(states.values())
    parts = {state: f"{counts[state]} {text}" for state, text in STATES.items() if counts[state]}
    failing = sum(
        branches.fails(branch) for branch, state in states.items() if state is Standing.PRUNED
    )
    if failing:
        parts[Standing.PRUNED] += f" ({failing} of them fail in the model itself)"
    sites = {index for index, _ in some}
    kind = "Loop" if branches.sites[min(sites)].loop else "If"
    total = amount(len(sites), kind)
    if kind == "Loop":
        return f"none, one, several in {total}: {', '.join(parts.values())}"
    return f"{len(states)} in {total}: {', '.join(parts.values())}"


def details(report: CheckReport) -> list[str]:
    """What the summary does not list: outputs, every branch, the inputs, and the refused inputs."""
    results = report.verdict.results
    left = [_result(one) for one in results if one.ok and one.state != NOISE]
    title = "every output:" if len(left) == len(results) else "every other output:"
    lines = [title, *left] if left else []
    sites = report.branches.sites
    lines += ["every branch:"] if sites else []
    for site in sites:
        indent = "  " * (len(site.parents) + 1)
        inside = f"{branch_role(site.parents[-1][1])} / " if site.parents else ""
        kind = "Loop" if site.loop else "If"
        lines.append(f"{indent}{inside}{kind} {site.where.rpartition(f' / {kind} ')[2]}")
        for outcome in site.outcomes:
            state = report.branches.state((site.index, outcome))
            text = "DIFFERENT, see above" if state.state is Standing.DIFFERENT else state.text
            lines.append(f"{indent}  {site.role(outcome)}: {text}")
    cases = report.inputs.cases
    lines += ["situations not seen:"] if report.inputs.unmet else []
    lines += [f"  {one}" for one in report.inputs.unmet]
    lines += ["every input:"] if cases else []
    lines += [f"  {number}: {case.recipe}" for number, case in enumerate(cases)]
    return lines + _refused(report)


def _result(one: Comparison) -> str:
    mark = {
        DIFFERENT: f"DIFFERENT with input {one.case}{f', {one.how}' if one.how else ''}",
        NOISE: f"within the original's noise with input {one.case}, {_percent(one)}",
        UNSHOWN: f"not shown by input {one.case}, {_percent(one)}",
        RANDOM: "random",
    }.get(one.state, "equal")
    return f"  {one.label}, '{one.output}': {mark} ({one.difference})"


def _refused(report: CheckReport) -> list[str]:
    kinds = refusals(report)
    if not kinds:
        return []
    total = sum(kinds.values())
    lines = [
        f"{total} further {'inputs were' if total > 1 else 'input was'} tried that the model "
        "itself does not take:"
    ]
    lines += [f"  {count} x {kind}" for kind, count in kinds.most_common(_SHOWN)]
    rest = sum(count for _, count in kinds.most_common()[_SHOWN:])
    return lines + ([f"  {rest} x other reasons"] if rest else [])


def refusals(report: CheckReport) -> Counter[str]:
    """Counts of the reasons why the model refused inputs. Messages are one kind if only their
    numbers differ."""
    kinds = Counter[str]()
    for message, count in report.inputs.refused.items():
        kinds[shortened(re.sub(r"\d+", "#", message))] += count
    return kinds
