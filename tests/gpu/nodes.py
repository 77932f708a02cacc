"""The standard's node cases on the emulated device, each once: what the GPU plugin has right.

`nodes.json` keeps what was found.
"""

from __future__ import annotations

import functools
import json
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bridge.check.engines import EngineError, OpenVino
from bridge.errors import BridgeError, UnsupportedError
from tests.conformance import ledger
from tests.conformance.cases import Case, cases
from tests.conformance.routes import WrongError, against_standard, convert, load_ir
from tests.gpu.judge import RANDOM, STEP, Processes, Verdict

MEASURED = Path(__file__).parent / "nodes.json"
"""The verdicts of the last measurement: by operator, then by verdict, the cases."""

EXPANDED = re.compile("_expanded.*")


def operator_of(name: str) -> str:
    """The operator that a case is of; for its expansion in others, too."""
    return cases()[EXPANDED.sub("", name)].model.graph.node[-1].op_type


def judged(names: Iterable[str]) -> Iterator[tuple[str, Verdict]]:
    """Each case with its verdict, in order."""
    with closing(Processes()) as processes:
        for name in names:
            yield name, processes.verdict(judge, cases()[name])


def judge(case: Case, scratch: Path, plugin: str) -> Verdict:
    """The verdict on a case, converted for GPU, on a plugin of OpenVINO: its data sets in a fresh
    request, then in the same request once more."""

    def step(about: str) -> None:
        (scratch / STEP).write_text(about)

    target = scratch / "case.xml"
    step("converting")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            convert(case, target, device="GPU")
        except BridgeError as error:
            return Verdict("refused", _refusal(error))
        step("compiling")
        try:
            session = load_ir(case, target, _engine(plugin))
        except EngineError as error:
            return Verdict("does not compile", _said(error))
        for request in ("fresh", "used"):
            step(f"running in a {request} request")
            try:
                against_standard(_allowing(case), session)
            except EngineError as error:
                return Verdict("fails", f"in a {request} request: {_said(error)}")
            except WrongError as error:
                kind = RANDOM if "random" in ledger.read().get((case.name, "onnx-ir"), "") else ""
                return Verdict(kind or "wrong", f"in a {request} request: {_said(error)}")
    return Verdict("right")


@functools.cache
def _engine(plugin: str) -> OpenVino:
    return OpenVino(plugin=plugin)


def _allowing(case: Case) -> Case:
    """The case with the tolerance of a device that adds in another order than the standard, from
    numbers of which some are large, and computes 16-bit floats in 16 bits."""
    halves = any(
        getattr(getattr(value, "dtype", None), "name", "") in ("float16", "bfloat16")
        for given in case.data_sets
        for values in given
        for value in values
    )
    largest = max((_largest(value) for _, values in case.data_sets for value in values), default=0)
    rtol, atol = (1e-2, 1e-2) if halves else (0.0, max(1e-5, 2e-6 * largest))
    return replace(case, rtol=max(case.rtol, rtol), atol=max(case.atol, atol))


def _largest(value: Any) -> float:
    if not isinstance(value, np.ndarray) or value.dtype not in (np.float32, np.float64):
        return 0.0
    return float(np.abs(value[np.isfinite(value)]).max(initial=0))


def _refusal(error: BridgeError) -> str:
    """The reasons, without what would help."""
    if not isinstance(error, UnsupportedError):
        return _said(error)
    return "; ".join(dict.fromkeys(found.why.partition(";")[0] for found in error.findings))


def _said(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) < 1500 else f"{text[:300]} ... {text[-1200:]}"


EMULATED = {
    ("GRU", "reorder.cpp:147"): "oneDNN computes it on a GPU, and is not on the emulated device",
}
"""Causes that no GPU has, by the operator and the place in OpenVINO's sources."""

# What is kept --------------------------------------------------------------------------------


def read() -> dict[str, dict[str, list[str]]]:
    """By operator, the cases of each verdict."""
    found: dict[str, dict[str, list[str]]] = {}
    if MEASURED.exists():
        found = json.loads(MEASURED.read_text(encoding="utf-8"))
    return found


