"""Plants one change in a body of an IR, and tabulates whether a check finds it.

    python -m tests.engines.planted [PATTERN ...]      models of `roundtrip_models/`, by glob
    python -m tests.engines.planted f16 int8           any layer of a model that rounds much

What a check does not find is listed with what it says it did not show. Changes that no input can
show are left out: a layer of a value with itself that gives this value again, and those that
`NEVER_SHOWN` lists with the reason.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

import bridge
from bridge.check import check
from bridge.errors import BridgeError
from tests.support.model_files import FOLDER

CHANGES = {
    "Add": "Subtract", "Subtract": "Add", "Multiply": "Add", "Divide": "Multiply",
    "Less": "GreaterEqual", "LessEqual": "Greater", "Greater": "LessEqual",
    "GreaterEqual": "Less", "Equal": "NotEqual", "NotEqual": "Equal",
    "LogicalAnd": "LogicalOr", "LogicalOr": "LogicalAnd", "Minimum": "Maximum",
    "Maximum": "Minimum", "Relu": "Sigmoid", "Sigmoid": "Tanh", "Tanh": "Sigmoid",
    "Exp": "Sin", "Abs": "Negative", "Negative": "Abs", "Sqrt": "Exp",
    "ReduceSum": "ReduceMax", "ReduceMax": "ReduceMin",
}  # fmt: skip
"""Layers, and what takes their place: of the same inputs, outputs and attributes."""

_SAME_TWICE = ("Minimum", "Maximum", "LogicalAnd", "LogicalOr")
"""Layers that give back a value that is both their inputs."""

NEVER_SHOWN = {
    "the branch runs only for a number that is not positive": (
        "if_gives_vector_or_scalar: Negative → Abs (Negative_1)",
        "loop_iteration_number_rank_1: Negative → Abs (Negative_1)",
    ),
    "the axis has one element": (
        "if_opset_13: ReduceSum → ReduceMax (ReduceSum_2)",
        "loop_iteration_number_rank_1: ReduceSum → ReduceMax (ReduceSum_7)",
    ),
    "a slice ends at the end of its axis at the latest": (
        "if_of_open_rank_in_if: Add → Subtract (Add_16)",
    ),
    "the other number is 0": (
        "loop_nested_captures: Add → Subtract (Add_9)",
        "loop_nested_captures: Add → Subtract (Add_13)",
        "loop_of_constants_without_count: Add → Subtract (Add_9)",
        "loop_of_constants_never_starts: Add → Subtract (Add_11)",
        "loop_of_constants_never_starts: Add → Subtract (Add_22)",
        # A 0 that OpenVINO does not see through (`bridge.quirks.opaque`).
        "if_masks_doubles_with_infinity: Add → Subtract (Add_9)",
        "if_masks_doubles_with_infinity: Add → Subtract (Add_12)",
        "loop_state_grows_in_branch: Add → Subtract (Add_11)",
        "int8: Add → Subtract (Add_40)",
    ),
    # Of a QuantizeLinear as arithmetic: k + (x - k * scale) / scale is x / scale for any k.
    "what is added is taken away again, but for the last bits": (
        "int8: Multiply → Add (Multiply_26)",
        "int8: Add → Subtract (Add_30)",
    ),
    "the number is smaller than the last bit": ("int8: Subtract → Add (Subtract_36)",),
    "the Loop never runs": (
        "loop_of_constants_never_starts: Negative → Abs (Negative_3)",
        "loop_of_constants_never_starts: Abs → Negative (Abs_4)",
    ),
    "another number of iterations gives the same": (
        "loop_of_open_rank_without_first_condition: ReduceSum → ReduceMax (ReduceSum_4)",
        "loop_of_open_rank_without_first_condition: Less → GreaterEqual (Less_6)",
        "loop_stack_for_unused_state: Less → GreaterEqual (Less_5)",
        "loop_stack_for_unused_state: Less → GreaterEqual (Less_3)",
    ),
    "the sign is taken away": ("loop_output_unused: Negative → Abs (Negative_6)",),
    "the result is not taken: a shape has no -1": (
        "loop_state_grows_in_rank: Maximum → Minimum (Maximum_32)",
        "loop_state_grows_in_rank: Divide → Multiply (Divide_33)",
    ),
}
"""Changes that no input can show, by the reason."""

_LAYER = r'<layer id="(?P<id>\d+)" name="[^"]*" type="(?P<type>\w+)" version="opset\d+">'


@dataclass(frozen=True)
class Change:
    """The text of an IR of which a body's layer is another, and which layer that is."""

    layer: str
    text: str


