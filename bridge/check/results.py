"""Compares the outputs of all versions with the outputs of the original, for all inputs.

A difference with empty or extreme inputs alone is a note, and their branches are forced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bridge.check.aside import is_empty, why_aside
from bridge.check.bench import Bench
from bridge.check.compare import Difference
from bridge.check.engines import EngineError, Session, UndefinedCallError
from bridge.check.excused import Row, SharedOriginal, without_excused
from bridge.check.lines import shortened
from bridge.check.outputs import Results
from bridge.check.report import OutputResult
from bridge.check.versions import Sessions, note_way_back, note_workarounds, twin_of
from bridge.errors import amount

GIVEN = "original, held to the outputs that were given"
"""The label of the original, compared with outputs that a user gave."""


@dataclass
class Compared:
    """The results of all versions.

    `wanted` are the original's outputs for each input. `aside` says why an input is set aside, ""
    if its differences count. `rows` are those of each version, excused or not. `bad` says what is
    wrong with inputs, `failed` has the versions that fail, each with the first input."""

    wanted: Sequence[Results]
    aside: list[str]
    rows: dict[str, list[Row]] = field(default_factory=dict)
    worst: dict[tuple[str, str], OutputResult] = field(default_factory=dict)
    bad: dict[int, str] = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)


def compare_versions(
    bench: Bench, sessions: Sessions, wanted: Sequence[Results], chosen: frozenset[str]
) -> Compared:
    """Fills the report with the results. `wanted` has what the original gives for each input,
    `chosen` are the inputs whose numbers a user chose."""
    report = bench.report
    (_, original), *others = sessions
    aside = [
        _broken_rank(original, results)
        or ("" if recipe.is_own or place in report.row else why_aside(feed, chosen))
        for place, (recipe, feed, results) in enumerate(
            zip(report.recipes, report.feeds, wanted, strict=True)
        )
    ]
    compared = Compared(wanted, [""] * len(aside) if all(aside) else aside)
    found: dict[str, list[Row]] = {}
    shared = SharedOriginal(bench)
    for label, session in others:
        bench.tell(f"comparing {label}")
        rows = compared.rows[label] = _rows(bench, original, session, compared)
        if _are_bad(rows) and (twin := twin_of(bench, label)):
            again = _rows(bench, original, twin, compared)
            if not _are_bad(again):
                rows = again
                note_workarounds(bench, label, "is wrong")
        found[label] = without_excused(shared, label, rows, compared.aside)
    is_ir = report.versions[0].path.suffix.lower() == ".xml"
    for sample in _out_of_range(found) if is_ir else ():
        compared.aside[sample] = compared.aside[sample] or (
            "an input with indices that are out of range, for which OpenVINO gives 0"
        )
    found[GIVEN] = _given_rows(bench, original, wanted)
    for label, rows in found.items():
        _record(bench, compared, label, rows)
    report.results = list(compared.worst.values())
    return compared


def _rows(bench: Bench, original: Session, session: Session, compared: Compared) -> list[Row]:
    """How a version's outputs compare, by the number of the input and the name of the output.
    If the version fails with an input, its row has the error."""
    rows: list[Row] = []
    feeds, comparison = bench.report.feeds, bench.comparison
    places = range(len(feeds))
    kept = [place for place in places if not compared.aside[place]]
    # Last are the inputs that are set aside: some end the engine, or spoil the session.
    for some in filter(None, (kept, [place for place in places if place not in kept])):
        found = session.run_each([comparison.renamed(feeds[place], session) for place in some])
        for place, actual in zip(some, found, strict=True):
            if isinstance(actual, UndefinedCallError):
                continue
            if isinstance(actual, EngineError):
                rows.append((place, "", actual))
                continue
            expected = compared.wanted[place]
            judged = comparison.judged(original, session, feeds[place], expected, actual)
            rows += [(place, output, difference) for output, difference in judged]
    return rows


def _given_rows(bench: Bench, original: Session, wanted: Sequence[Results]) -> list[Row]:
    """How the original's outputs compare with the outputs that the user gave with an input."""
    rows: list[Row] = []
    for sample, recipe in enumerate(bench.report.recipes):
        for name, value in (recipe.own.outputs if recipe.own else {}).items():
            ports = (p.name for p in original.outputs if name in {p.name, *p.aliases})
            known = next(ports, "")
            if recipe.is_own and known and known not in bench.comparison.random:
                difference = bench.comparison.compared(known, value, wanted[sample][known])
                rows.append((sample, known, difference))
    return rows


