"""`python -m tests.attributes`: runs single operators over all of their attributes, both ways."""

from __future__ import annotations

import argparse
from collections import Counter

from tests.attributes.judge import NO_PROGRAM, judge, judge_stored_as_f16
from tests.attributes.known import is_right
from tests.attributes.suite import FAMILIES, sample
from tests.control_flow.apart import judged


def main() -> int:
    """Returns 1 if a case did not come out right."""
    parser = argparse.ArgumentParser(prog="python -m tests.attributes", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="TEXT", help="cases whose name has one of these"
    )
    parser.add_argument("--pairs", action="store_true", help="rows of which every two levels meet")
    parser.add_argument("--format", choices=["onnx", "ir"], action="append")
    parser.add_argument("--every", type=int, default=1, help="every n-th case alone")
    parser.add_argument("--from", dest="first", type=int, default=0, help="from this case on")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="prints the names instead")
    parser.add_argument("--f16", action="store_true", help="IR that stores constants as f16")
    options = parser.parse_args()
    formats = ["ir"] if options.f16 else options.format or ["onnx", "ir"]
    chosen = sample(options.pairs, formats, options.every, options.first)
    if options.names:
        chosen = [case for case in chosen if any(text in case.name for text in options.names)]
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    run = judge_stored_as_f16 if options.f16 else judge
    counts: Counter[str] = Counter()
    for case, verdicts in judged(run, chosen, options.jobs):
        for route, said in verdicts.items():
            kind = said.partition(":")[0]
            counts[route if route == NO_PROGRAM else f"{route} {kind}"] += 1
            if route != NO_PROGRAM and not is_right(case, said):
                counts["wrong"] += 1
                print(f"{case.name}\n    {route}: {said}", flush=True)
    print(f"{len(chosen)} cases of {len(FAMILIES)} families:", dict(sorted(counts.items())))
    return int(bool(counts["wrong"]))


if __name__ == "__main__":
    raise SystemExit(main())
