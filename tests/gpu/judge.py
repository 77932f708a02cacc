"""What becomes of a model on the device."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx

import bridge
from bridge.check.isolation import LostProcessError, TooLongError, Worker
from tests.gpu.cases import Case
from tests.support.running import OnnxRuntime, OpenVino, assert_close, flat

SECONDS = 240.0
"""How long a model may take; the device compiles some for a minute."""

TOLERANCES = {2: 1e-2, 4: 2e-4, 8: 2e-4}
"""Relative and absolute, by the bytes of a float. A GPU adds in another order than a CPU, and
computes 16-bit floats in 16 bits and 64-bit floats in 32."""

KINDS = ("right", "refused", "wrong", "does not compile", "fails", "crashes", "never ends")
"""The verdicts. `no model` is said of a model that the engine of its format does not run."""

NO_MODEL = "no model"

MAKES, CONVERTS, COMPILES, RUNS = "making it", "converting", "compiling", "running"
STEP = "step.txt"
"""The file in which the process notes its step, for the case that it ends there."""


@dataclass(frozen=True)
class Verdict:
    """A kind, and the message of the engine. `cpu` is the kind for the same file on the CPU plugin,
    unless the GPU plugin was right."""

    kind: str
    said: str = ""
    cpu: str = ""

    @property
    def cause(self) -> str:
        """The place in OpenVINO's sources that the message names, or its first words. For a wrong
        output, the kind of request, and whether values or shapes are wrong."""
        if self.kind == "wrong":
            request = "fresh" if "a fresh request" in self.said else "used"
            what = re.search(r"output \d+: (\S+) for (\S+)", self.said)
            return f"{request} request, {'type or shape' if what else 'values'}"
        places = re.findall(r"src/[\w/.]+:\d+", self.said)
        places = [place for place in places if "src/inference" not in place]
        if places:
            return places[-1].rpartition("/")[2]
        return re.sub(r"[\d.]+", "", self.said)[:60]


RANDOM = "random"
"""The verdict on a model whose outputs are drawn."""

FINE = ("right", "refused", NO_MODEL, RANDOM)

TOGETHER = 60
"""How many models one process runs. The plugin keeps what it has built."""


class Processes:
    """Processes that judge models, many one after the other, because each takes seconds to start.

    A model that is not right is judged again in a new process, so that none is blamed for what an
    earlier one left behind. What is not right there is judged on the CPU plugin too.
    """

    def __init__(self) -> None:
        self._on = {"GPU": Worker(), "CPU": Worker()}
        self._judged = 0

    def close(self) -> None:
        """Ends the processes."""
        for worker in self._on.values():
            worker.close()

    def verdict(self, function: Callable[..., Verdict], *arguments: Any) -> Verdict:
        """What `function(*arguments, folder, plugin)` finds; it notes its steps in the folder."""
        self._judged += 1
        if self._judged % TOGETHER == 0:
            self._on["GPU"].close()
        is_new = self._on["GPU"].process is None
        found = self._found("GPU", function, *arguments)
        if found.kind not in (*FINE, "does not compile") and not is_new:
            self._on["GPU"].close()
            found = self._found("GPU", function, *arguments)
        if found.kind in FINE:
            return found
        return replace(found, cpu=self._found("CPU", function, *arguments).kind)

    def _found(self, plugin: str, function: Callable[..., Verdict], *arguments: Any) -> Verdict:
        with TemporaryDirectory() as name:
            folder = Path(name)
            call = self._on[plugin].call
            try:
                found = call(function, *arguments, folder, plugin, seconds=SECONDS)
                assert isinstance(found, Verdict)
                return found
            except LostProcessError as error:
                step = (folder / STEP).read_text() if (folder / STEP).exists() else MAKES
                if step == MAKES:
                    return Verdict(NO_MODEL, str(error))
                kind = "never ends" if isinstance(error, TooLongError) else "crashes"
                return Verdict(kind, f"{step}: {error}")


def apart(case: Case) -> Verdict:
    """The verdict on a model, found in processes of its own."""
    with closing(Processes()) as processes:
        return processes.verdict(judge, case)


class _Stop(Exception):
    """Ends a judgement with its verdict."""


def judge(case: Case, folder: Path, plugin: str) -> Verdict:
    """The verdict on a model, converted for GPU, on this plugin of OpenVINO."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _judge(case, folder, plugin)
        except _Stop as stop:
            return stop.args[0]
    return Verdict("right")


def _judge(case: Case, folder: Path, plugin: str) -> None:
    """Raises _Stop at the first thing that goes wrong."""

    def step(about: str, kind: str, function: Any, *arguments: Any) -> Any:
        (folder / STEP).write_text(about)
        try:
            return function(*arguments)
        except (AssertionError, Exception) as error:
            if isinstance(error, bridge.UnsupportedError):
                kind = "refused"
            said = " ".join(str(error).split())
            said = said if len(said) < 600 else f"{said[:200]} ... {said[-400:]}"
            raise _Stop(Verdict(kind, f"{about}: {said}")) from None

    scratch, written = folder / "made", folder / "device.xml"
    scratch.mkdir()
    model, feeds = step(MAKES, NO_MODEL, case.make, *case.arguments, scratch)
    expected = step(MAKES, NO_MODEL, _expected, model, feeds)
    step(CONVERTS, "fails to convert", lambda: bridge.convert(model, written, device="GPU"))
    engine = step(COMPILES, "does not compile", OpenVino, written, plugin)
    boundary, names = bridge.Boundary.of(written), _names(model)
    used = engine.compiled.create_infer_request()
    runs = [(engine.compiled.create_infer_request(), number) for number in range(len(feeds))]
    runs += [(used, number) for number in (*range(len(feeds)), *range(len(feeds)))]
    for request, number in runs:
        where = f"in a {'used' if request is used else 'fresh'} request"
        about = f"{RUNS} input {number} {where}"
        found = step(about, "fails", _outputs, engine, request, boundary, feeds[number], names)
        step(about, "wrong", assert_close, found, expected[number], TOLERANCES)


def _names(model: onnx.ModelProto | Path) -> Sequence[str] | None:
    return None if isinstance(model, Path) else [output.name for output in model.graph.output]


def _expected(
    model: onnx.ModelProto | Path, feeds: Sequence[Mapping[str, Any]]
) -> list[list[np.ndarray]]:
    """The outputs of the original in onnxruntime; those of an IR in OpenVINO's CPU plugin."""
    if isinstance(model, Path):
        original = OpenVino(model)
        return [original.run(list(feed.values())) for feed in feeds]
    session = OnnxRuntime(model)
    return [flat(session.run(feed)) for feed in feeds]


def _outputs(
    engine: OpenVino,
    request: Any,
    boundary: bridge.Boundary,
    feed: Mapping[str, Any],
    names: Sequence[str] | None,
) -> list[np.ndarray]:
    from tests.support.running import run_request

    if names is None:
        return run_request(request, list(feed.values()))
    found = engine.run_once(request, boundary, feed)
    return flat([found[name] for name in names])