def _record(bench: Bench, compared: Compared, label: str, rows: Sequence[Row]) -> None:
    """Records how a version compares, with the worst input for each output."""
    report = bench.report
    for sample, output, difference in rows:
        aside = compared.aside[sample]
        if isinstance(difference, EngineError):
            why = shortened(str(difference), 500)
            what = f"fails ({why})"
        else:
            what = "" if difference.ok else f"differs in '{output}' ({difference})"
        if aside and what:
            report.aside.add(sample)
            note = (
                f"with input {sample} ({report.recipes[sample]}), which is {aside}, {label} "
                f"{what}; that counts only where there are no other inputs"
            )
            if isinstance(difference, EngineError) and is_empty(report.feeds[sample]):
                report.asides.append(note)
            else:
                report.note(note)
        elif isinstance(difference, EngineError):
            report.failures.append(f"{label}, input {sample}: {why}")
            compared.bad.setdefault(sample, "fails")
            compared.failed.setdefault(label, sample)
            note_way_back(bench, report.path(label))
        else:
            if not difference.ok:
                report.wrong.add(sample)
                compared.bad[sample] = "differs"
            known = compared.worst.get((label, output))
            if known is None or _badness(difference) > _badness(known.worst):
                compared.worst[label, output] = OutputResult(label, output, difference, sample)


def call_in_a_row(bench: Bench, sessions: Sessions, compared: Compared) -> None:
    """Compares stateful versions with the original in calls in a row. The versions keep the states
    between calls, and the original is fed these states. A version that is wrong is a failure."""
    report, comparison, original = bench.report, bench.comparison, sessions[0][1]
    row = report.row
    for label, session in sessions if row and report.wrong.isdisjoint(row) else ():
        if not session.has_states:
            continue
        bench.tell(f"calling {label} in a row")
        try:
            found = session.run_row([comparison.renamed(report.feeds[p], session) for p in row])
        except EngineError as error:
            report.failures.append(
                f"{label}, {amount(len(row), 'call')} in a row: {shortened(str(error), 500)}"
            )
            continue
        wrong = (
            f"{label}, call {number} of {len(row)} in a row (input {place}): '{name}' is "
            f"{difference}; it is right where the states are set before the call"
            for number, (place, results) in enumerate(zip(row, found, strict=True), 1)
            for name, difference in comparison.differences(
                compared.wanted[place], comparison.aligned(original, session, results)
            )
            if not difference.ok and name not in comparison.random
        )
        report.failures += [*wrong][:1]


def doubt_branches(bench: Bench, compared: Compared) -> None:
    """Marks branches that only empty or extreme inputs take, so that they are forced with other
    inputs. If the versions differ there, the branch counts as not reached."""
    report = bench.report
    for branch in list(report.reached):
        takers = {place for place, taken in enumerate(report.taken) if branch in taken}
        if takers and all(compared.aside[place] for place in takers):
            report.doubtful.add(branch)
        if takers and takers <= report.aside:
            number = report.reached.pop(branch)
            report.unreachable[branch] = (
                f"input {number} alone takes it, which is {compared.aside[number]} and differs"
            )


def _broken_rank(original: Session, results: Results) -> str:
    """Names an output whose rank the original declares wrongly, "" if there is none. A conversion
    relies on the declared rank."""
    for port in original.outputs:
        value = results[port.name]
        if isinstance(value, np.ndarray) and port.shape and value.ndim != len(port.shape):
            return (
                f"an input for which the original gives '{port.name}' the rank {value.ndim}, not "
                f"{len(port.shape)}, which it declares"
            )
    return ""


def _out_of_range(found: Mapping[str, Sequence[Row]]) -> set[int]:
    """The inputs with an index of a Gather that onnxruntime refuses, if a version in OpenVINO
    agrees with the original."""
    refused, good, bad = set[int](), set[int](), set[int]()
    for sample, _, result in (row for rows in found.values() for row in rows):
        if not isinstance(result, EngineError):
            (good if result.ok else bad).add(sample)
        elif "indices element out of data bounds" in str(result):
            refused.add(sample)
    return (refused & good) - bad


def _are_bad(rows: Sequence[Row]) -> bool:
    return any(isinstance(found, EngineError) or not found.ok for _, _, found in rows)


def _badness(difference: Difference) -> tuple[bool, bool, bool, int, float]:
    ok, problem, random = difference.ok, bool(difference.problem), difference.random
    return (not ok, problem, random, difference.wrong, difference.absolute)
