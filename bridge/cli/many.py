"""Many models at once, each in a separate process, so that a broken model stops no other.

A table, JSON and a report for CI (JUnit's XML) have the result of each model.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, replace
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from bridge.cli.models import Job
from bridge.cli.outcome import Outcome
from bridge.cli.output import (
    echo,
    echo_json,
    progress,
    report_as_json,
    report_error,
    table,
    told,
    write_text,
)
from bridge.errors import BridgeError, amount, printable, text_of
from bridge.metadata import Json
from bridge.options.spoken import as_options
from bridge.release import release

FORMAT = 1
"""The version of the JSON about many models."""

if TYPE_CHECKING:
    from bridge.cli.cache import Cache

Work = Callable[[Job, Mapping[str, Any]], Outcome]


def check_many(
    jobs: Sequence[Job],
    options: Mapping[str, Any],
    workers: int,
    cache: Path | None,
    junit: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Checks models and prints the results. Exits with 1 if a model differs, with 2 if a model
    could not be checked."""
    from bridge.cli.cache import Cache

    answers = None if cache is None else Cache(cache, options)
    outcomes = _run(jobs, _checked, options, workers, quiet, answers)
    if junit is not None:
        write_text(junit, as_junit(outcomes))
    _print(outcomes, as_json, quiet)
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
    data = report_as_json(bridge.convert(job.model, job.other, **options))
    return _outcome(job, "converted", text_of([*data["pruned"], *data["notes"]]), data)


def _tried(work: Work, job: Job, options: Mapping[str, Any]) -> Outcome:
    """Works on a model, in another process. An error is an outcome too."""
    try:
        return work(job, options)
    except BridgeError as error:
        return _outcome(job, "failed", str(told(error)))
    except Exception as error:
        return _outcome(job, "failed", f"{printable(str(job.model))}: {told(error)}")


def _outcome(job: Job, verdict: str, text: str, report: Json | None = None) -> Outcome:
    other = None if job.other is None else str(job.other)
    return Outcome(str(job.model), other, verdict, as_options(text), report)


def _run(
    jobs: Sequence[Job],
    work: Work,
    options: Mapping[str, Any],
    workers: int,
    quiet: bool,
    answers: Cache | None = None,
) -> list[Outcome]:
    """The results of all jobs, in their order. Prints progress meanwhile."""
    from bridge.check.isolation import LostProcessError, Worker

    free: SimpleQueue[Worker] = SimpleQueue()

    def run(job: Job) -> Outcome:
        models = [path for path in (job.model, job.other) if path is not None]
        key = "" if answers is None else answers.key(*models)
        if answers is not None and (known := answers.find(key, *models)) is not None:
            return known
        began, worker = time.monotonic(), free.get()
        try:
            outcome: Outcome = worker.call(_tried, work, job, dict(options))
        except LostProcessError as error:
            outcome = _outcome(job, "failed", f"{printable(str(job.model))}: {error}")
        finally:
            free.put(worker)
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
    counts = Counter(outcome.verdict for outcome in outcomes)
    said = ", ".join(f"{n} {verdict}" for verdict, n in counts.items())
    echo(f"{amount(len(outcomes), 'model')}: {said or 'nothing to do'}")


def as_data(outcomes: Sequence[Outcome]) -> Json:
    """The results of models, for scripts."""
    models = [asdict(outcome) for outcome in outcomes]
    counts = Counter(outcome.verdict for outcome in outcomes)
    return {"bridge": release(), "format": FORMAT, "counts": dict(counts), "models": models}


def as_junit(outcomes: Sequence[Outcome]) -> str:
    """The results of models, as JUnit's XML: a difference is a failure, all else an error."""
    from lxml import etree

    kinds = {"different": "failure"}
    bad = Counter(kinds.get(o.verdict, "error") for o in outcomes if not o.good)
    suite = etree.Element(
        "testsuite",
        name="bridge check",
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
    text = etree.tostring(suite, encoding="unicode", pretty_print=True)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}'


def _exit(outcomes: Sequence[Outcome]) -> None:
    if any(outcome.verdict == "different" for outcome in outcomes):
        sys.exit(1)
    if not all(outcome.good for outcome in outcomes):
        sys.exit(2)