def changes(ir: str, everywhere: bool = False) -> Iterator[Change]:
    """Every change of one layer in a body of an IR, or anywhere, by its text."""
    for match in re.finditer(_LAYER, ir):
        new = CHANGES.get(match["type"])
        before = ir[: match.start()]
        depth = len(re.findall(r"<(?:then_|else_)?body>", before))
        if new and (everywhere or depth > len(re.findall(r"</(?:then_|else_)?body>", before))):
            if match["type"] in _SAME_TWICE and _has_one_source(ir[match.end() :], match["id"]):
                continue
            changed = match[0].replace(f'type="{match["type"]}"', f'type="{new}"')
            name = re.search('name="([^"]*)"', match[0])
            assert name is not None
            layer = f"{match['type']} → {new} ({name[1]})"
            yield Change(layer, before + changed + ir[match.end() :])


def _has_one_source(rest: str, layer: str) -> bool:
    """Whether both inputs of a layer are one value, by the text behind it: the edges that follow
    the end of its own graph's layers are its graph's."""
    depth = 1
    for tag in re.finditer(r"<(/?)layers>", rest):
        depth += -1 if tag[1] else 1
        if depth == 0:
            edges = rest[tag.end() : rest.index("</edges>", tag.end())]
            sources = r'from-layer="(\d+)" from-port="(\d+)" to-layer="' + layer + '"'
            return len(set(re.findall(sources, edges))) == 1
    raise ValueError(f"layer {layer} stands in no graph")


_HEAD = '<ir_version: 9, opset_import: ["": 19]> m '
ROUNDED = {
    "f16": """(float16[4,64] x) => (float16[4,64] y, float16[4] e)
        <float16[64,64] w = {}, float16[64] b = {}, float16[64] half = {}> {
        p = MatMul (x, w) s = Add (p, b) g = Sigmoid (s) h = Mul (s, g) n = Sub (h, x)
        a = Abs (n) d = Add (a, half) q = Sqrt (d) u = Div (h, q) t = Tanh (u)
        y = Softmax <axis = -1> (t) ax = Constant <value = int64[1] {-1}> ()
        e = ReduceSum <keepdims = 0> (u, ax) }""",
    "int8": """(float[1,8,16,16] x) => (float[1,8,16,16] y, float[1,8] e)
        <float[8,8,3,3] w = {}, float[8] b = {}, float one = {0.0311}, float two = {0.0173},
        int8 none = {0}, uint8 middle = {117}, float small = {0.1}> {
        q = QuantizeLinear (x, one, middle) d = DequantizeLinear (q, one, middle)
        v = QuantizeLinear (w, two, none) f = DequantizeLinear (v, two, none)
        c = Conv <pads = [1, 1, 1, 1]> (d, f, b) s = Sigmoid (c) h = Mul (c, s)
        r = QuantizeLinear (h, one, middle) k = DequantizeLinear (r, one, middle)
        l = Add (k, d) z = Relu (l) i = Abs (l) j = Add (i, small) o = Div (z, j)
        g = QuantizeLinear (o, two, none) y = DequantizeLinear (g, two, none)
        ax = Constant <value = int64[2] {2, 3}> () e = ReduceSum <keepdims = 0> (k, ax) }""",
    "qlinear": """(float[1,8,16,16] x) => (float[1,8] y) <float one = {0.0311},
        int8[8,8,3,3] w1 = {}, int8[8,8,3,3] w2 = {}, int8[8,8,3,3] w3 = {},
        int8[8,8,3,3] w4 = {}, int8[8,8,3,3] w5 = {}, int8[8,8,3,3] w6 = {},
        float small = {0.005}, int8 none = {0}, uint8 middle = {117}> {
        q = QuantizeLinear (x, one, middle)
        a = QLinearConv <pads = [1, 1, 1, 1]> (q, one, middle, w1, small, none, one, middle)
        b = QLinearConv <pads = [1, 1, 1, 1]> (a, one, middle, w2, small, none, one, middle)
        c = QLinearConv <pads = [1, 1, 1, 1]> (b, one, middle, w3, small, none, one, middle)
        d = QLinearConv <pads = [1, 1, 1, 1]> (c, one, middle, w4, small, none, one, middle)
        e = QLinearConv <pads = [1, 1, 1, 1]> (d, one, middle, w5, small, none, one, middle)
        f = QLinearConv <pads = [1, 1, 1, 1]> (e, one, middle, w6, small, none, one, middle)
        g = DequantizeLinear (f, one, middle) h = Sigmoid (g) i = Mul (g, h)
        ax = Constant <value = int64[2] {2, 3}> () y = ReduceMean <keepdims = 0> (i, ax) }""",
}
"""Models in which much is rounded, so that their own noise is large; with random weights."""


