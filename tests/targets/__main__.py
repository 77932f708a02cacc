"""See `tests.targets.judge`."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from tests.support.model_files import IR_FILES, ONNX_FILES
from tests.targets import judge

TOGETHER = 16
"""How many models run in one process."""


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.targets", description=judge.__doc__)
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--device", nargs="*", default=["GPU", "NPU"])
    given = parser.parse_args()
    paths = given.files or [*ONNX_FILES, *IR_FILES]
    for device in given.device:
        counts: Counter[str] = Counter()
        for first in range(0, len(paths), TOGETHER):
            some = paths[first : first + TOGETHER]
            for path, verdict in zip(some, judge.apart(some, device), strict=True):
                counts[verdict.partition(":")[0]] += 1
                if verdict.removesuffix(judge.KNOWN) not in judge.GOOD:
                    print(f"{device} {path.name}: {verdict}", flush=True)
        print(device, dict(counts), flush=True)


if __name__ == "__main__":
    main()
