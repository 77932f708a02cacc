"""The verdict on two models, if one does not take the inputs of the other."""

from __future__ import annotations

from bridge.check.engines import EngineError
from bridge.check.runs import Runs
from bridge.check.suite import Suite
from bridge.errors import UsageError
from bridge.neutral.graph import Model, Value
from bridge.neutral.types import TensorType

_SHOWN = 5


def require_related(suite: Suite, runs: Runs) -> None:
    """Raises UsageError, in one line, if the other model took no input because its inputs differ.

    They differ in number, or in type: by name, or else by place."""
    if not suite.is_pair or not all(isinstance(run.outcome, EngineError) for run in runs.runs):
        return
    first, other = (suite.model(variant.path) for variant in suite.variants)
    if _differ(first, other):
        raise UsageError(
            f"inputs differ: {suite.original.path.name} takes {_said(first)}; "
            f"{suite.others[0].label} takes {_said(other)}"
        )


def _differ(first: Model, other: Model) -> bool:
    named = {name: value for value in first.graph.inputs for name in value.names}
    pairs = [(named.get(value.name), value) for value in other.graph.inputs]
    if any(mine is None for mine, _ in pairs):
        if len(first.graph.inputs) != len(pairs):
            return True
        pairs = list(zip(first.graph.inputs, other.graph.inputs, strict=True))
    return any(mine is not None and _unlike(mine, its) for mine, its in pairs)


def _unlike(mine: Value, its: Value) -> bool:
    """Whether no tensor fits both inputs."""
    if not (isinstance(mine.type, TensorType) and isinstance(its.type, TensorType)):
        return False
    kinds = {value.element and value.element.kind for value in (mine, its)} - {None}
    ranks = {value.rank for value in (mine, its)} - {None}
    return len(kinds) > 1 or len(ranks) > 1


def _said(model: Model) -> str:
    inputs = [f"{value.name} {value.type}" for value in model.graph.inputs]
    more = [f"{len(inputs) - _SHOWN} more"] if len(inputs) > _SHOWN else []
    return ", ".join([*inputs[:_SHOWN], *more]) or "no input"
