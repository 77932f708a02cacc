"""Plants one change in a body of an IR, and tabulates whether a check finds it.

    python -m tests.engines.planted [PATTERN ...]      models of `roundtrip_models/`, by glob

What a check does not find is listed with what it says it did not show. A layer of a value with
itself whose change gives that value again is left out; other changes that no input can show (the
result is never used, say) are the reader's to judge.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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

_LAYER = r'<layer id="(?P<id>\d+)" name="[^"]*" type="(?P<type>\w+)" version="opset\d+">'


@dataclass(frozen=True)
class Change:
    """The text of an IR of which a body's layer is another, and which layer that is."""

    layer: str
    text: str


def changes(ir: str) -> Iterator[Change]:
    """Every change of one layer in a body of an IR, by its text."""
    for match in re.finditer(_LAYER, ir):
        new = CHANGES.get(match["type"])
        before = ir[: match.start()]
        depth = len(re.findall(r"<(?:then_|else_)?body>", before))
        if new and depth > len(re.findall(r"</(?:then_|else_)?body>", before)):
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


def found(model: Path, folder: Path) -> Iterator[tuple[Change, str, float]]:
    """The changes in the IR of a model, the first line of each check, and the seconds it took."""
    ir = folder / "m.xml"
    bridge.convert(model, ir)
    other = folder / "changed.xml"
    (folder / "changed.bin").write_bytes(ir.with_suffix(".bin").read_bytes())
    for change in changes(ir.read_text(encoding="utf-8")):
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
    for model in sorted(path for path in models if path.suffix in (".xml", ".onnxtxt")):
        with tempfile.TemporaryDirectory() as folder:
            for change, said, seconds in found(model, Path(folder)):
                total += 1
                missed += said.startswith("OK")
                mark = "MISSED" if said.startswith("OK") else "found"
                print(
                    f"{mark:6} {seconds:5.1f} s  {model.name}: {change.layer}: {said}", flush=True
                )
    print(f"{total - missed} of {total} changes were found")


if __name__ == "__main__":
    main(sys.argv[1:] or ["if_*", "loop_*"])
