"""`python -m tests.conformance`: runs the standard's node cases and prints the counts."""

from __future__ import annotations

import argparse
import fnmatch
import os
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping

from . import ledger
from .cases import cases
from .outcome import Outcome
from .routes import BODY_ROUTES, ROUTES, TESTED
from .runner import run_all


def main() -> int:
    """Returns 1 if the outcome differs from the ledger."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument(
        "-k", metavar="PATTERN", help="only cases whose name holds PATTERN, or fits it as a glob"
    )
    parser.add_argument(
        "--route",
        action="append",
        choices=[*ROUTES, *BODY_ROUTES],
        help="default: all but onnxruntime and those in bodies",
    )
    parser.add_argument("--bodies", action="store_true", help="all routes in bodies")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--verbose", action="store_true", help="show each failure")
    parser.add_argument("--causes", action="store_true", help="group the failures by cause")
    parser.add_argument(
        "--update",
        action="store_true",
        help="rewrite the ledger; reasons that still stand are kept",
    )
    parser.add_argument(
        "--refresh", action="store_true", help="with --update: write all reasons anew"
    )
    options = parser.parse_args()

    names = [name for name in sorted(cases()) if _fits(name, options.k)]
    usual = [] if options.bodies else [*TESTED, "openvino"]
    routes = [*(options.route or usual), *(BODY_ROUTES if options.bodies else ())]
    pairs = [(name, route) for name in names for route in routes]
    outcomes = run_all(pairs, options.jobs, lambda done: _progress(done, len(pairs)))

    if options.verbose:
        for (name, route), outcome in outcomes.items():
            if outcome.kind not in ("right", "absent"):
                print(f"{name} [{route}] {outcome.kind}: {outcome.detail}")
    if options.causes:
        _print_causes(outcomes)
    _print_counts(outcomes, routes)

    lines = []
    for path, of_path in ((ledger.PATH, TESTED), (ledger.BODIES, BODY_ROUTES)):
        tested = {pair: outcome for pair, outcome in outcomes.items() if pair[1] in of_path}
        if options.update and tested:
            updated = ledger.updated(ledger.read(path), tested, options.refresh)
            ledger.write(updated, path)
        lines += ledger.disagreements(ledger.read(path), tested)
    if lines:
        print(f"\n{len(lines)} outcomes are not what the ledger says:")
        print("\n".join(f"  {line}" for line in lines))
    return 1 if lines else 0


def _fits(name: str, pattern: str | None) -> bool:
    return pattern is None or pattern in name or fnmatch.fnmatch(name, pattern)


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty() and (done % 20 == 0 or done == total):
        end = "\n" if done == total else ""
        print(f"\r{done} of {total}", end=end, file=sys.stderr, flush=True)


def _print_counts(outcomes: Mapping[tuple[str, str], Outcome], routes: list[str]) -> None:
    kinds = ("right", "refused", "wrong", "engine", "error", "crash", "timeout")
    print(f"{'route':18}{'cases':>7}" + "".join(f"{kind:>9}" for kind in kinds) + "  right by")
    for route in routes:
        own = [outcome for (_, r), outcome in outcomes.items() if r == route]
        counts = Counter(outcome.kind for outcome in own)
        engines = Counter(outcome.detail for outcome in own if outcome.kind == "right")
        print(
            f"{route:18}{len(own) - counts['absent']:7}"
            + "".join(f"{counts[kind]:9}" for kind in kinds)
            + "  "
            + ", ".join(f"{engine} {count}" for engine, count in engines.most_common())
        )


def _print_causes(outcomes: Mapping[tuple[str, str], Outcome]) -> None:
    """The failures of each route by their wording without names and numbers, the most frequent
    first."""
    groups: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for (name, route), outcome in outcomes.items():
        if outcome.kind not in ("right", "absent"):
            wording = re.sub(r"'[^']*'|\"[^\"]*\"|\d+", "#", outcome.reason)
            groups[route, wording].append((name, outcome.detail))
    for (route, wording), members in sorted(groups.items(), key=lambda item: -len(item[1])):
        name, detail = members[0]
        print(f"{len(members):5} [{route}] {wording[:120]}\n        {name}: {detail}")


if __name__ == "__main__":
    sys.exit(main())
