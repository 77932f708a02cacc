"""The ledgers: one line for every case and route that is not right, with the reason.

`ledger.tsv` is about the cases as they stand, `ledger_bodies.tsv` about those that are not the same
inside a body as outside. Both have three columns: case, route, reason. A reason begins with the
kind of failure (see `outcome.Outcome`); the tests hold the outcome to that kind, the rest is for
people. The kind `either` allows right and wrong: for operators that are random, or an engine that
is. Where the kind depends on the kernels that an engine chooses, it is followed by `with` or
`without` and a feature of the processor (see `tests/support/processor.py`); where that does not
hold, the case is right.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.support.processor import FEATURES

from .outcome import Outcome

PATH = Path(__file__).with_name("ledger.tsv")
BODIES = Path(__file__).with_name("ledger_bodies.tsv")
Pair = tuple[str, str]


def read(path: Path = PATH) -> dict[Pair, str]:
    """Reasons by (case, route)."""
    if not path.exists():
        return {}
    reasons = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        case, route, reason = line.split("\t")
        reasons[case, route] = reason
    return reasons


def write(reasons: Mapping[Pair, str], path: Path = PATH) -> None:
    """Write the ledger, sorted by case and route."""
    lines = [f"{case}\t{route}\t{reason}\n" for (case, route), reason in sorted(reasons.items())]
    path.write_text("".join(lines), encoding="utf-8")


def updated(
    reasons: Mapping[Pair, str], outcomes: Mapping[Pair, Outcome], refresh: bool = False
) -> dict[Pair, str]:
    """The ledger after `outcomes`: a reason stands while its kind does, unless `refresh`."""
    result = {pair: reason for pair, reason in reasons.items() if pair not in outcomes}
    for pair, outcome in outcomes.items():
        old = reasons.get(pair, "")
        if _agree(old, outcome):
            if old:
                result[pair] = outcome.reason if refresh and _is_plain(old) else old
        elif outcome.kind not in _FINE:
            result[pair] = outcome.reason
    return result


def disagreements(reasons: Mapping[Pair, str], outcomes: Mapping[Pair, Outcome]) -> list[str]:
    """One readable line for every outcome that the ledger does not say."""
    lines = []
    for (case, route), outcome in outcomes.items():
        reason = reasons.get((case, route), "")
        if _agree(reason, outcome):
            continue
        now = outcome.kind if outcome.kind in _FINE else f"{outcome.kind}: {outcome.detail}"
        before = f"the ledger has: {reason}" if reason else "it was right"
        lines.append(f"{case} [{route}] is {now}; {before}")
    return lines


_FINE = ("right", "absent")


def _agree(reason: str, outcome: Outcome) -> bool:
    """Whether an outcome is what the ledger says; it says "" of what is right."""
    kind = _kind(reason)
    if kind == "either":
        return outcome.kind in ("right", "wrong")
    return outcome.kind in _FINE if not kind else outcome.kind == kind


def _kind(reason: str) -> str:
    """The kind of failure on this processor, "" for none."""
    kind, *condition = reason.partition(":")[0].split(" ")
    if condition:
        word, feature = condition
        return kind if FEATURES[feature] == (word == "with") else ""
    return kind


def _is_plain(reason: str) -> bool:
    """Whether a reason says no more than an outcome does."""
    return reason.partition(":")[0].isalpha() and _kind(reason) != "either"
