"""Many models at once: each in another process, so that one that is broken stops no other.

A table, JSON and a report for CI (JUnit's XML) say at the end what came of each.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Annotated, Any

import typer

from bridge.cli.models import Job
from bridge.cli.output import (
    DEFECT,
    SHORTAGE,
    echo,
    is_shortage,
    printable,
    progress,
    report_as_json,
    report_error,
    table,
    write_text,
)
from bridge.errors import BridgeError, InvalidModelError, LimitError, UnsupportedError
from bridge.release import release

Json = dict[str, Any]

FORMAT = 1
"""The version of the JSON about many models."""

Jobs = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Models to work on at once, where there are many."),
]
Junit = Annotated[
    Path | None,
    typer.Option(metavar="FILE.xml", help="Write a report about each model as CI reads it."),
]
Cache = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Keep verdicts here, and take them from here where neither the model nor Bridge, its "
        "engines and the options have changed.",
    ),
]


@dataclass(frozen=True)
class Outcome:
    """What came of a model: a `verdict` in a word, `text` to read, and the `report` as JSON."""

    model: str
    other: str | None
    verdict: str
    text: str
    report: Json | None = None
    seconds: float = 0.0
    cached: bool = False

    @property
    def good(self) -> bool:
        """Whether there is nothing to do about the model."""
        return self.verdict in ("equal", "converted")

    @property
    def line(self) -> str:
        """The text in one line."""
        lines = self.text.splitlines() or [""]
        branches = [line for line in lines if line.startswith("branches: ")]
        if self.good:
            return (branches or lines)[0]
        if self.report is None:
            return lines[0]
        failures = self.report["failures"]
        return " ".join((failures or [*lines[1:], *lines])[0].split())


Digests = dict[str, str] | None
"""Those of the files that an outcome rests on, where it would be the same again."""

Work = Callable[[Job, Mapping[str, Any]], tuple[Outcome, Digests]]


def check_many(
    jobs: Sequence[Job],
    options: Mapping[str, Any],
    workers: int,
    cache: Path | None,
    junit: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Checks models and prints what came of them. Exits with 1 where one differs, with 2 where one
    could not be checked."""
    from bridge.cli.cache import Cache as Answers

    answers = None if cache is None else Answers(cache, options)
    options = {**options, "keep": cache is not None}
    outcomes = _run(jobs, _checked, options, workers, quiet, answers)
    if junit is not None:
        write_text(junit, as_junit(outcomes))
    _print(outcomes, as_json, quiet)
    _exit(outcomes)


def convert_many(
    jobs: Sequence[Job], options: Mapping[str, Any], workers: int, as_json: bool, quiet: bool
) -> None:
    """Converts models and prints what came of them. Exits with 2 where one could not be."""
    outcomes = _run(jobs, _converted, options, workers, quiet)
    _print(outcomes, as_json, quiet)
    _exit(outcomes)


def _checked(job: Job, options: Mapping[str, Any]) -> tuple[Outcome, Digests]:
    """Checks a model, in another process."""
    from bridge.check import check

    given = dict(options)
    keep = given.pop("keep")
    with _blamed(job) as failed:
        report = check(job.model, job.other, **given)
        data = report.as_json()
        outcome = _outcome(job, data["verdict"], report.summary(), data)
        compared = outcome.verdict in ("equal", "different")
        return outcome, _digests(job, compared) if keep else None
    return _outcome(job, "failed", failed[0]), _digests(job, False)


def _digests(job: Job, compared: bool) -> Digests:
    """See `Digests`. The next run may come to another outcome for models that were not compared,
    but can be read."""
    from bridge.cli.cache import digests, files_of

    models = [path for path in (job.model, job.other) if path is not None]
    try:
        files = files_of(*models)
    except (InvalidModelError, UnsupportedError, LimitError):
        files, compared = set(models), all(map(Path.is_file, models))
    except BridgeError:
        compared = False
    return digests(files) if compared else None


