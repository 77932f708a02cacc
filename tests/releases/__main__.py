"""`python -m tests.releases FOLDER`: runs `roundtrip_models/` with the releases that people have.

Makes an environment in FOLDER for each row of `RELEASES`, with pip, unless it exists. There it
converts the models both ways and runs them. The expected outputs come from the engines that run
this script. It keeps the results for `docs/releases.md`, which `python -m tests.docs` writes.
`FOLDER/<OpenVINO's release>.jsonl` has the outcome of each model, and of the canaries of faults
that only old releases have.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.releases.table import Row, keep, table

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
"""Releases of OpenVINO, onnxruntime and onnx of about the same age."""


def environment(folder: Path, openvino: str, onnxruntime: str, onnx: str) -> Path:
    """The Python of an environment with these releases; the environment is made unless it
    exists."""
    place = folder / f"openvino-{openvino}-onnxruntime-{onnxruntime}-onnx-{onnx}"
    python = place / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not (place / "whole").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", place], check=True)
        packages = [f"openvino=={openvino}", f"onnxruntime=={onnxruntime}", f"onnx=={onnx}"]
        # Not every package built for NumPy 1 declares so.
        packages.append("numpy<2" if onnxruntime < "1.19" or openvino < "2024.5" else "numpy")
        packages += ["ml_dtypes>=0.5", "typer>=0.24", "lxml>=5"]
        pip = [python, "-m", "pip", "install", "-q", "--no-compile", *packages]
        subprocess.run(pip, check=True)
        (place / "whole").touch()
    return python


def run(python: str | Path, *arguments: str | Path) -> Iterator[str]:
    """Yields the worker's lines as it prints them."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    # A module run by its name would be imported again in each process that it starts.
    command = [python, "-c", "from tests.releases.worker import main; main()", *arguments]
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
    faults: list[str] = []
    python = environment(folder, *releases)
    with (folder / f"{releases[0]}.jsonl").open("w", encoding="utf-8", buffering=1) as told:
        for line in run(python, "compare", expected, releases[0]):
            told.write(line)
            outcomes = json.loads(line)
            if "model" in outcomes:
                found[outcomes.pop("model")] = outcomes
            elif "checked" in outcomes:
                assert outcomes["checked"] == "right", line
            else:
                assert outcomes["with"] == "right", line
                if outcomes["without"] != "right":
                    faults.append(outcomes["quirk"])
    return Row.of(releases, found, faults)


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
            keep(rows[-1])
            print(list(table(rows))[-1], flush=True)
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
