"""`python -m tests.quirks.nonfinite`: how OpenVINO computes with NaN and infinities.

Each operator of the table runs on rows that hold one such number among others, in each type of
floats, at the top of a model and in a branch. `nonfinite.tsv` and `docs/quirks.md` list the
differences between OpenVINO and onnxruntime.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import onnx.parser

import bridge
from tests.support.running import OnnxRuntime, OpenVino

STORED = Path(__file__).with_suffix(".tsv")

PROBES = {"NaN": float("nan"), "∞": float("inf"), "-∞": float("-inf")}
TYPES = {
    "f32": ("float", np.float32),
    "f16": ("float16", np.float16),
    "f64": ("double", np.float64),
}

ALONE = (
    "Abs", "Ceil", "Celu", "Elu", "Erf", "Exp", "Floor", "HardSigmoid", "HardSwish", "LeakyRelu",
    "Log", "Mish", "Neg", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Softplus",
    "Softsign", "Sqrt", "Tanh", "ThresholdedRelu", "IsInf", "IsNaN", "Gelu",
)  # fmt: skip
PAIRS = ("Add", "Div", "Equal", "Greater", "Less", "Max", "Min", "Mul", "PRelu", "Pow", "Sub")
REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSum",
)  # fmt: skip

NODES = {
    **{op: f"y = {op} (x)" for op in ALONE},
    **{op: f"y = {op} (x, w)" for op in PAIRS},
    **{op: f"y = {op} <keepdims = 0> (x, last)" for op in REDUCTIONS},
    "ArgMax": "y = ArgMax <axis = -1> (x)",
    "ArgMin": "y = ArgMin <axis = -1> (x)",
    "Cast to bool": "y = Cast <to = 9> (x)",
    "Cast to f64": "y = Cast <to = 11> (x)",
    "Clip": "y = Clip (x, low, high)",
    "CumSum": "y = CumSum (x, one)",
    "LogSoftmax": "y = LogSoftmax (x)",
    "MatMul": "t = Transpose (w) y = MatMul (x, t)",
    "MaxPool": "u = Unsqueeze (x, first) y = MaxPool <kernel_shape = [2]> (u)",
    "Mod": "y = Mod <fmod = 1> (x, w)",
    "Softmax": "y = Softmax (x)",
    "TopK": "y, i = TopK (x, two)",
    "Max of a number": "y = Max (x, high)",
    "Min of a number": "y = Min (x, low)",
    "Where": "b = Greater (w, x) y = Where (b, x, w)",
}


STAYS = {
    ("Clip", "HardSigmoid"): "OpenVINO joins a Max and a Min by constants to a Clamp, which loses "
    "NaN, too.",
    ("Relu",): "The maximum of 0 and a value keeps NaN. Behind a Conv it is a layer of its own, "
    "though, and a Relu is none.",
    ("Max", "Min"): "The kernel gives its second operand. Beside a constant, the quirk "
    "`exchanged_operands` has NaN there; of two computed operands, either may be NaN.",
    ("Exp",): "A Power of e keeps NaN, and takes ten times as long.",
    ("Gelu",): "OpenVINO makes a Gelu of the Erf and the arithmetic that stand for it.",
    ("ArgMin", "ReduceLogSumExp", "ReduceMax", "ReduceMin", "TopK"): "The kernel keeps the number "
    "if a comparison with NaN is false. Another writing looks for NaN, in a second pass.",
    (
        "LogSoftmax",
        "Softmax",
    ): "The kernel subtracts the greatest element, as a ReduceMax finds it.",
    (
        "Cast to f64",
    ): "The plugin computes in f32. It converts what a model gives in f64, and brings "
    "infinities into the range of f32. No other layer makes f64 of f32.",
    ("Sign",): "onnxruntime gives 0 for NaN in f16, and OpenVINO NaN.",
}
"""The reasons why these operators stay unchanged in f32 and f16."""

F64 = (
    "Of f64, an infinity is the largest number of f32 as soon as the plugin reads it. So operators "
    "that no other row has differ in f64 alone."
)


GIVEN = {
    **dict.fromkeys(("Cast to bool", "Equal", "Greater", "IsInf", "IsNaN", "Less"), "bool"),
    **dict.fromkeys(("ArgMax", "ArgMin"), "int64"),
    "Cast to f64": "double",
}
"""Types of outputs that are not the type of the input."""


def _applied(node: str, of: str, output: str) -> str:
    """The node of a table with another input and another output."""
    return re.sub(r"\by\b", output, re.sub(r"\bx\b", of, node))


def model(name: str, type: str, branch: bool) -> str:
    """A graph of an operator. With a branch, the other branch applies it to the other input."""
    given = GIVEN.get(name, type)
    to = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dict(TYPES.values())[type]))
    limits = "".join(
        f"{limit}32 = Constant <value = float {{{number}}}> () "
        f"{limit} = Cast <to = {to}> ({limit}32) "
        for limit, number in (("low", -1.5), ("high", 1.5))
    )
    if branch:
        bodies = [
            f"{role}_branch = {role} () => ({given}[] {out}) {{ {_applied(NODES[name], of, out)} }}"
            for role, out, of in (("then", "p", "x"), ("else", "q", "w"))
        ]
        nodes = f"y = If (c) <{', '.join(bodies)}>"
    else:
        nodes = NODES[name]
    return (
        f'<ir_version: 10, opset_import: ["" : 21]> g ({type}[n, 4] x, {type}[n, 4] w, bool c) => '
        f"({given}[] y) <int64[1] last = {{-1}}, int64[1] first = {{0}}, int64 one = {{1}}, "
        f"int64[1] two = {{2}}> {{ {limits} {nodes} }}"
    )


def wrong(name: str, type: str, branch: bool) -> set[str]:
    """The probes on which OpenVINO differs from onnxruntime; none if onnxruntime cannot run
    them."""
    spelled, dtype = TYPES[type]
    proto = onnx.parser.parse_model(model(name, spelled, branch))
    try:
        session = OnnxRuntime(proto)
    except Exception:
        return set()
    with tempfile.TemporaryDirectory() as folder:
        bridge.convert(proto, Path(folder) / "m.xml")
        compiled = OpenVino(Path(folder) / "m.xml")
        found = set()
        for probe, number in PROBES.items():
            x = np.array([[number, 1, -2, 0.5], [3, number, -1, 0], [1, 2, 3, number]], dtype)
            w = np.array([[0.5, 2, 1, -1], [1, 1, 1, 1], [2, 0.5, 3, -2]], dtype)
            feed = {"x": x, "w": w, "c": np.array(True)}
            (expected,) = session.run(feed)
            (given,) = compiled.run(list(feed.values()))
            with np.errstate(all="ignore"):
                if not np.allclose(given, expected, 1e-2, 1e-2, equal_nan=True):
                    found.add(probe)
    return found


def rows() -> Iterator[str]:
    """Tab-separated: an operator, a type, and for each probe the place of a difference."""
    for name in sorted(NODES):
        for type in TYPES:
            top, inside = (wrong(name, type, branch) for branch in (False, True))
            if top or inside:
                words = {(True, True): "everywhere", (True, False): "at the top",
                         (False, True): "in a branch", (False, False): ""}  # fmt: skip
                cells = [words[probe in top, probe in inside] for probe in PROBES]
                yield "\t".join([name, type, *cells])


def table() -> Iterator[str]:
    """The stored differences as a table of `docs/quirks.md`."""
    yield f"| operator | type | {' | '.join(PROBES)} |"
    yield "| --- | --- | --- | --- | --- |"
    for line in STORED.read_text(encoding="utf-8").splitlines():
        yield f"| {line.replace(chr(9), ' | ')} |"
    yield "\nWhy they stay:\n"
    for operators, why in STAYS.items():
        yield f"- {', '.join(operators)}: {why}"
    yield f"- {F64}"


if __name__ == "__main__":
    STORED.write_text("".join(f"{row}\n" for row in rows()), encoding="utf-8")