def _converted(job: Job, options: Mapping[str, Any]) -> tuple[Outcome, Digests]:
    """Converts a model, in another process."""
    import bridge

    assert job.other is not None
    with _blamed(job) as failed:
        data = report_as_json(bridge.convert(job.model, job.other, **options))
        return _outcome(job, "converted", "\n".join([*data["pruned"], *data["notes"]]), data), None
    return _outcome(job, "failed", failed[0]), None


def _outcome(job: Job, verdict: str, text: str, report: Json | None = None) -> Outcome:
    other = None if job.other is None else str(job.other)
    return Outcome(str(job.model), other, verdict, text, report)


@contextmanager
def _blamed(job: Job) -> Iterator[list[str]]:
    """Runs a block that returns where it succeeds; where it fails, the list says why."""
    failed: list[str] = []
    try:
        yield failed
    except BridgeError as error:
        failed.append(str(error))
    except Exception as error:
        what = SHORTAGE if is_shortage(error) else f"{type(error).__name__}: {error}\n{DEFECT}"
        failed.append(f"{job.model}: {what}")


def _run(
    jobs: Sequence[Job],
    work: Work,
    options: Mapping[str, Any],
    workers: int,
    quiet: bool,
    answers: Any = None,
) -> list[Outcome]:
    """What comes of all jobs, in their order. Says meanwhile which are done."""
    from bridge.check.isolation import LostProcessError, Worker

    free: SimpleQueue[Worker] = SimpleQueue()

    def run(job: Job) -> Outcome:
        models = [path for path in (job.model, job.other) if path is not None]
        known = None if answers is None else answers.find(*models)
        if known is not None:
            return Outcome(**known)
        began, worker = time.monotonic(), free.get()
        outcome: Outcome
        digests: Digests = None
        try:
            outcome, digests = worker.call(work, job, dict(options))
        except LostProcessError as error:
            outcome = _outcome(job, "failed", f"{job.model}: {error}")
        finally:
            free.put(worker)
        outcome = replace(outcome, seconds=round(time.monotonic() - began, 3))
        if answers is not None and digests is not None:
            answers.keep(asdict(replace(outcome, cached=True)), digests, *models)
        return outcome

    from concurrent.futures import ThreadPoolExecutor, as_completed

    with ExitStack() as stack, progress(f"0 of {len(jobs)} models", quiet) as doing:
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
        echo(json.dumps(as_data(outcomes), indent=2))
    for outcome in outcomes:
        if outcome.verdict == "different" and not as_json:
            echo(outcome.text)
        elif not outcome.good:
            report_error(BridgeError(outcome.text), debug=False)
    if as_json or quiet:
        return
    rows = [
        (o.model, o.verdict, "cached" if o.cached else f"{o.seconds:.1f} s", o.line[:100])
        for o in outcomes
    ]
    table(("model", "verdict", "time", ""), rows)
    counts = Counter(outcome.verdict for outcome in outcomes)
    echo(f"{len(outcomes)} models: " + ", ".join(f"{n} {verdict}" for verdict, n in counts.items()))


def as_data(outcomes: Sequence[Outcome]) -> Json:
    """What came of models, for scripts."""
    models = [asdict(outcome) for outcome in outcomes]
    counts = Counter(outcome.verdict for outcome in outcomes)
    return {"bridge": release(), "format": FORMAT, "counts": dict(counts), "models": models}


def as_junit(outcomes: Sequence[Outcome]) -> str:
    """What came of models, as JUnit's XML: a difference is a failure, all else an error."""
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
        name = printable(outcome.model)
        case = etree.SubElement(
            suite, "testcase", classname="bridge.check", name=name, time=f"{outcome.seconds:.3f}"
        )
        if not outcome.good:
            kind = kinds.get(outcome.verdict, "error")
            found = etree.SubElement(case, kind, message=printable(outcome.line))
            found.text = printable(outcome.text)
    text = etree.tostring(suite, encoding="unicode", pretty_print=True)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}'


def _exit(outcomes: Sequence[Outcome]) -> None:
    if any(outcome.verdict == "different" for outcome in outcomes):
        sys.exit(1)
    if not all(outcome.good for outcome in outcomes):
        sys.exit(2)
