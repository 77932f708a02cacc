"""`python -m tests.tools FOLDER`: models as other tools leave them, checked both ways.

Needs onnxslim, onnxsim, onnxoptimizer, spox, onnxscript and sympy beside the tests' packages. Each
tool makes a model of each source (`sources.py`, `changes.py`), or has programs written for it
(`programs.py`); `bridge check` compares what that computes with its conversions. Prints a line of
JSON for what is not right, and a table.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import onnx

from tests.tools.changes import TOOLS
from tests.tools.programs import PROGRAMS
from tests.tools.sources import sources

_MAKE = "from tests.tools.__main__ import make; import sys; make(*sys.argv[1:])"


def make(tool: str, source: str, target: str) -> None:
    """Runs a tool, in a process of its own."""
    from bridge.check import check

    feeds = check(source, source, samples=8).feeds if tool.startswith("static") else []
    TOOLS[tool](Path(source), Path(target), feeds)


def made(folder: Path, extra: list[Path]) -> Iterator[tuple[str, str, Path | str]]:
    """Each tool with a model's name and the file it made, or what hindered it."""
    given = {path.stem: path for path in extra}
    for name, model in sources():
        given[name] = folder / f"{name}.onnx"
        onnx.save(model, given[name])
    for tool in TOOLS:
        for name, source in given.items():
            target = folder / f"{tool.replace(', ', '_').replace(' ', '_')}-{name}.onnx"
            target.unlink(missing_ok=True)
            command = [sys.executable, "-c", _MAKE, tool, source, target]
            ran = subprocess.run(command, capture_output=True, text=True, errors="replace")
            *_, last = ran.stderr.strip().splitlines() or ["nothing was written"]
            yield tool, name, target if target.exists() else last
    for tool, programs in PROGRAMS.items():
        for name, program in programs.items():
            target = folder / f"{tool}-{name}.onnx"
            onnx.save(program(), target)
            yield tool, name, target


def outcome(model: Path) -> tuple[str, str]:
    """What a check found: a word, and the details where it is not "right"."""
    command = [sys.executable, "-m", "bridge", "check", model, "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if ran.returncode == 0:
        return "right", ""
    told = ran.stderr if ran.returncode == 2 and not ran.stdout else ran.stdout
    return ("different" if ran.returncode == 1 else "not whole"), told


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the models go")
    parser.add_argument("models", type=Path, nargs="*", help="further sources")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    counts: dict[str, Counter[str]] = {}
    for tool, name, file in made(given.folder, given.models):
        found, details = ("the tool fails", file) if isinstance(file, str) else outcome(file)
        counts.setdefault(tool, Counter())[found] += 1
        if found != "right":
            print(json.dumps({"tool": tool, "model": name, found: details}), flush=True)
    for tool, found in counts.items():
        print(f"| {tool} | {', '.join(f'{n} {what}' for what, n in found.items())} |")


if __name__ == "__main__":
    main()
