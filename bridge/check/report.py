"""What `check` found. Its text, JSON and page are made of these values alone."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridge.check.branches import BranchResults
from bridge.check.compare import Tolerances
from bridge.check.device import DeviceCheck
from bridge.check.diagnose import Diagnosis
from bridge.check.files import FileFacts
from bridge.check.inputs.wanted import Inputs
from bridge.check.verdict import Verdict
from bridge.errors import text_of


@dataclass(frozen=True)
class Version:
    """One file of the model and the engine that ran it. `label` says where it comes from."""

    label: str
    path: Path
    engine: str
    files: tuple[FileFacts, ...] = ()


@dataclass(frozen=True, repr=False)
class CheckReport:
    """The runs and comparisons of a check, and the reasons for what is missing.

    `versions` are the files; the others are held to the first. `failures` are versions that did not
    convert, load or run: of a line each, but for the error of a conversion. `unopened` says in a
    few words that one could not be opened, so that there is nothing to compare. `wide` names
    integers that were not shown beyond 32 bits. `told` are facts for the first line: what was not
    compared, and what the original was fed. `notes` are further facts, and `defaults` what differs
    with the engines' default settings. `outline` is what a page shows of the first version. `saved`
    are the files that inputs were saved in."""

    source: str
    tolerances: Tolerances
    versions: tuple[Version, ...] = ()
    inputs: Inputs = field(default_factory=Inputs)
    verdict: Verdict = field(default_factory=Verdict)
    branches: BranchResults = field(default_factory=BranchResults)
    failures: tuple[str, ...] = ()
    unopened: str = ""
    wide: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    defaults: tuple[str, ...] = ()
    diagnosis: Diagnosis = field(default_factory=Diagnosis)
    device: DeviceCheck | None = None
    outline: dict[str, Any] | None = None
    saved: tuple[Path, ...] = ()

    @property
    def compared(self) -> bool:
        """Whether any output was compared at all; if not, `failures` say why."""
        return bool(self.verdict.comparisons)

    @property
    def different(self) -> bool:
        """Whether any output differs, forced branches included."""
        return self.verdict.different or self.branches.different

    @property
    def ok(self) -> bool:
        """Whether something was compared, none of it differs, and nothing failed."""
        return self.compared and not self.different and not self.failures

    def summary(self) -> str:
        """The verdict first, then what it rests on, in a few lines."""
        from bridge.check.text import summary

        return text_of(summary(self))

    def details(self) -> str:
        """The summary, and every output, branch and input."""
        from bridge.check.text import details, summary

        return text_of([*summary(self), *details(self)])

    __str__ = summary

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
