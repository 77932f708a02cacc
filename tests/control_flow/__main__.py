"""`python -m tests.control_flow`: runs the control-flow suite, and prints the failures by axis."""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.control_flow import against, export, ir_first, selected
from tests.control_flow.any_judge import is_right, judge_any
from tests.control_flow.apart import judged
from tests.control_flow.judge import NO_PROGRAM
from tests.control_flow.suite import KINDS, Entry, axes_of, entries

Found = list[tuple[Entry, dict[str, str]]]


def main() -> int:
    """Returns 1 if a program did not come out right."""
    parser = argparse.ArgumentParser(prog="python -m tests.control_flow", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="these programs alone, named as a run prints them"
    )
    parser.add_argument(
        "--strength", type=int, help="every so many levels of axes meet, rather than the whole core"
    )
    parser.add_argument("--kind", choices=[*KINDS, "ir"], action="append")
    parser.add_argument("--every", type=int, default=1, help="every n-th program alone")
    parser.add_argument("--from", dest="first", type=int, default=0, help="from this program on")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--export", type=Path, metavar="DIR", help="writes the programs instead")
    parser.add_argument(
        "--against", nargs="*", metavar="READER",
        help="runs other readers of ONNX: openvino, reference, bridge, or a command, to which the "
        "folder of a case is given and whose exit code says whether it passed",
    )  # fmt: skip
    parser.add_argument(
        "--ifs", choices=["select"], help="runs the Ifs alone, each as a selection of both branches"
    )
    parser.add_argument(
        "--store", action="store_true", help="keeps what --against finds for docs/control_flow.md"
    )
    options = parser.parse_args()
    chosen = [_named(name) for name in options.names] or _sampled(options)
    if options.export is not None:
        print(f"{export.write(chosen, options.export)} cases in {options.export}")
        return 0
    if options.against is not None:
        rows = against.counted(chosen, options.against, options.jobs)
        if options.store:
            against.STORED.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        print(against.table(rows))
        return 0
    judge, right = (
        (selected.judge_selected, selected.is_right) if options.ifs else (judge_any, is_right)
    )
    found: Found = []
    for entry, verdicts in judged(judge, chosen, options.jobs):
        found.append((entry, verdicts))
        for route, said in verdicts.items():
            if not right(entry, route, said):
                print(f"{entry.name}\n    {route}: {said}", flush=True)
    wrong = [
        entry
        for entry, verdicts in found
        if not all(right(entry, route, said) for route, said in verdicts.items())
    ]
    print(summary(found, wrong))
    if options.ifs:
        print(selected.summary(verdicts for _, verdicts in found))
    return int(bool(wrong))


def _named(name: str) -> Entry:
    kind = name.partition(":")[0]
    axes = {**ir_first.LOOP_AXES, **ir_first.IF_AXES} if kind == "ir" else axes_of(kind)
    return Entry.named(name, axes)


def _sampled(options: argparse.Namespace) -> list[Entry]:
    kinds = ["if"] if options.ifs else options.kind or [*KINDS, "ir"]
    chosen = list(entries(options.strength, [k for k in kinds if k in KINDS]))
    if "ir" in kinds and options.export is None and options.against is None:
        chosen += ir_first.entries(options.strength)
    # Every slice of them is a sample of all.
    random.Random(0).shuffle(chosen)
    return chosen[options.first :: options.every]


def summary(found: Found, wrong: Sequence[Entry]) -> str:
    """The number of programs, and for each level of an axis the number of its failures, if it has
    any."""
    none = sum(NO_PROGRAM in verdicts or not verdicts for _, verdicts in found)
    lines = [f"{len(found)} programs, of which {none} have no form or onnxruntime does not run: "
             f"{len(wrong)} did not come out right"]  # fmt: skip
    all_levels = Counter((e.kind, *level) for e, _ in found for level in e.levels)
    wrong_levels = Counter((e.kind, *level) for e in wrong for level in e.levels)
    for (kind, axis, level), count in sorted(wrong_levels.items(), key=lambda item: -item[1]):
        lines.append(f"  {kind}, {axis} {level}: {count} of {all_levels[kind, axis, level]}")
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
