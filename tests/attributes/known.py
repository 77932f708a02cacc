"""What is not right for a reason that is not Bridge's: rows of a family, and the reason."""

from __future__ import annotations

from dataclasses import dataclass

from tests.attributes.family import Case


@dataclass(frozen=True)
class Known:
    """Cases of a family with these levels of axes are not right, for a reason."""

    family: str
    levels: dict[str, tuple[str, ...]]
    reason: str

    def covers(self, case: Case) -> bool:
        """Whether a case is among them."""
        return case.family == self.family and all(
            case.row[axis] in levels for axis, levels in self.levels.items()
        )


KNOWN: list[Known] = []


def reason_of(case: Case) -> str | None:
    """Why a case need not be right; None where it has to be."""
    return next((known.reason for known in KNOWN if known.covers(case)), None)


def is_right(case: Case, verdict: str) -> bool:
    """Whether a verdict is as it should be. What is open may be refused: it says how to close it."""
    if verdict.startswith("refused") and case.row["shapes"] == "open":
        return True
    return verdict == "right" or reason_of(case) is not None