def stored(name: str, verdict: Verdict) -> None:
    """Keeps the verdict on a case instead of what is kept of it."""
    kept, short = read(), name.removeprefix("test_")
    of_operator = kept.setdefault(operator_of(name), {})
    for members in of_operator.values():
        if short in members:
            members.remove(short)
    of_operator.setdefault(row(verdict), []).append(short)
    kept = {op: {k: sorted(v) for k, v in sorted(kept[op].items()) if v} for op in sorted(kept)}
    MEASURED.write_text(_text(kept), encoding="utf-8")


def _text(kept: Mapping[str, Mapping[str, Sequence[str]]]) -> str:
    """A line for each operator and verdict."""
    parts = []
    for op, found in kept.items():
        rows = (f"  {json.dumps(kind)}: {json.dumps(names)}" for kind, names in found.items())
        parts.append(f" {json.dumps(op)}: {{\n" + ",\n".join(rows) + "\n }")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def row(verdict: Verdict) -> str:
    """A verdict in a line, without measured numbers."""
    if verdict.kind in ("right", RANDOM):
        return verdict.kind
    cause = _cause(verdict)
    return " | ".join(filter(None, (verdict.kind, cause, verdict.cpu)))


def _cause(verdict: Verdict) -> str:
    if verdict.kind in ("does not compile", "fails"):
        return verdict.cause
    text = re.sub(r"^in a \w+ request: |output '[^']*': | \(abs .*", "", verdict.said)
    return re.sub(r"\d+ of \d+", "some", text)[:200]


def names_of(shard: str = "1/1", text: str = "", resume: bool = False) -> list[str]:
    """The cases of a part, I of N. `resume` leaves out what is kept as right."""
    part, parts = map(int, shard.split("/"))
    chosen = [name for name in sorted(cases())[part - 1 :: parts] if text in name]
    if resume:
        kept = {
            name
            for found in read().values()
            for row, names in found.items()
            if row in ("right", RANDOM)
            for name in names
        }
        chosen = [name for name in chosen if name.removeprefix("test_") not in kept]
    return chosen


def run(names: Sequence[str], store: bool = False) -> None:
    """Prints each case that is not right with what becomes of it, and the counts."""
    counts: Counter[str] = Counter()
    for name, verdict in judged(names):
        counts[verdict.kind] += 1
        if store:
            stored(name, verdict)
        if verdict.kind not in ("right", RANDOM):
            cpu = f" [CPU plugin: {verdict.cpu}]" if verdict.cpu else ""
            print(f"{name}: {verdict.kind}: {verdict.said}{cpu}", flush=True)
    print(f"nodes: {', '.join(f'{count} {kind}' for kind, count in counts.most_common())}")


def table() -> Iterator[str]:
    """How many cases of each operator are right, and what becomes of the others."""
    kept = read()
    counts = Counter[str]()
    for found in kept.values():
        for row, names in found.items():
            counts[_kind(row)] += len(names)
    said = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
    yield f"Of {counts.total():,} cases: {said}."
    yield ""
    yield "| operator | right | of | the others |"
    yield "| --- | ---: | ---: | --- |"
    whole = []
    for op, found in kept.items():
        right = sum(len(names) for row, names in found.items() if _kind(row) == "right")
        total = sum(map(len, found.values()))
        if right == total:
            whole.append(f"`{op}`")
            continue
        others = (
            f"{len(names)} {_told(op, row)}"
            for row, names in found.items()
            if _kind(row) != "right"
        )
        yield f"| `{op}` | {right} | {total} | {'; '.join(others)} |"
    yield ""
    yield f"All cases of these are right: {', '.join(whole)}."


def _kind(row: str) -> str:
    kind = row.partition(" | ")[0]
    return "right" if kind == RANDOM else kind


def _told(op: str, row: str) -> str:
    """A verdict with its cause; whether the CPU plugin does the same with the file."""
    kind, cause, cpu = (*row.split(" | "), "", "")[:3]
    cause = EMULATED.get(
        (op, cause), f"`{cause}`" if ".cpp:" in cause or ".hpp:" in cause else cause
    )
    alike = f"; the CPU plugin too: {cpu}" if cpu not in ("", "right") else ""
    return f"{kind} ({cause}{alike})".replace("|", "\\|")
