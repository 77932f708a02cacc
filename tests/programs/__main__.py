"""`python -m tests.programs`: draws programs, runs them in both formats and engines, makes the
faulty ones small and prints them.

`--splice FOLDER` takes the models of a folder, each whole in a branch, in a Loop and in a Scan.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import onnx

import bridge
import tests.conftest  # noqa: F401 - the same seed draws the same programs
from bridge.check.diagnosis.stages import Watcher
from bridge.neutral.builder import Target
from bridge.passes.context import Context
from bridge.pipeline import prepare
from bridge.report import Report
from tests.programs.drawing import KINDS, Drawn, draw
from tests.programs.reducing import reduced
from tests.programs.saved import FORMS
from tests.programs.splicing import splice
from tests.programs.verdict import Feeds, Verdict, judge

FEEDS = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 1 when a program did not come out right."""
    parser = argparse.ArgumentParser(prog="python -m tests.programs", description=__doc__)
    parser.add_argument("-n", type=int, default=100, help="programs of each seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds, from SEED on")
    parser.add_argument("--kind", choices=list(KINDS), default="if")
    parser.add_argument("--keep", type=Path, help="a folder for the programs that fail")
    parser.add_argument(
        "--debug-run", action="store_true", help="name the pass or quirk that changes a number"
    )
    parser.add_argument("--as-drawn", action="store_true", help="do not make them small")
    parser.add_argument("--splice", type=Path, metavar="FOLDER", help="models to put into bodies")
    parser.add_argument("--every", type=int, default=1, help="each N-th model of that folder")
    parser.add_argument(
        "--saved", choices=list(FORMS), help="their IR saved so by OpenVINO, to ONNX and back"
    )
    options = parser.parse_args(arguments)
    if options.splice:
        return splice(options.splice, options.every)
    total: Counter[str] = Counter()
    for seed in range(options.seed, options.seed + options.seeds):
        counts: Counter[str] = Counter()
        drawn = draw(options.kind, options.n, seed)
        for number, program in enumerate(drawn):
            verdict, feeds = _judge(program, options.saved)
            counts[verdict.kind] += 1
            if verdict.is_failure or (verdict.kind != "right" and options.keep):
                name = f"{options.kind}_{seed}_{number}"
                _show(program, feeds, verdict, name, options)
        total += counts
        print(f"seed {seed}:", _listed(counts), flush=True)
    if options.seeds > 1:
        print("all:", _listed(total))
    return int(any(Verdict(kind).is_failure for kind in total))


def _judge(program: Drawn, form: str | None) -> tuple[Verdict, Feeds]:
    feeds = [program.feed(seed) for seed in range(FEEDS)]
    return judge(program.model, feeds, form=form or getattr(program, "use", None)), feeds


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in counts.most_common())


def _show(
    program: Drawn, feeds: Feeds, verdict: Verdict, name: str, options: argparse.Namespace
) -> None:
    print(f"\n{name}: {verdict.kind}\n{verdict.detail[:1500]}", flush=True)
    model, form = program.model, options.saved or getattr(program, "use", None)
    if form and form is not options.saved:
        print(form, flush=True)
    if not options.as_drawn and verdict.is_failure:
        model = reduced(model, lambda smaller: _fails_alike(smaller, feeds, verdict, form))
    print(onnx.printer.to_text(model), flush=True)
    if options.debug_run:
        print("\n".join(_wrong_stages(model, feeds)), flush=True)
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
        onnx.save(program.model, options.keep / f"{name}.drawn.onnx")
        onnx.save(model, options.keep / f"{name}.onnx")


def _wrong_stages(model: onnx.ModelProto, feeds: Feeds) -> Iterator[str]:
    """For each of the inputs, the first pass or quirk towards IR after which a number differs."""
    watcher = Watcher()
    prepare(bridge.load(model), Context(Target("ir"), Report(), {"debug": watcher}))
    for feed in feeds:
        yield from watcher.lines({item.name: feed[item.name] for item in model.graph.input})


def _fails_alike(model: onnx.ModelProto, feeds: Feeds, verdict: Verdict, form: Any) -> bool:
    kept: Sequence[str] = [value.name for value in model.graph.input]
    found = judge(
        model, [{name: feed[name] for name in kept if name in feed} for feed in feeds], form=form
    )
    return found.symptom == verdict.symptom


if __name__ == "__main__":
    raise SystemExit(main())
