"""`python -m tests.targets --run GPU`: what becomes of models on the emulated device, in parts."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.gpu import cases, device
from tests.gpu.cases import Case
from tests.gpu.judge import KINDS, Processes, Verdict, judge

PARTS: Mapping[str, Callable[[], Iterable[Case]]] = {
    "roundtrip_models": cases.roundtrip_models,
    "control flow": lambda: cases.control_flow(every=9),
    "programs": lambda: cases.programs("if", 60, seed=36),
    "sequences": lambda: cases.programs("sequences", 20, seed=36),
    "exporters": cases.exporter_models,
}

MEASURED = Path(__file__).parent / "measured.json"
"""The verdicts of the last measurement, by part and name."""

EMULATION = {
    "required_reorders.cpp:342": "GRUSequence: on a GPU, oneDNN has it; here nothing does",
}
"""Causes that no GPU has, by the place in OpenVINO's sources."""


def run(
    parts: Iterable[str],
    text: str = "",
    jobs: int = 1,
    store: bool = False,
    shard: str = "1/1",
    resume: bool = False,
) -> None:
    """Prints each model that is not right with what becomes of it, and the counts of each part.
    `shard` is I/N, for every N-th model; `resume` leaves out what is kept as right or refused."""
    first, step = map(int, shard.split("/"))
    os.environ.update(device.environment())
    for part in parts:
        chosen = [case for case in list(PARTS[part]())[first - 1 :: step] if text in case.name]
        if resume:
            kept = _read().get(part, {})
            chosen = [case for case in chosen if kept.get(case.name) not in ("right", "refused")]
        found: dict[str, Verdict] = {}
        for case, verdict in judged(chosen, jobs):
            found[case.name] = verdict
            if store:
                _store(part, case.name, verdict)
            if verdict.kind != "right":
                cpu = f" [CPU plugin: {verdict.cpu}]" if verdict.cpu else ""
                print(f"{case.name}: {verdict.kind}: {verdict.said[-300:]}{cpu}", flush=True)
        print(f"{part}: {summary(found)}", flush=True)


def judged(chosen: Iterable[Case], jobs: int) -> Iterator[tuple[Case, Verdict]]:
    """Each model with its verdict, in order; so many processes at a time."""
    chosen, mine = list(chosen), threading.local()

    def verdict(case: Case) -> Verdict:
        if not hasattr(mine, "processes"):
            mine.processes = Processes()
        found = mine.processes.verdict(judge, case)
        assert isinstance(found, Verdict)
        return found

    with ThreadPoolExecutor(jobs) as pool:
        yield from zip(chosen, pool.map(verdict, chosen), strict=True)


def summary(found: Mapping[str, Verdict]) -> str:
    """How many there are of each kind."""
    counts = Counter(verdict.kind for verdict in found.values())
    order = [*KINDS, *(kind for kind in counts if kind not in KINDS)]
    return ", ".join(f"{counts[kind]} {kind}" for kind in order if counts[kind])


def _read() -> dict[str, dict[str, str]]:
    """The verdicts that are kept, by part and name."""
    found: dict[str, dict[str, str]] = {}
    if MEASURED.exists():
        found = json.loads(MEASURED.read_text(encoding="utf-8"))
    return found


def _store(part: str, name: str, verdict: Verdict) -> None:
    stored = _read()
    row = " | ".join(filter(None, (verdict.kind, verdict.cause, verdict.cpu)))
    if verdict.kind in ("right", "refused"):
        row = verdict.kind
    stored.setdefault(part, {})[name] = row
    MEASURED.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n", encoding="utf-8")
