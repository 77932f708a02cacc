"""The suite's Ifs when both branches run and a selection takes the result."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import bridge
from tests.conformance.bodies import NoFormError
from tests.control_flow.judge import NO_PROGRAM, Verdicts, case_of, line, run_ir, run_onnx, said
from tests.control_flow.suite import Entry, feeds_of
from tests.support.running import flat

ROUTES = {"ONNX": ".onnx", "IR": ".xml", "back": ".onnx"}
"""The suffix of each route's file: from ONNX, and from the IR that Bridge makes of it."""

REFUSED = frozenset({"text", "texts", "optional", "nothing optional"})
"""Outputs of branches that ONNX cannot select: strings of other sizes, and optionals."""


def judge_selected(entry: Entry) -> Verdicts:
    """Converts a program with `ifs="select"` along all routes, and runs the models without an
    If."""
    with warnings.catch_warnings(), TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        try:
            case = case_of(entry)
        except NoFormError:
            return {}
        except Exception as error:
            return {NO_PROGRAM: line(error)}
        feeds = feeds_of(case)
        expected = [flat(outputs) for _, outputs in case.data_sets]
        names = [output.name for output in case.model.graph.output]
        plain = Path(folder) / "plain.xml"
        verdicts: Verdicts = {}
        for route, suffix in ROUTES.items():
            target = Path(folder) / f"{route}{suffix}"
            try:
                if route == "back":
                    bridge.convert(case.model, plain)
                bridge.convert(plain if route == "back" else case.model, target, ifs="select")
            except Exception as error:
                verdicts[route] = line(error)
                continue
            if any(node.op == "If" for node in bridge.load(target).graph.walk()):
                verdicts[route] = "an If is left"
            elif suffix == ".xml":
                verdicts[route] = said(run_ir, target, names, feeds, expected)
            else:
                verdicts[route] = said(run_onnx, target, feeds, expected)
        return verdicts


def summary(found: Iterable[Verdicts]) -> str:
    """The number of programs that lost all Ifs and of programs that are refused, by route."""
    counts = Counter(
        (route, "right" if said == "right" else "refused" if _is_refusal(said) else "wrong")
        for verdicts in found
        for route, said in verdicts.items()
        if route in ROUTES
    )
    return "\n".join(
        f"  {route}: {count} {what}" for (route, what), count in sorted(counts.items())
    )


def _is_refusal(said: str) -> bool:
    return said.startswith("refused") and "without Ifs" in said


def is_right(entry: Entry, route: str, said: str) -> bool:
    """Whether the verdict on a route is "right", or ONNX refuses an If of strings or optionals. In
    IR all of these are tensors of one rank."""
    levels = dict(entry.levels)
    in_onnx_alone = REFUSED & {levels["then"], levels["otherwise"]} and route != "IR"
    refused = bool(in_onnx_alone) and _is_refusal(said)
    return route == NO_PROGRAM or said == "right" or refused
