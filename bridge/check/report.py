"""What `check` found."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridge.check.compare import Difference
from bridge.check.device import DeviceCheck
from bridge.check.diagnosis.blame import Blame
from bridge.check.diagnosis.forced import Forced
from bridge.check.diagnosis.neighbours import Neighbour
from bridge.check.diagnosis.reduce import Reduced
from bridge.check.diagnosis.values import FirstDifference
from bridge.check.files import FileFacts
from bridge.check.inputs import Recipe
from bridge.check.lines import shortened
from bridge.check.surgery.sites import Branch, Site, branches_of
from bridge.errors import text_of

CONVERSION = "conversion: "
"""What begins the failure of a conversion."""


@dataclass(frozen=True)
class Version:
    """One file of the model and the engine that runs it. `label` says where it comes from."""

    label: str
    path: Path
    engine: str
    files: tuple[FileFacts, ...] = ()


@dataclass
class OutputResult:
    """How an output of one version compares with the first version, over all inputs. `worst` is the
    worst difference, `sample` the number of its input."""

    version: str
    output: str
    worst: Difference
    sample: int


@dataclass(frozen=True)
class BranchState:
    """The state of a branch: one of `STATES`, and a sentence. `input` is the number of the first
    input that takes the branch."""

    state: str
    text: str
    input: int | None = None


@dataclass(repr=False)
class CheckReport:
    """The runs and comparisons of a check, and the reasons for what is missing.

    `versions` are the files; the others are held to the first. All were compared on `feeds`, which
    `recipes` make. `runs` inputs were tried; `refused` counts those that the first version does not
    take, by message. `failures` are versions that did not convert, load or run: of a line each,
    but for the error of a conversion.

    `taken` are the branches that each input takes, `wrong` the inputs with which an output differs.
    `reached` has the first input that took each branch, `forced` what came of forcing the others.
    `pruned` are the branches that the conversion removed, and why. `unreachable` are the branches
    that no input can take, and why. `gone` are branches of Ifs that another file does not have.
    `aside` are the empty and extreme inputs whose differences do not count. `doubtful` are the
    branches that such inputs alone take.

    `around` is what stands around the first value that differs, by version. `fault` says who is at
    fault for that. `outline` is what a page shows of the first version. `device` is what shows of
    the device that IRs are for, where one was named. `tolerances` are those of single outputs, the
    relative one first. `saved` are the files that inputs were saved in. `reduced` is the smallest
    part of the model that differs, or why there is none, where it was asked for. `row` are the
    inputs that are calls in a row, which stateful versions ran without being told their states.

    `findings` and `as_run` say what differs with the engines' defaults: by more than the original
    itself, or not. `asides` are notes on inputs that nobody would give.
    """

    source: str
    rtol: float
    atol: float
    versions: list[Version] = field(default_factory=list)
    feeds: list[dict[str, Any]] = field(default_factory=list)
    recipes: list[Recipe] = field(default_factory=list)
    runs: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    results: list[OutputResult] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    sites: list[Site] = field(default_factory=list)
    taken: list[frozenset[Branch]] = field(default_factory=list)
    wrong: set[int] = field(default_factory=set)
    aside: set[int] = field(default_factory=set)
    doubtful: set[Branch] = field(default_factory=set)
    reached: dict[Branch, int] = field(default_factory=dict)
    forced: dict[Branch, Forced] = field(default_factory=dict)
    pruned: dict[Branch, str] = field(default_factory=dict)
    unreachable: dict[Branch, str] = field(default_factory=dict)
    gone: dict[Branch, str] = field(default_factory=dict)
    first: FirstDifference | str | None = None
    fault: Blame | None = None
    around: dict[str, list[Neighbour]] = field(default_factory=dict)
    outline: dict[str, Any] | None = None
    device: DeviceCheck | None = None
    tolerances: dict[str, tuple[float, float]] = field(default_factory=dict)
    saved: list[Path] = field(default_factory=list)
    reduced: Reduced | str | None = None
    row: list[int] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    as_run: list[str] = field(default_factory=list)
    asides: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Adds a note, once."""
        if text not in self.notes:
            self.notes.append(text)

    def path(self, label: str) -> Path:
        """The file of a version."""
        return next(version.path for version in self.versions if version.label == label)

    @property
    def compared(self) -> bool:
        """Whether any output was compared at all; if not, `failures` say why."""
        return bool(self.results)

    @property
    def different(self) -> bool:
        """Whether any output differs, forced branches included. What forcing a pruned branch
        gives does not count; the report says it."""
        wrong = any(not result.worst.ok for result in self.results) or bool(self.findings)
        return wrong or any(
            forced.wrong for branch, forced in self.forced.items() if branch not in self.pruned
        )

    @property
    def ok(self) -> bool:
        """Whether something was compared, none of it differs, and nothing failed."""
        return self.compared and not self.different and not self.failures

    @property
    def branches(self) -> list[Branch]:
        """All branches. Ifs come before Loops, outer branches before inner ones."""
        return branches_of(self.sites)

    def fails(self, branch: Branch) -> bool:
        """Whether the model itself could not run a branch that was forced."""
        forced = self.forced.get(branch)
        return forced is not None and bool(forced.problem) and forced.given is None

    def state(self, branch: Branch) -> BranchState:
        """The state of one branch."""
        forced = self.forced.get(branch)
        outcome = shortened(str(forced)) if forced is not None else ""
        if branch in self.reached and not (forced is not None and forced.wrong):
            number = self.reached[branch]
            takers = {place for place, taken in enumerate(self.taken) if branch in taken}
            takers -= self.aside
            if takers and takers <= self.wrong:
                text = f"reached by input {number}, DIFFERENT with all inputs that take it"
                return BranchState("different", text, number)
            return BranchState("reached", f"reached by input {number}", number)
        if branch in self.pruned:
            tried = f"; forced all the same: {outcome}" if outcome else ""
            why = f"pruned by the conversion, it {self.pruned[branch]}"
            return BranchState("pruned", why + tried)
        why = self.unreachable.get(branch, "")
        if forced is None:
            return self._not_forced(branch, why or "none was found")
        if forced.wrong:
            return BranchState("different", f"forced, DIFFERENT: {outcome}")
        if outcome:
            state = "failing" if self.fails(branch) else "unknown"
            return BranchState(state, f"no input reached it; forced, {outcome}")
        told = bool(why) and not why.startswith("the model")
        return BranchState("forced", "forced, equal" + (f" ({why})" if told else ""))

    def _not_forced(self, branch: Branch, why: str) -> BranchState:
        """The state of a branch that no input took and the check did not force."""
        site = self.sites[branch[0]]
        if site.loop and why.startswith("the Loop"):
            return BranchState("failing", f"cannot be: {why}")
        around = self.state(site.parents[-1]) if site.parents else None
        if around is not None and around.state in ("pruned", "failing"):
            return BranchState(around.state, f"in a branch of which is known: {around.text}")
        if branch in self.gone and why.startswith(("the condition", "the model fails")):
            return BranchState("pruned", f"not in {self.gone[branch]}: {why}")
        return BranchState("unknown", f"no input reached it ({why}), nor was it forced")

    def summary(self) -> str:
        """The verdict first, then what it rests on, in a few lines."""
        from bridge.check.text import summary

        return text_of(summary(self))

    def __str__(self) -> str:
        """The summary, and every output and branch."""
        from bridge.check.text import details, summary

        return text_of([*summary(self), *details(self)])

    def __repr__(self) -> str:
        """The verdict's line: what a prompt shows."""
        return f"<CheckReport {self.summary().splitlines()[0]}>"

    def _repr_html_(self) -> str:
        """The page, framed: what a notebook shows."""
        from html import escape

        return (
            f'<iframe srcdoc="{escape(self.as_html())}" title="{escape(self.source)}" '
            'style="width:100%;height:600px;border:0"></iframe>'
        )

    def as_json(self) -> dict[str, Any]:
        """The report as `bridge check --json` prints it: lists, dictionaries, numbers and text."""
        from bridge.check.data import as_json

        return as_json(self)

    def as_html(self) -> str:
        """The report as a page that needs nothing beside it."""
        from bridge.show.outline import empty
        from bridge.show.page import page

        return page(self.outline or empty(self.source), self.as_json())
