"""`python -m tests.releases FOLDER`: runs `roundtrip_models/` with the releases that people have.

Makes an environment in FOLDER for each row of `RELEASES`, with pip, unless it is there; converts
the models there and back in it and runs them. What a model should give is what the engines that run
this script give. Prints a table; `FOLDER/<OpenVINO's release>.jsonl` says what became of each.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

RELEASES = (
    ("2024.0.0", "1.17.3", "1.16.2"),
    ("2024.1.0", "1.17.3", "1.16.2"),
    ("2024.2.0", "1.18.1", "1.16.2"),
    ("2024.3.0", "1.18.1", "1.16.2"),
    ("2024.4.0", "1.19.2", "1.16.2"),
    ("2024.5.0", "1.20.1", "1.17.0"),
    ("2024.6.0", "1.20.1", "1.17.0"),
    ("2025.0.0", "1.21.1", "1.17.0"),
    ("2025.1.0", "1.22.1", "1.18.0"),
    ("2025.2.0", "1.22.1", "1.18.0"),
    ("2025.3.0", "1.23.2", "1.19.1"),
    ("2025.4.1", "1.24.4", "1.19.1"),
    ("2026.0.0", "1.25.1", "1.20.1"),
    ("2026.1.0", "1.26.0", "1.21.0"),
    ("2026.2.1", "1.28.0", "1.22.0"),
    ("2026.3.1", "1.30.0", "1.23.2"),
    ("2026.4.1", "1.31.1", "1.23.2"),
)
"""Releases of OpenVINO, onnxruntime and onnx that are about as old as one another."""


@dataclass(frozen=True)
class Row:
    """What became of the models in one environment, by model."""

    openvino: str
    onnxruntime: str
    onnx: str
    found: dict[str, dict[str, str]]

    def count(self, suffixes: tuple[str, ...], version: str) -> str:
        """How many of the models that the engine itself runs rightly a version is right of."""
        able = [
            outcomes
            for model, outcomes in self.found.items()
            if model.endswith(suffixes) and outcomes["original"] == "right"
        ]
        right = sum(outcomes.get(version) == "right" for outcomes in able)
        return f"{right} of {len(able)}"


def environment(folder: Path, openvino: str, onnxruntime: str, onnx: str) -> Path:
    """The Python of an environment with these releases, which is made unless it is there."""
    place = folder / f"openvino-{openvino}-onnxruntime-{onnxruntime}-onnx-{onnx}"
    python = place / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not (place / "whole").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", place], check=True)
        packages = [f"openvino=={openvino}", f"onnxruntime=={onnxruntime}", f"onnx=={onnx}"]
        # What was built for NumPy 1 does not say so everywhere.
        packages.append("numpy<2" if onnxruntime < "1.19" or openvino < "2024.5" else "numpy")
        packages += ["ml_dtypes>=0.5", "rich>=13.8", "lxml>=5"]
        pip = [python, "-m", "pip", "install", "-q", "--no-compile", *packages]
        subprocess.run(pip, check=True)
        (place / "whole").touch()
    return python


def run(python: str | Path, *arguments: str | Path) -> Iterator[str]:
    """The lines that the worker prints, as it prints them."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [python, "-m", "tests.releases.worker", *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdout is not None
        yield from worker.stdout
    if worker.returncode:
        raise subprocess.CalledProcessError(worker.returncode, command)


def measured(folder: Path, expected: Path, releases: tuple[str, str, str]) -> Row:
    """A row of the table, measured anew."""
    found: dict[str, Any] = {}
    python = environment(folder, *releases)
    with (folder / f"{releases[0]}.jsonl").open("w", encoding="utf-8", buffering=1) as told:
        for line in run(python, "compare", expected):
            told.write(line)
            outcomes = json.loads(line)
            found[outcomes.pop("model")] = outcomes
    return Row(*releases, found)


_ONNX = (".onnxtxt", ".textproto")
_IR = (".xml",)


def table(rows: Iterable[Row]) -> Iterable[str]:
    """The lines of the table."""
    yield "| OpenVINO | onnxruntime | onnx | ONNX → IR | and back | IR → ONNX | and back |"
    yield "| --- | --- | --- | ---: | ---: | ---: | ---: |"
    for row in rows:
        counts = [row.count(kind, way) for kind in (_ONNX, _IR) for way in ("there", "back")]
        yield f"| {row.openvino} | {row.onnxruntime} | {row.onnx} | {' | '.join(counts)} |"


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.releases", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the environments are, or go")
    parser.add_argument("-k", default="", help="only releases of OpenVINO that begin so")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    expected = given.folder / "expected.pickle"
    for _ in run(sys.executable, "record", expected):
        pass
    rows = []
    for releases in RELEASES:
        if releases[0].startswith(given.k):
            rows.append(measured(given.folder, expected, releases))
            print(list(table(rows))[-1], flush=True)
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
