"""`python -m tests.operators`: runs the operators' suite, and prints the failures by operator."""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from bridge.check.isolation import Worker
from tests.control_flow.apart import judged
from tests.control_flow.export import write_case
from tests.control_flow.judge import NO_PROGRAM, Verdicts
from tests.control_flow.suite import Entry
from tests.operators.by_schema import refusals
from tests.operators.by_schema.judge import ended_by, judge, placed_case
from tests.operators.by_schema.programs import ROWS, axes_of, entries

Found = Sequence[tuple[Entry, Verdicts]]


def main() -> int:
    """Returns 1 if a program came out wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.operators", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="these programs alone, named as a run prints them"
    )
    parser.add_argument("--strength", type=int, default=2, help="so many levels of axes meet")
    parser.add_argument(
        "--family", action="append", metavar="TEXT",
        help="operators whose names match: `Reduce`, `com.microsoft`, `IR`, `^Slice$`",
    )  # fmt: skip
    parser.add_argument("--every", type=int, default=1, help="every n-th program alone")
    parser.add_argument("--from", dest="first", type=int, default=0, help="from this program on")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--export", type=Path, metavar="DIR", help="writes the programs instead")
    parser.add_argument(
        "--refusals", action="store_true",
        help="keeps the refusals of these operators for `docs/refusals.md`",
    )  # fmt: skip
    options = parser.parse_args()
    chosen = [named(name) for name in options.names] or sampled(
        options.strength, options.family, options.first, options.every
    )
    if options.export is not None:
        print(f"{written(chosen, options.export)} cases in {options.export}")
        return 0
    found, worker = [], Worker()
    for entry, given in judged(judge, chosen, options.jobs):
        verdicts = ended_by(entry, given, worker)
        found.append((entry, verdicts))
        for route, said in verdicts.items():
            if outcome(route, said) not in ("right", NO_PROGRAM) or options.names:
                print(f"{entry.name}\n    {route}: {said}", flush=True)
    worker.close()
    print(summary(found))
    if options.refusals:
        refusals.store(refusals.of(found))
    return int(any(worst(verdicts) == "fault" for _, verdicts in found))


def written(chosen: Sequence[Entry], folder: Path) -> int:
    """Writes the programs of ONNX that an engine runs; returns their number."""
    count = 0
    for entry in chosen:
        if not entry.kind.startswith("IR."):
            with suppress(Exception):
                write_case(placed_case(entry)[0], folder / f"{entry.kind}_{count:05}")
                count += 1
    return count


def named(name: str) -> Entry:
    """The program with a name as a run prints it."""
    return Entry.named(name, axes_of(name.partition(": ")[0]))


def sampled(strength: int, families: Sequence[str] | None, first: int, every: int) -> list[Entry]:
    """Every n-th program of the families, in a random order that stays the same."""
    names = [
        name for name in ROWS if not families or any(re.search(part, name) for part in families)
    ]
    chosen = list(entries(strength, names))
    random.Random(0).shuffle(chosen)
    return chosen[first::every]


OUTCOMES = (NO_PROGRAM, "right", "refused", "fault")
"""Of a program the last that one of its routes has."""


def outcome(route: str, said: str) -> str:
    """What a verdict on a route counts as."""
    if route == NO_PROGRAM or said == "right":
        return NO_PROGRAM if route == NO_PROGRAM else "right"
    return "refused" if said.startswith("refused") else "fault"


def worst(verdicts: Verdicts) -> str:
    """What a program counts as."""
    return max(
        (outcome(*item) for item in verdicts.items()), key=OUTCOMES.index, default=NO_PROGRAM
    )


def summary(found: Found) -> str:
    """The number of programs by outcome, and of refusals and faults by operator and reason."""
    counts = Counter(worst(verdicts) for _, verdicts in found)
    lines = [", ".join(f"{counts[name]} {name}" for name in OUTCOMES)]
    reasons = Counter(
        (outcome(route, said), entry.kind, route, _kind(said))
        for entry, verdicts in found
        for route, said in verdicts.items()
        if outcome(route, said) in ("refused", "fault")
        or (route == NO_PROGRAM and "differ" in said)
    )
    lines += [f"| {' | '.join(key)} | {count} |" for key, count in sorted(reasons.items())]
    return "\n".join(lines)


def _kind(said: str) -> str:
    """A reason without names and numbers."""
    return re.sub(r"[\d.]+|'[^']*'|\"[^\"]*\"", "_", said)[:160]


if __name__ == "__main__":
    raise SystemExit(main())
