"""`python -m tests.benchmark --int8`: quantised models, both ways. Without `--model FILE` it
exports models and quantises them in three forms (extra `served`).

Processor times on one thread, in turn, the shortest of several runs:

- *convert*: ONNX → IR against OpenVINO's own reading and writing.
- *IR's time*: against OpenVINO's own reading of the file.
- *back*: the ONNX that comes back against the file, in onnxruntime with all optimisations. The
  error of its results is given relative to the largest result of the file.

For an IR, *convert* is IR → ONNX against OpenVINO's own reading and writing of the IR. *back* is
ONNX → IR against OpenVINO's reading and writing of the ONNX. *time* and *off by* compare the IR
that comes back with the first IR, with OpenVINO's defaults.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import onnxruntime
import openvino

import bridge
from tests.benchmark.engines import Feed
from tests.support.running import EXACT

HEADER = """\
| model | nodes | there and back | convert | IR's time | back, time | back, off by |
|---|---:|---:|---:|---:|---:|---:|"""

HEADER_OF_IR = """\
| IR | layers | in ONNX | and back | OpenVINO's | convert | back | time | off by |
|---|---:|---:|---:|---:|---:|---:|---:|---:|"""

SIZE = 4
"""The size of open axes."""


def ratio(one: Callable[[], object], other: Callable[[], object], count: int) -> float:
    """The shortest processor time of one function divided by that time of another, called in
    turn."""
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(count + 1):
        for run, kept in zip((one, other), times, strict=True):
            start = time.process_time()
            run()
            if turn:
                kept.append(time.process_time() - start)
    return min(times[0]) / min(times[1])


def session(path: Path) -> onnxruntime.InferenceSession:
    """A session of one thread with all optimisations."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])


def drawn(model: onnxruntime.InferenceSession) -> dict[str, np.ndarray]:
    """Inputs: floats around 0, integers of 0 and 1."""
    random = np.random.default_rng(1)
    feed = {}
    for given in model.get_inputs():
        shape = [size if isinstance(size, int) else SIZE for size in given.shape]
        floats = random.standard_normal(shape).astype(np.float32)
        feed[given.name] = floats if "float" in given.type else (floats > 0).astype(np.int64)
    return feed


def row(name: str, source: Path, folder: Path, count: int, feed: Feed | None = None) -> str:
    """A row of the table. Without a feed, it draws inputs."""
    ours, own, back = (folder / name for name in ("ours.xml", "own.xml", "back.onnx"))
    core = openvino.Core()
    core.set_property("CPU", {"INFERENCE_NUM_THREADS": 1})

    def by_openvino() -> None:
        openvino.save_model(core.read_model(source), own, compress_to_fp16=False)

    bridge.convert(source, ours)
    bridge.convert(ours, back)
    before, after = session(source), session(back)
    feed = feed or drawn(before)
    wanted, found = before.run(None, feed), after.run(None, feed)
    off = max(
        float(np.abs(a - b).max() / max(np.abs(a).max(), 1e-9))
        for a, b in zip(wanted, found, strict=True)
    )
    try:
        by_openvino()
        convert = f"{ratio(lambda: bridge.convert(source, ours), by_openvino, 5):.2f}"
        mine, theirs = (core.compile_model(p, "CPU", EXACT) for p in (ours, source))
        reading = f"{ratio(lambda: mine(feed), lambda: theirs(feed), count):.2f}"
    except RuntimeError:
        convert = reading = "none"
    latency = ratio(lambda: after.run(None, feed), lambda: before.run(None, feed), count)
    nodes = [len(onnx.load(p, load_external_data=False).graph.node) for p in (source, back)]
    return (
        f"| {name} | {nodes[0]} | {nodes[1]} | {convert} | {reading} | {latency:.2f} | {off:.0e} |"
    )


def row_of_ir(source: Path, folder: Path, count: int) -> str:
    """A row of the table of IRs."""
    there, back, own = (folder / name for name in ("there.onnx", "back.xml", "own.xml"))
    core = openvino.Core()
    core.set_property("CPU", {"INFERENCE_NUM_THREADS": 1})

    def by_openvino(file: Path) -> None:
        openvino.save_model(core.read_model(file), own, compress_to_fp16=False)

    bridge.convert(source, there)
    convert = ratio(lambda: bridge.convert(source, there), lambda: by_openvino(source), 5)
    again = ratio(lambda: bridge.convert(there, back), lambda: by_openvino(there), 5)
    counts = [layers(core.read_model(path)) for path in (source, back, own)]
    nodes = len(onnx.load(there, load_external_data=False).graph.node)
    first, second = (core.compile_model(path, "CPU") for path in (source, back))
    random = np.random.default_rng(1)
    feed = [random.standard_normal(port.shape).astype(np.float32) for port in first.inputs]
    feed = [
        x if port.element_type.is_real() else (x > 0).astype(port.element_type.to_dtype())
        for x, port in zip(feed, first.inputs, strict=True)
    ]
    wanted, found = (next(iter(model(feed).values())) for model in (first, second))
    off = float(np.abs(wanted - found).max() / max(np.abs(wanted).max(), 1e-9))
    latency = ratio(lambda: second(feed), lambda: first(feed), count)
    return (
        f"| {source.stem} | {counts[0]} | {nodes} | {counts[1]} | {counts[2]} | {convert:.2f} "
        f"| {again:.2f} | {latency:.2f} | {off:.0e} |"
    )


def layers(model: openvino.Model) -> int:
    """The layers that do not only hold constants, inputs or outputs."""
    kinds = [op.get_type_name() for op in model.get_ops()]
    return sum(kind not in ("Constant", "Parameter", "Result") for kind in kinds)


def main(files: Sequence[Path], kept: Path | None, count: int) -> None:
    """Prints the tables row by row, first the table of ONNX models."""
    irs = [file for file in files if file.suffix == ".xml"]
    others = [file for file in files if file.suffix != ".xml"]
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if others or not irs:
            print(HEADER)
            for name, source, feed in models(others, kept or folder):
                print(row(name, source, folder, count, feed), flush=True)
        if irs:
            print(HEADER_OF_IR)
        for source in irs:
            print(row_of_ir(source, folder, count), flush=True)


def models(files: Sequence[Path], folder: Path) -> Iterator[tuple[str, Path, Feed | None]]:
    """The models with their names and inputs: the files, or the exported and quantised models."""
    if files:
        yield from ((file.stem, file, None) for file in files)
        return
    from tests.benchmark.exporter_models import INT8
    from tests.benchmark.served import made

    for name in INT8:
        source, feed, _ = made(folder, name, INT8)
        yield name, source, feed
