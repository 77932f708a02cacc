"""The outcome of a program in both formats and both engines, found in another process."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx

import bridge
from bridge.check.isolation import LostProcessError, Worker
from tests.support.running import OnnxRuntime, OpenVino, assert_close, flat

TIMEOUT = 60.0  # seconds for a program
Feeds = Sequence[Mapping[str, Any]]
Close = Callable[[Sequence[Any], Sequence[Any]], None]
Step = Callable[..., Any]
"""Calls a function with what it is about, and ends the judgement where it raises."""

NO_PROGRAM = "no program"
"""The verdict on a model that onnxruntime does not run either."""

ALLOWED = "refused as an option allows"
"""The verdict on a model that a device cannot run, or whose Ifs allow no selection."""

ORIGINAL = "onnxruntime"
"""The step that runs the model itself."""


@dataclass(frozen=True)
class Verdict:
    """`kind` is "right", or where it went wrong and how."""

    kind: str
    detail: str = ""

    @property
    def is_failure(self) -> bool:
        return self.kind not in ("right", NO_PROGRAM, ALLOWED)

    @property
    def symptom(self) -> str:
        """The kind and the first words about it, without numbers: where and how it went wrong."""
        words = [line for line in self.detail.splitlines() if not line.startswith("Exception from")]
        return self.kind + re.sub(r"\d+", "", "".join(words[:2]))


class Stop(Exception):
    """Ends a judgement with its verdict."""


_worker = Worker()


def judge(
    model: onnx.ModelProto,
    feeds: Feeds,
    convert: Callable[..., Any] = bridge.convert,
    close: Close = assert_close,
    seconds: float = TIMEOUT,
    form: Any = None,
) -> Verdict:
    """Runs a model in onnxruntime, its IR in OpenVINO, and the ONNX that comes back in onnxruntime.
    `close` asserts that the numbers are the same. With a form of `saved.FORMS` the IR is saved so
    first, and it is the original. With an `options.Use` it is converted and called so.

    Another process does this. If it crashes or hangs, that is a verdict, too.
    """
    fresh = _worker.process is None
    verdict = _in_worker(model, feeds, convert, close, seconds, form)
    if verdict.kind.endswith(ENDS) and not fresh:
        # An earlier program may have left the process broken; a new one shows whose fault it is.
        verdict = _in_worker(model, feeds, convert, close, seconds, form)
    return verdict


ENDS = "process ends"


def _in_worker(
    model: onnx.ModelProto,
    feeds: Feeds,
    convert: Callable[..., Any],
    close: Close,
    seconds: float,
    form: Any,
) -> Verdict:
    with TemporaryDirectory() as name:
        folder = Path(name)
        data = model.SerializeToString()
        try:
            return _worker.call(
                _verdict, data, feeds, convert, folder, close, form, seconds=seconds
            )
        except LostProcessError as error:
            about = (folder / STEP).read_text() if (folder / STEP).exists() else "starting"
            how = ENDS if ENDED in str(error) else "timeout"
            none = about == ORIGINAL or (isinstance(form, str) and about in MAKING)
            return Verdict(NO_PROGRAM if none else f"{about}: {how}", str(error))


ENDED = "ended the process"
STEP = "step.txt"
"""Writes down the current step, so that it is known when the process crashes."""

MAKING = ("to IR", "saved")
"""The steps that make an IR to begin with."""


def _verdict(
    data: bytes,
    feeds: Feeds,
    convert: Callable[..., Any],
    folder: Path,
    close: Close,
    form: Any,
) -> Verdict:
    step, model = partial(_step, folder), onnx.load_from_string(data)
    try:
        if form is None:
            _judge(model, feeds, convert, folder, close, step)
        elif isinstance(form, str):
            from tests.programs.saved import judge_saved

            judge_saved(form, model, feeds, folder, close, step)
        else:
            from tests.programs.options import judge_used

            judge_used(form, model, feeds, folder, close, step)
    except Stop as stop:
        return stop.args[0]
    return Verdict("right")


def _step(folder: Path, about: str, kind: str, function: Any, *arguments: Any) -> Any:
    """Calls a function, and raises Stop where it raises."""
    (folder / STEP).write_text(about)
    try:
        return function(*arguments)
    except (AssertionError, Exception) as error:
        detail = f"{type(error).__name__}: {error}"
        if kind == NO_PROGRAM:
            raise Stop(Verdict(NO_PROGRAM, f"{about}: {detail}")) from None
        kind = "wrong" if isinstance(error, AssertionError) else kind
        kind = "refused" if isinstance(error, bridge.BridgeError) else kind
        raise Stop(Verdict(f"{about}: {kind}", detail)) from None


def _judge(
    model: onnx.ModelProto,
    feeds: Feeds,
    convert: Callable[..., Any],
    folder: Path,
    close: Close,
    step: Step,
) -> None:
    """Raises Stop at the first thing that goes wrong."""
    original = step(ORIGINAL, NO_PROGRAM, OnnxRuntime, model)
    expected = [flat(step(ORIGINAL, NO_PROGRAM, original.run, feed)) for feed in feeds]
    there, back = folder / "there.xml", folder / "back.onnx"
    step("to IR", "error", convert, model, there)
    boundary = bridge.Boundary.of(there)
    names = [output.name for output in model.graph.output]
    engine = step("OpenVINO", "does not load", OpenVino, there)
    request = engine.compiled.create_infer_request()
    for feed, wanted in zip(feeds, expected, strict=True):
        about = "OpenVINO"
        found = step(about, "fails", engine.run_once, request, boundary, feed)
        outputs = flat([found[name] for name in names])
        if not same(outputs, wanted, close):
            found = step(about, "fails", engine.run_once, request, boundary, feed)
            if same(flat([found[name] for name in names]), wanted, close):
                about = "OpenVINO, right the second time"
        step(about, "", close, outputs, wanted)
    step("back to ONNX", "error", convert, there, back)
    again = step("back in onnxruntime", "does not load", OnnxRuntime, back)
    for feed, wanted in zip(feeds, expected, strict=True):
        outputs = flat(step("back in onnxruntime", "fails", again.run, feed))
        step("back in onnxruntime", "", close, outputs, wanted)


def same(actual: Sequence[np.ndarray], wanted: Sequence[np.ndarray], close: Close) -> bool:
    """Whether the numbers are the same by `close`."""
    try:
        close(actual, wanted)
    except AssertionError:
        return False
    return True
