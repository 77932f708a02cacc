"""The outcome of a model that a tool has made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import onnx
import onnxruntime
import openvino

from bridge.check import check
from tests.support.reports import feeds_of
from tests.tools.changes import TOOLS
from tests.tools.programs import PROGRAMS
from tests.tools.sources import sources


def sources_in(folder: Path, extra: list[Path]) -> dict[str, Path]:
    """The files of the sources, by name."""
    given = {path.stem: path for path in extra}
    for name, model in sources():
        given[name] = folder / f"{name}.onnx"
        onnx.save(model, given[name])
    return given


def outcome(tool: str, name: str, source: Path | None, target: Path) -> tuple[str, str]:
    """The outcome of a model: a word, and the details if it is not "right"."""
    target.unlink(missing_ok=True)
    try:
        if source is None:
            onnx.save(PROGRAMS[tool][name](), target)
        else:
            feeds = feeds_of(check(source, source, samples=8)) if tool.startswith("static") else []
            TOOLS[tool](source, target, feeds)
    except Exception as error:
        return "the tool fails", f"{type(error).__name__}: {error}"[:1000]
    report = check(target, samples=2)
    if report.ok:
        return "right", ""
    if not _opens(onnxruntime.InferenceSession, target):
        return "the tool's model is none to onnxruntime", str(report)
    is_refused = any(failure.startswith("conversion: ") for failure in report.failures)
    if is_refused and not _opens(openvino.Core().read_model, target):
        return "refused, as by OpenVINO", str(report)
    return "not right", str(report)


def _opens(open: Callable[[str], object], model: Path) -> bool:
    try:
        open(str(model))
    except Exception:
        return False
    return True


def jobs(folder: Path, extra: list[Path], chosen: str) -> Iterator[tuple[str, str, Path | None]]:
    """Each tool with a model's name and its file."""
    given = sources_in(folder, extra)
    for tool in TOOLS:
        yield from ((tool, name, source) for name, source in given.items() if chosen in tool)
    for tool, programs in PROGRAMS.items():
        yield from ((tool, name, None) for name in programs if chosen in tool)
