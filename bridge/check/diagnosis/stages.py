"""Which pass or quirk changes a number: the graph after each is written as plain ONNX and run.

A conversion gets a `Watcher` as its `debug`. What cannot be written or run as ONNX between two
passes, as a graph half way, is left out.
"""

import sys
from collections.abc import Mapping

import numpy as np
import onnx

from bridge.check.compare import Difference, Results, Tolerances, differences
from bridge.check.diagnosis.walk import first_wrong
from bridge.check.engines import Session
from bridge.check.engines.sessions import Sessions
from bridge.check.inputs import make_inputs
from bridge.errors import amount
from bridge.files.atomic_write import scratch_folder
from bridge.library.opsets import in_some_opset, onnx_target
from bridge.limits import Limits, limited
from bridge.neutral.clone import clone_model
from bridge.neutral.graph import Model
from bridge.neutral.inference import strictly
from bridge.onnx_format.backend import to_proto
from bridge.passes.context import Context
from bridge.pipeline import TO_ONNX
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


class Watcher:
    """Is called after each pass of a conversion with the model as it is then, and keeps it."""

    def __init__(self) -> None:
        self._stages: list[tuple[Model, str]] = []

    def __call__(self, model: Model, stage: str) -> None:
        """Keeps the model after a stage."""
        self._stages.append((clone_model(model), stage))

    def lines(self, feed: Results | None = None) -> list[str]:
        """The text for a report of the conversion: the first stage after which a number differs,
        with an input, or with one that is drawn for the model as it was read.

        It is sought by halves: a number that is wrong stays wrong."""
        model = self._stages[0][0]
        taken: Results = make_inputs(model) if feed is None else feed
        skipped, like, sessions = dict[str, None](), list[Session](), Sessions()

        def run(model: Model, stage: str = "") -> Results | None:
            """The outputs under the names of the first model; None where it cannot be run."""
            try:
                onnx.save(plain_onnx(model), folder / "stage.onnx")
                first = like[0] if like else None
                like.append(sessions.open(folder / "stage.onnx", first))
                return None if like[-1].missing else like[-1].run(taken)
            except Exception:  # what stands between two passes need not be a model
                skipped[stage] = None
                return None

        with scratch_folder() as folder:
            expected, again = run(model), run(model)
            if expected is None or again is None:
                return ["the model could not be run as it was read, so that nothing was compared"]
            right = {name for name, how in _compared(expected, again).items() if how.ok}
            found = dict[int, Mapping[str, Difference]]()

            def judge(places: list[int]) -> Mapping[int, bool]:
                (place,) = places
                results = run(*self._stages[place])
                if results is None:
                    return {}
                some = _compared(expected, results).items()
                found[place] = {n: how for n, how in some if n in right and not how.ok}
                return {place: bool(found[place])}

            place = first_wrong(range(len(self._stages)), judge)
        if place is not None:
            stage = self._stages[place][1]
            output, difference = next(iter(found[place].items()))
            is_quirk = stage.startswith("the quirk ")
            advice = "convert with --device ANY" if is_quirk else _AVOIDED_BY.get(stage, "")
            said = f'the conversion is wrong: after {stage}, the output "{output}" differs'
            return [f"{said}: {difference}{f'; {advice}' if advice else ''}"]
        steps = amount(len(self._stages), "pass or quirk", "passes and quirks")
        seen = f"no number differs after any of {steps}"
        return [f"{seen}; could not be run after {', '.join(skipped)}" if skipped else seen]


def _compared(expected: Results, actual: Results) -> Mapping[str, Difference]:
    return differences(expected, actual, Tolerances())


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
