"""`python -m tests.planted --seed N --count 200`: plants faults and tabulates what a check finds.

--only K       the pair of one number
-k TEXT        models or kinds of faults with this in their name
--folder DIR   keeps the pairs there; the ones that are there already are not made anew
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.planted.faults import KINDS
from tests.planted.judge import OUTCOMES, make_quietly, outcome
from tests.planted.pairs import Pair


class _Worker:
    """Calls functions in another process, which a planted fault may end, or keep from ending."""

    def __init__(self) -> None:
        self.pool = self._new()

    def _new(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, get_context("spawn"))

    def call(self, function: Any, *arguments: Any, seconds: float = 600) -> Any:
        """What the function returns; None if its process ended, or had to be ended."""
        future: Future[Any] = self.pool.submit(function, *arguments)
        try:
            return future.result(seconds)
        except (BrokenProcessPool, TimeoutError):
            for process in self.pool._processes.values():  # `kill_workers`, from Python 3.14 on
                process.kill()
            self.pool = self._new()
            return None


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.planted", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", type=int)
    parser.add_argument("-k", default="", metavar="TEXT")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--quick", action="store_true", help="with the quick check")
    parser.add_argument("--make", action="store_true", help="makes the pairs alone")
    options = parser.parse_args()
    worker, counts, lines = _Worker(), Counter[tuple[str, str]](), []
    with tempfile.TemporaryDirectory() as scratch:
        root = options.folder or Path(scratch) / "pairs"
        numbers = range(options.first, options.count) if options.only is None else [options.only]
        for number in numbers:
            kind = list(KINDS)[number % len(KINDS)]
            text = "" if options.k in kind else options.k
            folder = root / f"{options.seed}-{number}"
            if not (folder / "fault.json").exists():
                worker.call(make_quietly, number, options.seed, folder, text)
            if options.make or not (folder / "fault.json").exists():
                continue
            began = time.monotonic()
            found = worker.call(outcome, folder, options.quick) or ("fails", "the process ended")
            seconds = time.monotonic() - began
            pair = _described(folder)
            counts[kind, found[0]] += 1
            print(f"{found[0]:9} {number:4} {seconds:5.1f} s  {pair}: {found[1]}", flush=True)
            if found[0] in ("missed", "fails"):
                lines.append(f"--seed {options.seed} --only {number}: {found[0]}: {pair}")
    _table(counts)
    print(*(f"python -m tests.planted {line}" for line in lines), sep="\n")


def _described(folder: Path) -> str:
    one = Pair.load(folder)
    return f"{one.kind}, {one.model}, {one.written}: {one.fault}; {one.shown}"


def _table(counts: Counter[tuple[str, str]]) -> None:
    print(f"\n| fault | {' | '.join(OUTCOMES)} |\n|{' --- |' * (len(OUTCOMES) + 1)}")
    for kind in KINDS:
        if any(counts[kind, one] for one in OUTCOMES):
            print(f"| {kind} | {' | '.join(str(counts[kind, one]) for one in OUTCOMES)} |")
    totals = [sum(counts[kind, one] for kind in KINDS) for one in OUTCOMES]
    print(f"| all | {' | '.join(map(str, totals))} |")


if __name__ == "__main__":
    main()
