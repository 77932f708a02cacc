"""Other readers of ONNX on the suite: the share of each kind's programs that they get right."""

from __future__ import annotations

import subprocess
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx.reference
import openvino

import bridge
from tests.conformance.bodies import NoFormError
from tests.conformance.cases import Case
from tests.control_flow.apart import judged
from tests.control_flow.export import write_case
from tests.control_flow.judge import case_of, run_ir
from tests.control_flow.suite import Entry, feeds_of
from tests.support.running import EXACT, assert_close, flat


def _openvino(case: Case) -> None:
    """OpenVINO's own reading of ONNX."""
    model = openvino.Core().read_model(case.model.SerializeToString())
    _run_openvino(openvino.Core().compile_model(model, "CPU", EXACT), case)


def _run_openvino(compiled: openvino.CompiledModel, case: Case) -> None:
    for inputs, expected in case.data_sets:
        found = compiled.create_infer_request().infer(list(inputs))
        assert_close([*found.values()], flat(expected))


def _bridge(case: Case, device: str) -> None:
    """Bridge's IR in OpenVINO."""
    names = [output.name for output in case.model.graph.output]
    with TemporaryDirectory() as folder:
        ir = Path(folder) / "model.xml"
        bridge.convert(case.model, ir, device=device)
        run_ir(ir, names, feeds_of(case), [flat(outputs) for _, outputs in case.data_sets])


def _reference(case: Case) -> None:
    """The standard's reference implementation."""
    evaluator = onnx.reference.ReferenceEvaluator(case.model)
    for feed, (_, expected) in zip(feeds_of(case), case.data_sets, strict=True):
        assert_close(flat(evaluator.run(None, feed)), flat(expected))


def _command(case: Case, command: str) -> None:
    """A command with the folder of a case as its argument."""
    with TemporaryDirectory() as folder:
        write_case(case, Path(folder))
        subprocess.run([*command.split(), folder], check=True, capture_output=True, timeout=60)


READERS: dict[str, Callable[[Case], None]] = {
    "openvino": _openvino,
    "reference": _reference,
    "bridge": partial(_bridge, device="CPU"),
    "bridge, plain meaning": partial(_bridge, device="ANY"),
}


Rows = dict[str, dict[str, int]]
"""By kind and place (`loop, in an If`): the number of programs, and the number that each reader
gets right."""

STORED = Path(__file__).parent / "readers.json"
"""The counts that `--store` writes and `docs/control_flow.md` shows."""


def counted(chosen: Iterable[Entry], names: Sequence[str], jobs: int) -> Rows:
    """Runs the programs in each reader, each input in a fresh request."""
    readers = {
        name: READERS.get(name) or partial(_command, command=name) for name in names or READERS
    }
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    # One reader at a time: a crash of one costs the others nothing.
    tasks = [(name, reader, entry) for entry in chosen for name, reader in readers.items()]
    for (name, _, entry), verdicts in judged(_judge, tasks, jobs):
        row = rows[f"{entry.kind}, {entry.place}"]
        row["programs"] += bool(verdicts) and name == next(iter(readers))
        row[name] += verdicts.get(name) == "right"
    heads = ("programs", *readers)
    return {key: {name: row[name] for name in heads} for key, row in sorted(rows.items())}


def table(rows: Rows) -> str:
    """The rows as a table in Markdown, with their sum."""
    heads = list(next(iter(rows.values()), {}))
    total = {name: sum(row[name] for row in rows.values()) for name in heads}
    lines = [f"| kind | place | {' | '.join(heads)} |", "| --- | --- |" + " ---: |" * len(heads)]
    for key, row in [*rows.items(), ("**all**, ", total)]:
        kind, _, place = key.partition(", ")
        lines.append(f"| {kind} | {place} | {' | '.join(str(row[name]) for name in heads)} |")
    return "\n".join(lines)


def _judge(task: tuple[str, Callable[[Case], None], Entry]) -> dict[str, str]:
    name, reader, entry = task
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            case = case_of(entry)
        except (NoFormError, Exception):
            return {}
        return {name: _said(reader, case)}


def _said(reader: Callable[[Case], None], case: Case) -> str:
    try:
        reader(case)
    except (AssertionError, Exception) as error:
        return f"{type(error).__name__}: {error}"[:200]
    return "right"
