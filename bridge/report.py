"""What a conversion did."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Report:
    """What was read and written, and every decision that a user may want to know of.

    `files` are those written; `pruned` one line for each If of which a branch was removed;
    `notes` all else worth telling.
    """

    source: str = ""
    files: list[Path] = field(default_factory=list)
    pruned: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"wrote {path}" for path in self.files]
        lines += [f"pruned: {line}" for line in self.pruned]
        lines += [f"note: {line}" for line in self.notes]
        return "\n".join(lines)
