"""What a pass is told beside the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bridge.neutral.boundary_record import BoundaryRecord
from bridge.neutral.builder import Target
from bridge.neutral.types import Dim
from bridge.report import Report


@dataclass(frozen=True)
class Context:
    """What a model is rewritten for, and how.

    `report` takes what users should know. `keep_branches` turns off the pruning of branches that
    could not run; `compress_to_fp16` stores f32 constants of an IR as f16; `quirks` says which
    workarounds of engines' faults are applied, "default" or "none". `debug` has passes check
    themselves. `named` are the inputs that the user gave a shape, `output_ranks` the ranks that the
    user gave outputs, by name. `stateful` says which inputs and outputs become variables: pairs, or
    those that are some by their names; `beams` that their sequences are reordered before a call.
    `disbelieved` takes the shapes that the file declares of outputs, by name, though data decide
    their ranks; `boundary` takes what inputs and outputs are known to stand for.
    """

    target: Target
    report: Report
    keep_branches: bool = False
    compress_to_fp16: bool = False
    quirks: str = "default"
    debug: bool = False
    named: frozenset[str] = frozenset()
    output_ranks: Mapping[str, int] = field(default_factory=dict)
    stateful: bool | Mapping[str, str] = False
    beams: bool = False
    disbelieved: dict[str, tuple[Dim, ...]] = field(default_factory=dict)
    boundary: BoundaryRecord = field(default_factory=lambda: BoundaryRecord({}, {}, []))
