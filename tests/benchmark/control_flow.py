"""`python -m tests.benchmark --control-flow`: models with control flow, as they run in the engines.

Makes the models of `tests.models` whose exporters are installed. For each it prints the latency

- of Bridge's IR in OpenVINO against OpenVINO's own reading of the file (`own`),
- of the same IR against plain meaning, `--device ANY` (`plain`), which shows the cost of quirks,
- of the ONNX that comes back from the IR, in onnxruntime, against the file (`back`).

All versions of an engine run in turn, A B C A B C ..., on one thread. A ratio compares the medians
of processor time. A word replaces the ratio if an engine cannot run a version, or computes other
numbers than onnxruntime for the file.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import bridge
from bridge.check.inputs import Recipe, free_dimensions, make_inputs
from bridge.check.isolation import LostProcessError, isolated
from tests.benchmark.engines import Feed, Run, differ, in_onnxruntime, in_openvino, unpacked
from tests.models.groups import models

SIZES = {
    "batch": 2, "batch_size": 1, "B": 8, "T": 40, "frames": 40, "samples": 8192, "symbols": 40,
    "height": 96, "width": 128, "encoder_sequence_length": 40, "sequence_length": 1,
    "decoder_sequence_length": 1, "past_sequence_length": 40, "past_decoder_sequence_length": 40,
    "total_sequence_length": 41, "held": 2,
}  # fmt: skip
"""The sizes of open axes, by their names; others are `SIZE`."""
SIZE = 16
VALUES = {
    "steps": 20, "rate": 16000, "most": 20, "lengths": [40, 25], "use_cache_branch": [True],
    "attention_mask": [[1] * 41], "counts": [9, 7], "many": 5, "size": 5, "width": 3,
}  # fmt: skip
"""Inputs that decide what runs, and how often."""
HEADER = "| group | model | own | plain | back |"
LEAST = 15
"""The least number of runs of each version."""


def feed_of(path: Path) -> Feed:
    """Inputs of the file, by its sizes."""
    model = bridge.load(path)
    sizes = {key: SIZES.get(key, SIZE) for key in free_dimensions(model)}
    drawn = make_inputs(model, Recipe(sizes=sizes))
    return {name: _told(x, VALUES[name]) if name in VALUES else x for name, x in drawn.items()}


def _told(drawn: np.ndarray, value: object) -> np.ndarray:
    """A value for an input, in the input's shape if it is one number."""
    told = np.asarray(value, drawn.dtype)
    return told if told.ndim else np.full_like(drawn, told)


def medians(runs: Sequence[Run], seconds: float) -> list[float]:
    """The median processor time of each, in turn for this many seconds."""
    times: list[list[float]] = [[] for _ in runs]
    for run in runs:
        run()
    end = time.perf_counter() + seconds
    while len(times[0]) < LEAST or time.perf_counter() < end:
        for run, taken in zip(runs, times, strict=True):
            start = time.process_time()
            run()
            taken.append(time.process_time() - start)
    return [statistics.median(taken) for taken in times]


def ratios(path: Path, folder: Path, with_own: bool, seconds: float) -> list[str]:
    """The cells of a row; without OpenVINO's own reading if that crashes."""
    there, plain, back = (folder / name for name in ("ir.xml", "plain.xml", "back.onnx"))
    bridge.convert(path, there)
    bridge.convert(path, plain, device="ANY")
    bridge.convert(there, back)
    feed = feed_of(path)
    exact = in_onnxruntime(path, feed, optimized=False)
    names = [value.name for value in bridge.load(path).graph.outputs]
    cells, runs = [], [in_openvino(there, feed)]
    for other in (path, plain):
        if other == path and not with_own:
            cells.append("ends")
            continue
        try:
            run = in_openvino(other, feed)
            run()
        except RuntimeError:
            cells.append("refused")
        else:
            found = run if other == path else unpacked(run, other, names)
            cells.append("wrong" if differ(found, exact) else str(len(runs)))
            runs.append(run)
    ours, *others = medians(runs, seconds)
    cells = [f"{ours / others[int(c) - 1]:.2f}" if c.isdigit() else c for c in cells]
    if differ(unpacked(runs[0], there, names), exact):
        cells[0] += ", the IR's numbers differ"
    times = medians([in_onnxruntime(p, feed) for p in (back, path)], seconds)
    return [*cells, f"{times[0] / times[1]:.2f}"]


def row(path: Path, seconds: float) -> list[str]:
    """The cells of a row, measured in a process of its own."""
    with TemporaryDirectory() as folder:
        try:
            return isolated(ratios, path, Path(folder), True, seconds)
        except LostProcessError:
            return isolated(ratios, path, Path(folder), False, seconds)


def made(make: Callable[[Path], Path], folder: Path) -> Path:
    """The model in a folder; it is made if it does not exist yet."""
    note = folder / "made"
    if not note.exists():
        folder.mkdir(parents=True, exist_ok=True)
        note.write_text(make(folder).name)
    return folder / note.read_text()


def named(names: Sequence[str]) -> Iterator[tuple[str, str, Callable[[Path], Path]]]:
    """The makers of models with one of these texts in their names."""
    for group, name, make in models():
        if not names or any(asked.lower() in f"{group} {name}".lower() for asked in names):
            yield group, name, make


def main(names: Sequence[str], seconds: float, kept: Path | None) -> None:
    """Prints the table, row by row, and means and worst cases. `kept` is a folder that keeps the
    models for the next time."""
    warnings.filterwarnings("ignore")
    print(HEADER, "| --- | --- | ---: | ---: | ---: |", sep="\n", flush=True)
    columns: list[list[float]] = [[], [], []]
    with TemporaryDirectory() as scratch:
        for group, name, make in named(names):
            try:
                cells = row(made(make, (kept or Path(scratch)) / group / name), seconds)
            except Exception as error:
                cells = [f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"]
            print(f"| {' | '.join((group, name, *cells))} |", flush=True)
            for column, cell in zip(columns, cells, strict=False):
                column += [float(cell)] if cell.replace(".", "").isdigit() else []
    for title, column in zip(("own", "plain", "back"), columns, strict=True):
        if column:
            mean = statistics.mean(column)
            print(f"{title}: {mean:.2f} on average, {max(column):.2f} at worst of {len(column)}")