def rounded(kind: str, folder: Path) -> Path:
    """One of the `ROUNDED` models, as a file."""
    model = onnx.parser.parse_model(_HEAD + ROUNDED[kind])
    rng = np.random.default_rng(0)
    for tensor in model.graph.initializer:
        if not tensor.raw_data and (tensor.name[0] == "w" or tensor.name in ("b", "half")):
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
            drawn = rng.normal(size=tuple(tensor.dims)) * (40 if dtype.kind == "i" else 0.25)
            drawn = np.abs(drawn) if tensor.name == "half" else drawn
            tensor.CopyFrom(onnx.numpy_helper.from_array(drawn.astype(dtype), tensor.name))
    onnx.save(model, folder / f"{kind}.onnx")
    return folder / f"{kind}.onnx"


def found(
    model: Path, folder: Path, everywhere: bool = False
) -> Iterator[tuple[Change, str, float]]:
    """The changes in the IR of a model that some input may show, the first line of each check, and
    the seconds it took."""
    ir = folder / "m.xml"
    bridge.convert(model, ir)
    other = folder / "changed.xml"
    (folder / "changed.bin").write_bytes(ir.with_suffix(".bin").read_bytes())
    never_shown = {layer for layers in NEVER_SHOWN.values() for layer in layers}
    for change in changes(ir.read_text(encoding="utf-8"), everywhere):
        if f"{model.stem}: {change.layer}" in never_shown:
            continue
        other.write_text(change.text, encoding="utf-8")
        began = time.monotonic()
        try:
            said = check(model, other, timeout=10).summary().splitlines()[0]
        except BridgeError as error:
            said = f"error: {error}".splitlines()[0]
        yield change, said, time.monotonic() - began


def main(patterns: list[str]) -> None:
    """Prints a line for each change, and how many were found."""
    total = missed = 0
    models = {path for pattern in patterns for path in FOLDER.glob(pattern)}
    chosen: list[Path | str] = sorted(p for p in models if p.suffix in (".xml", ".onnxtxt"))
    for one in [*chosen, *(kind for kind in ROUNDED if kind in patterns)]:
        with tempfile.TemporaryDirectory() as folder:
            model = rounded(one, Path(folder)) if isinstance(one, str) else one
            for change, said, seconds in found(model, Path(folder), isinstance(one, str)):
                total += 1
                missed += said.startswith("OK")
                mark = "MISSED" if said.startswith("OK") else "found"
                print(
                    f"{mark:6} {seconds:5.1f} s  {model.name}: {change.layer}: {said}", flush=True
                )
    print(f"{total - missed} of {total} changes were found")


if __name__ == "__main__":
    main(sys.argv[1:] or ["if_*", "loop_*", *ROUNDED])
