"""`python -m tests.benchmark`: Bridge against OpenVINO's own converter, as whole processes.

Makes its inputs in a temporary folder, and runs the commands of a row in turn, A B A B. It prints
the median processor time of each, which other work on the machine disturbs little. It also prints
the median of the ratios pair by pair, and peak memory. The rows with weights of 1 GiB need 7 GiB of
disk and are compared with `cp` of those weights. If ONNXifier is installed, the table has it beside
Bridge on the way from IR to ONNX. A model of one's own, `--model`, is compared with OpenVINO. It is
also compared with a process that imports onnx and lxml.etree and runs a Typer app with the same
commands and options that do nothing (`idle_app.py`).

Two figures stand below the table, as shortest processor times, which other work on the machine
disturbs least. The first is the time of a conversion in a process that has imported onnx, for the
first conversion and later ones. The second is the time for one If in a model of many, which should
not depend on their number.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.benchmark import idle_app

IDLE = "import sys; sys.path.insert(0, sys.argv.pop(1)); import idle_app"
TIMED = """
import sys, time, onnx
def timed():
    start = time.process_time()
    import bridge
    bridge.convert(*sys.argv[1:])
    return time.process_time() - start
print(timed(), min(timed() for _ in range(4)))
"""
MANY = (500, 2_000, 8_000)
"""The numbers of Ifs in the models without constants."""

OPENVINO = (
    "import sys, openvino as ov; model = ov.Core().read_model(sys.argv[1]); "
    "ov.save_model(model, sys.argv[2], compress_to_fp16=False)"
)


@dataclass(frozen=True)
class Run:
    """One process: processor time in seconds, peak memory in MB."""

    seconds: float
    megabytes: float


@dataclass(frozen=True)
class Row:
    """A measurement: Bridge's command against another one."""

    title: str
    bridge: list[str]
    other_name: str
    other: list[str]


