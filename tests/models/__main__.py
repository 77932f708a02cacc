"""`python -m tests.models`: models with control flow as exporters write them, both ways, in a
table.

The models are small and have random weights. Groups whose exporter is not installed are left out:
the extras `models-torch`, `models-genai`, `models-jax`, `models-tensorflow`, `models-paddle`,
`models-spox` and `models-onnxscript`, each for an environment of its own.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.models.groups import models
from tests.models.judge import HEAD, row


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.models", description=__doc__)
    parser.add_argument("-k", default="", metavar="TEXT", help="models whose name has this in it")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keeps the models")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    print(HEAD, f"|{' --- |' * (HEAD.count('|') - 1)}", sep="\n", flush=True)
    with TemporaryDirectory() as scratch:
        for group, name, make in models():
            if options.k.lower() in name.lower():
                folder = (options.keep or Path(scratch)) / group / name
                try:
                    print(row(group, name, make, folder), flush=True)
                except Exception as error:
                    why = str(error).partition("\n")[0]
                    print(f"| {group} | {name} | {type(error).__name__}: {why} |", flush=True)


if __name__ == "__main__":
    main()
