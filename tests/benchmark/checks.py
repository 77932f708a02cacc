"""`python -m tests.benchmark --checks --model FILE.onnx`: the time of a check, as whole processes.

A check and a quick one are compared with a process that loads the model in onnxruntime and the IR
in OpenVINO, and runs two inputs in each. Times are median processor times, with the processes that
a check starts.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import bridge
from bridge.check import check
from bridge.check.inputs.own import save_feed
from tests.benchmark.processes import measure
from tests.support.reports import feeds_of

CHECK = "import sys; from bridge.check import check; check(sys.argv[1], quick=len(sys.argv) > 2)"
OWN = """
import sys, numpy, onnxruntime, openvino
options = onnxruntime.SessionOptions()
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
compiled = openvino.Core().compile_model(sys.argv[2], "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
feeds = dict(numpy.load(sys.argv[3]))
for _ in range(2):
    session.run(None, feeds)
    compiled(feeds)
"""


def main(models: Sequence[Path], runs: int) -> None:
    """Prints a row for each model."""
    for model in models:
        with TemporaryDirectory() as folder:
            ir, feed = Path(folder) / "m.xml", Path(folder) / "x.npz"
            bridge.convert(model, ir)
            save_feed(feed, feeds_of(check(model, quick=True))[0])
            python = [sys.executable, "-c"]
            commands = (
                [*python, OWN, str(model), str(ir), str(feed)],
                [*python, CHECK, str(model), "quick"],
                [*python, CHECK, str(model)],
            )
            found = [[measure(command) for command in commands] for _ in range(runs)]
            seconds = [
                statistics.median(run.seconds for run in column if run is not None)
                for column in zip(*found, strict=True)
            ]
            nodes = sum(node.op != "Constant" for node in bridge.load(model).graph.walk())
            own, quick, whole = seconds
            print(
                f"| {model.stem} | {nodes} | {own:.2f} s | {quick:.2f} s | {quick / own:.1f} "
                f"| {whole:.2f} s |",
                flush=True,
            )
