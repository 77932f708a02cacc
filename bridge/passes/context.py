"""The settings of a pass beside the model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from bridge.neutral.builder import Target
from bridge.neutral.graph import Graph, Model
from bridge.neutral.types import Dim
from bridge.options import ConvertOptions
from bridge.records.boundary import BoundaryRecord
from bridge.report import Report

_Answer = TypeVar("_Answer")


@dataclass(eq=False)
class Context:
    """The target of a rewriting, and its settings.

    `report` collects notes for users. `options` are the user's options. `disbelieved` collects the
    declared shapes of outputs, by name, whose ranks data decide. `boundary` collects the known
    meanings of inputs and outputs. `answers` are those of `ask` about the graph as it is; the
    pipeline keeps them.
    """

    target: Target
    report: Report
    options: ConvertOptions = field(default_factory=lambda: ConvertOptions())
    disbelieved: dict[str, tuple[Dim, ...]] = field(default_factory=dict)
    boundary: BoundaryRecord = field(default_factory=lambda: BoundaryRecord({}, {}, []))
    answers: dict[Callable[[Graph], Any], Any] | None = None

    def ask(self, question: Callable[[Graph], _Answer], graph: Graph) -> _Answer:
        """The answer to a question about the model's graph, found once for each state of it. A pass
        asks before it changes anything."""
        if self.answers is None:
            return question(graph)
        if question not in self.answers:
            self.answers[question] = question(graph)
        answer: _Answer = self.answers[question]
        return answer

    def watch(self, model: Model, step: str) -> None:
        """Calls the function of the option `debug`, if there is one, after a step."""
        debug = self.options.get("debug")
        if callable(debug):
            debug(model, step)

    @property
    def output_ranks(self) -> Mapping[str, int]:
        """The ranks that the user gave outputs, by name."""
        return self.options.get("output_ranks") or {}
