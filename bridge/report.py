"""What a conversion did."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Report:
    """What was read and written, and every decision that a user may want to know of.

    `files` are those written; `pruned` one line for each If of which a branch was removed;
    `selected` one line for each If that became a selection, with what that costs;
    `specialized` what followed from fixed values and shapes; `notes` all else worth telling.
    """

    source: str = ""
    files: list[Path] = field(default_factory=list)
    pruned: list[str] = field(default_factory=list)
    specialized: list[str] = field(default_factory=list)
    selected: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """What was decided, line by line."""
        kinds = {
            "specialized": self.specialized,
            "pruned": self.pruned,
            "selected": self.selected,
            "note": self.notes,
        }
        return [f"{kind}: {line}" for kind, lines in kinds.items() for line in lines]

    def __str__(self) -> str:
        return "\n".join([*(f"wrote {path}" for path in self.files), *self.lines()])
