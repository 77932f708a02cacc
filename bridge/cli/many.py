"""Many models at once, each in a separate process, so that a broken model stops no other.

A table, JSON and a report for CI (JUnit's XML) have the result of each model.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from bridge.cli.folder import INDEX, write_folder, write_page
from bridge.cli.models import Job
from bridge.cli.outcome import Outcome
from bridge.cli.output import (
    document,
    echo,
    echo_json,
    progress,
    report_as_json,
    report_error,
    spoken,
    table,
    told,
    write_text,
)
from bridge.errors import BridgeError, amount, printable, text_of
from bridge.options.spoken import as_options
from bridge.records.entry import Json
from bridge.show.folder import counts_of

FORMAT = 1
"""The version of the JSON about many models."""

if TYPE_CHECKING:
    from bridge.check.isolation import Worker
    from bridge.cli.cache import Cache

Work = Callable[[Job, Mapping[str, Any]], Outcome]


def check_many(
    jobs: Sequence[Job],
    options: Mapping[str, Any],
    workers: int,
    cache: Path | None,
    junit: Path | None,
    folder: Path | None,
    part: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Checks models, writes the reports and prints the results. Exits with 1 if a model differs,
    with 2 if a model could not be checked."""
    from bridge.cli.cache import Cache

    answers = None if cache is None else Cache(cache, options)
    outcomes = _run(jobs, _checked, options, workers, quiet, answers, folder)
    if junit is not None:
        write_text(junit, as_junit(outcomes, part))
    if folder is not None:
        write_folder(folder, outcomes)
    _print(outcomes, as_json, quiet)
    if folder is not None and not (as_json or quiet):
        echo(f"wrote {folder / INDEX}")
    _exit(outcomes)


def convert_many(
    jobs: Sequence[Job], options: Mapping[str, Any], workers: int, as_json: bool, quiet: bool
) -> None:
    """Converts models and prints the results. Exits with 2 if one could not be converted."""
    outcomes = _run(jobs, _converted, options, workers, quiet)
    _print(outcomes, as_json, quiet)
    _exit(outcomes)


def _checked(job: Job, options: Mapping[str, Any]) -> Outcome:
    from bridge.check import check

    report = check(job.model, job.other, **options)
    data = report.as_json()
    return _outcome(job, data["verdict"], report.summary(), data)


def _converted(job: Job, options: Mapping[str, Any]) -> Outcome:
    import bridge

    assert job.other is not None
    job.other.parent.mkdir(parents=True, exist_ok=True)
    report = bridge.convert(job.model, job.other, **options)
    return _outcome(job, "converted", text_of(report.short_lines("--json")), report_as_json(report))


def _tried(work: Work, job: Job, options: Mapping[str, Any]) -> Outcome:
    """Works on a model, in another process. An error is an outcome too."""
    try:
        return work(job, options)
    except BridgeError as error:
        text, model = str(told(error)), printable(str(job.model))
        return _outcome(job, "failed", text if model in text else f"{model}: {text}")
    except Exception as error:
        return _outcome(job, "failed", f"{printable(str(job.model))}: {told(error)}")


def _outcome(job: Job, verdict: str, text: str, report: Json | None = None) -> Outcome:
    other = None if job.other is None else str(job.other)
    return Outcome(str(job.model), other, verdict, as_options(text), spoken(report))


