"""The outcome of the work on one of many models."""

from __future__ import annotations

from dataclasses import dataclass

from bridge.metadata import Json


@dataclass(frozen=True)
class Outcome:
    """The result of a model: a `verdict` in a word, `text` to read, and the `report` as JSON."""

    model: str
    other: str | None
    verdict: str
    text: str
    report: Json | None = None
    seconds: float = 0.0
    cached: bool = False

    @property
    def good(self) -> bool:
        """Whether there is nothing to do about the model."""
        return self.verdict in ("equal", "converted")

    @property
    def line(self) -> str:
        """The text in one line."""
        lines = self.text.splitlines() or [""]
        branches = [line for line in lines if line.startswith("branches: ")]
        if self.good:
            return (branches or lines)[0]
        if self.report is None:
            return lines[0]
        failures = self.report["failures"]
        return " ".join((failures or [*lines[1:], *lines])[0].split())

    @property
    def row(self) -> tuple[str, str, str, str]:
        """The model's row in a table."""
        time = "cached" if self.cached else f"{self.seconds:.1f} s"
        return self.model, self.verdict, time, self.line