def environment() -> dict[str, str]:
    """The environment of the processes. They keep bytecode, as an installed package does, even if
    this process does not."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def measure(command: Sequence[str]) -> Run | None:
    """The finished run; None if the command failed."""
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=quiet, stderr=quiet, env=environment())
    _, status, usage = os.wait4(process.pid, 0)
    seconds = usage.ru_utime + usage.ru_stime
    process.returncode = os.waitstatus_to_exitcode(status)
    return None if process.returncode else Run(seconds, usage.ru_maxrss / 1024)


def python(code: str, source: Path, destination: Path) -> list[str]:
    return [sys.executable, "-c", code, str(source), str(destination)]


def bridge(source: Path, target: Path) -> list[str]:
    """The command of a conversion."""
    return [sys.executable, "-m", "bridge", "convert", "--quiet", str(source), str(target)]


def save(path: Path, nodes: list, inputs: list, outputs: list, tensors: list, **options) -> None:
    graph = helper.make_graph(nodes, "benchmark", inputs, outputs, tensors)
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path, **options)


def vector(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [4])


def ifs(path: Path, count: int) -> None:
    """A chain of Ifs whose conditions are computed, two nodes in each branch."""
    nodes, last = [], "x"
    for i in range(count):
        then = [helper.make_node("Mul", [last, "half"], [f"m{i}"]),
                helper.make_node("Sin", [f"m{i}"], [f"t{i}"])]  # fmt: skip
        other = [helper.make_node("Add", [last, "half"], [f"a{i}"]),
                 helper.make_node("Cos", [f"a{i}"], [f"e{i}"])]  # fmt: skip
        nodes += [
            helper.make_node("ReduceSum", [last, "axis"], [f"s{i}"], keepdims=0),
            helper.make_node("Greater", [f"s{i}", "half"], [f"c{i}"]),
            helper.make_node(
                "If",
                [f"c{i}"],
                [f"y{i}"],
                then_branch=helper.make_graph(then, "then", [], [vector(f"t{i}")]),
                else_branch=helper.make_graph(other, "else", [], [vector(f"e{i}")]),
            ),
        ]
        last = f"y{i}"
    tensors = [
        numpy_helper.from_array(np.array(0.5, np.float32), "half"),
        numpy_helper.from_array(np.array([0], np.int64), "axis"),
    ]
    save(path, nodes, [vector("x")], [vector(last)], tensors)


def ifs_without_constants(path: Path, count: int) -> None:
    """Ifs in turn, three nodes in each branch, without a single constant."""
    shape, nodes, last = [4, 8], [], "x"
    for i in range(count):
        branches = {}
        for branch, op in (("then_branch", "Sin"), ("else_branch", "Cos")):
            name = f"{branch}_{i}"
            inside = [
                helper.make_node(op, [last], [f"{name}_a"]),
                helper.make_node("Add", [f"{name}_a", "x"], [f"{name}_b"]),
                helper.make_node("Tanh", [f"{name}_b"], [name]),
            ]
            output = helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            branches[branch] = helper.make_graph(inside, branch, [], [output])
        nodes.append(helper.make_node("If", ["c"], [f"y{i}"], **branches))
        nodes.append(helper.make_node("Relu", [f"y{i}"], [f"z{i}"]))
        last = f"z{i}"
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("x", last)]
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    save(path, nodes, [ends[0], condition], ends[1:], [])


def convolutions(path: Path) -> None:
    """Thirty convolutions, 2.8 MB of weights."""
    random = np.random.default_rng(0)
    nodes, tensors, last = [], [], "x"
    for i in range(30):
        shape = (52, 52, 3, 3)
        weights = random.standard_normal(shape).astype(np.float32)
        tensors.append(numpy_helper.from_array(weights, f"w{i}"))
        nodes.append(helper.make_node("Conv", [last, f"w{i}"], [f"c{i}"], pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("Relu", [f"c{i}"], [f"r{i}"]))
        last = f"r{i}"
    shape = ["n", 52, 32, 32]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("x", last)]
    save(path, nodes, ends[:1], ends[1:], tensors)


def heavy(path: Path, external: bool) -> None:
    """Sixteen matrix products with 1 GiB of weights."""
    base = np.random.default_rng(0).standard_normal((4096, 4096)).astype(np.float32)
    nodes, tensors, last = [], [], "x"
    for i in range(16):
        tensors.append(numpy_helper.from_array(base + np.float32(i), f"w{i}"))
        nodes.append(helper.make_node("MatMul", [last, f"w{i}"], [f"y{i}"]))
        last = f"y{i}"
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 4096]) for n in ("x", last)]
    options = {"save_as_external_data": True, "location": f"{path.name}.data"} if external else {}
    save(path, nodes, ends[:1], ends[1:], tensors, **options)


def apart(make: Callable, *arguments: object) -> None:
    """Makes an input in a process of its own. Otherwise the memory of this large process would
    count as the memory of the commands that it starts."""
    process = multiprocessing.get_context("fork").Process(target=make, args=arguments)
    process.start()
    process.join()


def rows(folder: Path, weights: bool, given: Sequence[Path]) -> list[Row]:
    """Makes the inputs; the rows to measure with them and with the given models."""
    models: dict[str, Callable[[Path], None]] = {
        "2.8 MB of convolutions": convolutions,
        "500 Ifs": lambda path: ifs(path, 500),
        "2,000 Ifs": lambda path: ifs(path, 2000),
    }
    result = []
    idle_app.write(folder / "idle_app.py")
    for path in given:
        there, back = folder / f"{path.stem}.xml", folder / f"{path.stem}.onnx"
        for way, command in (
            ("ONNX → IR", bridge(path, there)),
            ("IR → ONNX", bridge(there, back)),
        ):
            idle = [sys.executable, "-c", IDLE, str(folder), *command[3:]]
            result.append(Row(f"{path.name}, {way}", command, "idle app", idle))
        own = python(OPENVINO, path, folder / "given.ov.xml")
        result.append(Row(f"{path.name}, ONNX → IR", bridge(path, there), "OpenVINO", own))
    for number, (title, make) in enumerate(models.items()):
        source = folder / f"{number}.onnx"
        apart(make, source)
        there, back, theirs = (folder / f"{number}.{s}" for s in ("xml", "back.onnx", "ov.xml"))
        own = python(OPENVINO, source, theirs)
        result.append(Row(f"{title}, ONNX → IR", bridge(source, there), "OpenVINO", own))
        result.append(Row(f"{title}, IR → ONNX", bridge(there, back), "OpenVINO →", own))
        if importlib.util.find_spec("onnxifier"):
            command = [sys.executable, "-m", "onnxifier", str(there), str(back)]
            way_back = bridge(there, back)
            result.append(Row(f"{title}, IR → ONNX", way_back, "ONNXifier", command))
    for count in MANY:
        source = many(folder, count)
        apart(ifs_without_constants, source, count)
        own = python(OPENVINO, source, folder / "many.ov.xml")
        ours = bridge(source, source.with_suffix(".xml"))
        result.append(Row(f"{count:,} Ifs without constants, ONNX → IR", ours, "OpenVINO", own))
    if weights:
        for title, external in (("external", True), ("embedded", False)):
            source = folder / f"{title}.onnx"
            apart(heavy, source, external)
            there, back = folder / f"{title}.xml", folder / f"{title}.back.onnx"
            data = folder / "external.onnx.data"
            copy = ["cp", str(data), str(folder / "copy.data")]
            result.append(Row(f"1 GiB {title}, ONNX → IR", bridge(source, there), "cp", copy))
            result.append(Row(f"1 GiB {title}, IR → ONNX", bridge(there, back), "cp", copy))
    return result


def many(folder: Path, count: int) -> Path:
    """The model of many Ifs without constants."""
    return folder / f"{count}_ifs.onnx"


def in_process(source: Path, folder: Path) -> tuple[float, float]:
    """Processor seconds of the first conversion, and of the next ones, in a process that has
    imported onnx."""
    command = python(TIMED, source, folder / "timed.xml")
    finished = subprocess.run(
        command, env=environment(), capture_output=True, text=True, check=True
    )
    first, later = map(float, finished.stdout.split())
    return first, later


def main(n: int, weights: bool, given: Sequence[Path]) -> None:
    """Prints the table, of `n` counted runs of each command."""
    print("| what | Bridge | against | its time | ratio | Bridge's peak | its peak |")
    print("|---|---:|---|---:|---:|---:|---:|")
    with TemporaryDirectory() as folder:
        for row in rows(Path(folder), weights, given):
            if measure(row.bridge) is None:
                raise SystemExit(f"{' '.join(row.bridge)} failed")
            if measure(row.other) is None:
                print(f"| {row.title} | | {row.other_name} | fails | | | |", flush=True)
                continue
            runs = [(measure(row.bridge), measure(row.other)) for _ in range(n)]
            pairs = [(a, b) for a, b in runs if a is not None and b is not None]
            ours, theirs = zip(*pairs, strict=True)
            ratio = statistics.median(a.seconds / b.seconds for a, b in pairs)
            cells = [
                row.title,
                f"{statistics.median(r.seconds for r in ours):.2f} s",
                row.other_name,
                f"{statistics.median(r.seconds for r in theirs):.2f} s",
                f"{ratio:.2f}",
                f"{max(r.megabytes for r in ours):.0f} MB",
                f"{max(r.megabytes for r in theirs):.0f} MB",
            ]
            print("| " + " | ".join(cells) + " |", flush=True)
        print()
        for path in given:
            times = [in_process(path, Path(folder)) for _ in range(n)]
            first, later = (min(each) for each in zip(*times, strict=True))
            print(f"{path.name}: first bridge.convert {first:.3f} s, next {later:.3f} s")
        each = [in_process(many(Path(folder), ifs), Path(folder))[1] / ifs for ifs in MANY]
        for count, seconds in zip(MANY, each, strict=True):
            print(f"{count:,} Ifs without constants: {seconds * 1e6:.0f} µs an If")
        print(f"an If takes {max(each) / min(each):.2f} times as long at most as at least")