def _run(
    jobs: Sequence[Job],
    work: Work,
    options: Mapping[str, Any],
    workers: int,
    quiet: bool,
    answers: Cache | None = None,
    folder: Path | None = None,
) -> list[Outcome]:
    """The results of all jobs, in their order. Prints progress meanwhile. Pages of the models go
    into a `folder`."""
    from bridge.check.isolation import LostProcessError, Worker

    free: SimpleQueue[Worker] = SimpleQueue()

    def run(job: Job) -> Outcome:
        outcome = answer(job)
        if folder is not None and outcome.report is not None:
            with _taken(free) as worker, suppress(LostProcessError):
                worker.call(write_page, folder, outcome)
        return outcome

    def answer(job: Job) -> Outcome:
        models = [path for path in (job.model, job.other) if path is not None]
        key = "" if answers is None else answers.key(*models)
        if answers is not None and (known := answers.find(key, *models)) is not None:
            return known
        began = time.monotonic()
        with _taken(free) as worker:
            try:
                outcome: Outcome = worker.call(_tried, work, job, dict(options))
            except LostProcessError as error:
                outcome = _outcome(job, "failed", f"{printable(str(job.model))}: {error}")
        outcome = replace(outcome, seconds=round(time.monotonic() - began, 3))
        if answers is not None:
            answers.keep(key, outcome, *models)
        return outcome

    from concurrent.futures import ThreadPoolExecutor, as_completed

    with ExitStack() as stack, progress(f"0 of {amount(len(jobs), 'model')}", quiet) as doing:
        for _ in range(min(workers, len(jobs))):
            free.put(stack.enter_context(closing(Worker(daemon=False))))
        pool = stack.enter_context(ThreadPoolExecutor(workers))
        places = {pool.submit(run, job): place for place, job in enumerate(jobs)}
        outcomes: dict[int, Outcome] = {}
        for future in as_completed(places):
            outcome = outcomes[places[future]] = future.result()
            line = f"{len(outcomes)} of {len(jobs)}: {outcome.model}: {outcome.verdict}"
            doing(line)
            if not quiet and not sys.stderr.isatty():
                echo(line, aside=True)
    return [outcomes[place] for place in range(len(jobs))]


@contextmanager
def _taken(free: SimpleQueue[Worker]) -> Iterator[Worker]:
    """A worker that nobody else has meanwhile."""
    worker = free.get()
    try:
        yield worker
    finally:
        free.put(worker)


def _print(outcomes: Sequence[Outcome], as_json: bool, quiet: bool) -> None:
    if as_json:
        echo_json(as_data(outcomes))
    for outcome in outcomes:
        if outcome.verdict == "different" and not as_json:
            echo(*outcome.text.split("\n"))
        elif not outcome.good:
            report_error(BridgeError(*outcome.text.split("\n")), debug=False)
    if as_json or quiet:
        return
    table(("model", "verdict", "time", ""), [outcome.row for outcome in outcomes])
    echo(counts_of([outcome.verdict for outcome in outcomes]))


def as_data(outcomes: Sequence[Outcome]) -> Json:
    """The results of models, for scripts."""
    models = [asdict(outcome) for outcome in outcomes]
    counts = Counter(outcome.verdict for outcome in outcomes)
    return document(FORMAT, counts=dict(counts), models=models)


def as_junit(outcomes: Sequence[Outcome], part: str | None = None) -> str:
    """The results of models, as JUnit's XML: a difference is a failure, all else an error. The
    suites of several parts have different names, so that a reader takes them all."""
    from lxml import etree

    kinds = {"different": "failure"}
    bad = Counter(kinds.get(o.verdict, "error") for o in outcomes if not o.good)
    suite = etree.Element(
        "testsuite",
        name=f"bridge check {part}" if part else "bridge check",
        tests=str(len(outcomes)),
        failures=str(bad["failure"]),
        errors=str(bad["error"]),
        time=f"{sum(outcome.seconds for outcome in outcomes):.3f}",
    )
    for outcome in outcomes:
        case = etree.SubElement(
            suite, "testcase", classname="bridge.check", name=printable(outcome.model),
            time=f"{outcome.seconds:.3f}",
        )  # fmt: skip
        if not outcome.good:
            kind = kinds.get(outcome.verdict, "error")
            found = etree.SubElement(case, kind, message=printable(outcome.line))
            found.text = text_of(outcome.text.split("\n"))
        elif outcome.report is not None:
            etree.SubElement(case, "system-out").text = printable(outcome.line)
    text = etree.tostring(suite, encoding="unicode", pretty_print=True)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}'


def _exit(outcomes: Sequence[Outcome]) -> None:
    if any(outcome.verdict == "different" for outcome in outcomes):
        sys.exit(1)
    if not all(outcome.good for outcome in outcomes):
        sys.exit(2)
