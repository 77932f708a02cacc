"""`python -m tests.benchmark --served`: the quality of the models that Bridge writes.

Exports the architectures of `exporter_models` and converts them. For each it prints the nodes of
PyTorch's ONNX file and of the ONNX after ONNX → IR → ONNX. It also prints the latency

- of that ONNX in onnxruntime, all optimisations, against the file's (`back`),
- of ONNX → IR in OpenVINO against OpenVINO's own reading of the file (`IR`),
- of OpenVINO's own IR of the PyTorch module, as ONNX, against the file in onnxruntime (`PT`).

Each pair runs in turn, A B A B ..., on one thread. A ratio compares the shortest processor times,
which other load disturbs least. A pair that seems slow runs longer, to tell a difference from that
load. Outputs are compared without onnxruntime's optimisations. A row says if its numbers differ, or
if its second round trip has other bytes than the first. `--seconds 0` makes these comparisons
alone.
"""

from __future__ import annotations

import contextlib
import math
import statistics
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import openvino
import torch
from openvino.frontend import OpConversionFailure

import bridge
from tests.benchmark.engines import Feed, Run, differ, in_onnxruntime, in_openvino
from tests.benchmark.exporter_models import ARCHITECTURES, FILES, File, Made

HEADER = "| architecture | nodes | back | ratio | time | IR time | PT nodes | PT time | |"
SLOW, LONGER = 1.02, 4
"""The ratio above which a pair runs longer, and the largest factor by which it is longer."""


@dataclass(frozen=True)
class Measured:
    """A row: nodes of the file and of the ONNX that comes back, ratios of latencies, faults."""

    name: str
    nodes: int
    back: int
    back_time: float
    ir_time: float | None
    torch_nodes: int | None = None
    torch_time: float | None = None
    note: str = ""

    def text(self) -> str:
        ratio = self.back / self.nodes
        cells = [self.name, str(self.nodes), str(self.back), f"{ratio:.2f}"]
        cells += [_two_places(self.back_time), _two_places(self.ir_time)]
        cells += [str(self.torch_nodes or ""), _two_places(self.torch_time)]
        return "| " + " | ".join([*cells, self.note]) + " |"


def _two_places(number: float | None) -> str:
    return "" if number is None else f"{number:.2f}"


def nodes_of(path: Path) -> int:
    """The nodes of a model and of all graphs in it, constants aside."""

    def count(graph: onnx.GraphProto) -> int:
        inner = (a.g for node in graph.node for a in node.attribute if a.HasField("g"))
        own = sum(node.op_type != "Constant" for node in graph.node)
        return own + sum(map(count, inner))

    return count(onnx.load(path, load_external_data=False).graph)


def ratio(ours: Run, theirs: Run, seconds: float) -> float:
    """The shortest time of one divided by that of the other, over `seconds`, or longer for a large
    ratio."""
    best = [float("inf"), float("inf")]
    for run in (ours, theirs):
        run()
    for _ in range(LONGER):
        end = time.perf_counter() + seconds
        while True:
            for place, run in enumerate((ours, theirs)):
                start = time.process_time()
                run()
                best[place] = min(best[place], time.process_time() - start)
            if time.perf_counter() >= end:
                break
        if best[0] <= SLOW * best[1]:
            break
    return best[0] / best[1]


def round_trip_of(source: Path, there: Path, back: Path) -> None:
    """ONNX to IR and back to ONNX."""
    bridge.convert(source, there)
    bridge.convert(there, back)


def measure(name: str, source: Path, feed: Feed, seconds: float, own: Path | None) -> Measured:
    """The row of an ONNX file; `own` is OpenVINO's IR of the PyTorch module."""
    there, back = source.with_suffix(".xml"), source.with_suffix(".back.onnx")
    again = source.with_suffix(".again.onnx")
    round_trip_of(source, there, back)
    round_trip_of(back, source.with_suffix(".again.xml"), again)
    file, ours = in_onnxruntime(source, feed), in_onnxruntime(back, feed)
    exact, written = in_onnxruntime(source, feed, False), in_openvino(there, feed)
    pairs = {"back": (in_onnxruntime(back, feed, False), exact), "IR": (written, exact)}
    notes, ir_time, torch_nodes, torch_time = [], None, None, None
    try:
        read = in_openvino(source, feed)
        ir_time, pairs["IR"] = ratio(written, read, seconds), (written, read)
    except RuntimeError:
        notes.append("OpenVINO does not read the file")
    if own is not None and own.exists():
        served = own.with_suffix(".onnx")
        bridge.convert(own, served)
        pairs["PT"] = in_onnxruntime(served, feed, False), exact
        torch_nodes = nodes_of(served)
        torch_time = ratio(in_onnxruntime(served, feed), file, seconds)
    elif own is not None:
        notes.append("OpenVINO does not take the module")
    if back.read_bytes() != again.read_bytes():
        notes.append("a second round trip differs")
    notes += [f"{which} differs" for which, pair in pairs.items() if differ(*pair)]
    return Measured(
        name, nodes_of(source), nodes_of(back), ratio(ours, file, seconds), ir_time,
        torch_nodes, torch_time, ", ".join(notes),
    )  # fmt: skip


def read_by_openvino(made: Made, path: Path) -> None:
    """OpenVINO's IR of a PyTorch module, if OpenVINO can read it."""
    module, inputs = made
    with contextlib.suppress(OpConversionFailure):
        model = openvino.convert_model(module, example_input=tuple(inputs.values()))
        openvino.save_model(model, path, compress_to_fp16=False)


def made(
    folder: Path, name: str, files: Mapping[str, File] = FILES
) -> tuple[Path, Feed, Path | None]:
    """The ONNX file of an architecture, inputs, and OpenVINO's own IR; they are made if missing."""
    base = name.replace("/", "")
    source, inputs = folder / f"{base}.onnx", folder / f"{base}.npz"
    file = files[name]
    own = folder / f"{base}.torch.xml" if file.as_made else None
    if not inputs.exists():
        torch.manual_seed(0)
        module, tensors = ARCHITECTURES[file.architecture]()
        module.eval()
        feed = {key: x.numpy() for key, x in tensors.items()}
        with torch.no_grad():
            file.export((module, tensors), source)
            if own is not None:
                read_by_openvino((module, tensors), own)
        np.savez(inputs, **feed)
    with np.load(inputs) as arrays:
        return source, dict(arrays), own


def main(names: Sequence[str], seconds: float, kept: Path | None) -> None:
    """Prints the table, row by row, and means and worst cases. `kept` is a folder that keeps the
    models for the next time."""
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    print(HEADER)
    print("|---|---:|---:|---:|---:|---:|---:|---:|---|")
    measured = []
    for name in names or FILES:
        with TemporaryDirectory() as folder:
            source, feed, own = made(kept or Path(folder), name)
            row = measure(name, source, feed, seconds, own)
        print(row.text(), flush=True)
        measured.append(row)
    columns = {
        "nodes": [row.back / row.nodes for row in measured],
        "time": [row.back_time for row in measured],
        "IR time": [row.ir_time for row in measured],
        "PT time": [row.torch_time for row in measured],
    }
    for title, column in columns.items():
        ratios = [ratio for ratio in column if ratio is not None] or [math.nan]
        print(f"{title}: {statistics.mean(ratios):.2f} on average, {max(ratios):.2f} at worst")
