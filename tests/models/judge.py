"""The outcome of a model both ways, as a line of the table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx

import bridge
from bridge.check import check
from bridge.check.compare import differences
from bridge.check.isolation import LostProcessError, isolated
from bridge.check.report import CheckReport
from bridge.neutral.graph import Model
from tests.models.generation import same_tokens
from tests.support.reports import whole_feeds_of
from tests.support.running import EXACT, OnnxRuntime

HEAD = (
    "| group | model | OpenVINO's own | IR | back | branches shown | Ifs before | in IR | nodes "
    "before | back | tokens of the stateful IR | of one decoder |"
)


def row(group: str, name: str, make: Callable[[Path], Path], folder: Path) -> str:
    """A line of the table."""
    folder.mkdir(parents=True)
    path = make(folder)
    report = check(path)
    bridge.convert(path, folder / "ir.xml")
    bridge.convert(folder / "ir.xml", folder / "back.onnx")
    model, ir, back = (bridge.load(folder / f) for f in (path.name, "ir.xml", "back.onnx"))
    states = [report.branches.state(branch).state for branch in report.branches.all]
    tokens: list[int | str] = ["", ""]
    if any(value.name == "use_cache_branch" for value in model.graph.inputs):
        for place, one_decoder in enumerate((False, True)):
            stateful = folder / f"stateful-{place}.xml"
            try:
                bridge.convert(path, stateful, stateful=True, one_decoder=one_decoder)
            except bridge.UsageError:  # the model has no single decoder
                tokens[place] = "refused"
                continue
            tokens[place] = same_tokens(path, stateful)
    shown = sum(state in ("reached", "forced", "failing", "pruned") for state in states)
    cells = (
        group, name, own_reading(path, report), verdict(report, 1), verdict(report, 2),
        f"{shown} of {len(states)}", ifs(model), ifs(ir), nodes(model), nodes(back), *tokens,
    )  # fmt: skip
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def verdict(report: CheckReport, version: int) -> str:
    """The outcome of a version: right, wrong or refused."""
    if len(report.versions) <= version:
        return "refused"
    label = report.versions[version].label
    results = [result for result in report.verdict.results if result.label == label]
    right = results and all(result.ok for result in results)
    return "right" if right and not report.failures else "wrong"


def own_reading(path: Path, report: CheckReport) -> str:
    """The outcome of OpenVINO's own reading of the file with the inputs of a check."""
    feeds = whole_feeds_of(report)
    try:
        found = isolated(_read_by_openvino, path, feeds, seconds=300)
    except LostProcessError:
        return "ends"  # a crash, or no end
    except Exception:
        return "refused"
    session = OnnxRuntime(path)
    names = [port.name for port in onnx.load(path).graph.output]
    for feed, outputs in zip(feeds, found, strict=True):
        expected = dict(zip(names, session.run(feed), strict=True))
        if outputs is None or not all(
            how.ok for how in differences(expected, outputs, report.tolerances).values()
        ):
            return "wrong"
    return "right"


def _read_by_openvino(path: Path, feeds: list[dict[str, np.ndarray]]) -> list[object]:
    import openvino

    model = openvino.Core().compile_model(path, "CPU", EXACT)
    taken = {name for port in model.inputs for name in port.names}
    found: list[object] = []
    for feed in feeds:
        try:
            results = model({name: x for name, x in feed.items() if name in taken})
            found.append({n: results[port] for port in model.outputs for n in port.names})
        except RuntimeError:
            found.append(None)
    return found


def ifs(model: Model) -> int:
    """The number of Ifs in a model, at any depth."""
    return sum(node.op == "If" for node in model.graph.walk())


def nodes(model: Model) -> int:
    """The number of nodes in a model without constants, at any depth."""
    return sum(node.op != "Constant" for node in model.graph.walk())
