"""The ledgers: one line for every case and route that is not right, with the reason.

`ledger.tsv` is about the plain cases, `ledger_bodies.tsv` about cases that come out differently in
a body. Both have three columns: case, route, reason. A reason begins with the kind of failure (see
`outcome.Outcome`). The tests compare the outcome with that kind alone; the rest is for people. The
kind `either` allows right and wrong, for random operators or an engine with random results. The
kind may depend on the kernels that an engine chooses. Then `with` or `without` and a feature of the
processor follow it (see `tests/support/processor.py`). On other processors the case is right.
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
    """The ledger after `outcomes`: a reason stays while its kind does, unless `refresh`."""
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
    """One readable line for every outcome that differs from the ledger."""
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
    """Whether an outcome agrees with the ledger; a right one has the reason ""."""
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
    """Whether a reason says no more than an outcome."""
    return reason.partition(":")[0].isalpha() and _kind(reason) != "either"
