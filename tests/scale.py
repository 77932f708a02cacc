"""`python -m tests.scale [SHAPE...]`: the time of commands grows in proportion to a model.

Each shape of models is made with 1,000 and with 4,000 parts; `--route` takes one way alone. A ratio
of processor times above 5, without the start of the process, is told, and ends with 1.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import onnx
import typer
from onnx import TensorProto, helper, numpy_helper

SIZES = (1000, 4000)
MOST = 5.0
LEAST = 0.15
"""Seconds; a shorter time is counted as this one, because it is not measured well."""

Make = Callable[[int], onnx.ModelProto]

node = helper.make_node


def value(name: str, type: int = TensorProto.FLOAT, shape: object = (4,)) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, type, shape)


def model(
    nodes: Sequence[onnx.NodeProto],
    outputs: Sequence[str],
    inputs: Sequence[onnx.ValueInfoProto] = (),
    constants: Sequence[onnx.TensorProto] = (),
    open_shape: bool = False,
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    """A model of `x`, a condition `c` and a count `n`, of which it may use each."""
    given = [value("x"), value("c", TensorProto.BOOL, ()), value("n", 7, ()), *inputs]
    given = list({each.name: each for each in given}.values())  # the last of a name
    results = [value(name, shape=None if open_shape else (4,)) for name in outputs]
    graph = helper.make_graph(nodes, "g", given, results, constants)
    opsets = [helper.make_opsetid(domain, number) for domain, number in OPSETS.items()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9, functions=functions)


OPSETS = {"": 17, "ai.onnx.ml": 2, "own": 1}


def many(letter: str, count: int) -> list[str]:
    return [f"{letter}{i}" for i in range(count)]


def body(nodes: Sequence[onnx.NodeProto], outputs: Sequence[str]) -> onnx.GraphProto:
    return helper.make_graph(nodes, "body", [], [value(name) for name in outputs])


def chosen(condition: str, outputs: Sequence[str], then: str, other: str, source: str) -> object:
    """An If whose branches are one operator for each output."""
    branches = {
        f"{branch}_branch": body(
            [node(op, [source], [f"{name}_{branch}"]) for name in outputs],
            [f"{name}_{branch}" for name in outputs],
        )
        for branch, op in (("then", then), ("else", other))
    }
    return node("If", [condition], outputs, **branches)


def in_a_row(step: Callable[[int, str, str], Sequence[onnx.NodeProto]], **options: object) -> Make:
    """Models in which each part takes the value of the part before."""

    def make(count: int) -> onnx.ModelProto:
        names = ["x", *many("v", count)]
        nodes = [each for i in range(count) for each in step(i, names[i], names[i + 1])]
        return model(nodes, names[-1:], **options)  # type: ignore[arg-type]

    return make


def side_by_side(outputs: bool = False, op: str = "Sin", name: str = "") -> Make:
    """Models whose parts all take one value; they are outputs, or summed up."""

    def make(count: int) -> onnx.ModelProto:
        names = many("v", count)
        nodes = [node(op, ["s"], [each], name=name) for each in names]
        start, end = node("Sin", ["x"], ["s"]), node("Sum", names, ["y"])
        return model([start, *nodes, *(() if outputs else (end,))], names if outputs else ["y"])

    return make


def inputs(count: int) -> onnx.ModelProto:
    names = many("v", count)
    return model([node("Sum", names, ["y"])], ["y"], list(map(value, names)))


def constants(count: int) -> onnx.ModelProto:
    names = many("v", count)
    held = [numpy_helper.from_array(np.full(4, i, np.float32), n) for i, n in enumerate(names)]
    return model([node("Sum", ["x", *names], ["y"])], ["y"], constants=held)


def captures(count: int) -> onnx.ModelProto:
    """An If that captures many values."""
    names = many("v", count)
    branches = {
        "then_branch": body([node("Sum", names, ["a"])], ["a"]),
        "else_branch": body([node("Max", names, ["b"])], ["b"]),
    }
    nodes = [node("Sin", ["x"], [name]) for name in names]
    return model([*nodes, node("If", ["c"], ["y"], **branches)], ["y"])


def if_outputs(count: int) -> onnx.ModelProto:
    names = many("y", count)
    return model([chosen("c", names, "Sin", "Cos", "x")], names)  # type: ignore[list-item]


def looped(states: Sequence[str]) -> onnx.GraphProto:
    new = [f"{name}_new" for name in states]
    nodes = [node("Identity", ["on"], ["on_new"])]
    nodes += [node("Sin", [name], [f"{name}_new"]) for name in states]
    given = [value("i", 7, ()), value("on", 9, ()), *map(value, states)]
    return helper.make_graph(nodes, "body", given, [value("on_new", 9, ()), *map(value, new)])


def loop_states(count: int) -> onnx.ModelProto:
    names, start = many("y", count), ["x"] * count
    return model([node("Loop", ["n", "", *start], names, body=looped(many("s", count)))], names)


def functions(count: int) -> onnx.ModelProto:
    names = ["x", *many("v", count)]
    sets = [helper.make_opsetid("", 17)]
    made = [
        helper.make_function("own", f"F{i}", ["a"], ["b"], [node("Sin", ["a"], ["b"])], sets)
        for i in range(count)
    ]
    calls = [node(f"F{i}", [names[i]], [names[i + 1]], domain="own") for i in range(count)]
    return model(calls, names[-1:], functions=made)


def metadata(count: int) -> onnx.ModelProto:
    made = model([node("Sin", ["x"], ["y"])], ["y"])
    helper.set_model_props(made, dict.fromkeys(many("k", count), "v"))
    return made


def labels(count: int) -> onnx.ModelProto:
    keys = {"keys_int64s": list(range(count)), "values_strings": many("s", count)}
    made = model([node("LabelEncoder", ["n"], ["y"], domain="ai.onnx.ml", **keys)], ["y"])
    made.graph.output[0].CopyFrom(value("y", TensorProto.STRING, ()))
    return made


def symbols(count: int) -> onnx.ModelProto:
    given = [value(f"i{name}", shape=(name,)) for name in many("s", count)]
    return model([node("Sin", ["x"], ["y"])], ["y"], given)


def sequence(count: int) -> onnx.ModelProto:
    names = many("q", count + 1)
    nodes = [node("SequenceEmpty", [], names[:1])]
    nodes += [node("SequenceInsert", [names[i], "x"], [names[i + 1]]) for i in range(count)]
    nodes += [node("ConcatFromSequence", names[-1:], ["y"], axis=0)]
    return model(nodes, ["y"], open_shape=True)


def split(count: int) -> onnx.ModelProto:
    names = many("v", count)
    sizes = numpy_helper.from_array(np.ones(count, np.int64), "sizes")
    nodes = [node("Split", ["x", "sizes"], names, axis=0), node("Sum", names, ["y"])]
    return model(nodes, ["y"], [value("x", shape=(count,))], [sizes], open_shape=True)


def folded(count: int) -> onnx.ModelProto:
    names = many("v", count + 1)
    one = [numpy_helper.from_array(np.ones(4, np.float32), name) for name in ("one", "v0")]
    nodes = [node("Add", [names[i], "one"], [names[i + 1]]) for i in range(count)]
    return model([*nodes, node("Add", ["x", names[-1]], ["y"])], ["y"], constants=one)


def _if_on_data(i: int, before: str, after: str) -> list[onnx.NodeProto]:
    return [
        node("ReduceMax", [before], [f"m{i}"], keepdims=0),
        node("Greater", [f"m{i}", "half"], [f"c{i}"]),
        chosen(f"c{i}", [after], "Sin", "Cos", before),  # type: ignore[list-item]
    ]


def _quantized(i: int, before: str, after: str) -> list[onnx.NodeProto]:
    return [
        node("QuantizeLinear", [before, "half", "zero"], [f"q{i}"]),
        node("DequantizeLinear", [f"q{i}", "half", "zero"], [after]),
    ]


_HALF = [numpy_helper.from_array(np.float32(0.5), "half")]
_ZERO = [*_HALF, numpy_helper.from_array(np.uint8(3), "zero")]
_OPEN = [value("x", shape=("A", "B"))]

SHAPES: dict[str, Make] = {
    "chain": in_a_row(lambda i, before, after: [node("Sin", [before], [after])]),
    "doubled": in_a_row(lambda i, before, after: [node("Add", [before, before], [after])]),
    "wide": side_by_side(),
    "one_name": side_by_side(name="same"),
    "outputs": side_by_side(outputs=True),
    "same_outputs": side_by_side(outputs=True, op="Identity"),
    "inputs": inputs,
    "constants": constants,
    "ifs": in_a_row(lambda i, before, after: [chosen("c", [after], "Sin", "Cos", before)]),  # type: ignore[list-item]
    "ifs_on_data": in_a_row(_if_on_data, constants=_HALF),
    "captures": captures,
    "if_outputs": if_outputs,
    "loops": in_a_row(
        lambda i, before, after: [node("Loop", ["n", "", before], [after], body=looped(["s"]))]
    ),
    "loop_states": loop_states,
    "functions": functions,
    "metadata": metadata,
    "labels": labels,
    "symbols": symbols,
    "reshapes": in_a_row(
        lambda i, before, after: [
            node("Shape", [before], [f"s{i}"]),
            node("Reshape", [before, f"s{i}"], [after]),
        ],
        inputs=_OPEN,
        open_shape=True,
    ),
    "transposes": in_a_row(
        lambda i, before, after: [node("Transpose", [before], [after], perm=[1, 0])],
        inputs=_OPEN,
        open_shape=True,
    ),
    "longer": in_a_row(
        lambda i, before, after: [node("Concat", [before, "x"], [after], axis=0)],
        inputs=[value("x", shape=("A",))],
        open_shape=True,
    ),
    "one_concat": lambda n: model([node("Concat", ["x"] * n, ["y"], axis=0)], ["y"], (), (), True),
    "sequence": sequence,
    "split": split,
    "folded": folded,
    "quantized": in_a_row(_quantized, constants=_ZERO),
}
"""The shapes of models by name: each makes a model of so many parts."""

ROUTES: dict[str, tuple[str, ...]] = {
    "to_ir": ("convert", "{}.onnx", "{}.xml", "-q", "--force"),
    "back": ("convert", "{}.xml", "{}-back.onnx", "-q", "--force"),
    "select": ("convert", "{}.onnx", "{}-plain.xml", "-q", "--force", "--ifs", "select-some"),
    "gpu": ("convert", "{}.onnx", "{}-gpu.xml", "-q", "--force", "--device", "GPU"),
    "inspect": ("inspect", "{}.onnx", "--html", "{}.html", "--svg", "{}.svg", "--force"),
}
"""The commands by route; the second needs the files of the first."""


def seconds(command: Sequence[str]) -> tuple[float, str]:
    """The processor time of a command of Bridge, and the first line of its error."""
    words = [sys.executable, "-m", "bridge", *command]
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        said = errors.read().decode(errors="replace").split("\n")[0] if process.returncode else ""
    return used.ru_utime + used.ru_stime, said


def ratio(shape: str, route: str, folder: Path, idle: float) -> tuple[float, str]:
    """The ratio of the times at both sizes, and the times as text."""
    times = []
    for size in SIZES:
        stem = str(folder / f"{shape}-{size}")
        if not Path(f"{stem}.onnx").exists():
            onnx.save(SHAPES[shape](size), f"{stem}.onnx")
        if route == "back" and not Path(f"{stem}.xml").exists():
            seconds([word.format(stem) for word in ROUTES["to_ir"]])
        time, error = seconds([word.format(stem) for word in ROUTES[route]])
        if error:
            return float("inf"), error
        times.append(max(time - idle, LEAST))
    return times[1] / times[0], " -> ".join(f"{time:.2f} s" for time in times)


def main(
    shapes: Annotated[list[str] | None, typer.Argument()] = None,
    route: Annotated[list[str] | None, typer.Option()] = None,
) -> None:
    """Measures all shapes, or those named, on all routes, or those named."""
    slow = False
    with tempfile.TemporaryDirectory() as name:
        onnx.save(SHAPES["chain"](1), f"{name}/one.onnx")
        starts = {r: [w.format(f"{name}/one") for w in words] for r, words in ROUTES.items()}
        idle = {r: min(seconds(words)[0] for _ in range(2)) for r, words in starts.items()}
        for shape in shapes or SHAPES:
            for each in route or ROUTES:
                found, times = ratio(shape, each, Path(name), idle[each])
                if found > MOST:  # other load on the machine may be the cause
                    found, times = min((found, times), ratio(shape, each, Path(name), idle[each]))
                slow |= found > MOST
                mark = " SLOW" if found > MOST else ""
                print(f"{shape:13} {each:8} {found:4.1f}{mark}  {times}", flush=True)
    sys.exit(slow)


if __name__ == "__main__":
    typer.run(main)
