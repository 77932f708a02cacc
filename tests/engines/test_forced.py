"""What comes of forcing branches that no input reaches."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import bridge
from bridge.check.branches import Forced
from bridge.check.compare import Difference, compare
from bridge.check.engines import EngineError, OnnxRuntime, Session, ValueInfo
from bridge.check.force import Opened, force
from bridge.check.inputs.recipe import Case, Recipe
from bridge.check.suite import Models
from bridge.neutral.graph import Model

TEXT = """<ir_version: 9, opset_import: ["" : 18]>
g (float[N] x) => (float[N] y) {
  s = ReduceSum <keepdims = 0> (x)
  c = Greater (s, s)
  y = If (c) <then_branch = t () => (float[N] a) { a = Exp (x) },
              else_branch = e () => (float[N] b) { b = Neg (x) }>
}"""
THEN = (0, 1)
SOME = Case(Recipe(0), {"x": np.array([1, 2], np.float32)}, {}, frozenset({(0, 0)}))
EMPTY = Case(Recipe(0), {"x": np.zeros(0, np.float32)}, {}, frozenset({(0, 0)}))


def differences(expected: Mapping[str, Any], actual: Mapping[str, Any]) -> dict[str, Difference]:
    return {name: compare(value, actual[name], 1e-3, 1e-5) for name, value in expected.items()}


def loaded(text: str) -> Model:
    return bridge.load(onnx.parser.parse_model(text))


class Failing:
    """A session that no input runs in."""

    inputs: tuple[ValueInfo, ...] = ()
    outputs: tuple[ValueInfo, ...] = ()

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        raise EngineError("it fails")


def forced(folder: Path, other: str, cases: list[Case], failing: bool = False) -> Forced:
    def open_all(models: Models) -> Opened:
        sessions: list[Session] = []
        for name, model in zip("ab", models, strict=True):
            assert model is not None
            bridge.save(model, folder / f"{name}.onnx")
            sessions.append(OnnxRuntime().load(folder / f"{name}.onnx"))
        return [("a", sessions[0]), ("b", Failing() if failing else sessions[1])]

    models = loaded(TEXT), loaded(other)
    (result,) = force(models, [THEN], cases, open_all, differences)
    return result


@pytest.mark.parametrize(("op", "wrong"), [("Exp", ()), ("Elu", ("b",))])
def test_a_branch_in_both_models(op: str, wrong: tuple[str, ...], tmp_path: Path) -> None:
    result = forced(tmp_path, TEXT.replace("Exp", op), [EMPTY, SOME])
    assert result.branch == THEN and result.wrong == wrong and result.given is not None
    assert result.given is not None and result.given["x"] is SOME.feeds["x"]
    assert result.text.startswith("b: 'y': 2 of 2 elements differ" if wrong else "")


def test_empty_inputs_are_used_if_nothing_else_is_there(tmp_path: Path) -> None:
    result = forced(tmp_path, TEXT, [EMPTY])
    assert result.given is not None and not result.wrong


def test_nothing_to_try(tmp_path: Path) -> None:
    result = forced(tmp_path, TEXT, [])
    assert result.given is None and "no input to try" in result.text


def test_a_model_that_fails_in_a_branch_is_wrong(tmp_path: Path) -> None:
    result = forced(tmp_path, TEXT, [SOME], failing=True)
    assert result.wrong == ("b",) and "it fails" in result.text
