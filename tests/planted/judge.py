"""Makes and judges one pair; called in another process, which a planted fault may end."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

from bridge.check import check
from bridge.errors import BridgeError
from tests.planted.pairs import Pair, make

OUTCOMES = ("different", "said", "missed", "fails")
_SAID = re.compile(r"not shown|not compared|is only in|random|NaN alone|without elements")


def outcome(folder: Path, quick: bool) -> tuple[str, str]:
    """What a check says of a pair: one of `OUTCOMES`, and its first line. A file that an engine
    does not run `fails`: nothing was said about its numbers."""
    pair = Pair.load(folder)
    try:
        report = check(folder / pair.original, folder / pair.written, quick=quick)
    except BridgeError as error:
        return "fails", str(error).splitlines()[0]
    line = report.summary().splitlines()[0]
    if report.different:
        return "different", line
    if report.failures:
        return "fails", f"{line}: {report.failures[0]}".splitlines()[0]
    return ("said" if _SAID.search(line.partition(":")[2]) else "missed"), line


def make_quietly(number: int, seed: int, folder: Path, text: str) -> Pair | None:
    warnings.filterwarnings("ignore")
    return make(number, seed, folder, text)
