"""`python -m tests.tools FOLDER`: models as other tools leave them, checked both ways.

Needs onnxslim, onnxsim, onnxoptimizer, spox, onnxscript and sympy beside the tests' packages. Each
tool makes a model from each source (`sources.py`, `changes.py`), or has programs written for it
(`programs.py`). `bridge check` compares each model with its conversions. It prints a line of JSON
for each failure, and a table.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from bridge.check.isolation import LostProcessError, isolated
from tests.tools.outcome import jobs, outcome


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the models go")
    parser.add_argument("models", type=Path, nargs="*", help="further sources")
    parser.add_argument("-k", default="", help="only tools whose name has this in it")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    counts: dict[str, Counter[str]] = {}
    for tool, name, source in jobs(given.folder, given.models, given.k):
        target = given.folder / f"{tool.replace(', ', '_').replace(' ', '_')}-{name}.onnx"
        try:
            found, details = isolated(outcome, tool, name, source, target, seconds=600)
        except LostProcessError as error:
            found, details = "not right", str(error)
        counts.setdefault(tool, Counter())[found] += 1
        if found != "right":
            print(json.dumps({"tool": tool, "model": name, found: details}), flush=True)
    for tool, found in counts.items():
        print(f"| {tool} | {', '.join(f'{n} {what}' for what, n in found.items())} |")


if __name__ == "__main__":
    main()
