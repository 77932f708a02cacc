"""What becomes of a program in both formats and both engines, found in a process of its own."""

from __future__ import annotations

import multiprocessing
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import openvino

import bridge
from tests.support.running import OnnxRuntime, OpenVino, assert_close, flat

TIMEOUT = 60.0  # seconds for a program
Feeds = Sequence[Mapping[str, Any]]

NO_PROGRAM = "no program"
"""The verdict on a model that onnxruntime does not run either."""

ORIGINAL = "onnxruntime"
"""The step that runs the model itself."""


@dataclass(frozen=True)
class Verdict:
    """`kind` is "right", or where it went wrong and how."""

    kind: str
    detail: str = ""

    @property
    def is_failure(self) -> bool:
        return self.kind not in ("right", NO_PROGRAM)

    @property
    def symptom(self) -> str:
        """The kind and the first words about it, without numbers: where and how it went wrong."""
        words = [line for line in self.detail.splitlines() if not line.startswith("Exception from")]
        return self.kind + re.sub(r"\d+", "", "".join(words[:2]))


class _Stop(Exception):
    """Ends a judgement with its verdict."""


def warm_up(programs: Sequence[onnx.ModelProto]) -> None:
    """Has this process import what the processes that it starts need, and starts no thread."""
    openvino.Core().get_versions("CPU")
    with TemporaryDirectory() as folder, suppress(bridge.BridgeError):
        for model in programs:
            there = Path(folder) / "there.xml"
            bridge.convert(model, there)
            bridge.to_onnx(there)


def judge(model: onnx.ModelProto, feeds: Feeds) -> Verdict:
    """Runs a model in onnxruntime, its IR in OpenVINO, and what comes back of that in onnxruntime.

    A process of its own does it, whose end or silence is a verdict, too.
    """
    context = multiprocessing.get_context("fork")
    near, far = context.Pipe(duplex=False)
    child = context.Process(target=_send, args=(far, model, feeds))
    child.start()
    far.close()
    # What a process is about comes first, so that it is known where it ends.
    about = "starting"
    try:
        while near.poll(TIMEOUT):
            said = near.recv()
            if isinstance(said, Verdict):
                return said
            about = said
        return _broken_off(about, "timeout", "")
    except EOFError:
        child.join()
        return _broken_off(about, "process ends", str(child.exitcode))
    finally:
        child.kill()
        child.join()


def _broken_off(about: str, how: str, detail: str) -> Verdict:
    return Verdict(NO_PROGRAM if about == ORIGINAL else f"{about}: {how}", detail)


def _send(connection: Connection, model: onnx.ModelProto, feeds: Feeds) -> None:
    try:
        with TemporaryDirectory() as folder:
            _judge(model, feeds, Path(folder), connection)
        verdict = Verdict("right")
    except _Stop as stop:
        verdict = stop.args[0]
    connection.send(verdict)


def _judge(model: onnx.ModelProto, feeds: Feeds, folder: Path, connection: Connection) -> None:
    """Raises _Stop at the first thing that goes wrong."""

    def step(about: str, kind: str, function: Any, *arguments: Any) -> Any:
        connection.send(about)
        try:
            return function(*arguments)
        except (AssertionError, Exception) as error:
            kind = "wrong" if isinstance(error, AssertionError) else kind
            kind = "refused" if isinstance(error, bridge.BridgeError) else kind
            name = about if kind == NO_PROGRAM else f"{about}: {kind}"
            kind = NO_PROGRAM if kind == NO_PROGRAM else name
            raise _Stop(Verdict(kind, f"{type(error).__name__}: {error}")) from None

    original = step(ORIGINAL, NO_PROGRAM, OnnxRuntime, model)
    expected = [flat(step(ORIGINAL, NO_PROGRAM, original.run, feed)) for feed in feeds]
    there, back = folder / "there.xml", folder / "back.onnx"
    step("to IR", "error", bridge.convert, model, there)
    boundary = bridge.Boundary.of(there)
    names = [output.name for output in model.graph.output]
    engine = step("OpenVINO", "does not load", OpenVino, there)
    request = engine.compiled.create_infer_request()
    for feed, wanted in zip(feeds, expected, strict=True):
        about = "OpenVINO"
        found = step(about, "fails", engine.run_once, request, boundary, feed)
        outputs = flat([found[name] for name in names])
        if not _same(outputs, wanted):
            found = step(about, "fails", engine.run_once, request, boundary, feed)
            if _same(flat([found[name] for name in names]), wanted):
                about = "OpenVINO, right the second time"
        step(about, "", assert_close, outputs, wanted)
    step("back to ONNX", "error", bridge.convert, there, back)
    again = step("back in onnxruntime", "does not load", OnnxRuntime, back)
    for feed, wanted in zip(feeds, expected, strict=True):
        outputs = flat(step("back in onnxruntime", "fails", again.run, feed))
        step("back in onnxruntime", "", assert_close, outputs, wanted)


def _same(actual: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> bool:
    try:
        assert_close(actual, wanted)
    except AssertionError:
        return False
    return True
