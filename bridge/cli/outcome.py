"""The outcome of the work on one of many models."""

from dataclasses import dataclass

from bridge.records.entry import Json


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
        return self.verdict in ("equal", "within noise", "converted")

    @property
    def line(self) -> str:
        """The text in one line. Of a good model it is the first line of the report without the
        model's name: it says what was not shown."""
        lines = self.text.splitlines() or [""]
        if self.report is None or self.verdict == "converted":
            return lines[0]
        if self.good:
            return str(self.report["text"]).replace(f": {self.report['source']}", "", 1)
        failures = self.report["failures"]
        return " ".join((failures or [*lines[1:], *lines])[0].split())

    @property
    def row(self) -> tuple[str, str, str, str]:
        """The model's row in a table."""
        time = "cached" if self.cached else f"{self.seconds:.1f} s"
        return self.model, self.verdict, time, self.line
