"""What `python -m tests.releases` has measured (`measured.json`), as a table of
`docs/releases.md`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

PATH = Path(__file__).with_name("measured.json")

WAYS = (("ONNX to IR", False, "there"), ("and back", False, "back"),
        ("IR to ONNX", True, "there"), ("and back to IR", True, "back"))  # fmt: skip
"""A title, whether the model is IR, and which of its conversions is counted."""

Found = Mapping[str, Mapping[str, str]]
"""By model, what became of the original, of the conversion and of the way back."""


@dataclass(frozen=True)
class Row:
    """What became of the models in one environment: for each of `WAYS`, how many are right and of
    how many that the engine itself runs rightly; which are not right, by title; and which faults
    that only old releases have were seen there."""

    openvino: str
    onnxruntime: str
    onnx: str
    counts: dict[str, tuple[int, int]]
    not_right: dict[str, list[str]]
    faults: list[str]

    @classmethod
    def of(cls, releases: tuple[str, str, str], found: Found, faults: list[str]) -> Row:
        """The row of what was found."""
        counts, not_right = {}, {}
        for title, is_ir, version in WAYS:
            able = [
                (model, outcomes.get(version) == "right")
                for model, outcomes in found.items()
                if model.endswith(".xml") == is_ir and outcomes["original"] == "right"
            ]
            wrong = [model.partition(".")[0] for model, right in able if not right]
            counts[title] = len(able) - len(wrong), len(able)
            if wrong:
                not_right[title] = wrong
        return cls(*releases, counts, not_right, faults)


def read() -> list[Row]:
    """The rows, by release of OpenVINO."""
    if not PATH.exists():
        return []
    return [Row(**row) for row in json.loads(PATH.read_text(encoding="utf-8"))]


def keep(row: Row) -> None:
    """Writes a row in the place of the one of its release of OpenVINO."""
    rows = {known.openvino: known for known in (*read(), row)}
    text = json.dumps([asdict(rows[name]) for name in sorted(rows)], indent=1)
    PATH.write_text(text + "\n", encoding="utf-8")


def table(rows: Iterable[Row]) -> Iterator[str]:
    """The lines of the table."""
    titles = " | ".join(title for title, *_ in WAYS)
    yield f"| OpenVINO | onnxruntime | onnx | {titles} | not right |"
    yield "| --- | --- | --- | ---: | ---: | ---: | ---: | --- |"
    for row in rows:
        counts = " | ".join(f"{right} of {able}" for right, able in row.counts.values())
        names = dict.fromkeys(name for names in row.not_right.values() for name in names)
        wrong = ", ".join(f"`{name}`" for name in names)
        yield (f"| {row.openvino} | {row.onnxruntime} | {row.onnx} | {counts} | {wrong} |")
