"""`python -m tests.benchmark --warm`: conversions in one process that has converted the model
before.

Bridge converts each model to IR, and so do OpenVINO's own `read_model` and `save_model`. The
figures are the shortest processor times of several runs, which other work on the machine disturbs
least, and the sizes of the two `.xml` files. Models are exported as for `--served`; `--model` takes
files.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx
import openvino

import bridge

HEADER = """\
| model | nodes | Bridge | OpenVINO | ratio | `.xml`, ratio |
|---|---:|---:|---:|---:|---:|"""


def shortest(run: Callable[[], object], count: int) -> float:
    """The shortest processor time of several runs after a first one, in seconds."""
    run()
    times = []
    for _ in range(count):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def row(name: str, source: Path, folder: Path, count: int) -> tuple[str, float, float]:
    """A row of the table, and its two ratios."""
    ours, own = folder / "ours.xml", folder / "own.xml"
    core = openvino.Core()

    def by_openvino() -> None:
        openvino.save_model(core.read_model(source), own, compress_to_fp16=False)

    ours_time = shortest(lambda: bridge.convert(source, ours), count)
    own_time = shortest(by_openvino, count)
    nodes = len(onnx.load(source, load_external_data=False).graph.node)
    time_ratio, size_ratio = ours_time / own_time, ours.stat().st_size / own.stat().st_size
    text = (
        f"| {name} | {nodes:,} | {1000 * ours_time:.0f} ms | {1000 * own_time:.0f} ms "
        f"| {time_ratio:.2f} | {size_ratio:.2f} |"
    )
    return text, time_ratio, size_ratio


def main(files: Sequence[Path], kept: Path | None, count: int) -> None:
    """Prints the table row by row, then the means and the largest ratios."""
    print(HEADER)
    ratios: list[tuple[float, float]] = []
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name, source in models(files, kept or folder):
            try:
                text, *found = row(name, source, folder, count)
            except (bridge.BridgeError, RuntimeError) as error:
                text = f"| {name} | {str(error).splitlines()[0]} | | | | |"
            else:
                ratios.append((found[0], found[1]))
            print(text, flush=True)
    for title, column in zip(("time", ".xml"), zip(*ratios, strict=True), strict=False):
        mean, worst = statistics.mean(column), max(column)
        print(f"{title}: {mean:.2f} on average, {worst:.2f} at worst")


def models(files: Sequence[Path], folder: Path) -> list[tuple[str, Path]]:
    """The models with their names: the files, or PyTorch's exports if no file is given."""
    if files:
        return [(file.stem, file) for file in files]
    from tests.benchmark.exporter_models import FILES
    from tests.benchmark.served import made

    return [(name, made(folder, name)[0]) for name, file in FILES.items() if file.as_made]
