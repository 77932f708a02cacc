"""The report of a conversion."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from bridge.errors import amount, text_of


class PrunedBranch(str):
    """The line of a report about a branch that is removed: of the If at `where`, `role` is
    "then_branch" or "else_branch", because it does what `why` says."""

    where: str
    role: str
    why: str

    def __new__(cls, where: str, role: str, why: str) -> Self:
        """Makes the line."""
        line = super().__new__(cls, f"{where}: its {role} {why}")
        line.where, line.role, line.why = where, role, why
        return line


@dataclass(repr=False)
class Report:
    """The read and written files, and every decision that a user may want to know.

    `files` are the written files. `pruned` has a line for each Loop that is removed because its
    body fails, and one, a PrunedBranch, for each If with a removed branch;
    `selected` one line for each If that became a selection, with its cost. `specialized` has the
    consequences of fixed values and shapes, `believed` what the source declares and nothing shows,
    `notes` all other facts. `assumed` holds, for lines of
    `pruned`, the condition that data must fulfil because they decide the If. `causes` holds, for
    other lines, the reason without names: the part of the branch that excludes it. `quirks` are the
    quirks that rewrote a node, with the path to the node. `weights` are the element types that the
    weights are stored in. `details` are those of all lines that only `lines` has.
    """

    source: str = ""
    files: list[Path] = field(default_factory=list)
    pruned: list[str] = field(default_factory=list)
    specialized: list[str] = field(default_factory=list)
    selected: list[str] = field(default_factory=list)
    believed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    assumed: dict[str, str] = field(default_factory=dict)
    causes: dict[str, str] = field(default_factory=dict)
    quirks: list[tuple[str, str]] = field(default_factory=list)
    weights: str = ""
    details: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """The decisions, line by line."""
        kinds = {
            "specialized": self.specialized,
            "pruned": self.pruned,
            "selected": self.selected,
            "believed": self.believed,
            "note": self.notes,
        }
        return [f"{kind}: {line}" for kind, lines in kinds.items() for line in lines]

    def short_lines(self, whole: str = "lines()") -> list[str]:
        """Like `lines`, without details, and with one line for all branches that are pruned for the
        same cause, and for all that is specialized. `whole` names what has the rest."""
        specialized, notes = (
            [line for line in lines if line not in self.details]
            for lines in (self.specialized, self.notes)
        )
        if specialized:
            hint = f" ({whole} has the reasons)" if len(specialized) < len(self.specialized) else ""
            specialized = [f"{'; '.join(specialized)}{hint}"]
        pruned = self._causes(whole)
        return replace(self, pruned=pruned, specialized=specialized, notes=notes).lines()

    def _causes(self, whole: str) -> list[str]:
        lines_of: dict[str, list[str]] = {}
        for line in self.pruned:
            cause = self.assumed.get(line) or self.causes.get(line, line)
            lines_of.setdefault(cause, []).append(line)
        told = []
        for cause, lines in lines_of.items():
            one, is_assumed = lines[0], lines[0] in self.assumed
            if len(lines) == 1:
                told.append(f"{one}; only {cause} is left" if is_assumed else one)
            elif is_assumed:
                told.append(f"{len(lines)} branches; only {cause} is left ({whole} lists them)")
            else:
                told.append(f"{len(lines)} branches, each of which {cause} ({whole} lists them)")
        return told

    def __str__(self) -> str:
        return text_of([*self._written(), *self.short_lines()])

    def _written(self) -> list[str]:
        weights = f"; weights: {self.weights}" if self.weights else ""
        return [f"wrote {' and '.join(map(str, self.files))}{weights}"] if self.files else []

    def __repr__(self) -> str:
        files = ", ".join(str(path) for path in self.files) or "nothing"
        told = f"; {amount(len(self.lines()), 'line')} to read" if self.lines() else ""
        return f"<Report of {self.source or 'a model'}: wrote {files}{told}>"

    def _repr_html_(self) -> str:
        """The lines as an HTML list, for notebooks."""
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"
