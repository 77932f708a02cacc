"""Which pass or quirk changes a number: the graph after each is written as plain ONNX and run.

A conversion asks for it with `debug="run"`, and `check` where a conversion is at fault. What cannot
be written or run as ONNX between two passes, as a graph half way, is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from bridge.check.files import read
from bridge.check.inputs import make_inputs
from bridge.check.loading import load
from bridge.check.outputs import Comparison, Results
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

SIMPLIFYING = {
    "drop_idle_loops", "fold", "fuse_ir", "fuse_onnx", "never_end", "undo_quirks", "work_round",
}  # fmt: skip
"""Passes towards ONNX that may hide what another pass did."""

AVOIDED_BY: Mapping[str, str] = {
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

    def __str__(self) -> str:
        return f'after {self.name}, the output "{self.output}" differs: {self.difference}'


class Watcher:
    """Is called after each pass with the model as it is then, and runs it. `found` is the first
    stage after which an output differs from that of the model as it was read, `count` is how many
    there were.

    Without a `feed`, inputs are drawn for the model. `skipped` are the stages that did not run.
    Outputs that differ are right if `is_noise` says so.
    """

    def __init__(
        self,
        folder: Path,
        feed: Results | None = None,
        comparison: Comparison | None = None,
        is_noise: Callable[[Results], bool] = lambda results: False,
    ) -> None:
        self.found: Stage | None = None
        self.skipped: list[str] = []
        self.count = 0
        self._folder = folder
        self._feed = feed
        self._expected: Results | None = None
        self._random: set[str] = set()
        self._last = b""
        self._is_noise = is_noise
        self._comparison = comparison or Comparison(1e-3, 1e-5, lambda note: None)

    def __call__(self, model: Model, stage: str) -> None:
        """Runs the model after a stage."""
        if self.found is None:
            self.runs(model, stage)

    def runs(self, model: Model, stage: str) -> bool:
        """Runs the model after a stage. Says whether it can be run and compared."""
        self.count += 1
        try:
            written = plain_onnx(model).SerializeToString(deterministic=True)
            results = self._expected if written == self._last else self._run(model, written)
        except Exception:  # what stands between two passes need not be a model
            self.skipped.append(stage)
            return False
        self._last = written
        if self._expected is None:
            self._expected = results
        elif results is not None:
            return self._compare(stage, results)
        return True

    def lines(self) -> list[str]:
        """The text for a report of the conversion."""
        if self.found is not None:
            advice = f"; {self.found.advice}" if self.found.advice else ""
            return [f"the conversion is wrong: {self.found}{advice}"]
        steps = amount(self.count, "pass or quirk", "passes and quirks")
        seen = f"no number differs after any of {steps}"
        skipped = ", ".join(dict.fromkeys(self.skipped))
        return [f"{seen}; could not be run after {skipped}" if skipped else seen]

    def _compare(self, stage: str, results: Results) -> bool:
        assert self._expected is not None
        if results.keys() != self._expected.keys():
            self.skipped.append(stage)
            return False
        for name, difference in self._comparison.differences(self._expected, results):
            is_wrong = not difference.ok and name not in self._random
            if is_wrong and not self._is_noise({name: results[name]}):
                advice = AVOIDED_BY.get(stage, "")
                if stage.startswith("the quirk "):
                    advice = "convert with --device ANY"
                self.found = Stage(stage, name, str(difference), advice)
                break
        return True

    def _run(self, model: Model, written: bytes) -> Results:
        path = self._folder / "stage.onnx"
        path.write_bytes(written)
        session, _ = load(path)
        if self._feed is None:
            self._feed = make_inputs(model)
        feed = self._comparison.renamed(self._feed, session)
        results = session.run(feed)
        if self._expected is None:
            again = self._comparison.differences(results, session.run(feed))
            self._random = {name for name, difference in again if not difference.ok}
        return results


def plain_onnx(model: Model) -> onnx.ModelProto:
    """A model as it is between two passes, as ONNX: nothing is simplified, and what quirks wrote
    stays. Raises UnsupportedError where ONNX cannot say it."""

    def attempt(opset: int | None) -> onnx.ModelProto:
        copy = clone_model(model)
        copy.format = "ir"  # What is for ONNX models alone has been done, or is not wanted.
        context = Context(onnx_target(copy, opset), Report())
        for step in TO_ONNX:
            if step.name not in SIMPLIFYING and step.when(copy, context):
                step.run(copy, context)
        return to_proto(copy, context.target)

    with limited(_UNLIMITED), strictly(False), np.errstate(all="ignore"):
        return in_some_opset(attempt, None)


def first_wrong_stage(
    source: Path,
    suffix: str,
    comparison: Comparison,
    feed: Results,
    is_noise: Callable[[Results], bool] = lambda results: False,
) -> Stage | None:
    """The first stage of a conversion after which an output differs, None where there is none. It
    is sought by halves: a number that is wrong stays wrong. See `Watcher` for `is_noise`."""
    stages: list[tuple[Model, str]] = []
    model = clone_model(read(source))
    target = Target("ir") if suffix == ".xml" else onnx_target(model, None)
    keep = Context(
        target, Report(), watch=lambda one, stage: stages.append((clone_model(one), stage))
    )
    with limited(_UNLIMITED), np.errstate(all="ignore"), suppress(BridgeError):
        prepare(model, keep)
    found: Stage | None = None
    with scratch_folder() as folder:
        watcher = Watcher(folder, feed, comparison, is_noise)
        low, high, middle = -1, len(stages), 0
        while high - low > 1:
            # What stands at a place may not run: then another one does, the later ones first.
            near = [*range(middle, high), *range(middle - 1, low, -1)]
            place = next((one for one in near if watcher.runs(*stages[one])), None)
            if place is None:
                break
            if watcher.found is None:
                low = place
            else:
                found, watcher.found, high = watcher.found, None, place
            middle = high - 1 if low == 0 and found is None else (low + high) // 2
    return found
