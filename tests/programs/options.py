"""Two or three options of a conversion together, and a model that is called as a server calls it:
one request over changing sizes, two beside each other, and outputs that are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import helper, inliner

import bridge
from tests.programs.verdict import ALLOWED, NO_PROGRAM, ORIGINAL, Close, Feeds, Step, Stop, Verdict
from tests.support.running import OnnxRuntime, OpenVino, flat, given, taken

BEFORE, AFTER = "past", "present"
"""The input and the output that are a state."""

OPTIONS: Mapping[str, tuple[Any, ...]] = {
    "values": ({"c": True}, {"c": False}, {"k": 0}, {"k": 2}, {"c": True, "k": 1}),
    "input_shapes": (
        {"x": (None, 3)}, {"x": ("rows", 3)}, {"x": (bridge.Interval(0, 8), 3)}, {"w": (3,)},
        {"x": (2, 3)}, {"x": (None, None)},
    ),
    "layout": ({"x": "NC->CN"}, {"x": "NC"}),
    "mean": ({"x": 0.5}, {"x": (0.5, 0, -0.5)}),
    "scale": ({"x": 2}, {"x": (2, 1, 4)}),
    "input_types": ({"x": "u8"},),
    "ifs": ("keep", "select", "select-some", "select-some"),
    "device": ("ANY", "GPU", "NPU"),
    "openvino": ("2024.0", "2024.6", "2025.2", "2026.0"),
    "compress_to_fp16": (True,),
    "stateful": ({BEFORE: AFTER},),
    "opset": (13, 17, 21, 25),
    "rename": ({"x": "pixels"},),
}  # fmt: skip
"""Options, and what each may be. `opset` is for the way back."""

Pairs = Sequence[tuple[dict[str, Any], dict[str, Any]]]
"""What the original takes, and what the file takes for it."""

FLOATS = ("mean", "scale", "input_types")
"""Options that only floats have."""


@dataclass(frozen=True)
class Use:
    """How a model is converted."""

    options: Mapping[str, Any]

    def of(self, model: onnx.ModelProto) -> Mapping[str, Any]:
        """The options that name what the model has."""
        names, outputs = ({v.name for v in g} for g in (model.graph.input, model.graph.output))
        found = {}
        for name, choice in self.options.items():
            kept = choice
            if isinstance(choice, Mapping):
                kept = {one: value for one, value in choice.items() if one in names}
            if kept and name != "opset" and (name != "stateful" or AFTER in outputs):
                found[name] = kept
        if "->" in str(found.get("layout")) and "x" in found.get("input_shapes", {}):
            found["input_shapes"] = {"x": found["input_shapes"]["x"][::-1]}
        if "rename" in found:  # Other options take the new names.
            new = found["rename"]
            for name in found.keys() & {"values", "input_shapes", "layout", *FLOATS}:
                found[name] = {new.get(one, one): value for one, value in found[name].items()}
        return found

    def accepts(self, feed: Mapping[str, Any]) -> bool:
        """Whether the file takes inputs of these sizes."""
        rows = self.options.get("input_shapes", {}).get("x", (None,))[0]
        if "x" in feed and len(feed["x"]) == 0 and self.options.get("ifs", "keep") != "keep":
            return False  # A Scan of a branch that is not taken runs, and OpenVINO fails.
        return not isinstance(rows, int) or len(feed["x"]) == rows

    def both(self, feed: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """What the original takes, and what the file takes for it."""
        options = self.options
        is_fed = "w" in options.get("input_shapes", {})  # Else it is a constant, its default value.
        theirs = {name: value for name, value in feed.items() if name != "w" or is_fed}
        ours = theirs | {
            name: np.array(value, feed[name].dtype)
            for name, value in options.get("values", {}).items()
            if name in feed
        }
        theirs = {
            name: value for name, value in theirs.items() if name not in options.get("values", {})
        }
        if "x" in feed:
            x = feed["x"]
            if options.keys() & {"mean", "scale"}:
                mean, scale = (
                    options.get(n, {}).get("x", d) for n, d in (("mean", 0), ("scale", 1))
                )
                ours["x"] = ((x - np.array(mean, x.dtype)) / np.array(scale, x.dtype)).astype(
                    x.dtype
                )
            if "input_types" in options:
                theirs["x"] = x.astype(np.uint8)
            if "->" in str(options.get("layout")):
                theirs["x"] = theirs["x"].T.copy()
            new = options.get("rename", {}).get("x", "x")
            theirs = {new if name == "x" else name: value for name, value in theirs.items()}
        return ours, theirs


def drawn_use(random: Random, model: onnx.ModelProto) -> Use:
    """Up to three options that a model with these inputs may have."""
    elements = {value.name: value.type.tensor_type.elem_type for value in model.graph.input}
    is_float = helper.tensor_dtype_to_np_dtype(elements["x"]).kind == "f"
    able = [name for name in OPTIONS if is_float or name not in FLOATS]
    able = [name for name in able if BEFORE in elements or name != "stateful"]
    return Use(
        {name: random.choice(OPTIONS[name]) for name in random.sample(able, random.randint(0, 3))}
    )


@dataclass
class _Row:
    """Calls in a row, of one request, and of the original with the state that it gave."""

    original: OnnxRuntime
    names: list[str]
    state: Any = None

    def expected(self, feed: Mapping[str, Any]) -> dict[str, Any] | None:
        """The outputs, None if the original has none for this input."""
        if self.state is not None:
            feed = {**feed, BEFORE: self.state}
        try:
            found = dict(zip(self.names, self.original.run(feed), strict=True))
        except Exception:
            return None
        if self.state is not None:
            self.state = found[AFTER]
        return found


def loaded(model: onnx.ModelProto) -> OnnxRuntime:
    """The model in onnxruntime; without its functions if onnxruntime cannot inline them."""
    try:
        return OnnxRuntime(model)
    except Exception:
        return OnnxRuntime(inliner.inline_local_functions(model))


@dataclass
class _Server:
    """The file of a model, compiled once, and what its requests are compared with."""

    engine: OpenVino
    boundary: bridge.Boundary
    names: Mapping[str, str]
    """The outputs of the file, by their names in the original."""
    close: Close
    step: Step

    def start(self, request: Any, feed: Mapping[str, Any]) -> None:
        fed = {name: v for name, v in feed.items() if name not in self.boundary.constants}
        packed = bridge.pack(self.boundary, fed)
        ports = self.engine.compiled.inputs
        given(request, [packed[next(n for n in p.get_names() if n in packed)] for p in ports])
        request.start_async()

    def compare(self, about: str, request: Any, wanted: Mapping[str, Any] | None) -> bool:
        """Whether there was something to compare; else the call may fail as the original does."""
        if wanted is None:
            with suppress(RuntimeError):
                request.wait()
            return False
        self.step(about, "fails", request.wait)
        found = bridge.unpack(self.boundary, self.engine.named(request))
        theirs = [found[name] for name in self.names.values()]
        self.step(about, "", self.close, flat(theirs), flat([wanted[name] for name in self.names]))
        return True


def _judge_requests(server: _Server, original: _Row, pairs: Pairs) -> None:
    """One request over all sizes; two beside each other; what the first gave last stays there."""
    requests = [server.engine.compiled.create_infer_request() for _ in range(3)]
    rows = [replace(original) for _ in requests]
    kept: list[Any] = []
    numbers = range(len(pairs))
    calls = [("one request", [(0, number)]) for number in numbers]
    calls += [("beside another", [(1, n), (2, len(pairs) - 1 - n)]) for n in numbers]
    for where, together in calls:
        about = f"OpenVINO, {where}"
        wants = [rows[which].expected(pairs[number][0]) for which, number in together]
        for which, number in together:
            server.step(about, "fails", server.start, requests[which], pairs[number][1])
        for (which, _), wanted in zip(together, wants, strict=True):
            compared = server.compare(about, requests[which], wanted)
            if which == 0:
                kept = [taken(requests[0], copies=copies) for copies in (False, True)] * compared
    if kept:
        server.step("OpenVINO, kept outputs", "", server.close, *kept)


def _convert(step: Step, about: str, refusable: bool, convert: Callable[[], Any]) -> None:
    try:
        step(about, "error", convert)
    except Stop as stop:
        verdict: Verdict = stop.args[0]
        older = "which is read from" in verdict.detail  # of an operator that OpenVINO got later
        if (refusable or older) and verdict.kind.endswith("refused"):
            raise Stop(Verdict(ALLOWED, verdict.detail)) from None
        raise


def judge_used(
    use: Use, model: onnx.ModelProto, feeds: Feeds, folder: Path, close: Close, step: Step
) -> None:
    """Runs the file of a model with options, and what comes back of it, beside the original."""
    options, names = use.of(model), [output.name for output in model.graph.output]
    original = _Row(step(ORIGINAL, NO_PROGRAM, loaded, model), names)
    pairs = [use.both(feed) for feed in feeds if use.accepts(feed)]
    step(ORIGINAL, NO_PROGRAM, lambda: next(f for f, _ in pairs if original.expected(f)))
    there, back = folder / "there.xml", folder / "back.onnx"
    refusable = options.get("device") in ("GPU", "NPU") or options.get("ifs") == "select"
    _convert(step, "to IR", refusable, lambda: bridge.convert(model, there, **options))
    if options.get("device", "CPU") == "CPU":
        has_state = "stateful" in options
        engine = step("OpenVINO", "does not load", OpenVino, there)
        kept = [name for name in names if not (has_state and name == AFTER)]
        # An input that is an output, too, and is prepared or renamed, has another name there.
        ports = [port.get_any_name() for port in engine.compiled.outputs]
        held = dict(zip(kept, ports if len(ports) == len(kept) else kept, strict=True))
        server = _Server(engine, bridge.Boundary.of(there), held, close, step)
        zeros = np.zeros_like(pairs[0][0][BEFORE]) if has_state else None
        _judge_requests(server, replace(original, state=zeros), pairs)
    opset = use.options.get("opset")
    older = opset is not None  # It may lack a type.
    _convert(step, "back to ONNX", older, lambda: bridge.convert(there, back, opset=opset))
    again = step("back in onnxruntime", "does not load", OnnxRuntime, back)
    wants = {one.name for one in again.session.get_inputs()}
    for ours, theirs in pairs:
        wanted = original.expected(ours)
        if wanted is not None:
            feed = {name: value for name, value in theirs.items() if name in wants}
            found = step("back in onnxruntime", "fails", again.run, feed)
            step("back in onnxruntime", "", close, flat(found), flat(list(wanted.values())))
