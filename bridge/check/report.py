"""What `check` found, and how it reads."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from bridge.check.bisect import FirstDifference
from bridge.check.compare import Difference
from bridge.check.coverage import Branch, Forced
from bridge.check.instrument import IfSite

_SHOWN = 3  # kinds of input that the model refuses


@dataclass(frozen=True)
class Version:
    """One file of the model and the engine that runs it. `label` says where it comes from."""

    label: str
    path: Path
    engine: str


@dataclass
class Result:
    """How one version's output compares with the first version's, over all inputs: the worst
    difference, and with which input it is (`sample`)."""

    version: str
    output: str
    worst: Difference
    sample: int


@dataclass
class CheckReport:
    """What was run, what was compared, and what could not be and why.

    `versions` are the files, the first being what the others are held to. `samples` is the number
    of inputs that all were compared on, `refused` those that the first version does not take
    itself (by message). `failures` are versions that did not convert, load or run. `reached` has
    the input that took each branch, `forced` what came of forcing the others, `pruned` those that
    the conversion removed, and why.
    """

    source: str
    rtol: float
    atol: float
    versions: list[Version] = field(default_factory=list)
    samples: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    results: list[Result] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    sites: list[IfSite] = field(default_factory=list)
    reached: dict[Branch, int] = field(default_factory=dict)
    forced: dict[Branch, Forced] = field(default_factory=dict)
    pruned: dict[Branch, str] = field(default_factory=dict)
    first: FirstDifference | str | None = None

    @property
    def compared(self) -> bool:
        """Whether any output was compared at all; if not, `failures` say why."""
        return bool(self.results)

    @property
    def different(self) -> bool:
        """Whether any output differs, forced branches included. What forcing a pruned branch
        gives does not count; the report says it."""
        return any(not result.worst.ok for result in self.results) or any(
            forced.wrong for branch, forced in self.forced.items() if branch not in self.pruned
        )

    @property
    def ok(self) -> bool:
        """Whether something was compared, none of it differs, and nothing failed."""
        return self.compared and not self.different and not self.failures

    def __str__(self) -> str:
        verdict = "OK" if self.ok else "NOT OK" if self.compared else "nothing was compared"
        lines = [f"{verdict}: {self.source}"]
        lines += [f"  {version.label}: {version.engine}" for version in self.versions]
        lines += [f"  failed: {failure}" for failure in self.failures]
        lines += [f"  note: {note}" for note in self.notes]
        lines += self._outputs()
        lines += self._branches()
        if self.first is not None:
            lines.append(str(self.first))
        return "\n".join(lines)

    def _outputs(self) -> list[str]:
        lines = []
        if self.compared:
            tolerance = f"rtol {self.rtol:g}, atol {self.atol:g}"
            lines = [f"outputs on {self.samples} inputs ({tolerance}):"]
        for result in self.results:
            mark = f"DIFFERENT with input {result.sample}"
            if result.worst.ok:
                mark = "random" if result.worst.random else "equal"
            lines.append(f"  {result.version}, '{result.output}': {mark} ({result.worst})")
        if self.refused:
            lines.append(
                f"  {sum(self.refused.values())} further inputs were tried that the model itself "
                "does not take:"
            )
            kinds: dict[str, int] = {}
            for message, count in self.refused.items():
                kind = shortened(re.sub(r"\d+", "#", message))
                kinds[kind] = kinds.get(kind, 0) + count
            ranked = sorted(kinds.items(), key=lambda item: -item[1])
            lines += [f"    {count} x {kind}" for kind, count in ranked[:_SHOWN]]
            if len(ranked) > _SHOWN:
                rest = sum(count for _, count in ranked[_SHOWN:])
                lines.append(f"    {rest} x other reasons")
        return lines

    def _branches(self) -> list[str]:
        if not self.sites:
            return []
        branches = [(site.index, branch) for site in self.sites for branch in (True, False)]
        counts = {
            "reached by inputs": len(self.reached),
            "forced and equal": sum(not forced.problem for forced in self.forced.values()),
            "pruned": sum(branch not in self.reached for branch in self.pruned),
        }
        counts["not shown"] = sum(self._state(branch)[0] == "not shown" for branch in branches)
        counts["DIFFERENT"] = sum(self._state(branch)[0] == "different" for branch in branches)
        total = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
        lines = [f"branches: {len(branches)} in {len(self.sites)} Ifs: {total}"]
        for site in self.sites:
            indent = "  " * (len(site.parents) + 1)
            inside = ""
            if site.parents:
                inside = "then / " if site.parents[-1][1] else "else / "
            name = site.where.rpartition(" / If ")[2]
            lines.append(f"{indent}{inside}If {name}")
            for branch in (True, False):
                text = self._state((site.index, branch))[1]
                lines.append(f"{indent}  {'then' if branch else 'else'}: {text}")
        return lines

    def _state(self, branch: Branch) -> tuple[str, str]:
        """The state of one branch as a word and as a text."""
        forced = self.forced.get(branch)
        outcome = shortened(forced.problem) if forced is not None else ""
        if branch in self.reached:
            return "reached", f"reached by input {self.reached[branch]}"
        if branch in self.pruned:
            tried = f"; forced all the same: {outcome}" if outcome else ""
            return "pruned", f"pruned by the conversion, it {self.pruned[branch]}{tried}"
        if forced is None:
            return "not shown", "no input reached it, and it could not be forced"
        if forced.wrong:
            return "different", f"forced, DIFFERENT: {outcome}"
        if outcome:
            return "not shown", f"no input reached it; forced, {outcome}"
        return "forced", "forced, equal"


def shortened(message: str, limit: int = 200) -> str:
    """A message on one line."""
    text = " ".join(message.split())
    return text if len(text) <= limit else text[: limit - 3] + "..."
