"""What a pass is told beside the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bridge.neutral.boundary_record import BoundaryRecord
from bridge.neutral.builder import Target
from bridge.neutral.graph import Model
from bridge.neutral.types import Dim
from bridge.options import ConvertOptions
from bridge.report import Report


@dataclass(eq=False)
class Context:
    """What a model is rewritten for, and how.

    `report` takes what users should know. `options` are the user's. `disbelieved` takes the shapes
    that the file declares of outputs, by name, though data decide their ranks; `boundary` takes
    what inputs and outputs are known to stand for. `watch` is called with the model after each
    step.
    """

    target: Target
    report: Report
    options: ConvertOptions = field(default_factory=lambda: ConvertOptions())
    watch: Callable[[Model, str], None] | None = None
    disbelieved: dict[str, tuple[Dim, ...]] = field(default_factory=dict)
    boundary: BoundaryRecord = field(default_factory=lambda: BoundaryRecord({}, {}, []))

    @property
    def output_ranks(self) -> Mapping[str, int]:
        """The ranks that the user gave outputs, by name."""
        return self.options.get("output_ranks") or {}
