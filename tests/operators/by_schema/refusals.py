"""What the suite's programs are refused for: `python -m tests.operators --refusals` keeps it here,
for `docs/refusals.md`."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tests.control_flow.judge import Verdicts
from tests.control_flow.suite import Entry

STORED = Path(__file__).with_name("refusals.json")
DOMAINS = {
    "": "Operators of the standard", "com.microsoft.": "Operators of onnxruntime",
    "ai.onnx.ml.": "Operators of ai.onnx.ml", "IR.": "Layers of IR, by the operator set of the row",
}  # fmt: skip

Refusals = Mapping[str, Mapping[str, int]]
"""The number of programs by operator and reason."""


def reason(said: str) -> str | None:
    """The reason of a refusal, without the names and sizes of one model; None if it is none."""
    if not said.startswith("refused: "):
        return None
    text = said.removeprefix("refused: ")
    text = re.sub(r"^the model cannot be written as [^:]+: \S+ \(x\d+\): ", "", text)
    text = re.sub(r"^.*? / \S+ \"[^\"]*\": ", "", text.partition(" first at ")[0])
    text = re.sub(r"\"[^\"]*\"?", "\u2026", text)
    return re.sub(r"\[[-\d, .?N]*\]|-?\d+(\.\d+)?(e-?\d+)?", "N", text).strip()


def of(found: Iterable[tuple[Entry, Verdicts]]) -> Refusals:
    """The refusals of a run, by operator."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for entry, verdicts in found:
        reasons = {reason(said) for said in verdicts.values()}
        counts[entry.kind].update(said for said in reasons if said is not None)
    return counts


def stored() -> Refusals:
    kept: Refusals = json.loads(STORED.read_text(encoding="utf-8"))
    return kept


def store(found: Refusals) -> None:
    """Replaces what is kept of the operators of a run."""
    kept = {name: dict(sorted(item.items())) for name, item in {**stored(), **found}.items()}
    text = json.dumps({name: kept[name] for name in sorted(kept) if kept[name]}, indent=1)
    STORED.write_text(text + "\n", encoding="utf-8")


def table() -> Iterator[str]:
    """The reasons by operator, with the number of programs."""
    kept = stored()
    for prefix, title in DOMAINS.items():
        names = [name for name in kept if name.rpartition(".")[0] == prefix.rstrip(".")]
        yield from (f"## {title}", "", "| operator | reason | programs |", "| --- | --- | --- |")
        for name in names:
            for text, count in kept[name].items():
                plain = text.replace("|", "\\|")
                yield f"| {name.removeprefix(prefix)} | {plain} | {count} |"
        yield ""
