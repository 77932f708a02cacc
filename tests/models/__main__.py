"""`python -m tests.models`: models with control flow as exporters write them, small and with random
weights, both ways, in a table. Extra: `models-torch`."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.models.judge import HEAD, row


def groups() -> dict[str, dict[str, Callable[[Path], Path]]]:
    """What writes a model into a folder, by group and name; imported when it is asked for."""
    from tests.models import control_flow, decoders

    return {"merged decoders": decoders.KINDS, "control flow": control_flow.KINDS}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.models", description=__doc__)
    parser.add_argument("-k", default="", metavar="TEXT", help="models whose name has this in it")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keeps the models")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    print(HEAD, f"|{' --- |' * (HEAD.count('|') - 1)}", sep="\n", flush=True)
    with TemporaryDirectory() as scratch:
        for group, kinds in groups().items():
            for name, make in kinds.items():
                if options.k.lower() in name.lower():
                    folder = (options.keep or Path(scratch)) / group / name
                    try:
                        print(row(group, name, make, folder), flush=True)
                    except Exception as error:
                        why = str(error).partition("\n")[0]
                        print(f"| {group} | {name} | {type(error).__name__}: {why} |", flush=True)


if __name__ == "__main__":
    main()
