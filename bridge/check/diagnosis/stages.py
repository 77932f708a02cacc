"""Which pass or quirk changes a number: the graph after each is written as plain ONNX and run.

A conversion asks for it with `debug="run"`, and `check` where a conversion is at fault. What cannot
be written or run as ONNX between two passes, as a graph half way, is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from bridge.check.compare import Difference, compare, tolerance
from bridge.check.diagnosis.aligned import Aligned, Results
from bridge.check.diagnosis.walk import first_wrong
from bridge.check.files import read
from bridge.check.inputs import make_inputs
from bridge.check.loading import load
from bridge.errors import BridgeError, amount
from bridge.files.atomic_write import scratch_folder
from bridge.library.opsets import in_some_opset, onnx_target
from bridge.limits import Limits, limited
from bridge.neutral.builder import Target
from bridge.neutral.clone import clone_model
from bridge.neutral.graph import Model, names_of_outputs
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


def _compared(expected: Results, actual: Results) -> Mapping[str, Difference]:
    return {
        name: compare(value, actual[name], tolerance(value, 1e-3), 1e-5)
        for name, value in expected.items()
    }


class Watcher:
    """Is called after each pass of a conversion with the model as it is then, and runs it with
    inputs that are drawn for it. `found` is the first stage after which an output differs from that
    of the model as it was read, `count` is how many there were. `skipped` are those after which it
    did not run."""

    def __init__(self, folder: Path) -> None:
        self.found: Stage | None = None
        self.skipped: list[str] = []
        self.count = 0
        self._runner = _Runner(folder)
        self._expected: Results | None = None
        self._random: set[str] = set()

    def __call__(self, model: Model, stage: str) -> None:
        """Runs the model after a stage."""
        if self.found is not None:
            return
        self.count += 1
        results = self._runner.run(model)
        if results is None:
            self.skipped.append(stage)
        elif self._expected is None:
            self._expected, again = results, self._runner.run(model, anew=True) or {}
            differences = _compared(results, again) if again else {}
            self._random = {name for name, how in differences.items() if not how.ok}
        else:
            found = _compared(self._expected, results)
            wrong = {n: how for n, how in found.items() if n not in self._random and not how.ok}
            self.found = Stage.of(stage, wrong) if wrong else None

    def lines(self) -> list[str]:
        """The text for a report of the conversion."""
        if self.found is not None:
            advice = f"; {self.found.advice}" if self.found.advice else ""
            return [f"the conversion is wrong: {self.found}{advice}"]
        steps = amount(self.count, "pass or quirk", "passes and quirks")
        seen = f"no number differs after any of {steps}"
        skipped = ", ".join(dict.fromkeys(self.skipped))
        return [f"{seen}; could not be run after {skipped}" if skipped else seen]


class _Runner:
    """Runs models as they are between two passes, under the names that the first of them has.
    Inputs are drawn for that if there are none."""

    def __init__(self, folder: Path, feed: Results | None = None) -> None:
        self._folder, self._feed = folder, feed
        self._names: Sequence[str] = ()
        self._last: tuple[bytes, Results | None] = b"", None

    def run(self, model: Model, anew: bool = False) -> Results | None:
        """The outputs; None where it cannot be run. What was run last is run again if `anew`."""
        try:
            written = plain_onnx(model).SerializeToString(deterministic=True)
            if written != self._last[0] or anew:
                path = self._folder / "stage.onnx"
                path.write_bytes(written)
                if self._feed is None:
                    self._feed = make_inputs(model)
                self._names = self._names or names_of_outputs(model.graph)
                session = Aligned(load(path)[0], self._names)
                self._last = written, session.run(self._feed)
            return self._last[1]
        except Exception:  # what stands between two passes need not be a model
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


def first_wrong_stage(
    source: Path,
    suffix: str,
    feed: Results,
    differences: Differences,
    expected: Results,
    actual: Results | None = None,
) -> Stage | None:
    """The first stage of a conversion after which the outputs are `actual` and not those that are
    `expected`; without `actual`, after which they are not those. None where there is none.

    It is sought by halves: a number that is wrong stays wrong. A graph that gives neither shows
    nothing, and neither does one that is wrong as it was read: the engine may be."""
    stages: list[tuple[Model, str]] = []
    model = clone_model(read(source))
    target = Target("ir") if suffix == ".xml" else onnx_target(model, None)
    keep = Context(
        target, Report(), watch=lambda one, stage: stages.append((clone_model(one), stage))
    )
    with limited(_UNLIMITED), np.errstate(all="ignore"), suppress(BridgeError):
        prepare(model, keep)
    found = dict[int, Mapping[str, Difference]]()

    def agree(one: Results, other: Results) -> bool:
        return all(how.ok for how in differences(one, other).values())

    with scratch_folder() as folder:
        runner = _Runner(folder, feed)

        def judge(places: list[int]) -> Mapping[int, bool]:
            (place,) = places
            results = runner.run(stages[place][0])
            if results is None or results.keys() != expected.keys():
                return {}
            if agree(expected, results):
                return {place: False}
            found[place] = differences(expected, results)
            return {place: True} if actual is None or agree(actual, results) else {}

        place = first_wrong(range(len(stages)), judge)
    return None if not place else Stage.of(stages[place][1], found[place])
