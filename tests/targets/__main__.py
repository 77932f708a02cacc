"""See `tests.targets.judge`. With `--run GPU`, models run on OpenVINO's GPU plugin instead, on an
emulated device: see `tests.gpu.measure`."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from pathlib import Path

from tests.gpu import nodes
from tests.gpu.device import environment
from tests.gpu.measure import PARTS, run
from tests.support.model_files import IR_FILES, ONNX_FILES
from tests.targets import judge

NODES = "nodes"
"""The standard's node cases, which `tests.gpu.nodes` runs: a part of its own, only on demand."""

TOGETHER = 16
"""The number of models in one process."""


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.targets", description=judge.__doc__)
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--device", nargs="*", default=["GPU", "NPU"])
    parser.add_argument("--run", choices=["GPU"], help="run models on the device's own plugin")
    parser.add_argument(
        "--part", action="append", choices=[*PARTS, NODES], help="of what --run runs"
    )
    parser.add_argument("--shard", default="1/1", metavar="I/N", help="every N-th model")
    parser.add_argument("--resume", action="store_true", help="without what is kept as right")
    parser.add_argument("-k", default="", metavar="TEXT", help="models whose name has this in it")
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("--store", action="store_true", help="keep what --run finds")
    given = parser.parse_args()
    if given.part == [NODES]:
        os.environ.update(environment())
        nodes.run(nodes.names_of(given.shard, given.k, given.resume), given.store)
        return
    if given.run:
        parts = given.part or PARTS
        run(parts, given.k, given.jobs, given.store, given.shard, given.resume)
        return
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
