"""`python -m tests.quirks`: runs each quirk alone over models of all kinds, and prints each graph
whose meaning it changes.

`--count FOLDER` counts instead the models in which each quirk fires, and prints the numbers. It
reads `roundtrip_models/` and the exporter files in the folder (`python -m tests.benchmark --served
--kept FOLDER`). Without a folder the counts of exporter files stay.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from bridge.check.isolation import LostProcessError, Worker
from tests.quirks import counted
from tests.quirks.alone import Fired
from tests.quirks.sources import SOURCES, judged, sources


def main() -> int:
    """Returns 1 if a quirk changes a meaning."""
    parser = argparse.ArgumentParser(prog="python -m tests.quirks", description=__doc__)
    parser.add_argument("--kind", choices=list(SOURCES), action="append", help="these alone")
    parser.add_argument("--every", type=int, default=1, help="each N-th model of a kind")
    parser.add_argument("--from", type=int, default=0, dest="first", help="from the N-th on")
    parser.add_argument("-k", default="", help="only models whose name has this in it")
    parser.add_argument(
        "--count",
        type=Path,
        nargs="?",
        default=False,
        metavar="FOLDER",
        help="count where quirks fire",
    )
    options = parser.parse_args()
    if options.count is not False:
        counted.write(options.count)
        print("models of roundtrip_models/, of exporters:")
        for ours, exported, name in counted.numbers():
            print(f"{ours:4} {exported:4}  {name}")
        return 0
    fired: Counter[str] = Counter()
    ran: Counter[str] = Counter()
    wrong = 0
    worker = Worker()
    for kind in options.kind or SOURCES:
        names = [source.name for source in sources(kind)]
        for index in range(options.first, len(names), options.every):
            if options.k not in names[index]:
                continue
            try:
                found = worker.call(judged, kind, index, seconds=300)
            except LostProcessError as error:
                found = [Fired("onnxruntime", str(error))]
            for one in found:
                fired[one.path] += 1
                ran[one.path] += one.ran
                if one.said:
                    wrong += 1
                    print(f"{kind}, {names[index]}: {one.path}: {one.said[:600]}", flush=True)
    worker.close()
    for path in sorted(fired):
        print(f"{path}: fired {fired[path]} times, {ran[path]} of them run")
    print(f"{wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
