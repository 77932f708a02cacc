"""Whole models of a folder inside a body: in a branch of an If, in a Loop, in a Scan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import bridge
from bridge.check.compare import ATOL, RTOL, Tolerances, compare
from bridge.check.inputs import Recipe, free_dimensions, make_inputs
from tests.conformance.bodies import BODIES, NoFormError
from tests.conformance.cases import Case
from tests.programs.verdict import Feeds, Verdict, judge
from tests.support.running import OnnxRuntime

SECONDS = 300.0
"""The most that one model in one body may take."""

SIZES = (4, 32, 64)
"""Sizes for all open dimensions of a model, tried in turn."""


def splice(folder: Path, every: int) -> int:
    """Judges each N-th model of a folder in each body. Returns 1 when one is not right, or
    none could be judged."""
    counts: Counter[str] = Counter()
    for path in sorted(folder.glob("*.onnx"))[::every]:
        for body, model, feeds in _spliced(path):
            verdict = judge(model, feeds, close=check_close, seconds=SECONDS)
            counts[verdict.kind] += 1
            print(f"{path.name} in {body}: {verdict.kind} {verdict.detail[:600]}", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in counts.most_common()))
    return int(not counts or any(Verdict(kind).is_failure for kind in counts))


def check_close(actual: Sequence[Any], expected: Sequence[Any]) -> None:
    """Asserts the closeness that `bridge check` requires of whole models."""
    assert len(actual) == len(expected)
    tolerances = Tolerances()
    for position, (got, want) in enumerate(zip(actual, expected, strict=True)):
        difference = compare(want, got, *tolerances.of("", want))
        assert difference.ok, f"output {position}: {difference}"


def _spliced(path: Path) -> Iterator[tuple[str, onnx.ModelProto, Feeds]]:
    """The bodies that hold the model of a file, with the model around each and its inputs."""
    try:
        case = _case(path)
    except NoFormError as error:
        print(f"{path.name}: left out: {error}", flush=True)
        return
    for body, wrapped in BODIES.items():
        try:
            found = wrapped(case)
        except NoFormError:
            continue
        found.model.functions.extend(case.model.functions)
        names = [value.name for value in found.model.graph.input]
        feeds = [dict(zip(names, given, strict=True)) for given, _ in found.data_sets]
        yield body, found.model, feeds


def _case(path: Path) -> Case:
    """The model of a file with inputs that onnxruntime accepts, and the outputs for them. Raises
    NoFormError if onnxruntime accepts none."""
    model = onnx.load(path)
    defaults = {tensor.name for tensor in model.graph.initializer}
    for value in [value for value in model.graph.input if value.name in defaults]:
        model.graph.input.remove(value)
    session, known = OnnxRuntime(model), bridge.load(model)
    for size in SIZES:
        sizes = dict.fromkeys(free_dimensions(known), size)
        feed = make_inputs(known, Recipe(sizes=sizes))
        with suppress(Exception):
            given = tuple(np.asarray(feed[value.name]) for value in model.graph.input)
            return Case(path.name, model, ((given, tuple(session.run(feed))),), RTOL, ATOL)
    raise NoFormError("onnxruntime does not take the inputs that are drawn")
