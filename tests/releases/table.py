"""The results of `python -m tests.releases` (`measured.json`), as a table of `docs/releases.md`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

PATH = Path(__file__).with_name("measured.json")

WAYS = (("ONNX to IR", False, "there"), ("and back", False, "back"),
        ("IR to ONNX", True, "there"), ("and back to IR", True, "back"))  # fmt: skip
"""A title, whether the model is IR, and the conversion that is counted."""

Found = Mapping[str, Mapping[str, str]]
"""By model, the outcomes of the original, of the conversion and of the way back."""


@dataclass(frozen=True)
class Row:
    """The results in one environment.

    For each of `WAYS`, `counts` has the number of right models and the number of models that the
    engine itself runs rightly. `not_right` lists the other models by title. `faults` lists the
    faults of old releases alone that were seen.
    """

    openvino: str
    onnxruntime: str
    onnx: str
    counts: dict[str, tuple[int, int]]
    not_right: dict[str, list[str]]
    faults: list[str]

    @classmethod
    def of(cls, releases: tuple[str, str, str], found: Found, faults: list[str]) -> Row:
        """The row of these results."""
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
    """Replaces the row of the same release of OpenVINO."""
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
