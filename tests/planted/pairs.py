"""Makes pairs: a model, its conversion with a fault, and an input that shows it.

The fault is planted in an IR: in the conversion of an ONNX model, or, where an IR is the original,
in what its conversion to ONNX is made from.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Set
from dataclasses import asdict, dataclass
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import openvino

import bridge
from tests.planted.faults import KINDS
from tests.planted.ir import IrFile
from tests.planted.models import Feed, Planted, node_tests, own_models, roundtrip_models
from tests.support.running import EXACT, OnnxRuntime

SAMPLES = 45
NONE: frozenset[int] = frozenset()
HOMES = {"NaN": "nan_", "-0": "zero", "tiny sign": "tiny"}
"""Models, by a part of their name, whose inputs can show what few others show."""

_MARGIN = 4
"""A fault counts if it is this many times as large as what right files may differ by."""


@dataclass(frozen=True)
class Pair:
    """A pair in a folder. `shown` says how the witness, `witness.npz`, shows the fault."""

    number: int
    kind: str
    model: str
    original: str
    written: str
    fault: str
    shown: str

    def save(self, folder: Path) -> None:
        (folder / "fault.json").write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")

    @staticmethod
    def load(folder: Path) -> Pair:
        return Pair(**json.loads((folder / "fault.json").read_text(encoding="utf-8")))


class _Ir:
    """An IR in OpenVINO, inputs by position, a fresh request for each."""

    def __init__(self, path: Path) -> None:
        self.compiled = openvino.Core().compile_model(path, "CPU", EXACT)

    def run(self, feed: Feed) -> list[np.ndarray]:
        request = self.compiled.create_infer_request()
        request.infer(list(feed.values()), share_inputs=False)
        return [np.array(tensor.data) for tensor in request.output_tensors]


def _engine(path: Path) -> OnnxRuntime | _Ir:
    return OnnxRuntime(path) if path.suffix == ".onnx" else _Ir(path)


@cache
def _group(name: str) -> list[Planted]:
    return {"own": own_models, "roundtrip": roundtrip_models, "nodes": node_tests}[name]()


def _order(rng: np.random.Generator, text: str) -> Iterator[Planted]:
    """Models in a drawn order; the few that are written here come as often as the others."""
    groups = ["own", "roundtrip", "nodes"]
    if any(text == one.name for one in _group("own")):
        groups = ["own"]
    while True:
        chosen = [one for one in _group(str(rng.choice(groups))) if text in one.name]
        if chosen:
            yield chosen[int(rng.integers(len(chosen)))]


def make(number: int, seed: int, folder: Path, text: str = "") -> Pair | None:
    """The pair of a number, in a folder of its own; None if no attempt came to one."""
    rng = np.random.default_rng([seed, number])
    kind = list(KINDS)[number % len(KINDS)]
    for model in islice(_order(rng, text or HOMES.get(kind, "")), 100):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            pair = _attempt(number, kind, model, rng, folder)
        except Exception:  # an engine, or Bridge, takes no such file
            continue
        if pair:
            pair.save(folder)
            return pair
    shutil.rmtree(folder, ignore_errors=True)
    return None


def _attempt(
    number: int, kind: str, model: Planted, rng: np.random.Generator, folder: Path
) -> Pair | None:
    original, target = model.write(folder), folder / "written.xml"
    if rng.random() < 0.3:
        bridge.convert(original, folder / "original.xml")
        original.unlink()
        original, target = folder / "original.xml", folder / "written.onnx"
    bridge.convert(original, target)
    first = int(rng.integers(1000)) * 3
    feeds = [feed for n in range(SAMPLES) if (feed := model.domain(first + n)) is not None]
    feeds, before = _answers(original, feeds)
    if len(feeds) < 2:
        return None
    right = _answers(target, feeds, strict=True)[1]
    again = _answers(original, feeds[:1])[1][0]
    random = {n for n in range(len(again)) if _apart([before[0][n]], [again[n]], model.noise)}
    if not right or any(
        _apart(a, b, model.noise, random) for a, b in zip(before[:12], right[:12], strict=True)
    ):
        return None
    ir = original if target.suffix == ".onnx" else target
    file = IrFile(ir)
    found = list(KINDS[kind](file, rng))
    if not found:
        return None
    fault, act = found[int(rng.integers(len(found)))]
    act()
    if ir == original:
        ir = folder / "wrong.xml"
    file.save(ir)
    if ir != target:
        bridge.convert(ir, target)
    session = _engine(target)
    for feed, old, expected in zip(feeds, right, before, strict=True):
        new = session.run(feed)
        shown = _apart(expected, new, model.noise * _MARGIN, random)
        if shown and _apart(old, new, model.noise * _MARGIN, random):
            np.savez(folder / "witness.npz", **feed)
            return Pair(number, kind, model.name, original.name, target.name, fault, shown)
    return None


def _answers(
    path: Path, feeds: list[Feed], strict: bool = False
) -> tuple[list[Feed], list[list[np.ndarray]]]:
    """What an engine makes of inputs, and the inputs that it takes; all must be if `strict`."""
    session = _engine(path)
    taken, answers = [], []
    for feed in feeds:
        try:
            answers.append(session.run(feed))
            taken.append(feed)
        except Exception:
            if strict:
                return [], []
    return taken, answers


def _apart(
    expected: list[np.ndarray], actual: list[np.ndarray], allowed: float, random: Set[int] = NONE
) -> str:
    """How two lists of outputs differ by more than a share of their ranges; "" if they do not. Of
    `random` outputs the shape counts alone."""
    if len(expected) != len(actual):
        return f"{len(actual)} outputs for {len(expected)}"
    for place, (one, two) in enumerate(zip(expected, actual, strict=True)):
        if one.shape != two.shape:
            return f"output {place}: {two.shape} for {one.shape}"
        if place in random:
            wrong = False
        elif one.dtype.kind not in "fV":
            wrong = one != two
        else:
            x, y = one.astype(np.float64), two.astype(np.float64)
            finite = np.isfinite(x)
            scale = np.abs(x[finite]).max(initial=0)
            same = (x == y) | (np.isnan(x) & np.isnan(y))
            with np.errstate(invalid="ignore"):
                wrong = ~(same | (np.abs(x - y) <= allowed * (np.abs(x) + scale)))
        if np.any(wrong):
            at = tuple(int(n) for n in np.argwhere(wrong)[0])
            return f"output {place} at {list(at)}: {two[at]} for {one[at]}"
    return ""
