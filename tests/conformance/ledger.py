"""The ledger: one line for every case and route that is not right, with the reason.

`ledger.tsv` has three columns: case, route, reason. A reason begins with the kind of failure
(see `routes.Outcome`); the tests hold the outcome to that kind, the rest is for people.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .routes import Outcome

PATH = Path(__file__).with_name("ledger.tsv")
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
        if outcome.kind in ("right", "absent"):
            continue
        old = reasons.get(pair, "")
        stands = _kind(old) == outcome.kind and not refresh
        result[pair] = old if stands else outcome.reason
    return result


def disagreements(reasons: Mapping[Pair, str], outcomes: Mapping[Pair, Outcome]) -> list[str]:
    """One readable line for every outcome that the ledger does not say."""
    lines = []
    for (case, route), outcome in outcomes.items():
        reason = reasons.get((case, route))
        fine = outcome.kind in ("right", "absent")
        if fine and reason is not None:
            lines.append(f"{case} [{route}] is {outcome.kind} now; the ledger has: {reason}")
        elif not fine and reason is None:
            lines.append(f"{case} [{route}] was right; now {outcome.kind}: {outcome.detail}")
        elif not fine and reason is not None and _kind(reason) != outcome.kind:
            lines.append(
                f"{case} [{route}] now {outcome.kind}: {outcome.detail}; the ledger has: {reason}"
            )
    return lines


def _kind(reason: str) -> str:
    return reason.partition(":")[0]
