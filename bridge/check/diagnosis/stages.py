"""Which pass or quirk changes a number: the graph after each is written as plain ONNX and run.

A conversion asks for it with `debug="run"`, and `check` where a conversion is at fault. What cannot
be written or run as ONNX between two passes, as a graph half way, is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx

from bridge.check.compare import Difference, Results, Tolerances, differences
from bridge.check.diagnosis.walk import first_wrong
from bridge.check.engines import EngineError, Session
from bridge.check.engines.sessions import open_session
from bridge.check.files import read
from bridge.check.inputs import make_inputs
from bridge.errors import BridgeError, amount
from bridge.files.atomic_write import scratch_folder
from bridge.library.opsets import in_some_opset, onnx_target
from bridge.limits import Limits, limited
from bridge.neutral.builder import Target
from bridge.neutral.clone import clone_model
from bridge.neutral.graph import Model
from bridge.neutral.inference import strictly
from bridge.onnx_format.backend import to_proto
from bridge.passes.context import Context
from bridge.pipeline import TO_ONNX, prepare
from bridge.report import Report

_SIMPLIFYING = {
    "drop_idle_loops", "fold", "fuse_ir", "fuse_onnx", "never_end", "undo_quirks", "work_round",
}  # fmt: skip
"""Passes towards ONNX that may hide what another pass did."""

_AVOIDED_BY: Mapping[str, str] = {
    "compress": "convert without --compress-to-fp16",
    "prune_impossible": "convert with --keep-branches",
    "settle_ranks": "convert with --keep-branches",
    "make_stateful": "convert without --stateful",
}
"""What to do without a pass."""

_UNLIMITED = Limits(sys.maxsize, sys.maxsize, Limits().depth, sys.maxsize)


@dataclass(frozen=True)
class Stage:
    """The first pass or quirk after which an output differs, and how; `advice` is what avoids
    it."""

    name: str
    output: str
    difference: str
    advice: str

    @classmethod
    def of(cls, name: str, found: Mapping[str, Difference]) -> Stage:
        """The stage of this name, after which outputs differ so."""
        output, difference = next(item for item in found.items() if not item[1].ok)
        is_quirk = name.startswith("the quirk ")
        advice = "convert with --device ANY" if is_quirk else _AVOIDED_BY.get(name, "")
        return cls(name, output, str(difference), advice)

    def __str__(self) -> str:
        return f'after {self.name}, the output "{self.output}" differs: {self.difference}'


Differences = Callable[[Results, Results], Mapping[str, Difference]]
"""How outputs compare with those that are expected, which are first."""


class Watcher:
    """Is called after each pass of a conversion with the model as it is then, and keeps it."""

    def __init__(self) -> None:
        self.stages: list[tuple[Model, str]] = []

    def __call__(self, model: Model, stage: str) -> None:
        """Keeps the model after a stage."""
        self.stages.append((clone_model(model), stage))

    def lines(self) -> list[str]:
        """The text for a report of the conversion: whether a number differs after a stage, with
        inputs that are drawn for the model as it was read."""
        with scratch_folder() as folder:
            (model, _), *_ = self.stages
            runner = _Runner(folder, make_inputs(model))
            expected, again = runner.run(model), runner.run(model)
            if expected is None or again is None:
                return ["the model could not be run as it was read, so that nothing was compared"]
            right = [n for n, how in _compared(expected, again).items() if how.ok]
            expected = {name: expected[name] for name in right}
            found = _first_wrong(self.stages, runner, _compared, expected)
        if found is not None:
            advice = f"; {found.advice}" if found.advice else ""
            return [f"the conversion is wrong: {found}{advice}"]
        steps = amount(len(self.stages), "pass or quirk", "passes and quirks")
        seen = f"no number differs after any of {steps}"
        skipped = ", ".join(dict.fromkeys(runner.skipped))
        return [f"{seen}; could not be run after {skipped}" if skipped else seen]


def first_wrong_stage(
    source: Path,
    suffix: str,
    feed: Results,
    differences: Differences,
    like: Session,
    expected: Results,
    actual: Results | None = None,
) -> Stage | None:
    """The first stage of a conversion after which the outputs are `actual` and not those that are
    `expected`, under the names of the session `like`; without `actual`, after which they are not
    those. None where there is none.

    It is sought by halves: a number that is wrong stays wrong. A graph that gives neither shows
    nothing, and neither does one that is wrong as it was read: the engine may be."""
    model, watcher = clone_model(read(source)), Watcher()
    target = Target("ir") if suffix == ".xml" else onnx_target(model, None)
    with limited(_UNLIMITED), np.errstate(all="ignore"), suppress(BridgeError):
        prepare(model, Context(target, Report(), watch=watcher))
    with scratch_folder() as folder:
        runner = _Runner(folder, feed, like)
        return _first_wrong(watcher.stages, runner, differences, expected, actual)


def _first_wrong(
    stages: Sequence[tuple[Model, str]],
    runner: _Runner,
    differences: Differences,
    expected: Results,
    actual: Results | None = None,
) -> Stage | None:
    found = dict[int, Mapping[str, Difference]]()

    def judge(places: list[int]) -> Mapping[int, bool]:
        (place,) = places
        results = runner.run(*stages[place])
        if results is None:
            return {}
        found[place] = differences(expected, results)
        if all(how.ok for how in found[place].values()):
            return {place: False}
        is_it = actual is None or all(how.ok for how in differences(actual, results).values())
        return {place: True} if is_it else {}

    place = first_wrong(range(len(stages)), judge)
    return Stage.of(stages[place][1], found[place]) if place else None


def _compared(expected: Results, actual: Results) -> Mapping[str, Difference]:
    return differences(expected, actual, Tolerances())


@dataclass
class _Runner:
    """Runs models as they are between two passes, under the names of the session `like`, or of
    the first of them. `skipped` are the stages after which they do not run."""

    folder: Path
    feed: Results
    like: Session | None = None
    skipped: list[str] = field(default_factory=list)

    def run(self, model: Model, stage: str = "") -> Results | None:
        """The outputs; None where it cannot be run."""
        try:
            path = self.folder / "stage.onnx"
            onnx.save(plain_onnx(model), path)
            session = open_session(path, like=self.like)
            self.like = self.like or session
            if session.missing:
                raise EngineError("outputs are missing")
            return session.run(self.feed)
        except Exception:  # what stands between two passes need not be a model
            self.skipped.append(stage)
            return None


def plain_onnx(model: Model) -> onnx.ModelProto:
    """A model as it is between two passes, as ONNX: nothing is simplified, and what quirks wrote
    stays. Raises UnsupportedError where ONNX cannot say it."""

    def attempt(opset: int | None) -> onnx.ModelProto:
        copy = clone_model(model)
        copy.format = "ir"  # What is for ONNX models alone has been done, or is not wanted.
        context = Context(onnx_target(copy, opset), Report())
        for step in TO_ONNX:
            if step.name not in _SIMPLIFYING and step.when(copy, context):
                step.run(copy, context)
        return to_proto(copy, context.target)

    with limited(_UNLIMITED), strictly(False), np.errstate(all="ignore"):
        return in_some_opset(attempt, None)
